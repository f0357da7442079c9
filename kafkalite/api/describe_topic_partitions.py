"""DescribeTopicPartitions (key 75), version 0: topics page by page (KIP-966).

Topics come in the order of their names. A page ends after `response_partition_limit` partitions
(bounded by max.request.partition.size.limit); the cursor says where the next one begins.

Not implemented: eligible leader replicas (KIP-966), which ZooKeeper's clusters do not have.
"""

from kafkalite.api.authorized_operations import NOT_REQUESTED, ON_TOPIC
from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.listener_endpoints import Endpoints, endpoints_for, leader_for, offline_replicas
from kafkalite.meta.image import Image, PartitionImage, TopicImage
from kafkalite.types import INTERNAL_TOPICS
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """Answer one page from the image."""
    image = context.services.metadata.image
    names = _names(request, image)
    bound = context.services.config.int("max.request.partition.size.limit")
    remaining = max(min(request.response_partition_limit, bound), 1)
    response = DescribeTopicPartitionsResponse(topics=[], next_cursor=None)
    for name in names:
        if not remaining:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_unknown(name, image))
            continue
        cursor = request.cursor
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        end = min(first + remaining, len(topic.partitions))
        response.topics.append(_topic(topic, first, end, context))
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        remaining -= max(end - first, 0)
    return response


def refuse(
    request: DescribeTopicPartitionsRequest, error: KafkaError, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """Answer the error for each topic."""
    del context
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(
                error_code=error.code,
                name=topic.name,
                topic_authorized_operations=NOT_REQUESTED,
            )
            for topic in request.topics
        ],
        next_cursor=None,
    )


def _names(request: DescribeTopicPartitionsRequest, image: Image) -> list[str]:
    """Return the topics from the cursor on; all topics if none are named."""
    wanted = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is None:
        return sorted(wanted or image.topics)
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"The cursor is at partition {cursor.partition_index}"
        )
    if wanted and cursor.topic_name not in wanted:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The cursor is at topic {cursor.topic_name}, which is not among the named ones",
        )
    return sorted(name for name in wanted or image.topics if name >= cursor.topic_name)


def _topic(
    topic: TopicImage, first: int, end: int, context: RequestContext
) -> DescribeTopicPartitionsResponseTopic:
    image = context.services.metadata.image
    endpoints = endpoints_for(context)
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(index, state, endpoints, image)
            for index, state in enumerate(topic.partitions[first:end], first)
        ],
        topic_authorized_operations=ON_TOPIC,
    )


def _partition(
    index: int, state: PartitionImage, endpoints: Endpoints, image: Image
) -> DescribeTopicPartitionsResponsePartition:
    leader, error_code = leader_for(state, endpoints, image)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error_code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=offline_replicas(state, endpoints),
    )


def _unknown(name: str, image: Image) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=image.refusal_of_unknown(name),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=ON_TOPIC,
    )


HANDLERS = (Handler(DESCRIBE_TOPIC_PARTITIONS, handle, refuse),)
