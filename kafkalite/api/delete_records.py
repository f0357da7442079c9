"""DeleteRecords (key 21), versions 0-2: move a partition's log start up (KIP-107, rule 35).

v1: throttling. v2: flexible.
"""

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
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


def admit(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    """Delete for each partition by itself."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(topic.name, p, context) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


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
    topic: str, wanted: DeleteRecordsPartition, context: RequestContext
) -> DeleteRecordsPartitionResult:
    try:
        if topic in INTERNAL_TOPICS:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal: its records are state"
            )
        partition = context.services.replicas.partition(topic, wanted.partition_index)
        low_watermark = partition.delete_records_before(wanted.offset)
    except KafkaError as error:
        return _failed(wanted.partition_index, error)
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index,
        low_watermark=low_watermark,
        error_code=ErrorCode.NONE,
    )


def _failed(index: int, error: KafkaError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=INVALID_LOW_WATERMARK, error_code=error.code
    )


HANDLERS = (Handler(DELETE_RECORDS, admit, refuse),)
