"""Taking members out of a consumer group: they left, or were silent too long."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkalite.group.consumer import records
from kafkalite.group.consumer.group import ConsumerGroup, NameCount
from kafkalite.group.consumer.member import ConsumerMember
from kafkalite.group.consumer.migration import downgrade, is_downgraded_without
from kafkalite.group.transition import Transition

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState


def fence(
    shard: "ShardState",
    transition: Transition,
    group: ConsumerGroup,
    members: Sequence[ConsumerMember],
) -> None:
    """Remove members, which raises the group epoch once; the next heartbeat computes the target.

    If only members of the classic protocol remain, the group becomes classic.
    """
    if not members:
        return
    gone = {member.member_id for member in members}
    if is_downgraded_without(shard, group, gone):
        downgrade(shard, transition, group, leaving=gone)
        return
    for member in members:
        transition.records += records.member_tombstones(group.group_id, member.member_id)
    changes: dict[str, NameCount] = {}
    counts: dict[str, int] = {}
    for member in members:
        for name in member.subscribed_topic_names:
            changes.setdefault(name, NameCount()).by_name -= 1
        if member.pattern is not None:
            counts[member.pattern] = counts.get(member.pattern, 0) + 1
    for pattern, count in counts.items():
        if group.patterns.get(pattern) != count:
            continue
        transition.records.append(records.pattern_tombstone(group.group_id, pattern))
        found = group.resolutions.get(pattern)
        for name in () if found is None else found.topics:
            changes.setdefault(name, NameCount()).by_pattern -= 1
    metadata_hash = shard.metadata.hash_of(group.names_with(changes))
    transition.records.append(
        records.group_record(group.group_id, group.group_epoch + 1, metadata_hash)
    )
