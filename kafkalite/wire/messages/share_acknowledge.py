"""ShareAcknowledge (API key 79), versions 1-2, all flexible.

KIP-932. Version 0 was early access in 4.0 and left with 4.1.

v2: is_renew_ack (KIP-1222).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, nullable, optional, since, structure

AcknowledgementBatch = structure(
    "AcknowledgementBatch",
    "first_offset" / Int64,
    "last_offset" / Int64,
    "acknowledge_types" / ArrayOf(Int8),
)

AcknowledgePartition = structure(
    "AcknowledgePartition",
    "partition_index" / Int32,
    "acknowledgement_batches" / ArrayOf(AcknowledgementBatch),
)

AcknowledgeTopic = structure(
    "AcknowledgeTopic",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(AcknowledgePartition),
)

ShareAcknowledgeRequest = structure(
    "ShareAcknowledgeRequest",
    "group_id" / optional(String),
    "member_id" / nullable(String),
    "share_session_epoch" / Int32,
    "is_renew_ack" / since(2, Bool),
    "topics" / ArrayOf(AcknowledgeTopic),
)

LeaderIdAndEpoch = structure(
    "LeaderIdAndEpoch",
    "leader_id" / Int32,
    "leader_epoch" / Int32,
)

PartitionData = structure(
    "PartitionData",
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "current_leader" / since(1, LeaderIdAndEpoch),
)

ShareAcknowledgeTopicResponse = structure(
    "ShareAcknowledgeTopicResponse",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionData),
)

NodeEndpoint = structure(
    "NodeEndpoint",
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    "rack" / optional(String),
)

ShareAcknowledgeResponse = structure(
    "ShareAcknowledgeResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "acquisition_lock_timeout_ms" / since(2, Int32),
    "responses" / ArrayOf(ShareAcknowledgeTopicResponse),
    "node_endpoints" / ArrayOf(NodeEndpoint),
)

SHARE_ACKNOWLEDGE = Api(
    ApiKey.SHARE_ACKNOWLEDGE,
    versions=(1, 2),
    flexible_from=0,
    request=ShareAcknowledgeRequest,
    response=ShareAcknowledgeResponse,
)
