"""Heartbeat (API key 12), versions 0-4, flexible from 4."""

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
