"""DescribeProducers (key 61), version 0: who writes to a partition, and where (KIP-664)."""

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    """Answer each partition by itself."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(topic.name, p, context) for p in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def refuse(
    request: DescribeProducersRequest, error: KafkaError, context: RequestContext
) -> DescribeProducersResponse:
    """Answer the error for every partition."""
    del context
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_failed(p, error) for p in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, context: RequestContext) -> PartitionResponse:
    try:
        partition = context.services.replicas.replica(topic, index)
    except KafkaError as error:
        return _failed(index, error)
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_first_offset,
            )
            for producer in partition.log.producers
        ],
    )


def _failed(index: int, error: KafkaError) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=error.code, error_message=error.message or None
    )


HANDLERS = (Handler(DESCRIBE_PRODUCERS, handle, refuse),)
