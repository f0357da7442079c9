"""Conditions that tests wait for, to be given to `CoordinatorRuntime.wait_until`.

They are looked at after every event of the group's shard, so a test neither polls nor sleeps.
"""

from collections.abc import Callable

from kafkalite.group.shard import GroupShard
from kafkalite.group.states import GroupState

Condition = Callable[[GroupShard], bool]


def is_stable(group_id: str) -> Condition:
    """Hold when the group has assigned its partitions, and every member knows its share."""

    def holds(shard: GroupShard) -> bool:
        group = shard.groups.get(group_id)
        return group is not None and group.state is GroupState.STABLE and not group.pending_syncs

    return holds


def is_assigned(group_id: str, member_count: int) -> Condition:
    """Hold when at least so many members of a stable group have been told their share."""

    def holds(shard: GroupShard) -> bool:
        group = shard.groups.get(group_id)
        if group is None or group.state is not GroupState.STABLE:
            return False
        told = [
            member
            for member in group.members.values()
            if member.assignment and member.member_id not in group.pending_syncs
        ]
        return len(told) >= member_count

    return holds


def is_empty(group_id: str) -> Condition:
    """Hold when the group has no members, or is not there."""

    def holds(shard: GroupShard) -> bool:
        group = shard.groups.get(group_id)
        return group is None or group.state is GroupState.EMPTY

    return holds


def is_committed(group_id: str, topic: str, partition: int, offset: int) -> Condition:
    """Hold when the group has committed this offset of a partition, or a later one."""

    def holds(shard: GroupShard) -> bool:
        committed = shard.offsets.get(group_id, topic, partition)
        return committed is not None and committed.offset >= offset

    return holds
