"""A transaction shard, its log replayed into a second one, and producers that speak to it.

Every record goes through Kafka's bytes on its way to the second shard (`replica`), and after every
event the two must agree on everything that is in the log.
"""

from dataclasses import replace

from kafkalite.coordinator.records import decode_batch, encode_batches
from kafkalite.coordinator.shard import Now, Ticket
from kafkalite.txn.events import (
    PRODUCER_ID_NEEDED,
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    ListTransactions,
    MarkersWritten,
    VerifyPartitions,
)
from kafkalite.txn.records import TransactionRecordCodec
from kafkalite.txn.settings import TransactionSettings
from kafkalite.txn.shard import TransactionShard
from kafkalite.txn.states import LEGAL_PREDECESSORS, TransactionState
from kafkalite.txn.transactions import V1, V2, ProducerIdentity
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import read_batch_header, set_offset_and_epoch
from tests.coordinator.fakes import START_MS, WALL_OFFSET_MS

SECOND = 1000
MINUTE = 60 * SECOND
TIMEOUT_MS = MINUTE
ID = "tx"
A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("c", 0)
SHARD = 7


class TransactionHarness:
    """`delivers` off keeps the markers in `undelivered`."""

    def __init__(self, *, delivers=True, first_producer_id=1000, **settings):
        self.settings = TransactionSettings(**settings)
        self.codec = TransactionRecordCodec()
        self.shard = TransactionShard(self.settings, SHARD)
        self.replica = TransactionShard(self.settings, SHARD)
        self.now_ms = START_MS
        self.wall_offset_ms = WALL_OFFSET_MS
        self.answers = {}
        self.log = []
        self.end_offset = 0
        self.refuse_appends_with = None
        self.delivers = delivers
        self.undelivered = []
        self.sent = []
        self.next_producer_id = first_producer_id
        self._ticket = 0
        self._process(self.shard.on_loaded(self.now))

    # --- Machinery

    @property
    def now(self):
        return Now(self.now_ms, self.now_ms + self.wall_offset_ms)

    def send(self, event):
        """Give the shard an event; return its ticket."""
        self._ticket += 1
        ticket = Ticket(self._ticket)
        try:
            result = self.shard.handle(event, ticket, self.now)
        except KafkaError as error:
            self.answers[ticket] = error
        else:
            self._process(result)
        self.check()
        return ticket

    def ask(self, event):
        """Give the shard an event; return the answer, raise a refusal."""
        answer = self.answers[self.send(event)]
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def code(self, event):
        """Give the shard an event; return the code of the refusal, NONE without."""
        try:
            self.ask(event)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def advance(self, milliseconds):
        """Let time pass, firing timers at their times."""
        end_ms = self.now_ms + milliseconds
        while (at := self.shard.next_deadline_ms()) is not None and at <= end_ms:
            self.now_ms = max(self.now_ms, at)
            self._process(self.shard.on_time(self.now))
            self.check()
        self.now_ms = end_ms

    def deliver(self):
        """Have every marker that waits written to its partition."""
        while self.undelivered:
            self.acknowledge(self.undelivered.pop(0))

    def acknowledge(self, markers):
        self.ask(MarkersWritten(markers.transactional_id, markers.producer))

    def _process(self, result):
        if result.records and self.refuse_appends_with is not None:
            for ticket, _ in result.replies:
                self.answers[ticket] = KafkaError(self.refuse_appends_with)
            return
        if result.records:
            self._append(result)
        for ticket, message in result.replies:
            assert ticket not in self.answers, "answered twice"
            self.answers[ticket] = message
        self.sent += result.effects
        if not self.delivers:
            self.undelivered += result.effects
            return
        for markers in result.effects:
            self.acknowledge(markers)

    def _append(self, result):
        for batch in encode_batches(
            result, self.codec, timestamp_ms=self.now.wall_ms, max_batch_bytes=1_000_000
        ):
            set_offset_and_epoch(batch.data, 0, base_offset=self.end_offset, leader_epoch=0)
            for record in batch.records:
                before = self.shard.transactions.get(record.key)
                self.shard.replay(record)
                check_transition(before, record.value)
            data = memoryview(bytes(batch.data))
            self.log.append(data)
            self.end_offset = read_batch_header(data).next_offset
            for record in decode_batch(data, self.codec):
                self.replica.replay(record)

    def restarted(self, *, batches=None, delivers=True, **settings):
        """A harness that has loaded this one's log, or its first `batches` batches."""
        log = self.log if batches is None else self.log[:batches]
        other = TransactionHarness(delivers=delivers)
        other.settings = replace(self.settings, **settings)
        other.shard = TransactionShard(other.settings, SHARD)
        other.replica = TransactionShard(other.settings, SHARD)
        other.now_ms = self.now_ms
        other.next_producer_id = self.next_producer_id + 1000
        for shard in (other.shard, other.replica):
            for batch in log:
                for record in decode_batch(batch, self.codec):
                    shard.replay(record)
        other.log = [*log]
        other.end_offset = read_batch_header(log[-1]).next_offset if log else 0
        other._process(other.shard.on_loaded(other.now))
        other.check()
        return other

    def check(self):
        """What must hold after every event."""
        assert self.shard.transactions == self.replica.transactions
        for name, transaction in self.shard.transactions.items():
            assert transaction.transactional_id == name
            assert transaction.producer_id >= 0
            assert transaction.producer_epoch >= 0
            if transaction.state is not TransactionState.ONGOING and not (
                transaction.state.is_prepared
            ):
                assert not transaction.partitions
        for name in self.shard._ended:
            assert self.shard.transactions[name].state.is_prepared

    # --- What there is

    def transaction(self, name=ID):
        """The transaction as it answers now."""
        return self.shard._completed(name, self.now)[0]

    def state(self, name=ID):
        transaction = self.transaction(name)
        return TransactionState.DEAD if transaction is None else transaction.state

    def logged(self, name=ID):
        """Names of the states that the log has of a transactional id, in order."""
        return [
            record.value.state.name if record.value else "DEAD"
            for batch in self.log
            for record in decode_batch(batch, self.codec)
            if record.key == name
        ]

    # --- Requests

    def init(self, name=ID, *, expected=None, timeout_ms=TIMEOUT_MS):
        """InitProducerId, with a producer id where one is needed."""
        event = InitProducer(name, timeout_ms, expected and ProducerIdentity(*expected))
        answer = self.ask(event)
        if answer is PRODUCER_ID_NEEDED:
            event.new_producer_id = self.next_producer_id
            self.next_producer_id += 1
            answer = self.ask(event)
        return answer

    def add(self, producer, *partitions, name=ID, version=V1):
        return self.code(AddPartitions(name, producer, [*partitions], version))

    def verify(self, producer, *partitions, name=ID):
        return self.ask(VerifyPartitions(name, producer, [*partitions]))

    def end(self, producer, *, committed, name=ID, version=V1):
        """EndTxn; return the identity to go on with."""
        event = EndTransaction(name, producer, committed, version)
        answer = self.ask(event)
        if answer is PRODUCER_ID_NEEDED:
            event.new_producer_id = self.next_producer_id
            self.next_producer_id += 1
            answer = self.ask(event)
        return answer

    def end_code(self, producer, *, committed, name=ID, version=V1):
        try:
            self.end(producer, committed=committed, name=name, version=version)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def init_code(self, name=ID, **options):
        try:
            self.init(name, **options)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def describe(self, name=ID):
        return self.ask(DescribeTransaction(name))

    def list(self, **filters):
        found = self.ask(ListTransactions(**filters))
        return [transaction.transactional_id for transaction in found]

    # --- Ways to a state

    def reach(self, state, *, version=V1, name=ID):
        """Bring a transactional id into a state; return its producer's identity then."""
        producer = self.init(name)
        if state is TransactionState.EMPTY:
            return producer
        assert self.add(producer, A, name=name, version=version) is ErrorCode.NONE
        if state is TransactionState.ONGOING:
            return producer
        delivers, self.delivers = self.delivers, state.is_complete
        committed = "COMMIT" in state.name
        producer = self.end(producer, committed=committed, name=name, version=version)
        self.delivers = delivers
        assert self.state(name) is state
        return producer


def check_transition(before, after):
    """Every record that is written moves its transaction legally."""
    if after is None:
        assert before.state in LEGAL_PREDECESSORS[TransactionState.DEAD]
    elif before is None:
        assert after.state is TransactionState.EMPTY
    else:
        assert before.state in LEGAL_PREDECESSORS[after.state]
        assert (after.producer_id, after.producer_epoch) >= (
            before.producer_id,
            before.producer_epoch,
        )


__all__ = ["ID", "SECOND", "V1", "V2", "A", "B", "C", "TransactionHarness"]
