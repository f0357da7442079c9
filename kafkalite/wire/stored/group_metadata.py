"""A group's committed generation in `__consumer_offsets`: record keys of type 2 (rule 156)."""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Int32, Int64
from kafkalite.wire.schema import (
    ArrayOf,
    Bytes,
    String,
    nullable,
    optional,
    since,
    structure,
)

GroupMetadataKey = structure(
    "GroupMetadataKey",
    "group" / String,
)

MemberMetadata = structure(
    "MemberMetadata",
    "member_id" / String,
    "group_instance_id" / since(3, optional(String)),
    "client_id" / String,
    "client_host" / String,
    "rebalance_timeout" / since(1, Int32, default=-1),
    "session_timeout" / Int32,
    "subscription" / Bytes,
    "assignment" / Bytes,
)

GroupMetadataValue = structure(
    "GroupMetadataValue",
    "protocol_type" / String,
    "generation" / Int32,
    "protocol" / nullable(String),
    "leader" / nullable(String),
    "current_state_timestamp" / since(2, Int64, default=-1),
    "members" / ArrayOf(MemberMetadata),
)

GROUP_METADATA_KEY = Codec(GroupMetadataKey, versions=(2, 2), flexible_from=None)
GROUP_METADATA_VALUE = Codec(GroupMetadataValue, versions=(0, 4), flexible_from=4)
