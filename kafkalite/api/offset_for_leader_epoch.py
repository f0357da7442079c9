"""OffsetForLeaderEpoch (key 23), versions 2-4: where a leader's epoch ended (KIP-101, KIP-320).

v3: replica id. v4: flexible.
"""

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Answer each partition by itself (rule 98)."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(topic.topic, p, context) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refuse(
    request: OffsetForLeaderEpochRequest, error: KafkaError, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Answer the error for every partition."""
    del context
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(error_code=error.code, partition=p.partition)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _end_offset(
    topic: str, wanted: OffsetForLeaderPartition, context: RequestContext
) -> EpochEndOffset:
    try:
        partition = context.services.replicas.partition(topic, wanted.partition)
        partition.check_leader_epoch(wanted.current_leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(error_code=error.code, partition=wanted.partition)
    leader_epoch, end_offset = partition.end_offset_for(wanted.leader_epoch)
    return EpochEndOffset(
        error_code=ErrorCode.NONE,
        partition=wanted.partition,
        leader_epoch=leader_epoch,
        end_offset=end_offset,
    )


HANDLERS = (Handler(OFFSET_FOR_LEADER_EPOCH, handle, refuse),)
