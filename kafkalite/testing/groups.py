"""State of one group in its coordinator's shard, for those who wait."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkalite.client.groups import read_assignment
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.states import GroupState
from kafkalite.group.consumer.group import STABLE, ConsumerGroup
from kafkalite.group.consumer.member import ConsumerMember
from kafkalite.group.share.group import ShareGroup
from kafkalite.group.streams.group import StreamsGroup
from kafkalite.share.batches import SharePartitionKey
from kafkalite.types import SHARE_GROUP_STATE_TOPIC, TopicPartition

if TYPE_CHECKING:
    from kafkalite.api.context import Services
    from kafkalite.group.shard import GroupShard
    from kafkalite.group.streams.member import StreamsMember
    from kafkalite.share.shard import ShareStateShard
    from kafkalite.testing.journal import Journal


class Assigned(NamedTuple):
    """A member and what it was told to read."""

    member_id: str
    client_id: str
    partitions: list[TopicPartition]


def is_stable(shard: "GroupShard", group_id: str) -> bool:
    """Whether the group has members, and each has been told its assignment."""
    return bool(_settled(shard, group_id))


def has_assigned(shard: "GroupShard", group_id: str, member_count: int) -> bool:
    """Whether the group is stable with exactly so many members."""
    members = _settled(shard, group_id)
    return bool(members) and len(members) == member_count


def is_reading(shard: "GroupShard", group_id: str, member_count: int, journal: "Journal") -> bool:
    """Whether in addition each member knows where to read all that it was assigned.

    A partition with a committed offset needs no look: whatever is written will be read from there.
    Members that are no consumers (Kafka Connect) need only have their assignment.
    """
    members = _settled(shard, group_id)
    if len(members) != member_count:
        return False
    group = shard.groups[group_id]
    if isinstance(group, StreamsGroup):
        return _is_processing(shard, group, journal)
    if isinstance(group, ShareGroup):
        return True  # a share group begins where its first fetch finds it, whoever fetches
    if isinstance(group, ClassicGroup) and not group.uses_consumer_protocol:
        return True
    if isinstance(group, ConsumerGroup):
        for member in members:
            journal.note_assigned(group_id, member.member_id, member.partitions)
    return all(
        journal.reads_since_sync(
            group_id,
            member.member_id,
            member.client_id,
            [
                place
                for place in member.partitions
                if shard.offsets.get(group_id, place.topic, place.partition) is None
            ],
        )
        for member in members
    )


def has_committed(shard: "GroupShard", group_id: str, wanted: Mapping[TopicPartition, int]) -> bool:
    """Whether the group has committed these offsets, or later ones."""
    for place, offset in wanted.items():
        committed = shard.offsets.get(group_id, place.topic, place.partition)
        if committed is None or committed.offset < offset:
            return False
    return True


async def wait_finished(
    services: "Services", group_id: str, wanted: Mapping[TopicPartition, int]
) -> None:
    """Return when a share group has finished with all of some partitions below these offsets."""
    for place, end_offset in wanted.items():
        topic_id = services.metadata.image.topics[place.topic].topic_id
        key = SharePartitionKey(group_id, topic_id, place.partition)

        def is_finished(
            shard: "ShareStateShard", key: SharePartitionKey = key, end_offset: int = end_offset
        ) -> bool:
            return shard.finished_end(key) >= end_offset

        await services.coordinators.wait_until(
            SHARE_GROUP_STATE_TOPIC, key.coordinator_key, is_finished
        )


def describe_group(shard: "GroupShard", group_id: str) -> str:
    """Return one sentence about what the group is doing."""
    committed = ", ".join(
        f"{topic}-{index} at {each.offset}"
        for topic, offsets in shard.offsets.topics(group_id).items()
        for index, each in offsets.items()
    )
    group = shard.groups.get(group_id)
    if group is None:
        return f"group {group_id!r} does not exist"
    if isinstance(group, StreamsGroup):
        threads = ", ".join(
            f"{member.client_id} ({' '.join(_task_names(member)) or 'no tasks'})"
            for member in group.members.values()
        )
        return (
            f"group {group_id!r} is {group.state_name} in epoch {group.group_epoch}; "
            f"members: {threads or 'none'}; committed: {committed or 'nothing'}"
        )
    if isinstance(group, ShareGroup):
        names = ", ".join(
            f"{member.client_id} (epoch {member.member_epoch})" for member in group.members.values()
        )
        return (
            f"share group {group_id!r} is {group.state_name} in epoch {group.group_epoch}; "
            f"members: {names or 'none'}"
        )
    when, told = "", []
    if isinstance(group, ClassicGroup):
        when, told = f" in generation {group.generation}", _classic_members(group)
    elif isinstance(group, ConsumerGroup):
        when, told = f" at epoch {group.group_epoch}", _consumer_members(shard, group)
    members = ", ".join(
        f"{member.client_id} ({', '.join(map(str, member.partitions))})" for member in told
    )
    return (
        f"group {group_id!r} is {group.state_name}{when}; "
        f"members: {members or 'none'}; committed: {committed or 'nothing'}"
    )


def group_state(shard: "GroupShard", group_id: str) -> tuple[str, str, list[Assigned]]:
    """Return a sentence about a group, its state, and its members with what they read."""
    group = shard.groups[group_id]
    members: list[Assigned] = []
    if isinstance(group, ClassicGroup):
        members = _classic_members(group)
    elif isinstance(group, ConsumerGroup):
        members = _consumer_members(shard, group)
    return describe_group(shard, group_id), group.state_name, members


def _settled(shard: "GroupShard", group_id: str) -> list[Assigned]:
    """Return the members of a group that is at rest, none of one that is not."""
    group = shard.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        is_at_rest = group.state is GroupState.STABLE and not group.pending_syncs
        return _classic_members(group) if is_at_rest else []
    if isinstance(group, ConsumerGroup) and group.state_name == STABLE:
        return _consumer_members(shard, group)
    if isinstance(group, (StreamsGroup, ShareGroup)):
        is_at_rest = (
            group.is_settled if isinstance(group, ShareGroup) else group.state_name == STABLE
        )
        if not is_at_rest:
            return []
        return [Assigned(each.member_id, each.client_id, []) for each in group.members.values()]
    return []


def _classic_members(group: ClassicGroup) -> list[Assigned]:
    return [
        Assigned(member.member_id, member.client_id, read_assignment(member.assignment))
        for member in group.members.values()
    ]


def _consumer_members(shard: "GroupShard", group: ConsumerGroup) -> list[Assigned]:
    return [
        Assigned(member.member_id, member.client_id, _places(shard, member))
        for member in group.members.values()
    ]


def _places(shard: "GroupShard", member: ConsumerMember) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for topic_id, indexes in member.assigned.items()
        if (topic := shard.metadata.topic_by_id(topic_id)) is not None
        for index in sorted(indexes)
    ]


def _is_processing(shard: "GroupShard", group: StreamsGroup, journal: "Journal") -> bool:
    """Whether each thread knows where to read all that its active tasks read."""
    configured = group.soft.configured
    if configured is None:
        return False
    return all(
        journal.reads_since_sync(
            group.group_id,
            member.member_id,
            member.client_id,
            [
                TopicPartition(topic, task.partition)
                for task in member.assigned.active
                for topic in configured.subtopologies[task.subtopology_id].topics()
                if _has_partition(shard, topic, task.partition)
                and shard.offsets.get(group.group_id, topic, task.partition) is None
            ],
        )
        for member in group.members.values()
        if member.assigned.active
    )


def _has_partition(shard: "GroupShard", name: str, index: int) -> bool:
    topic = shard.metadata.topic(name)
    return topic is not None and index < len(topic.partitions)


def _task_names(member: "StreamsMember") -> list[str]:
    return [f"{name}_{number}" for name, number in sorted(member.assigned.active)]
