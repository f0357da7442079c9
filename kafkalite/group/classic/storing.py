"""How a classic group is written to the log.

An event brings forth at most one such record for each group, and decides nothing about the group
after it.
"""

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.transition import Transition
from kafkalite.wire.stored.group_metadata import GroupMetadataKey

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a member that was never answered is kept; fixed in Kafka too (rule 136)."""


def store(
    transition: Transition, group: ClassicGroup, *, assignments: dict[str, bytes] | None = None
) -> None:
    """Write the group as it is to the log, with these assignments or the ones it has."""
    stored = group.to_stored(assignments=assignments, now_wall_ms=transition.now.wall_ms)
    transition.records.append(StoredRecord(GroupMetadataKey(group=group.group_id), stored))


def store_empty(transition: Transition, group: ClassicGroup) -> None:
    """Write to the log that the group's next generation has no members."""
    stored = group.to_stored(assignments=None, now_wall_ms=transition.now.wall_ms)
    assert not stored.members
    stored.generation += 1
    stored.protocol = None
    transition.records.append(StoredRecord(GroupMetadataKey(group=group.group_id), stored))
