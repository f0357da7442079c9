"""Apache Kafka's coordinator and this one, asked the same by consumers: answers side by side.

Random scripts of heartbeats (joins, owned partitions right and wrong, stale epochs, static members
that go and come, other topics, patterns and assignors, leaves), of members that speak the classic
protocol in the same group, which becomes a classic one and a consumer group again, of commits, also
in transactions, and fetches, of changes of topics, and what operators ask. The interval between
assignments is off, so that answers do not depend on the time. Then each reads the log that the
other wrote. Topic ids differ between the brokers, and are compared by name.
"""

import random

import pytest

from tests.group.apache_side import (
    both_brokers,
    both_sides,
    check_that_apache_reads,
    kinds_that_apache_wrote,
)
from tests.group.consumer.apache_pair import UPGRADES, Pair
from tests.group.consumer.apache_side import Side

pytestmark = [
    pytest.mark.kafka_dir,
    pytest.mark.slow,
    pytest.mark.xdist_group("consumers-beside-kafka"),
]

SCRIPTS = 60
STEPS = 60
SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "auto.create.topics.enable": "false",
}


USUAL = ("join", "keep", "keep", "acknowledge", "acknowledge", "acknowledge", "beat_classic")
ODD = ("say_all", "claim", "be_stale", "change", "leave", "misspell", "join_classic",
       "join_classic", "sync", "leave_classic", "go_classic")  # fmt: skip
OTHERS = (
    *(
        "commit",
        "commit",
        "commit_in_transaction",
        "fetch",
        "fetch",
        "grow",
        "describe",
        "describe",
        "list",
    ),
    *("describe_classic", "delete_offsets", "delete"),
)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    with both_brokers(tmp_path_factory.mktemp("oracle"), SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def sides(brokers):
    with both_sides(brokers, Side) as made:
        yield made


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_answers_are_the_same(sides, seed):
    rng = random.Random(seed)
    pair = Pair(sides, f"app{seed}", rng)
    done = []
    for _ in range(STEPS):
        member = rng.choice(pair.members)
        step = rng.choice(USUAL if rng.random() < 0.6 else rng.choice([ODD, OTHERS]))
        if member.classic and step in ("keep", "acknowledge", "say_all", "claim", "be_stale",
                                       "change", "leave"):  # fmt: skip
            step = "beat_classic"
        if member.epoch == 0 and step in ("keep", "acknowledge", "say_all", "claim", "change"):
            step = "join"
        done.append(f"{step}({member.member_id}, {member.epoch}, {member.has})")
        try:
            getattr(pair, step)(member)
        except AssertionError as difference:
            difference.add_note(f"seed {seed}: {'; '.join(done)}")
            raise


def test_each_reads_what_the_other_wrote(brokers, sides):
    """`kafka-dump-log` reads our records, and our codec those of Apache's, to the byte."""
    del sides
    assert UPGRADES
    _, _, folder = brokers
    # 2: classic, after the last consumer had gone
    check_that_apache_reads(folder, (2, 3, 5, 6, 7, 8, 16))
    assert {
        f"ConsumerGroup{kind}Key"
        for kind in (
            "Metadata",
            "MemberMetadata",
            "TargetAssignmentMetadata",
            "TargetAssignmentMember",
            "CurrentMemberAssignment",
        )
    } <= kinds_that_apache_wrote(folder)
