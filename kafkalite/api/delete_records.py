"""DeleteRecords (key 21), versions 0-2: move a partition's log start up (KIP-107, rule 35).

v1: throttling. v2: flexible.
"""

from functools import partial

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.isr.partition import Partition
from kafkalite.types import INTERNAL_TOPICS
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

INVALID_LOW_WATERMARK = -1
ALL_REPLICATED = -1

Waiting = list[tuple[Partition, int, DeleteRecordsPartitionResult]]
"""Partitions, the offset that all their replicas are to begin at, and where to put the outcome."""


def handle(
    request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse | Deferred[DeleteRecordsResponse]:
    """Delete for each partition by itself; answer when all living replicas have done so."""
    waiting: Waiting = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(topic.name, p, waiting, context) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    if not waiting:
        return response
    deadline_s = trio.current_time() + request.timeout_ms / 1000
    return Deferred(partial(_wait, response, waiting, deadline_s, context))


async def _wait(
    response: DeleteRecordsResponse, waiting: Waiting, deadline_s: float, context: RequestContext
) -> DeleteRecordsResponse:
    """Wait until the followers' fetches tell that their logs begin no earlier (rule 35)."""
    moved = trio.Event()
    late = waiting

    def on_move() -> None:
        moved.set()

    for partition, _, _ in waiting:
        partition.watch(on_move)
    try:
        with trio.move_on_at(deadline_s):
            while late := [each for each in late if not _is_done(*each, context)]:
                await moved.wait()
                moved = trio.Event()
    finally:
        for partition, _, _ in waiting:
            partition.unwatch(on_move)
    for partition, _, result in late:
        result.error_code = ErrorCode.REQUEST_TIMED_OUT
        result.low_watermark = partition.low_watermark
    return response


def _is_done(
    partition: Partition,
    offset: int,
    result: DeleteRecordsPartitionResult,
    context: RequestContext,
) -> bool:
    if context.services.replicas.find(partition.topic_partition) is not partition:
        result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return True
    result.low_watermark = partition.low_watermark
    return result.low_watermark >= offset


def refuse(
    request: DeleteRecordsRequest, error: KafkaError, context: RequestContext
) -> DeleteRecordsResponse:
    """Answer the error for every partition."""
    del context
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_failed(p.partition_index, error) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(
    topic: str, wanted: DeleteRecordsPartition, waiting: Waiting, context: RequestContext
) -> DeleteRecordsPartitionResult:
    try:
        if topic in INTERNAL_TOPICS:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal: its records are state"
            )
        partition = context.services.replicas.partition(topic, wanted.partition_index)
        start_offset = partition.delete_records_before(wanted.offset)
    except KafkaError as error:
        return _failed(wanted.partition_index, error)
    result = DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index,
        low_watermark=partition.low_watermark,
        error_code=ErrorCode.NONE,
    )
    offset = start_offset if wanted.offset == ALL_REPLICATED else wanted.offset
    if result.low_watermark < offset:
        waiting.append((partition, offset, result))
    return result


def _failed(index: int, error: KafkaError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=INVALID_LOW_WATERMARK, error_code=error.code
    )


HANDLERS = (Handler(DELETE_RECORDS, handle, refuse),)
