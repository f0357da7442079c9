"""ShareGroupHeartbeat (API key 76), version 1, all flexible.

KIP-932. Version 0 was early access in 4.0 and left with 4.1.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, optional, structure

ShareGroupHeartbeatRequest = structure(
    "ShareGroupHeartbeatRequest",
    "group_id" / String,
    "member_id" / String,
    "member_epoch" / Int32,
    "rack_id" / optional(String),
    "subscribed_topic_names" / optional(ArrayOf(String)),
)

TopicPartitions = structure(
    "TopicPartitions",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(Int32),
)

Assignment = structure(
    "Assignment",
    "topic_partitions" / ArrayOf(TopicPartitions),
)

ShareGroupHeartbeatResponse = structure(
    "ShareGroupHeartbeatResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "member_id" / optional(String),
    "member_epoch" / Int32,
    "heartbeat_interval_ms" / Int32,
    "assignment" / optional(Assignment),
)

SHARE_GROUP_HEARTBEAT = Api(
    ApiKey.SHARE_GROUP_HEARTBEAT,
    versions=(1, 1),
    flexible_from=0,
    request=ShareGroupHeartbeatRequest,
    response=ShareGroupHeartbeatResponse,
)
