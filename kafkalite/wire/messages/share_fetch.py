"""ShareFetch (API key 78), versions 1-2, all flexible.

KIP-932. Version 0 was early access in 4.0 and left with 4.1.

v2: share_acquire_mode (KIP-1206) and is_renew_ack (KIP-1222).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import (
    ArrayOf,
    Records,
    String,
    default,
    nullable,
    optional,
    since,
    structure,
)

AcknowledgementBatch = structure(
    "AcknowledgementBatch",
    "first_offset" / Int64,
    "last_offset" / Int64,
    "acknowledge_types" / ArrayOf(Int8),
)

FetchPartition = structure(
    "FetchPartition",
    "partition_index" / Int32,
    "acknowledgement_batches" / ArrayOf(AcknowledgementBatch),
)

FetchTopic = structure(
    "FetchTopic",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(FetchPartition),
)

ForgottenTopic = structure(
    "ForgottenTopic",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(Int32),
)

ShareFetchRequest = structure(
    "ShareFetchRequest",
    "group_id" / optional(String),
    "member_id" / nullable(String),
    "share_session_epoch" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / default(Int32, 2**31 - 1),
    "max_records" / Int32,
    "batch_size" / Int32,
    "share_acquire_mode" / since(2, Int8),
    "is_renew_ack" / since(2, Bool),
    "topics" / ArrayOf(FetchTopic),
    "forgotten_topics_data" / ArrayOf(ForgottenTopic),
)

LeaderIdAndEpoch = structure(
    "LeaderIdAndEpoch",
    "leader_id" / Int32,
    "leader_epoch" / Int32,
)

AcquiredRecords = structure(
    "AcquiredRecords",
    "first_offset" / Int64,
    "last_offset" / Int64,
    "delivery_count" / Int16,
)

PartitionData = structure(
    "PartitionData",
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "acknowledge_error_code" / Int16,
    "acknowledge_error_message" / optional(String),
    "current_leader" / since(1, LeaderIdAndEpoch),
    "records" / Records,
    "acquired_records" / ArrayOf(AcquiredRecords),
)

ShareFetchableTopicResponse = structure(
    "ShareFetchableTopicResponse",
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

ShareFetchResponse = structure(
    "ShareFetchResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "acquisition_lock_timeout_ms" / Int32,
    "responses" / ArrayOf(ShareFetchableTopicResponse),
    "node_endpoints" / ArrayOf(NodeEndpoint),
)

SHARE_FETCH = Api(
    ApiKey.SHARE_FETCH,
    versions=(1, 2),
    flexible_from=0,
    request=ShareFetchRequest,
    response=ShareFetchResponse,
)
