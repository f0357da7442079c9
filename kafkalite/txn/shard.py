"""The transactional ids of one `__transaction_state` partition (rules 101-110, 118, 121, 122).

Hard state (the transactions) changes in `replay` alone. Soft is which transactions have all their
markers: they are complete, and answer so, but the record that says it is written along with the
next one of the same transactional id, or with those of other ids a moment later. Losing it costs
nothing: a coordinator that finds a prepared transaction has its markers written again.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum

from kafkalite.coordinator.shard import (
    NOTHING,
    Event,
    Now,
    Result,
    StoredRecord,
    Ticket,
    Timers,
)
from kafkalite.txn.admin import describe_transaction, is_listed, list_transaction
from kafkalite.txn.events import (
    PRODUCER_ID_NEEDED,
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    ListTransactions,
    MarkersWritten,
    SendMarkers,
    VerifyPartitions,
)
from kafkalite.txn.settings import TransactionSettings
from kafkalite.txn.states import TransactionState
from kafkalite.txn.transactions import (
    ProducerIdNeeded,
    Transaction,
    add_partitions,
    begin,
    complete,
    end,
    fence_and_abort,
    init_producer,
    unknown_id,
    verify_partitions,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

COMPLETION_DELAY_MS = 1_000
"""How long the record of a completion waits for others: long enough to share the batch of the next
transaction of a busy producer, short enough for an operator who looks into the log."""


class TimerKind(IntEnum):
    """Purpose of a transaction shard's timer; the first part of its key."""

    TIMEOUT = 0
    """(transactional id): the transaction has been open for as long as its producer allowed."""
    COMPLETIONS = 1
    """(""): time to write which transactions are complete."""
    EXPIRATION = 2
    """(""): time to look for transactional ids that nobody uses."""


TimerKey = tuple[TimerKind, str]
_COMPLETIONS = (TimerKind.COMPLETIONS, "")
_EXPIRATION = (TimerKind.EXPIRATION, "")


class TransactionShard:
    """Core of the transaction coordinator for one partition; a `coordinator.shard.Shard`."""

    def __init__(self, settings: TransactionSettings, partition: int) -> None:
        self.settings = settings
        self.partition = partition
        self.transactions: dict[str, Transaction] = {}
        self.timers: Timers[TimerKey] = Timers()
        self._ended: dict[str, None] = {}
        """Prepared transactions whose markers are all written. Soft."""
        self._handlers: dict[type, Callable[..., Result]] = {
            AddPartitions: self._add,
            VerifyPartitions: self._verify,
            EndTransaction: self._end,
            MarkersWritten: self._on_markers_written,
            InitProducer: self._init,
            DescribeTransaction: self._describe,
            ListTransactions: self._list,
        }

    # --- What the runtime calls -----------------------------------------------------------------

    def handle(self, event: Event[object], ticket: Ticket, now: Now) -> Result:
        """Decide about an event."""
        return self._handlers[type(event)](event, ticket, now)

    def on_loaded(self, now: Now) -> Result:
        """Have markers written that may be missing, and start the time of open transactions."""
        effects = []
        for transaction in self.transactions.values():
            if transaction.state.is_prepared:
                effects.append(self._markers_of(transaction, is_again=True))
            elif transaction.state is TransactionState.ONGOING:
                ends_ms = transaction.start_timestamp_ms + transaction.timeout_ms
                remaining_ms = min(max(ends_ms - now.wall_ms, 0), transaction.timeout_ms)
                self._schedule_timeout(transaction.transactional_id, remaining_ms, now)
        self._schedule_expiration(now)
        return Result(effects=effects)

    def next_deadline_ms(self) -> int | None:
        """Return the monotonic time before which no timer is due."""
        return self.timers.next_deadline_ms()

    def on_time(self, now: Now) -> Result:
        """Fire one due timer."""
        key = self.timers.pop_due(now.monotonic_ms)
        if key is None:
            return NOTHING
        kind, transactional_id = key
        if kind is TimerKind.TIMEOUT:
            return self._on_timeout(transactional_id, now)
        if kind is TimerKind.COMPLETIONS:
            return self._write_completions(now)
        return self._expire(now)

    def replay(self, record: StoredRecord) -> None:
        """Make a record part of the state."""
        transactional_id, transaction = record.key, record.value
        assert isinstance(transactional_id, str)
        self._ended.pop(transactional_id, None)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            self.timers.cancel((TimerKind.TIMEOUT, transactional_id))
        else:
            assert isinstance(transaction, Transaction)
            self.transactions[transactional_id] = transaction

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Do nothing: no transaction has records in this topic."""

    # --- Producers ------------------------------------------------------------------------------

    def _init(self, event: InitProducer, ticket: Ticket, now: Now) -> Result:
        if not 0 < event.timeout_ms <= self.settings.max_timeout_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms of {event.timeout_ms} is not in 1.."
                f"{self.settings.max_timeout_ms} (transaction.max.timeout.ms of the broker)",
            )
        current, completion = self._completed(event.transactional_id, now)
        try:
            if current is None:
                after = begin(
                    event.transactional_id,
                    timeout_ms=event.timeout_ms,
                    new_producer_id=event.new_producer_id,
                    now_ms=now.wall_ms,
                )
            else:
                after = init_producer(
                    current,
                    event.expected,
                    timeout_ms=event.timeout_ms,
                    new_producer_id=event.new_producer_id,
                    now_ms=now.wall_ms,
                )
        except ProducerIdNeeded:
            return Result(replies=((ticket, PRODUCER_ID_NEEDED),))
        if after.state is TransactionState.PREPARE_ABORT:
            refusal = KafkaError(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"the open transaction of {event.transactional_id} is being aborted",
            )
            return self._moved(completion, after, ((ticket, refusal),))
        return self._moved(completion, after, ((ticket, after.identity),))

    # --- Transactions ---------------------------------------------------------------------------

    def _add(self, event: AddPartitions, ticket: Ticket, now: Now) -> Result:
        current, completion = self._known(event.transactional_id, now)
        after = add_partitions(
            current,
            event.producer,
            event.partitions,
            client_version=event.client_version,
            now_ms=now.wall_ms,
        )
        if after is current:
            return Result(replies=((ticket, None),))
        if current.state is not TransactionState.ONGOING:
            self._schedule_timeout(event.transactional_id, after.timeout_ms, now)
        return self._moved(completion, after, ((ticket, None),))

    def _verify(self, event: VerifyPartitions, ticket: Ticket, now: Now) -> Result:
        current, _ = self._known(event.transactional_id, now)
        codes = verify_partitions(current, event.producer, event.partitions)
        return Result(replies=((ticket, codes),))

    def _end(self, event: EndTransaction, ticket: Ticket, now: Now) -> Result:
        current, completion = self._known(event.transactional_id, now)
        try:
            after = end(
                current,
                event.producer,
                committed=event.committed,
                client_version=event.client_version,
                new_producer_id=event.new_producer_id,
                now_ms=now.wall_ms,
            )
        except ProducerIdNeeded:
            return Result(replies=((ticket, PRODUCER_ID_NEEDED),))
        replies = ((ticket, after.next_identity),)
        if after is current:
            return Result(replies=replies)
        return self._moved(completion, after, replies)

    def _on_markers_written(self, event: MarkersWritten, ticket: Ticket, now: Now) -> Result:
        transaction = self.transactions.get(event.transactional_id)
        if (
            transaction is not None
            and transaction.state.is_prepared
            and transaction.identity == event.producer
        ):
            self._ended[event.transactional_id] = None
            if self.timers.deadline_ms(_COMPLETIONS) is None:
                self.timers.schedule(_COMPLETIONS, now.monotonic_ms + COMPLETION_DELAY_MS)
        return Result(replies=((ticket, None),))

    # --- Time -----------------------------------------------------------------------------------

    def _on_timeout(self, transactional_id: str, now: Now) -> Result:
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.state is not TransactionState.ONGOING:
            return NOTHING
        # Should the abort not be written, the transaction must not stay open for ever.
        self._schedule_timeout(transactional_id, self.settings.abort_retry_interval_ms, now)
        return self._moved((), fence_and_abort(transaction, now.wall_ms), ())

    def _write_completions(self, now: Now) -> Result:
        if not self._ended:
            return NOTHING
        self.timers.schedule(_COMPLETIONS, now.monotonic_ms + COMPLETION_DELAY_MS)
        records = [record for name in self._ended for record in self._completed(name, now)[1]]
        return Result(records, atomic=False)

    def _expire(self, now: Now) -> Result:
        self._schedule_expiration(now)
        expired = [
            StoredRecord(transaction.transactional_id, None)
            for transaction in self.transactions.values()
            if self._is_idle(transaction)
            and now.wall_ms - transaction.last_update_timestamp_ms >= self.settings.expiration_ms
        ]
        return Result(expired, atomic=False)

    @staticmethod
    def _is_idle(transaction: Transaction) -> bool:
        return transaction.state is TransactionState.EMPTY or transaction.state.is_complete

    # --- Operators ------------------------------------------------------------------------------

    def _describe(self, event: DescribeTransaction, ticket: Ticket, now: Now) -> Result:
        current, _ = self._completed(event.transactional_id, now)
        if current is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
                f"there is no transactional id {event.transactional_id}",
            )
        return Result(replies=((ticket, describe_transaction(current)),))

    def _list(self, event: ListTransactions, ticket: Ticket, now: Now) -> Result:
        everything = (self._completed(name, now)[0] for name in self.transactions)
        listed = [
            list_transaction(transaction)
            for transaction in everything
            if transaction is not None and is_listed(transaction, event, now_ms=now.wall_ms)
        ]
        return Result(replies=((ticket, listed),))

    # --- Internals ------------------------------------------------------------------------------

    def _completed(
        self, transactional_id: str, now: Now
    ) -> tuple[Transaction | None, Sequence[StoredRecord]]:
        """Return a transaction as clients see it, complete when all its markers are written.

        With it come the records that store this; none where the log has it so already.
        """
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transactional_id not in self._ended:
            return transaction, ()
        completed = complete(transaction, now.wall_ms)
        return completed, (StoredRecord(transactional_id, completed),)

    def _known(self, transactional_id: str, now: Now) -> tuple[Transaction, Sequence[StoredRecord]]:
        transaction, completion = self._completed(transactional_id, now)
        if transaction is None:
            raise unknown_id(transactional_id)
        return transaction, completion

    def _moved(
        self,
        completion: Sequence[StoredRecord],
        after: Transaction,
        replies: Sequence[tuple[Ticket, object]],
    ) -> Result:
        """Return the result of a transition: its records, and its markers once they are there."""
        records = (*completion, StoredRecord(after.transactional_id, after))
        if after.state.is_prepared:
            return Result(records, replies, effects=(self._markers_of(after),))
        return Result(records, replies)

    def _markers_of(self, transaction: Transaction, *, is_again: bool = False) -> SendMarkers:
        return SendMarkers(
            transactional_id=transaction.transactional_id,
            shard=self.partition,
            producer=transaction.identity,
            committed=transaction.state is TransactionState.PREPARE_COMMIT,
            partitions=[*transaction.partitions],
            client_version=transaction.client_version,
            is_again=is_again,
        )

    def _schedule_timeout(self, transactional_id: str, delay_ms: int, now: Now) -> None:
        self.timers.schedule((TimerKind.TIMEOUT, transactional_id), now.monotonic_ms + delay_ms)

    def _schedule_expiration(self, now: Now) -> None:
        interval_ms = self.settings.expiration_check_interval_ms
        self.timers.schedule(_EXPIRATION, now.monotonic_ms + interval_ms)
