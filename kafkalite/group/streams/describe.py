"""StreamsGroupDescribe's view of a group (rule 480)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafkalite.group.streams.tasks import HeldTasks, TaskId, Tasks, by_subtopology
from kafkalite.wire.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

if TYPE_CHECKING:
    from kafkalite.group.streams import topology as declared
    from kafkalite.group.streams.group import StreamsGroup
    from kafkalite.group.streams.internal_topics import ConfiguredTopology, InternalTopic
    from kafkalite.group.streams.member import StreamsMember
    from kafkalite.wire.stored import streams_group as stored


def described_group(group: "StreamsGroup") -> DescribedGroup:
    """Describe a group; its topology with decided partition counts once it is configured."""
    configured = group.soft.configured
    topology: Topology | None = None
    if configured is not None and configured.is_ready:
        topology = _configured_topology(configured)
    elif group.topology is not None:
        topology = _declared_topology(group.topology)
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=topology,
        members=[_member(group, member) for member in group.members.values()],
    )


def _member(group: "StreamsGroup", member: "StreamsMember") -> Member:
    endpoint = member.user_endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=_key_values(member.client_tags),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target(member.member_id)),
    )


def _assignment(tasks: Tasks | HeldTasks) -> Assignment:
    return Assignment(
        active_tasks=_lists(tasks.active),
        standby_tasks=_lists(tasks.standby),
        warmup_tasks=_lists(tasks.warmup),
    )


def _lists(tasks: Iterable[TaskId]) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=name, partitions=partitions)
        for name, partitions in by_subtopology(tasks).items()
    ]


def _configured_topology(configured: "ConfiguredTopology") -> Topology:
    return Topology(
        epoch=configured.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=name,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                state_changelog_topics=_internal_topics(each.state_changelog_topics),
                repartition_source_topics=_internal_topics(each.repartition_source_topics),
            )
            for name, each in configured.subtopologies.items()
        ],
    )


def _declared_topology(topology: "declared.Topology") -> Topology:
    return Topology(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=name,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                state_changelog_topics=_declared_topics(each.state_changelog_topics),
                repartition_source_topics=_declared_topics(each.repartition_source_topics),
            )
            for name, each in sorted(topology.subtopologies.items())
        ],
    )


def _internal_topics(topics: "Mapping[str, InternalTopic]") -> list[TopicInfo]:
    return [
        TopicInfo(
            name=name,
            partitions=topic.partition_count,
            replication_factor=topic.replication_factor,
            topic_configs=_key_values(topic.configs),
        )
        for name, topic in sorted(topics.items())
    ]


def _declared_topics(infos: "Iterable[stored.TopicInfo]") -> list[TopicInfo]:
    return [
        TopicInfo(
            name=info.name,
            partitions=info.partitions,
            replication_factor=info.replication_factor,
            topic_configs=[
                KeyValue(key=config.key, value=config.value) for config in info.topic_configs
            ],
        )
        for info in sorted(infos, key=lambda info: info.name)
    ]


def _key_values(pairs: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=value) for key, value in pairs.items()]
