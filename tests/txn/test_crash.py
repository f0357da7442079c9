"""A broker that is killed between any two changes of its disk, and started again (rule 121).

Goal: a transaction takes place as a whole or not at all, in all its partitions and in the offsets
of its group; what was acknowledged stays; and no reader is held up for longer than the transaction
timeout, whatever was under way.

Method: one run notes the length of the disk's trace at each step; then a broker is started on the
disk as it was after each change, and looked at.
"""

from copy import copy

import pytest

from kafkalite.wire.errors import ErrorCode
from tests.txn.clients import (
    GENERATIONS,
    JAVA_4,
    OLD,
    Producer,
    committed_offset,
    consume,
    is_stable,
    offsets_partition,
)
from tests.txn.inprocess import InProcessBroker

TIMEOUT_MS = 60_000
GROUP = "g"


class Run:
    """What a client did, and when it knew what."""

    def __init__(self, generation):
        self.broker = InProcessBroker()
        self.generation = generation
        self.begun = {}
        """Transaction -> length of the trace before its EndTxn was sent."""
        self.known = {}
        """Transaction -> length of the trace when its EndTxn was answered."""
        self.outcome = {}
        self.producer = None

    @property
    def now(self):
        return len(self.broker.disk.trace)

    def transaction(self, number, *, commit, read_to=None):
        producer = self.producer
        producer.send("out", 0, f"{number}a", f"{number}b")
        producer.send("out", 1, f"{number}c")
        if read_to is not None:
            producer.commit_offsets(GROUP, {("in", 0): read_to})
        self.outcome[number] = commit
        self.begun[number] = self.now
        producer.end(commit=commit)
        self.known[number] = self.now


def values_of(number):
    return {f"{number}a", f"{number}b", f"{number}c"}


def check_after_crash(run, changes, torn=None):
    broker = run.broker.crashed(changes=changes, torn=torn)
    broker.advance(TIMEOUT_MS + 2_000)
    for topic, index in (("out", 0), ("out", 1)):
        assert is_stable(broker, topic, index), f"{topic}-{index} is stuck"
    partition = offsets_partition(broker, GROUP)
    assert partition.last_stable_offset == partition.high_watermark
    assert broker.transactions.unfinished() == 0
    seen = [*consume(broker, "out", 0), *consume(broker, "out", 1)]
    assert len(seen) == len(set(seen)), "seen twice"
    offset = committed_offset(broker, GROUP, "in")
    assert offset is not ErrorCode.UNSTABLE_OFFSET_COMMIT
    for number, commit in run.outcome.items():
        visible = values_of(number) & set(seen)
        assert visible in (set(), values_of(number)), "seen in part"
        if run.begun[number] >= changes or not commit:
            assert not visible, "seen though it was not committed"
        elif run.known[number] <= changes:
            assert visible, "lost"
    return broker, seen, offset


@pytest.mark.parametrize("generation", GENERATIONS)
def test_transactions_are_whole_wherever_the_broker_stops(generation):
    run = Run(generation)
    run.producer = Producer(run.broker, generation=generation).init()
    run.transaction(1, commit=True, read_to=10)
    run.transaction(2, commit=False, read_to=20)
    run.transaction(3, commit=True, read_to=30)
    assert run.broker.disk.trace
    for changes in range(run.now + 1):
        _, seen, offset = check_after_crash(run, changes)
        expected = 30 if "3a" in seen else 10 if "1a" in seen else -1
        assert offset == expected, "the offset is not that of what is seen"


@pytest.mark.parametrize("generation", [OLD, JAVA_4])
def test_transactions_are_whole_whatever_a_write_tears_off(generation):
    run = Run(generation)
    run.producer = Producer(run.broker, generation=generation).init()
    run.transaction(1, commit=True, read_to=10)
    trace = run.broker.disk.trace
    for changes, operation in enumerate(trace):
        if operation[0] == "append" and operation[1].endswith(".log"):
            for torn in (1, 30, len(operation[2]) - 1):
                check_after_crash(run, changes, torn)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_next_producer_gets_through_wherever_the_broker_stops(generation):
    """`initTransactions` must not hang."""
    run = Run(generation)
    run.producer = Producer(run.broker, generation=generation).init()
    run.transaction(1, commit=True)
    run.producer.send("out", 0, "never ended")
    for changes in range(run.now + 1):
        broker = run.broker.crashed(changes=changes)
        successor = Producer(broker, generation=generation).init()
        successor.send("out", 0, "after")
        successor.commit()
        seen = consume(broker, "out", 0)
        assert seen[-1] == "after"
        assert "never ended" not in seen
        assert is_stable(broker, "out", 0)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_producer_goes_on_after_any_crash(generation):
    """Its transaction is there with the broker, or it is told so: nothing in between."""
    run = Run(generation)
    run.producer = producer = Producer(run.broker, generation=generation).init()
    run.transaction(1, commit=True)
    producer.send("out", 0, "2")
    known = {name: copy(getattr(producer, name)) for name in ("identity", "added", "sequences")}
    start = run.now
    producer.end(commit=True)
    for changes in range(start, run.now + 1):
        broker = run.broker.crashed(changes=changes)
        again = Producer(broker, generation=generation)
        for name, value in known.items():
            setattr(again, name, copy(value))
        again.end(commit=True)  # the retry of what may have been done before the crash
        again.send("out", 1, "3")
        again.commit()
        assert consume(broker, "out", 0) == ["1a", "1b", "2"]
        assert consume(broker, "out", 1) == ["1c", "3"]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_timed_out_transaction_is_gone_wherever_the_broker_stops(generation):
    """Rule 118."""
    run = Run(generation)
    run.producer = Producer(run.broker, generation=generation).init()
    run.producer.send("out", 0, "a")
    run.producer.commit_offsets(GROUP, {("in", 0): 5})
    start = run.now
    run.broker.advance(TIMEOUT_MS + 2_000)
    for changes in range(start, run.now + 1):
        broker, seen, offset = check_after_crash(run, changes)
        assert (seen, offset) == ([], -1)
        assert consume(broker, "out", 0, committed=False) == ["a"]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_markers_are_not_written_twice_by_a_restart(generation):
    run = Run(generation)
    run.producer = Producer(run.broker, generation=generation).init()
    run.transaction(1, commit=True, read_to=5)
    ends = {key: p.log_end_offset for key, p in run.broker.replicas.all.items() if key[0] == "out"}
    broker = run.broker.crashed()
    for _ in range(3):
        assert {key: broker.partition(*key).log_end_offset for key in ends} == ends
        broker = broker.crashed()
