"""States of share partitions in `__share_group_state`: snapshots and updates (KIP-932)."""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Int8, Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, structure, tagged

ShareSnapshotKey = structure(
    "ShareSnapshotKey",
    "group_id" / String,
    "topic_id" / Uuid,
    "partition" / Int32,
)

StateBatch = structure(
    "StateBatch",
    "first_offset" / Int64,
    "last_offset" / Int64,
    "delivery_state" / Int8,
    "delivery_count" / Int16,
)

ShareSnapshotValue = structure(
    "ShareSnapshotValue",
    "snapshot_epoch" / Int32,
    "state_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    "delivery_complete_count" / tagged(0, Int32, default=-1),
    "create_timestamp" / Int64,
    "write_timestamp" / Int64,
    "state_batches" / ArrayOf(StateBatch),
)

ShareUpdateKey = structure(
    "ShareUpdateKey",
    "group_id" / String,
    "topic_id" / Uuid,
    "partition" / Int32,
)

ShareUpdateValue = structure(
    "ShareUpdateValue",
    "snapshot_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    "delivery_complete_count" / tagged(0, Int32, default=-1),
    "state_batches" / ArrayOf(StateBatch),
)

SHARE_SNAPSHOT_KEY = Codec(ShareSnapshotKey, versions=(0, 0), flexible_from=None)
SHARE_SNAPSHOT_VALUE = Codec(ShareSnapshotValue, versions=(0, 0), flexible_from=0)
SHARE_UPDATE_KEY = Codec(ShareUpdateKey, versions=(1, 1), flexible_from=None)
SHARE_UPDATE_VALUE = Codec(ShareUpdateValue, versions=(0, 0), flexible_from=0)
