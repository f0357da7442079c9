"""Streams groups from outside (KIP-1071): topology, members, tasks."""

from kafkalite.client.cluster import Client
from kafkalite.client.errors import check
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.streams_group_describe import (
    STREAMS_GROUP_DESCRIBE,
    DescribedGroup,
    StreamsGroupDescribeRequest,
    TaskIds,
)


def describe_streams_group(client: Client, group_id: str) -> DescribedGroup:
    """Return what the coordinator says of a streams group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, there is none, or it is of another kind.
    """
    answer = client.ask_coordinator(
        group_id,
        STREAMS_GROUP_DESCRIBE,
        StreamsGroupDescribeRequest(group_ids=[group_id]),
        lambda answer: [group.error_code for group in answer.groups],
    )
    (group,) = answer.groups
    check(group.error_code, group.error_message or f"group {group_id!r}")
    return group


def task_names(lists: list[TaskIds]) -> list[str]:
    """Return tasks as Streams prints them, such as `0_2`."""
    return [f"{each.subtopology_id}_{number}" for each in lists for number in each.partitions]


def source_topics(group: DescribedGroup) -> dict[str, str]:
    """Return the subtopology that reads each topic, by topic."""
    found: dict[str, str] = {}
    subtopologies = [] if group.topology is None else group.topology.subtopologies or []
    for each in subtopologies:
        repartition = [info.name for info in each.repartition_source_topics]
        found.update(dict.fromkeys([*each.source_topics, *repartition], each.subtopology_id))
    return found


def task_of(sources: dict[str, str], place: TopicPartition) -> str | None:
    """Return the task that reads a partition, None if none does."""
    name = sources.get(place.topic)
    return None if name is None else f"{name}_{place.partition}"
