"""What a group coordinator's shard says about one group, for those who wait."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkalite.client.groups import read_assignment
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.states import GroupState
from kafkalite.group.streams.group import StreamsGroup
from kafkalite.types import TopicPartition

if TYPE_CHECKING:
    from kafkalite.group.shard import GroupShard
    from kafkalite.group.streams.member import StreamsMember
    from kafkalite.testing.journal import Journal

STABLE = "Stable"


def is_stable(shard: "GroupShard", group_id: str) -> bool:
    """Whether the group has members, and each has been told its assignment."""
    return _member_count(shard, group_id) > 0


def has_assigned(shard: "GroupShard", group_id: str, member_count: int) -> bool:
    """Whether the group is stable with exactly so many members."""
    return _member_count(shard, group_id) == member_count


def is_reading(shard: "GroupShard", group_id: str, member_count: int, journal: "Journal") -> bool:
    """Whether in addition each member knows where to read all that it was assigned.

    A partition with a committed offset needs no look: whatever is written will be read from there.
    Members that are no consumers (Kafka Connect) need only have their assignment.
    """
    if _member_count(shard, group_id) != member_count:
        return False
    group = shard.groups[group_id]
    if isinstance(group, StreamsGroup):
        return _is_processing(shard, group, journal)
    assert isinstance(group, ClassicGroup)
    if not group.uses_consumer_protocol:
        return True
    return all(
        journal.reads_since_sync(
            group_id,
            member.member_id,
            member.client_id,
            [
                place
                for place in read_assignment(member.assignment)
                if shard.offsets.get(group_id, place.topic, place.partition) is None
            ],
        )
        for member in group.members.values()
    )


def has_committed(shard: "GroupShard", group_id: str, wanted: Mapping[TopicPartition, int]) -> bool:
    """Whether the group has committed these offsets, or later ones."""
    for place, offset in wanted.items():
        committed = shard.offsets.get(group_id, place.topic, place.partition)
        if committed is None or committed.offset < offset:
            return False
    return True


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
    if not isinstance(group, ClassicGroup):
        return f"group {group_id!r} is {group.state_name}; committed: {committed or 'nothing'}"
    members = ", ".join(
        f"{member.client_id} ({', '.join(map(str, read_assignment(member.assignment)))})"
        for member in group.members.values()
    )
    return (
        f"group {group_id!r} is {group.state.value} in generation {group.generation}; "
        f"members: {members or 'none'}; committed: {committed or 'nothing'}"
    )


def _member_count(shard: "GroupShard", group_id: str) -> int:
    """Return how many members a group has that all have been told their assignment, else 0."""
    group = shard.groups.get(group_id)
    if isinstance(group, StreamsGroup):
        return len(group.members) if group.state_name == STABLE else 0
    if not isinstance(group, ClassicGroup) or group.state is not GroupState.STABLE:
        return 0
    return 0 if group.pending_syncs else len(group.members)


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
