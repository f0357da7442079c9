"""Asking a transaction coordinator on another broker about partitions (KIP-890).

AddPartitionsToTxn v4+, as brokers send it: all that has to be asked of one coordinator goes into
one request, and there is one such request to each at a time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkalite.deferred import Promise
from kafkalite.meta.peers import Peers
from kafkalite.txn.events import AddPartitions, Codes, VerifyPartitions
from kafkalite.txn.request_batcher import RequestBatcher
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

CHANNEL = "txn"

TIMEOUT_MS_MAX = 10_000
"""A coordinator answers within offsets.commit.timeout.ms (5 s) whatever its replicas do. Who waits
is a producer, whose own patience is 30 s: it had better ask again by then."""


_BEHIND = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The partition is led here, so it exists: the coordinator has not heard of it yet."""


@dataclass(slots=True)
class _PendingRequest:
    event: AddPartitions | VerifyPartitions
    answer: Promise[Codes | None] = field(default_factory=Promise)

    @property
    def verifies(self) -> bool:
        return isinstance(self.event, VerifyPartitions)


class AddPartitionsToTxnManager:
    """The transaction coordinators of other brokers."""

    def __init__(self, peers: Peers, *, timeout_ms: int) -> None:
        """Make a way to ask.

        Args:
            peers: the other brokers.
            timeout_ms: the most that an answer may take, which is more than TIMEOUT_MS_MAX never.
        """
        self._peers = peers
        self._timeout_ms = min(timeout_ms, TIMEOUT_MS_MAX)
        self._batcher: RequestBatcher[_PendingRequest] = RequestBatcher(self._send)

    def ask(self, broker_id: int, event: AddPartitions | VerifyPartitions) -> Promise[Codes | None]:
        """Ask the coordinator on a broker what a shard of its own would be asked."""
        question = _PendingRequest(event)
        self._batcher.add(broker_id, question)
        return question.answer

    async def run(self) -> None:
        """Ask, until cancelled."""
        await self._batcher.run()

    async def _send(self, broker_id: int, questions: list[_PendingRequest]) -> None:
        asked, transactions = self._gather(broker_id, questions)
        error = KafkaError(ErrorCode.NETWORK_EXCEPTION, "the question was broken off")
        try:
            response = await self._peers.request(
                broker_id,
                ADD_PARTITIONS_TO_TXN,
                AddPartitionsToTxnRequest(transactions=transactions),
                timeout_ms=self._timeout_ms,
                channel=CHANNEL,
            )
            _answer(asked, response)
        except KafkaError as failure:
            error = KafkaError(
                ErrorCode.NETWORK_EXCEPTION,
                f"the transaction coordinator on broker {broker_id} cannot be asked: {failure}",
            )
        finally:
            for question in asked:
                question.answer.set_error(error)

    def _gather(
        self, broker_id: int, questions: Iterable[_PendingRequest]
    ) -> tuple[list[_PendingRequest], list[AddPartitionsToTxnTransaction]]:
        """Return the questions of the next request, which names a transactional id only once."""
        asked: list[_PendingRequest] = []
        by_id: dict[str, tuple[_PendingRequest, dict[TopicPartition, None]]] = {}
        for question in questions:
            event = question.event
            first, partitions = by_id.setdefault(event.transactional_id, (question, {}))
            same = first.event.producer == event.producer and first.verifies == question.verifies
            if not same:
                self._batcher.add(broker_id, question)  # with the next request
                continue
            partitions |= dict.fromkeys(event.partitions)
            asked.append(question)
        return asked, [
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=question.event.producer.producer_id,
                producer_epoch=question.event.producer.producer_epoch,
                verify_only=question.verifies,
                topics=_by_topic(partitions),
            )
            for transactional_id, (question, partitions) in by_id.items()
        ]


def _by_topic(partitions: Iterable[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    return [
        AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
    ]


def _answer(questions: list[_PendingRequest], response: AddPartitionsToTxnResponse) -> None:
    """Tell everybody their part of a response."""
    whole = ErrorCode(response.error_code)
    if whole is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        whole = ErrorCode.INVALID_TXN_STATE  # as Kafka: no producer can do anything about it
    codes: dict[tuple[str, TopicPartition], ErrorCode] = {}
    for result in response.results_by_transaction:
        for topic in result.topic_results:
            for part in topic.results_by_partition:
                place = TopicPartition(topic.name, part.partition_index)
                codes[result.transactional_id, place] = ErrorCode(part.partition_error_code)
    for question in questions:
        given: Codes = {}
        for place in question.event.partitions:
            missing = ErrorCode.UNKNOWN_SERVER_ERROR if whole is ErrorCode.NONE else whole
            code = codes.get((question.event.transactional_id, place), missing)
            given[place] = ErrorCode.COORDINATOR_NOT_AVAILABLE if code in _BEHIND else code
        question.answer.set_result(given)
