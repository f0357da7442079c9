"""When committed offsets are no longer wanted (rule 151, KIP-211)."""

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.classic.group import NO_TIMESTAMP, ClassicGroup
from kafkalite.group.classic.states import GroupState
from kafkalite.group.offsets import NO_EXPIRY, CommittedOffset, OffsetStore, tombstone


def expire_offsets(
    group: ClassicGroup, offsets: OffsetStore, *, now_wall_ms: int, retention_ms: int
) -> tuple[list[StoredRecord], bool]:
    """Return the tombstones of a group's expired offsets, and whether no offsets remain then."""
    group_id = group.group_id
    records = []
    remain = offsets.has_open_transactions(group_id)
    for topic, by_partition in offsets.topics(group_id).items():
        is_in_use = group.is_subscribed_to(topic)
        for partition, committed in by_partition.items():
            started_ms = None if is_in_use else _retention_start(group, committed)
            is_expired = started_ms is not None and (
                now_wall_ms >= committed.expire_timestamp_ms
                if committed.expire_timestamp_ms != NO_EXPIRY
                else now_wall_ms - started_ms >= retention_ms
            )
            if is_expired and not offsets.is_pending(group_id, topic, partition):
                records.append(tombstone(group_id, topic, partition))
            else:
                remain = True
    return records, not remain


def _retention_start(group: ClassicGroup, committed: CommittedOffset) -> int | None:
    """Return the wall time from which retention counts; None while it does not."""
    if group.protocol_type is None:
        return committed.commit_timestamp_ms  # a client that assigns partitions itself
    if group.state is GroupState.EMPTY:
        # Since the last member left; records before v2 do not say when that was.
        since_ms = group.state_timestamp_ms
        return committed.commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
    if group.state is GroupState.STABLE and group.subscribed_topics is not None:
        return committed.commit_timestamp_ms  # of a topic that the group has stopped reading
    return None
