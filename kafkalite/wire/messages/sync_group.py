"""SyncGroup (API key 14), versions 0-5, flexible from 4."""

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
