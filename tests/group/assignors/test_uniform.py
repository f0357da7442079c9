"""The assignor `uniform` against Kafka's classes, and what it promises."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.group.assignors import uniform
from kafkalite.group.assignors.assignment import GroupSpec, MemberSpec
from kafkalite.group.slices import complete
from tests.group.assignors.spec import of_case, spec
from tests.group.assignors.vectors import assignment, cases, in_order, name
from tests.group.work import calls_of

TOPICS = [UUID(int=number << 100 | number) for number in range(1, 5)]


def assign_uniformly(group):
    return complete(uniform.assign_uniformly(group))


@pytest.mark.parametrize("case", cases("uniform"), ids=name)
def test_results_are_kafkas(case):
    expected = {member: assignment(topics) for member, topics in case["result"].items()}
    assert in_order(assign_uniformly(of_case(case))) == in_order(expected)


def test_nobody_gets_nothing():
    assert assign_uniformly(spec({}, {})) == {}


def test_who_reads_nothing_gets_nothing():
    topic = TOPICS[0]
    assert assign_uniformly(spec({"a": []}, {})) == {"a": {}}
    assert assign_uniformly(spec({"a": [], "b": [topic]}, {topic: 2})) == {
        "a": {},
        "b": {topic: [0, 1]},
    }


def test_who_was_there_keeps_what_is_its_share():
    topic = TOPICS[0]
    group = spec({"a": [topic], "b": [topic]}, {topic: 3}, had={"a": {topic: [0, 1, 2]}})
    assert assign_uniformly(group) == {"a": {topic: [0, 1]}, "b": {topic: [2]}}


@st.composite
def groups(draw):
    counts = {topic: draw(st.integers(0, 6)) for topic in TOPICS}
    members = draw(st.lists(st.text("abcdef", min_size=1, max_size=3), unique=True, max_size=6))
    same = draw(st.booleans())
    first = draw(st.lists(st.sampled_from(TOPICS), unique=True))
    reads = {
        member: first if same else draw(st.lists(st.sampled_from(TOPICS), unique=True))
        for member in members
    }
    return reads, counts, same


@given(groups(), groups())
def test_each_partition_has_one_owner_that_reads_it(before, after):
    """Also where the targets are those of a group that was quite another."""
    had = assign_uniformly(made(*before, {}))
    reads, counts, same = after
    counts = {topic: max(count, before[1][topic]) for topic, count in counts.items()}
    result = assign_uniformly(made(reads, counts, same, had))
    given_out = [
        (topic, partition)
        for topics in result.values()
        for topic, partitions in topics.items()
        for partition in partitions
    ]
    wanted = {topic for topics in reads.values() for topic in topics}
    assert sorted(given_out) == sorted(
        (topic, partition) for topic in wanted for partition in range(counts[topic])
    )
    assert all(topic in reads[member] for member in result for topic in result[member])
    if same and reads:
        loads = [sum(map(len, topics.values())) for topics in result.values()]
        assert max(loads) - min(loads) <= 1


def made(reads, counts, same, had):
    return GroupSpec(
        members=[
            MemberSpec(member, None, topics, had.get(member, {}))
            for member, topics in reads.items()
        ],
        is_homogeneous=same,
        partition_counts=counts,
    )


@pytest.mark.parametrize("reads_per_member", [1, 2, 4])
def test_work_grows_with_the_group_and_not_with_its_square(reads_per_member):
    """Decision 0082: slices are bounded, and so is how many there are."""

    def work(size):
        counts = dict.fromkeys(TOPICS, 2 * size)
        reads = {
            f"member {number}": [TOPICS[(number + step) % 4] for step in range(reads_per_member)]
            for number in range(size)
        }
        same = reads_per_member == len(TOPICS)
        had = assign_uniformly(made(reads, counts, same, {}))
        reads["new"] = reads.pop("member 0")
        return (
            calls_of(lambda: assign_uniformly(made(reads, counts, same, {}))),
            calls_of(lambda: assign_uniformly(made(reads, counts, same, had))),
        )

    assert all(large < 5 * small for small, large in zip(work(20), work(80), strict=True))
