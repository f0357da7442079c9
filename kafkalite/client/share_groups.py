"""Share groups from outside (KIP-932): members, how far they are, and moving that."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafkalite.client.cluster import Client
from kafkalite.client.errors import check
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.alter_share_group_offsets import (
    ALTER_SHARE_GROUP_OFFSETS,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafkalite.wire.messages.describe_share_group_offsets import (
    DESCRIBE_SHARE_GROUP_OFFSETS,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kafkalite.wire.messages.share_group_describe import (
    SHARE_GROUP_DESCRIBE,
    DescribedGroup,
    ShareGroupDescribeRequest,
)

UNKNOWN = -1


@dataclass(slots=True, frozen=True)
class ShareProgress:
    """How far a share group is with a partition; None where that is not known yet.

    Attributes:
        start_offset: first offset that is not finished with, as stored.
        lag: records that are not finished with.
    """

    start_offset: int | None
    lag: int | None


def describe_share_group(client: Client, group_id: str) -> DescribedGroup:
    """Return what the coordinator says of a share group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, there is none, or it is of another kind.
    """
    answer = client.ask_coordinator(
        group_id,
        SHARE_GROUP_DESCRIBE,
        ShareGroupDescribeRequest(group_ids=[group_id]),
        lambda answer: [group.error_code for group in answer.groups],
    )
    (group,) = answer.groups
    check(group.error_code, group.error_message or f"group {group_id!r}")
    return group


def share_progress(client: Client, group_id: str) -> dict[TopicPartition, ShareProgress]:
    """Return how far a share group is with all that it has begun.

    Raises:
        KafkaError: a coordinator or leader cannot answer.
    """
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)]
    )
    answer = client.ask_coordinator(
        group_id,
        DESCRIBE_SHARE_GROUP_OFFSETS,
        request,
        lambda answer: [group.error_code for group in answer.groups],
    )
    (group,) = answer.groups
    check(group.error_code, group.error_message or f"group {group_id!r}")
    found = {}
    for topic in group.topics:
        for entry in topic.partitions:
            place = TopicPartition(topic.topic_name, entry.partition_index)
            check(entry.error_code, str(place))
            found[place] = ShareProgress(_known(entry.start_offset), _known(entry.lag))
    return found


def alter_share_offsets(
    client: Client, group_id: str, start_offsets: Mapping[TopicPartition, int]
) -> None:
    """Have a share group without members begin elsewhere.

    Raises:
        KafkaError: NON_EMPTY_GROUP, or what is said of a partition.
    """
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for place, offset in start_offsets.items():
        topics.setdefault(place.topic, []).append(
            AlterShareGroupOffsetsRequestPartition(
                partition_index=place.partition, start_offset=offset
            )
        )
    answer = client.ask_coordinator(
        group_id,
        ALTER_SHARE_GROUP_OFFSETS,
        AlterShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[
                AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        ),
        lambda answer: [answer.error_code],
    )
    check(answer.error_code, answer.error_message or f"group {group_id!r}")
    for topic in answer.responses:
        for entry in topic.partitions:
            check(
                entry.error_code,
                entry.error_message or f"{topic.topic_name}-{entry.partition_index}",
            )


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number
