"""Consumer groups of Kafka 4 from outside (KIP-848): epochs, members, targets."""

from kafkalite.client.cluster import Client
from kafkalite.client.errors import check
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    Assignment,
    ConsumerGroupDescribeRequest,
    DescribedGroup,
)


def describe_consumer_group(client: Client, group_id: str) -> DescribedGroup:
    """Return what the coordinator says of a consumer group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, there is none, or it is of another kind.
    """
    answer = client.ask_coordinator(
        group_id,
        CONSUMER_GROUP_DESCRIBE,
        ConsumerGroupDescribeRequest(group_ids=[group_id]),
        lambda answer: [group.error_code for group in answer.groups],
    )
    (group,) = answer.groups
    check(group.error_code, group.error_message or f"group {group_id!r}")
    return group


def places_of(assignment: Assignment) -> list[TopicPartition]:
    """Return the partitions of an assignment, in order."""
    return sorted(
        TopicPartition(topic.topic_name, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    )
