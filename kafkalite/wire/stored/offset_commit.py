"""A committed offset in `__consumer_offsets`: record keys of type 0 and 1 (rule 156)."""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Int32, Int64, Uuid
from kafkalite.wire.schema import String, since, structure, tagged

OffsetCommitKey = structure(
    "OffsetCommitKey",
    "group" / String,
    "topic" / String,
    "partition" / Int32,
)

OffsetCommitValue = structure(
    "OffsetCommitValue",
    "offset" / Int64,
    "leader_epoch" / since(3, Int32, default=-1),
    "metadata" / String,
    "commit_timestamp" / Int64,
    "expire_timestamp" / since(1, Int64, until=1, default=-1),
    "topic_id" / since(4, tagged(0, Uuid)),
)

OFFSET_COMMIT_KEY = Codec(OffsetCommitKey, versions=(0, 1), flexible_from=None)
OFFSET_COMMIT_VALUE = Codec(OffsetCommitValue, versions=(0, 4), flexible_from=4)
