"""What a group coordinator's shard says about one group, for those who wait."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkalite.client.groups import read_assignment
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.states import GroupState
from kafkalite.types import TopicPartition

if TYPE_CHECKING:
    from kafkalite.group.shard import GroupShard
    from kafkalite.testing.journal import Journal


def is_stable(shard: "GroupShard", group_id: str) -> bool:
    """Whether the group has members, and each has been told its assignment."""
    return _settled(shard, group_id) is not None


def has_assigned(shard: "GroupShard", group_id: str, member_count: int) -> bool:
    """Whether the group is stable with exactly so many members."""
    group = _settled(shard, group_id)
    return group is not None and len(group.members) == member_count


def is_reading(shard: "GroupShard", group_id: str, member_count: int, journal: "Journal") -> bool:
    """Whether in addition each member knows where to read all that it was assigned.

    A partition with a committed offset needs no look: whatever is written will be read from there.
    Members that are no consumers (Kafka Connect) need only have their assignment.
    """
    group = _settled(shard, group_id)
    if group is None or len(group.members) != member_count:
        return False
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


def _settled(shard: "GroupShard", group_id: str) -> ClassicGroup | None:
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.state is not GroupState.STABLE:
        return None
    return group if group.members and not group.pending_syncs else None
