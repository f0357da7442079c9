"""SyncGroup (API key 14), versions 0-5, flexible from 4.

v1: throttle_time_ms (KIP-124).
v2: the throttled client gets its answer before the pause (KIP-219).
v3: group_instance_id (KIP-345).
v4: compact encoding and tag sections (KIP-482).
v5: protocol_type and protocol_name, checked by both sides (KIP-559).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import ArrayOf, Bytes, String, optional, since, structure

SyncGroupRequestAssignment = structure(
    "SyncGroupRequestAssignment",
    "member_id" / String,
    "assignment" / Bytes,
)

SyncGroupRequest = structure(
    "SyncGroupRequest",
    "group_id" / String,
    "generation_id" / Int32,
    "member_id" / String,
    "group_instance_id" / since(3, optional(String)),
    "protocol_type" / since(5, optional(String)),
    "protocol_name" / since(5, optional(String)),
    "assignments" / ArrayOf(SyncGroupRequestAssignment),
)

SyncGroupResponse = structure(
    "SyncGroupResponse",
    "throttle_time_ms" / since(1, Int32),
    "error_code" / Int16,
    "protocol_type" / since(5, optional(String)),
    "protocol_name" / since(5, optional(String)),
    "assignment" / Bytes,
)

SYNC_GROUP = Api(
    ApiKey.SYNC_GROUP,
    versions=(0, 5),
    flexible_from=4,
    request=SyncGroupRequest,
    response=SyncGroupResponse,
)
