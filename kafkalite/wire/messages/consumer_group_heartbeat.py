"""ConsumerGroupHeartbeat (API key 68), versions 0-1, flexible from 0 (KIP-848).

v1: subscribed_topic_regex; the member makes its own id (KIP-1082).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, default, optional, since, structure

TopicPartitions = structure(
    "TopicPartitions",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(Int32),
)

ConsumerGroupHeartbeatRequest = structure(
    "ConsumerGroupHeartbeatRequest",
    "group_id" / String,
    "member_id" / String,
    "member_epoch" / Int32,
    "instance_id" / optional(String),
    "rack_id" / optional(String),
    "rebalance_timeout_ms" / default(Int32, -1),
    "subscribed_topic_names" / optional(ArrayOf(String)),
    "subscribed_topic_regex" / since(1, optional(String)),
    "server_assignor" / optional(String),
    "topic_partitions" / optional(ArrayOf(TopicPartitions)),
)

Assignment = structure(
    "Assignment",
    "topic_partitions" / ArrayOf(TopicPartitions),
)

ConsumerGroupHeartbeatResponse = structure(
    "ConsumerGroupHeartbeatResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "member_id" / optional(String),
    "member_epoch" / Int32,
    "heartbeat_interval_ms" / Int32,
    "assignment" / optional(Assignment),
)

CONSUMER_GROUP_HEARTBEAT = Api(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    versions=(0, 1),
    flexible_from=0,
    request=ConsumerGroupHeartbeatRequest,
    response=ConsumerGroupHeartbeatResponse,
)
