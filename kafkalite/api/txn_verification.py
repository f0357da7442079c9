"""Whether a producer may write to a partition within its transaction (rules 113, 122; KIP-890).

Asked before the first record of a transaction on each partition: a record that no transaction
knows of would hold up readers for ever, because nothing would ever end it. Clients of the first
protocol have added their partitions, and are checked; those of the second add them by writing.

A coordinator of this broker is asked directly, without a task switch; another one over the
network. An answer that took time counts only if no transaction ended meanwhile.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

from kafkalite.api.context import RequestContext
from kafkalite.deferred import Deferred
from kafkalite.txn.coordinator import TransactionCoordinator
from kafkalite.txn.events import AddPartitions, Codes, VerifyPartitions
from kafkalite.txn.transactions import V2, ProducerIdentity
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.isr.partition import Partition

_ATTRIBUTES_POSITION = 22
"""Byte of a record batch that says whether it is transactional: the low byte of attributes."""
_TRANSACTIONAL = 0x10
_PRODUCER_POSITION = 43
_PRODUCER = Struct(">qh")

UNAVAILABLE = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The coordinator could not be asked; it may be a moment later."""

Refusals = Mapping[TopicPartition, KafkaError]


def transactional_producer(batch: memoryview) -> ProducerIdentity | None:
    """Return who wrote a batch, None if it is not part of a transaction."""
    if len(batch) < _PRODUCER_POSITION + _PRODUCER.size:
        return None  # too short for a batch, which the log says better
    if not batch[_ATTRIBUTES_POSITION] & _TRANSACTIONAL:
        return None
    return ProducerIdentity(*_PRODUCER.unpack_from(batch, _PRODUCER_POSITION))


def is_in_transaction(partition: "Partition", producer: ProducerIdentity) -> bool:
    """Whether the partition has records of the producer's open transaction already."""
    state = partition.log.producers.get(producer.producer_id)
    return (
        state is not None
        and state.transaction_first_offset >= 0
        and state.epoch == producer.producer_epoch
    )


@dataclass(slots=True)
class _PendingRequest:
    """Request at a coordinator, and how its answer is read."""

    partitions: list[TopicPartition]
    knows_abortable: bool

    def answered(self, codes: Codes | None) -> Refusals:
        """Return what is refused of what was verified; None means that everything was added."""
        return {
            tp: _refusal(KafkaError(code, f"{tp} is not part of the transaction"), self)
            for tp, code in (codes or {}).items()
            if code is not ErrorCode.NONE
        }

    def refused(self, error: KafkaError) -> Refusals:
        """Return the refusal of everything."""
        return dict.fromkeys(self.partitions, _refusal(error, self))


class DeferredRefusals(Deferred[Refusals]):
    """Refusals that wait for the coordinator: for its log to be replicated, or for the network."""

    __slots__ = ("_answer", "_guard", "_guards", "_question")

    def __init__(
        self,
        answer: Deferred[Codes | None],
        question: _PendingRequest,
        producer: ProducerIdentity,
        transactions: TransactionCoordinator,
    ) -> None:
        self._answer = answer
        self._question = question
        self._guards = transactions.guards
        self._guard = self._guards.acquire(producer.producer_id, question.partitions)

    async def wait(self) -> Refusals:
        """Return them."""
        try:
            refused = self._question.answered(await self._answer.wait())
        except KafkaError as error:
            return self._question.refused(error)
        return {**self._guards.broken(self._guard), **refused}


def refusals(
    transactional_id: str,
    producer: ProducerIdentity,
    partitions: Iterable[TopicPartition],
    context: RequestContext,
    *,
    adds: bool,
    knows_abortable: bool,
) -> Refusals | DeferredRefusals:
    """Return which partitions must not be written to, and why; `DeferredRefusals` if it takes time.

    Args:
        transactional_id: that the request names.
        producer: that wrote the batches.
        partitions: without records of the open transaction.
        context: of the request.
        adds: the partitions become part of the transaction (second protocol).
        knows_abortable: the client has heard of TRANSACTION_ABORTABLE (rule 123).
    """
    asked = [*partitions]
    question = _PendingRequest(asked, knows_abortable)
    event: AddPartitions | VerifyPartitions
    if adds:
        event = AddPartitions(transactional_id, producer, asked, V2)
    elif context.services.config.bool("transaction.partition.verification.enable"):
        event = VerifyPartitions(transactional_id, producer, asked)
    else:
        return {}

    try:
        answer = context.services.transactions.add_or_verify(transactional_id, event)
    except KafkaError as error:
        return question.refused(error)
    if isinstance(answer, Deferred):
        return DeferredRefusals(answer, question, producer, context.services.transactions)
    return question.answered(answer)


def _refusal(error: KafkaError, question: _PendingRequest) -> KafkaError:
    """Return what the writer is told of a coordinator's refusal, as Kafka's brokers do."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif code is ErrorCode.TRANSACTION_ABORTABLE and not question.knows_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    return KafkaError(code, error.message)
