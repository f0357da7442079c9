"""WriteTxnMarkers (key 27), versions 1-2: the ends of transactions, from whoever coordinates them.

Sent by transaction coordinators to partition leaders, and by `kafka-transactions abort` to end a
transaction that nobody coordinates any more. v2: the protocol that the transaction was written by
(KIP-1228).

Served on every listener, unlike what else brokers ask of each other: the tool comes in by that of
clients, and there are no ACLs to tell it from others.
"""

from dataclasses import dataclass
from functools import partial

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.isr.partition import Partition
from kafkalite.isr.replicas import ReplicaManager
from kafkalite.txn.marker_writer import Marker
from kafkalite.txn.transactions import ProducerIdentity
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

COORDINATOR_CODES = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What a group's coordinator may answer; who sends markers expects what a leader says instead."""


@dataclass(slots=True)
class _Appended:
    """A marker in a log, until all replicas have it."""

    partition: Partition
    leader_epoch: int
    end_offset: int
    answer: WritableTxnMarkerPartitionResult
    replicas: ReplicaManager

    @property
    def is_lost(self) -> bool:
        """Whether another leader may have cut it off."""
        partition = self.partition
        return (
            not partition.is_leader
            or partition.leader_epoch != self.leader_epoch
            or self.replicas.find(partition.topic_partition) is not partition
        )

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.is_lost or self.partition.high_watermark >= self.end_offset


Waiting = list[_Appended]


def handle(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse | Deferred[WriteTxnMarkersResponse]:
    """Append each marker to each partition; answer when all are replicated."""
    waiting: Waiting = []
    response = WriteTxnMarkersResponse(
        markers=[_write(marker, waiting, context) for marker in request.markers]
    )
    if all(marker.is_settled for marker in waiting):
        return response
    return Deferred(partial(_wait, response, waiting, context))


def refuse(
    request: WriteTxnMarkersRequest, error: KafkaError, context: RequestContext
) -> WriteTxnMarkersResponse:
    """Answer the error for every partition."""
    del context
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error.code
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _write(
    marker: WritableTxnMarker, waiting: Waiting, context: RequestContext
) -> WritableTxnMarkerResult:
    end = Marker(
        producer=ProducerIdentity(marker.producer_id, marker.producer_epoch),
        coordinator_epoch=marker.coordinator_epoch,
        committed=marker.transaction_result,
        client_version=marker.transaction_version,
    )
    result = WritableTxnMarkerResult(producer_id=marker.producer_id)
    for topic in marker.topics:
        answers = []
        for index in topic.partition_indexes:
            answer = WritableTxnMarkerPartitionResult(partition_index=index)
            answers.append(answer)
            _append(TopicPartition(topic.name, index), end, answer, waiting, context)
        result.topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=answers))
    return result


def _append(
    topic_partition: TopicPartition,
    marker: Marker,
    answer: WritableTxnMarkerPartitionResult,
    waiting: Waiting,
    context: RequestContext,
) -> None:
    markers = context.services.transactions.markers
    try:
        end_offset = markers.write(topic_partition, marker)
        partition = markers.partition(topic_partition)
        replicas = context.services.replicas
        waiting.append(_Appended(partition, partition.leader_epoch, end_offset, answer, replicas))
    except KafkaError as error:
        is_coordinators = error.code in COORDINATOR_CODES
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_coordinators else error.code
        answer.error_code = code


async def _wait(
    response: WriteTxnMarkersResponse, waiting: Waiting, context: RequestContext
) -> WriteTxnMarkersResponse:
    """Wait for the replicas, at most `request.timeout.ms`."""
    moved = trio.Event()

    def on_progress() -> None:
        moved.set()

    for marker in waiting:
        marker.partition.watch(on_progress)
    try:
        with trio.move_on_after(context.services.config.int("request.timeout.ms") / 1000):
            while not all(marker.is_settled for marker in waiting):
                await moved.wait()
                moved = trio.Event()
    finally:
        for marker in waiting:
            marker.partition.unwatch(on_progress)
    for marker in waiting:
        if marker.is_lost:
            marker.answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif not marker.is_settled:
            marker.answer.error_code = ErrorCode.REQUEST_TIMED_OUT
    return response


HANDLERS = (Handler(WRITE_TXN_MARKERS, handle, refuse),)
