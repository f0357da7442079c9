"""When committed offsets are no longer wanted (rule 151, KIP-211)."""

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.kinds import Group
from kafkalite.group.offsets import NO_EXPIRY, OffsetStore, tombstone


def expire_offsets(
    group: Group, offsets: OffsetStore, *, now_wall_ms: int, retention_ms: int
) -> tuple[list[StoredRecord], bool]:
    """Return the tombstones of a group's expired offsets, and whether no offsets remain then."""
    group_id = group.group_id
    records = []
    remain = offsets.has_open_transactions(group_id)
    for topic, by_partition in offsets.topics(group_id).items():
        is_in_use = group.is_subscribed_to(topic)
        for partition, committed in by_partition.items():
            started_ms = None if is_in_use else group.retention_start(committed)
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
