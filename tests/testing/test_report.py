"""What a failed test is told, made of facts."""

import pytest

from kafkalite.testing.report import (
    LINES_MAX,
    Facts,
    GroupFacts,
    Line,
    PartitionFacts,
    diagnosis,
    make_report,
    request_lines,
    state_lines,
)
from kafkalite.types import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
FULL = PartitionFacts(start=0, end=5, stable=5)
EMPTY = PartitionFacts(start=0, end=0, stable=0)


def line(at_s=0.0, api="Fetch", *, errors=(), ms=0.1, topics=(), **said):
    return Line(
        at_s=at_s,
        client_id="billing",
        api=api,
        version=4,
        errors=errors,
        ms=ms,
        topics=frozenset(topics),
        **said,
    )


def test_requests_that_repeat_are_folded():
    lines = [line(n, "Fetch") for n in range(5)]
    lines.insert(3, line(2.5, "Heartbeat"))
    lines += [line(6, "OffsetCommit"), line(7, "Heartbeat"), line(8, "OffsetCommit")]
    lines.append(line(9, "Heartbeat", errors=("REBALANCE_IN_PROGRESS",)))
    told = request_lines(lines)
    assert [text.split()[2] for text in told] == [
        "Fetch",
        "Heartbeat",
        "OffsetCommit",
        "Heartbeat",
    ]
    assert "(x2 until 8.000)" in told[2]
    assert "(x5 until 4.000)" in told[0]
    assert "-> REBALANCE_IN_PROGRESS 0.1 ms" in told[-1]
    assert "billing" in told[0]


def test_requests_of_a_report_are_bounded():
    lines = [line(n, "Produce", subject=f"t-{n}") for n in range(LINES_MAX + 7)]
    told = request_lines(lines)
    assert told[0] == "7 lines before these"
    assert len(told) == LINES_MAX + 1


def test_state_is_topics_groups_transactions_faults_and_the_clock():
    facts = Facts(
        now_s=1,
        topics={"orders": {0: FULL, 1: EMPTY}},
        groups={"g": GroupFacts(sentence="group 'g' is Empty", state="Empty", committed={P0: 3})},
        transactions=[("tx", "Ongoing")],
        faults=[("api=Produce", 2)],
        ahead_s=3_600,
        is_frozen=True,
    )
    assert state_lines(facts) == [
        "topic 'orders': offsets 0: 0-5, 1: 0-0",
        "group 'g' is Empty; lag 2",
        "transaction of 'tx' is Ongoing",
        "fault api=Produce: fired 2 times",
        "the broker's clock is +3600 s from the machine's, and frozen",
    ]


def group(state="Stable", reads=None, committed=None):
    return {"g": GroupFacts(sentence="", state=state, reads=reads or {}, committed=committed or {})}


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (Facts(now_s=1), "no client asked anything"),
        (
            Facts(
                now_s=1,
                lines=[line(errors=("UNKNOWN_TOPIC_OR_PARTITION",), topics=("ordres",))],
                topics={"orders": {0: FULL}},
            ),
            "topic 'ordres', which does not exist; there is 'orders'",
        ),
        (
            Facts(now_s=1, lines=[line(api="Produce", errors=("MESSAGE_TOO_LARGE",))]),
            "larger than max.message.bytes",
        ),
        (
            Facts(now_s=1, lines=[line(api="OffsetCommit", errors=("ILLEGAL_GENERATION",))]),
            "for a generation that is over",
        ),
        (
            Facts(now_s=9, lines=[line(2, "JoinGroup", ms=None, subject="group=g")]),
            "got no answer to JoinGroup (group=g) for 7.0 s",
        ),
        (
            Facts(now_s=1, lines=[line()], groups=group(state="PreparingRebalance")),
            "group 'g' is rebalancing",
        ),
        (
            Facts(
                now_s=1,
                lines=[line()],
                topics={"orders": {0: FULL, 1: FULL}},
                groups=group(reads={"a": [P0]}, committed={P0: 5}),
            ),
            "orders-1 has records, and no member of group 'g' reads it",
        ),
        (
            Facts(
                now_s=1,
                lines=[line()],
                topics={"orders": {0: FULL}},
                groups=group(reads={"a": [P0], "b": []}, committed={P0: 5}),
            ),
            "'b' of group 'g' has no partition",
        ),
        (
            Facts(
                now_s=1,
                lines=[line(api="ListOffsets", topics=("orders",))],
                topics={"orders": {0: FULL, 1: EMPTY}},
                groups=group(reads={"a": [P0, P1]}),
            ),
            "auto.offset.reset=latest it reads only what is written after",
        ),
        (
            Facts(
                now_s=1,
                lines=[line()],
                topics={"orders": {0: PartitionFacts(start=0, end=5, stable=2)}},
            ),
            "a transaction is open on orders-0: read_committed consumers see nothing from offset 2",
        ),
        (Facts(now_s=1, lines=[line()], faults=[("f", 3)]), "a fault rule fired 3 times: f"),
        (Facts(now_s=1, lines=[line()], faults=[("f", 0)]), "a fault rule never fired: f"),
        (Facts(now_s=1, lines=[line()], is_frozen=True), "clock is frozen"),
        (Facts(now_s=1, lines=[line()], ahead_s=90), "90 s ahead"),
    ],
)
def test_what_may_be_wrong_is_said_in_a_sentence(facts, sentence):
    assert any(sentence in each for each in diagnosis(facts)), diagnosis(facts)


def test_where_nothing_is_wrong_nothing_is_said():
    facts = Facts(
        now_s=1,
        lines=[line(api="ListOffsets", topics=("orders",))],
        topics={"orders": {0: FULL}},
        groups=group(reads={"a": [P0]}, committed={P0: 5}),
    )
    assert diagnosis(facts) == []
    assert [title for title, _ in make_report(facts).sections()] == [
        "requests to Kafka",
        "state of Kafka",
    ]
