"""Any order of what producers, time, faults and crashes can do, against what must come of it.

The model is what a user of transactions relies on: a transaction whose commit was acknowledged is
there, in all its partitions and with its offsets; every other one is not; and nothing stays open.
It knows nothing of states, epochs and markers.
"""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafkalite.txn.markers import RETRY_MS
from kafkalite.txn.settings import TransactionSettings
from kafkalite.wire.errors import ErrorCode
from tests.txn.clients import (
    GENERATIONS,
    Producer,
    Refused,
    committed_offset,
    consume,
    is_stable,
    offsets_partition,
)
from tests.txn.inprocess import InProcessBroker

TIMEOUT_MS = 10_000
PLACES = [("out", 0), ("out", 1), ("in", 0)]
GROUPS = ["g", "h"]
LOGS = ["out-0", "out-1", "in-0", "__consumer_offsets", "__transaction_state"]
IDS = ["tx", "ty", "tz"]

RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""Refusals after which a producer is what it was before."""


@dataclass
class Session:
    """One incarnation of a producer, and what its transaction under way consists of."""

    producer: Producer
    values: dict = field(default_factory=dict)
    offsets: dict = field(default_factory=dict)
    is_over: bool = False

    def forget(self):
        self.values, self.offsets = {}, {}


class Transactions(RuleBasedStateMachine):
    @initialize()
    def start(self):
        self.broker = InProcessBroker(
            transactions=TransactionSettings(
                max_timeout_ms=TIMEOUT_MS, abort_retry_interval_ms=1_000
            )
        )
        self.all = []
        self.latest = {}
        self.committed = {place: [] for place in PLACES}
        self.offsets = dict.fromkeys(GROUPS, (-1, -1))
        self.next_value = 0

    # --- What producers do

    @rule(name=st.sampled_from(IDS), generation=st.sampled_from(GENERATIONS))
    def new_incarnation(self, name, generation):
        """The one before may live on as a zombie."""
        producer = Producer(self.broker, name, generation, timeout_ms=TIMEOUT_MS)
        try:
            producer.init()
        except Refused as refusal:
            if refusal.code not in RETRIABLE:
                raise
            return
        self.all.append(Session(producer))
        self.latest[name] = self.all[-1]

    @rule(name=st.sampled_from(IDS))
    def go_on_after_an_error(self, name):
        """KIP-360."""
        session = self.session(name)
        session.producer.added = set()
        try:
            session.producer.init(goes_on=True)
        except Refused as refusal:
            self.refused(session, refusal)
        else:
            session.forget()

    @rule(
        name=st.sampled_from(IDS),
        sends=st.lists(st.tuples(st.sampled_from(PLACES), st.integers(1, 3)), max_size=4),
        group=st.sampled_from([None, *GROUPS]),
        offset=st.integers(0, 1000),
        trouble=st.sampled_from([None, None, None, *LOGS]),
        end=st.sampled_from(["commit", "commit", "abort", None, None]),
    )
    def work(self, name, sends, group, offset, trouble, end):
        """Part of a transaction, or a whole one."""
        self.broker.settle()
        session = self.session(name)
        for place, count in sends:
            self.send(session, place, count)
        if group is not None:
            self.commit_offset(session, group, offset)
        if trouble is not None:
            self.writes_fail(trouble, 1)
        if end is not None:
            self.end(session, commit=end == "commit")

    @rule(which=st.integers(0, 100), place=st.sampled_from(PLACES), commit=st.booleans())
    def zombie(self, which, place, commit):
        """Any incarnation that there ever was tries to go on."""
        if self.all:
            session = self.all[which % len(self.all)]
            self.send(session, place, 1)
            self.end(session, commit=commit)

    def session(self, name):
        if name not in self.latest or self.latest[name].is_over:
            self.recover()
            self.new_incarnation(name, GENERATIONS[len(self.all) % len(GENERATIONS)])
        return self.latest[name]

    def send(self, session, place, count):
        if session.is_over:
            return
        values = [f"v{self.next_value + index}" for index in range(count)]
        self.next_value += count
        try:
            session.producer.send(*place, *values)
        except Refused as refusal:
            self.refused(session, refusal)
        else:
            session.values.setdefault(place, []).extend(values)

    def commit_offset(self, session, group, offset):
        if session.is_over:
            return
        try:
            session.producer.commit_offsets(group, {("in", 0): offset})
        except Refused as refusal:
            self.refused(session, refusal)
        else:
            # Of two transactions that commit an offset, that counts which was written later.
            session.offsets[group] = (self.next_value, offset)
            self.next_value += 1

    def end(self, session, *, commit):
        if session.is_over:
            return
        has_begun = bool(session.values or session.offsets)
        try:
            session.producer.end(commit=commit)
        except Refused as refusal:
            if refusal.code is ErrorCode.INVALID_TXN_STATE:
                assert not has_begun, "a transaction was refused that has begun"
                return
            self.refused(session, refusal)
        else:
            if commit:
                for place, values in session.values.items():
                    self.committed[place] += values
                for group, offset in session.offsets.items():
                    self.offsets[group] = max(self.offsets[group], offset)
            session.forget()

    def refused(self, session, refusal):
        if refusal.code not in RETRIABLE:
            # Fenced, or its transaction has timed out: real clients give up here.
            session.is_over = True
            session.forget()

    # --- What happens to the broker

    @rule(milliseconds=st.sampled_from([1, 1, 100, 1_500, TIMEOUT_MS // 2, TIMEOUT_MS + 1]))
    def time_passes(self, milliseconds):
        self.broker.advance(milliseconds)

    @rule()
    def crash(self):
        self.broker = self.broker.crashed()
        for session in self.all:
            session.producer.broker = self.broker

    @rule(
        part=st.sampled_from(LOGS),
        times=st.integers(1, 2),
    )
    def writes_fail(self, part, times):
        self.broker.disk.fail("append", part, times=times)

    @rule()
    def writes_succeed_again(self):
        self.recover()

    def recover(self):
        self.broker.disk.faults.clear()
        self.broker.settle(for_ms=3 * RETRY_MS)

    # --- What must hold

    @invariant()
    def nothing_is_seen_that_was_not_committed(self):
        if not hasattr(self, "broker") or self.broker.disk.faults:
            return
        for place in PLACES:
            seen = consume(self.broker, *place)
            assert set(seen) <= set(self.committed[place])
            assert len(seen) == len(set(seen))

    def teardown(self):
        if not hasattr(self, "broker"):
            return
        self.recover()
        self.broker.advance(2 * TIMEOUT_MS)
        self.recover()
        for place in PLACES:
            assert is_stable(self.broker, *place)
            assert sorted(consume(self.broker, *place)) == sorted(self.committed[place])
        for group in GROUPS:
            partition = offsets_partition(self.broker, group)
            assert partition.last_stable_offset == partition.high_watermark
            assert committed_offset(self.broker, group, "in") == self.offsets[group][1]
        after = self.broker.crashed()
        for place in PLACES:
            assert sorted(consume(after, *place)) == sorted(self.committed[place])


Transactions.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestTransactions = Transactions.TestCase
