"""One transactional id: what it is at one moment, and what comes next (rules 102-109, 122).

Every function takes a transaction as it is and returns it as it will be, or raises what the client
is refused with; the very same object means that nothing changes. After Kafka's TransactionMetadata
and TransactionCoordinator.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kafkalite.txn.states import LEGAL_PREDECESSORS, TransactionState
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1

EPOCH_MAX = 2**15 - 1
"""Never given to a producer, so that the coordinator can always fence one (rule 105)."""

V1 = 0
"""Version written for clients that add partitions before they write to them (KIP-98)."""
V2 = 2
"""Transactions with an epoch each, to which writing adds (KIP-890); also what the broker ends."""

Partitions = dict[TopicPartition, None]
"""An ordered set; never changed once it is part of a transaction."""


class ProducerIdentity(NamedTuple):
    """Producer id and epoch, as a producer gives them."""

    producer_id: int
    producer_epoch: int


class ProducerIdNeeded(Exception):
    """The decision needs a producer id that was never used before: ask again, with one."""


@dataclass(slots=True, frozen=True, kw_only=True)
class Transaction:
    """All that is known of a transactional id. Times are wall clock milliseconds.

    Attributes:
        previous_producer_id: before the last transition; how a retry is known after the epochs of
            a producer id ran out.
        next_producer_id: takes the place of `producer_id` when the transaction is complete, -1 if
            it stays.
        start_timestamp_ms: of the transaction under way or just ended, -1 if there was none.
        client_version: V1 or V2, as the client spoke that moved it here.
        last_producer_epoch: known to be that of the same producer before the current one, so that
            its retry is answered; -1 if there is none. Kafka's log has no place for it: it is lost
            with the coordinator, and the retry is then refused.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    last_update_timestamp_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: Partitions = field(default_factory=dict)
    start_timestamp_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = V1
    last_producer_epoch: int = field(default=NO_PRODUCER_EPOCH, compare=False)

    @property
    def identity(self) -> ProducerIdentity:
        """Identity that its producer has now."""
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def next_identity(self) -> ProducerIdentity:
        """Identity that its producer has once the transaction is complete."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdentity(self.next_producer_id, 0)
        return self.identity

    @property
    def has_exhausted_epochs(self) -> bool:
        """Whether its producer has the last epoch that a producer may have (rule 105)."""
        return is_exhausted(self.producer_epoch)

    def moved_to(self, state: TransactionState, now_ms: int, **changes: Any) -> "Transaction":
        """Return the transaction in its next state."""
        assert self.state in LEGAL_PREDECESSORS[state], f"{self.state.name} -> {state.name}"
        return replace(
            self,
            state=state,
            previous_producer_id=self.producer_id,
            last_update_timestamp_ms=now_ms,
            **changes,
        )


def is_exhausted(producer_epoch: int) -> bool:
    """Whether no producer may have an epoch after this one (rule 105)."""
    return producer_epoch >= EPOCH_MAX - 1


# --- InitProducerId ------------------------------------------------------------------------------


def begin(
    transactional_id: str, *, timeout_ms: int, new_producer_id: int | None, now_ms: int
) -> Transaction:
    """Return a transactional id that was not known before, with epoch 0 (rule 103).

    Raises:
        ProducerIdNeeded: `new_producer_id` is None.
    """
    if new_producer_id is None:
        raise ProducerIdNeeded
    return Transaction(
        transactional_id=transactional_id,
        producer_id=new_producer_id,
        previous_producer_id=new_producer_id,
        producer_epoch=0,
        timeout_ms=timeout_ms,
        last_update_timestamp_ms=now_ms,
    )


def init_producer(
    current: Transaction,
    expected: ProducerIdentity | None,
    *,
    timeout_ms: int,
    new_producer_id: int | None,
    now_ms: int,
) -> Transaction:
    """Return the id in EMPTY for its next producer, or in PREPARE_ABORT (rules 103-105).

    The latter where a transaction was open: its producer is fenced, and the new one comes again.

    Args:
        current: as it is.
        expected: who asks, if a producer that was there before goes on (KIP-360). While a
            transaction is open its epoch must be the current one; Kafka would let an older one
            abort the transaction of its successor.
        timeout_ms: of the transactions to come.
        new_producer_id: for the case that the epochs have run out.
        now_ms: wall clock.

    Raises:
        KafkaError: PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        ProducerIdNeeded: `new_producer_id` is needed and None.
    """
    if expected is not None and not _is_own(current, expected):
        raise _fenced(current, expected)
    if current.state.is_prepared:
        raise _concurrent(current)
    if current.state is TransactionState.ONGOING:
        if expected is not None and expected.producer_epoch != current.producer_epoch:
            raise _fenced(current, expected)
        return fence_and_abort(current, now_ms)
    changes: dict[str, Any] = {
        "timeout_ms": timeout_ms,
        "partitions": {},
        "start_timestamp_ms": NO_TIMESTAMP,
    }
    if expected is None or expected.producer_epoch == current.producer_epoch:
        # Who does not say who it was is another producer: no retry of the one before counts.
        last_epoch = NO_PRODUCER_EPOCH if expected is None else current.producer_epoch
        changes["last_producer_epoch"] = last_epoch
        changes["producer_epoch"] = current.producer_epoch + 1
        if current.has_exhausted_epochs:
            if new_producer_id is None:
                raise ProducerIdNeeded
            changes |= {"producer_id": new_producer_id, "producer_epoch": 0}
    elif expected.producer_epoch != current.last_producer_epoch:
        raise _fenced(current, expected)
    return current.moved_to(TransactionState.EMPTY, now_ms, **changes)


def _is_own(current: Transaction, expected: ProducerIdentity) -> bool:
    """Whether the id is that of this producer, now or before its epochs ran out (rule 104)."""
    return expected.producer_id == current.producer_id or (
        expected.producer_id == current.previous_producer_id
        and is_exhausted(expected.producer_epoch)
    )


# --- Partitions ----------------------------------------------------------------------------------


def add_partitions(
    current: Transaction,
    producer: ProducerIdentity,
    partitions: Iterable[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Transaction:
    """Return the transaction with these partitions in it, begun if it was not (rule 106).

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    _check_may_write(current, producer)
    if current.state is TransactionState.ONGOING:
        added = dict.fromkeys(tp for tp in partitions if tp not in current.partitions)
        if not added:
            return current
        start_ms = current.start_timestamp_ms
    else:
        assert not current.partitions, f"{current.state.name} with partitions"
        added = dict.fromkeys(partitions)
        start_ms = now_ms
    return current.moved_to(
        TransactionState.ONGOING,
        now_ms,
        partitions=current.partitions | added,
        start_timestamp_ms=start_ms,
        client_version=client_version,
    )


def verify_partitions(
    current: Transaction, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Return, for each partition, NONE if it is part of the open transaction (rule 113).

    What is not part of it must not be written to: nothing would ever end it there.

    Raises:
        KafkaError: as `add_partitions`.
    """
    _check_may_write(current, producer)
    return {
        tp: ErrorCode.NONE if tp in current.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for tp in partitions
    }


def _check_may_write(current: Transaction, producer: ProducerIdentity) -> None:
    # A producer whose epochs ran out was told its new id when its transaction was prepared.
    if not (current.state.is_prepared and producer == current.next_identity):
        _check_producer_id(current, producer)
        if producer.producer_epoch != current.producer_epoch:
            raise _fenced(current, producer)
    if current.state.is_prepared:
        raise _concurrent(current)


# --- EndTxn --------------------------------------------------------------------------------------


def end(
    current: Transaction,
    producer: ProducerIdentity,
    *,
    committed: bool,
    client_version: int,
    new_producer_id: int | None = None,
    now_ms: int,
) -> Transaction:
    """Return the transaction with its outcome decided (rules 109, 122).

    Args:
        current: as it is; complete if all its markers are written, whatever the log says yet.
        producer: who asks.
        committed: commit or abort.
        client_version: the rules of V1 or of V2.
        new_producer_id: to go on with if the epochs have run out (V2).
        now_ms: wall clock.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE, or
            CONCURRENT_TRANSACTIONS while a retry, or the end of the next transaction (V2), finds
            the outcome decided and not known to all.
        ProducerIdNeeded: `new_producer_id` is needed and None.
    """
    if client_version == V1:
        _check_producer_id(current, producer)
        if producer.producer_epoch != current.producer_epoch:
            raise _fenced(current, producer)
        is_retry = current.state is not TransactionState.ONGOING
    else:
        is_retry = _check_end(current, producer)
    if is_retry:
        return _answer_retry(current, committed=committed)
    if current.state is not TransactionState.ONGOING and committed:
        raise _invalid(current, committed=committed)
    if client_version == V1:
        return _prepared(current, now_ms, committed=committed, client_version=V1)
    next_producer_id = NO_PRODUCER_ID
    if current.has_exhausted_epochs:
        if new_producer_id is None:
            raise ProducerIdNeeded
        next_producer_id = new_producer_id
    return _prepared_in_next_epoch(
        current, now_ms, committed=committed, next_producer_id=next_producer_id
    )


def fence_and_abort(current: Transaction, now_ms: int) -> Transaction:
    """Return an open transaction as the coordinator ends it: for a timeout or a new producer.

    By the rules of V2, whatever its producer speaks, as Kafka 4 does: with the next epoch, which
    fences it. A producer of V2 that aborts the transaction itself meanwhile takes its abort for
    done, and so it is; one that commits is refused.
    """
    return _prepared_in_next_epoch(
        current, now_ms, committed=False, next_producer_id=NO_PRODUCER_ID
    )


def complete(current: Transaction, now_ms: int) -> Transaction:
    """Return a prepared transaction whose markers are all written."""
    is_commit = current.state is TransactionState.PREPARE_COMMIT
    producer_id, producer_epoch = current.next_identity
    return current.moved_to(
        TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
        now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions={},
    )


def _check_end(current: Transaction, producer: ProducerIdentity) -> bool:
    """Check who ends a transaction by the rules of V2; return whether this is a retry.

    A retry comes with the epoch before the current one; where the epochs ran out, with the last
    one of the producer id before.
    """
    state, epoch = current.state, producer.producer_epoch
    is_overflown = (
        state.is_complete
        and producer.producer_id == current.previous_producer_id != current.producer_id
        and epoch == EPOCH_MAX - 1
        and current.producer_epoch == 0
    )
    if is_overflown:
        return True
    knows_next = state.is_prepared and producer == current.next_identity
    if not knows_next:
        _check_producer_id(current, producer)
    # The very last epoch is the coordinator's own: no retry is answered with it.
    is_bumped = epoch + 1 == current.producer_epoch < EPOCH_MAX or (
        state.is_prepared and epoch + 1 == current.producer_epoch
    )
    if is_bumped and (state.is_prepared or state.is_complete):
        return True
    if knows_next:
        # A producer that was told how to go on may end its next transaction before the markers of
        # this one are written, and must not be fenced by itself (KAFKA-18464).
        raise _concurrent(current)
    if state.is_prepared:
        raise _fenced(current, producer)
    if epoch != current.producer_epoch:
        raise _fenced(current, producer)
    return False


def _answer_retry(current: Transaction, *, committed: bool) -> Transaction:
    state = current.state
    prepared, done = (
        (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
        if committed
        else (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
    )
    if state is done:
        return current
    if state is prepared:
        raise _concurrent(current)
    raise _invalid(current, committed=committed)


def _prepared_in_next_epoch(
    current: Transaction, now_ms: int, *, committed: bool, next_producer_id: int
) -> Transaction:
    """By the rules of V2: who goes on in the epoch that was is fenced."""
    return _prepared(
        current,
        now_ms,
        committed=committed,
        client_version=V2,
        producer_epoch=min(current.producer_epoch + 1, EPOCH_MAX),
        last_producer_epoch=current.producer_epoch,
        next_producer_id=next_producer_id,
    )


def _prepared(
    current: Transaction, now_ms: int, *, committed: bool, client_version: int, **changes: Any
) -> Transaction:
    # An abort of nothing (V2) has no beginning but a completed transaction must have one.
    is_open = current.state is TransactionState.ONGOING
    return current.moved_to(
        TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
        now_ms,
        start_timestamp_ms=current.start_timestamp_ms if is_open else now_ms,
        client_version=client_version,
        **changes,
    )


# --- Refusals ------------------------------------------------------------------------------------


def unknown_id(transactional_id: str) -> KafkaError:
    """Return the refusal of a transactional id that is not known (rule 106)."""
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"transactional id {transactional_id} is not known, or has expired "
        "(transactional.id.expiration.ms)",
    )


def _check_producer_id(current: Transaction, producer: ProducerIdentity) -> None:
    if producer.producer_id != current.producer_id:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"transactional id {current.transactional_id} has producer id {current.producer_id}, "
            f"not {producer.producer_id}",
        )


def _fenced(current: Transaction, producer: ProducerIdentity) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"transactional id {current.transactional_id} has producer {current.producer_id} at epoch "
        f"{current.producer_epoch}, not {producer.producer_id} at {producer.producer_epoch}",
    )


def _concurrent(current: Transaction) -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"the last transaction of {current.transactional_id} is still in {current.state.label}",
    )


def _invalid(current: Transaction, *, committed: bool) -> KafkaError:
    outcome = "committed" if committed else "aborted"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"the transaction of {current.transactional_id} is in {current.state.label} and cannot be "
        f"{outcome}",
    )
