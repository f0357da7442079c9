"""Endpoints that answer for an application's state: topic partitions by endpoint (rule 478).

After Kafka's EndpointToPartitionsManager, but that a topology without known topics has none, where
Kafka 4.3.1 fails.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkalite.group.streams.tasks import TaskId, by_subtopology
from kafkalite.wire.messages.streams_group_heartbeat import (
    Endpoint,
    EndpointToPartitions,
    TopicPartition,
)

if TYPE_CHECKING:
    from kafkalite.group.streams.group import StreamsGroup
    from kafkalite.group.streams.internal_topics import ConfiguredTopology, PartitionCount
    from kafkalite.group.streams.member import StreamsMember


def partitions_by_endpoint(
    group: "StreamsGroup", updated: "StreamsMember", partition_count: "PartitionCount"
) -> list[EndpointToPartitions]:
    """Return what the members with an endpoint have, `updated` as it is after this heartbeat."""
    members = {**group.members, updated.member_id: updated}
    return [
        _cached(group, member, partition_count)
        for member in members.values()
        if member.user_endpoint is not None
    ]


def _cached(
    group: "StreamsGroup", member: "StreamsMember", partition_count: "PartitionCount"
) -> EndpointToPartitions:
    known = group.soft.endpoints.get(member.member_id)
    if known is None:
        known = _of_member(group.soft.configured, member, partition_count)
        group.soft.endpoints[member.member_id] = known
    return known


def _of_member(
    configured: "ConfiguredTopology | None",
    member: "StreamsMember",
    partition_count: "PartitionCount",
) -> EndpointToPartitions:
    assert member.user_endpoint is not None
    host, port = member.user_endpoint
    return EndpointToPartitions(
        user_endpoint=Endpoint(host=host, port=port),
        active_partitions=_topic_partitions(member.assigned.active, configured, partition_count),
        standby_partitions=_topic_partitions(member.assigned.standby, configured, partition_count),
    )


def _topic_partitions(
    tasks: Iterable[TaskId],
    configured: "ConfiguredTopology | None",
    partition_count: "PartitionCount",
) -> list[TopicPartition]:
    """Return the partitions of all topics that tasks read.

    Of a topic with fewer partitions than there are tasks, as many of the first ones as it has.
    """
    found = []
    for name, partitions in by_subtopology(tasks).items():
        subtopology = None if configured is None else configured.subtopologies.get(name)
        for topic in () if subtopology is None else subtopology.topics():
            count = partition_count(topic)
            if count is not None:
                found.append(TopicPartition(topic=topic, partitions=partitions[:count]))
    return found
