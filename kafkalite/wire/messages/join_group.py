"""JoinGroup (API key 11), versions 0-9, flexible from 6.

v1: rebalance_timeout_ms; before, session_timeout_ms served for it (KIP-62).
v2: throttle_time_ms (KIP-124).
v3: the throttled client gets its answer before the pause (KIP-219).
v4: a first join without member id is answered with one, to be repeated (KIP-394).
v5: group_instance_id (KIP-345).
v6: compact encoding and tag sections (KIP-482).
v7: the response has protocol_type, and protocol_name may be null (KIP-559).
v8: reason (KIP-800).
v9: skip_assignment: the leader rejoined, and the assignment stands (KIP-814).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32
from kafkalite.wire.schema import (
    ArrayOf,
    Bytes,
    String,
    default,
    nullable,
    optional,
    since,
    structure,
)

JoinGroupRequestProtocol = structure(
    "JoinGroupRequestProtocol",
    "name" / String,
    "metadata" / Bytes,
)

JoinGroupRequest = structure(
    "JoinGroupRequest",
    "group_id" / String,
    "session_timeout_ms" / Int32,
    "rebalance_timeout_ms" / since(1, Int32, default=-1),
    "member_id" / String,
    "group_instance_id" / since(5, optional(String)),
    "protocol_type" / String,
    "protocols" / ArrayOf(JoinGroupRequestProtocol),
    "reason" / since(8, optional(String)),
)

JoinGroupResponseMember = structure(
    "JoinGroupResponseMember",
    "member_id" / String,
    "group_instance_id" / since(5, optional(String)),
    "metadata" / Bytes,
)

JoinGroupResponse = structure(
    "JoinGroupResponse",
    "throttle_time_ms" / since(2, Int32),
    "error_code" / Int16,
    "generation_id" / default(Int32, -1),
    "protocol_type" / since(7, optional(String)),
    "protocol_name" / nullable(String, since=7),
    "leader" / String,
    "skip_assignment" / since(9, Bool),
    "member_id" / String,
    "members" / ArrayOf(JoinGroupResponseMember),
)

JOIN_GROUP = Api(
    ApiKey.JOIN_GROUP,
    versions=(0, 9),
    flexible_from=6,
    request=JoinGroupRequest,
    response=JoinGroupResponse,
)
