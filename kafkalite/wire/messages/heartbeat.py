"""Heartbeat (API key 12), versions 0-4, flexible from 4.

v1: throttle_time_ms (KIP-124).
v2: the throttled client gets its answer before the pause (KIP-219).
v3: group_instance_id (KIP-345).
v4: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import String, optional, since, structure

HeartbeatRequest = structure(
    "HeartbeatRequest",
    "group_id" / String,
    "generation_id" / Int32,
    "member_id" / String,
    "group_instance_id" / since(3, optional(String)),
)

HeartbeatResponse = structure(
    "HeartbeatResponse",
    "throttle_time_ms" / since(1, Int32),
    "error_code" / Int16,
)

HEARTBEAT = Api(
    ApiKey.HEARTBEAT,
    versions=(0, 4),
    flexible_from=4,
    request=HeartbeatRequest,
    response=HeartbeatResponse,
)
