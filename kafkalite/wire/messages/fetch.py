"""Fetch (API key 1), versions 4-18, flexible from 12.

The versions before 4 left Kafka with 4.0 (KIP-896).

v5: log_start_offset of follower and leader (KIP-107).
v6: KAFKA_STORAGE_ERROR may be answered (KIP-112).
v7: sessions: what did not change is not repeated (KIP-227).
v8: the throttled client gets its answer before the pause (KIP-219).
v9: current_leader_epoch fences the request (KIP-320).
v10: batches may be compressed by zstd (KIP-110).
v11: rack_id and preferred_read_replica: reading from a near replica (KIP-392).
v12: compact encoding and tag sections (KIP-482); last_fetched_epoch and diverging_epoch replace
    a truncation request (KIP-595).
v13: topic ids instead of names (KIP-516).
v14: OFFSET_MOVED_TO_TIERED_STORAGE may be answered (KIP-405).
v15: replica_state, with the follower's broker epoch, replaces replica_id (KIP-903).
v16: the response may name addresses of current leaders (KIP-951).
v17: replica_directory_id (KIP-853).
v18: the follower tells which high_watermark it knows (KIP-1166).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import (
    ArrayOf,
    Records,
    String,
    default,
    nullable,
    optional,
    since,
    structure,
    tagged,
    until,
)

ReplicaState = structure(
    "ReplicaState",
    "replica_id" / default(Int32, -1),
    "replica_epoch" / default(Int64, -1),
)

FetchPartition = structure(
    "FetchPartition",
    "partition" / Int32,
    "current_leader_epoch" / since(9, Int32, default=-1),
    "fetch_offset" / Int64,
    "last_fetched_epoch" / since(12, Int32, default=-1),
    "log_start_offset" / since(5, Int64, default=-1),
    "partition_max_bytes" / Int32,
    "replica_directory_id" / since(17, tagged(0, Uuid)),
    "high_watermark" / since(18, tagged(1, Int64), default=2**63 - 1),
)

FetchTopic = structure(
    "FetchTopic",
    "topic" / until(12, String),
    "topic_id" / since(13, Uuid),
    "partitions" / ArrayOf(FetchPartition),
)

ForgottenTopic = structure(
    "ForgottenTopic",
    "topic" / until(12, String),
    "topic_id" / since(13, Uuid),
    "partitions" / ArrayOf(Int32),
)

FetchRequest = structure(
    "FetchRequest",
    "cluster_id" / since(12, tagged(0, optional(String))),
    "replica_id" / until(14, Int32, default=-1),
    "replica_state" / since(15, tagged(1, ReplicaState)),
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / default(Int32, 0x7FFFFFFF),
    "isolation_level" / Int8,
    "session_id" / since(7, Int32),
    "session_epoch" / since(7, Int32, default=-1),
    "topics" / ArrayOf(FetchTopic),
    "forgotten_topics_data" / since(7, ArrayOf(ForgottenTopic)),
    "rack_id" / since(11, String),
)

EpochEndOffset = structure(
    "EpochEndOffset",
    "epoch" / default(Int32, -1),
    "end_offset" / default(Int64, -1),
)

LeaderIdAndEpoch = structure(
    "LeaderIdAndEpoch",
    "leader_id" / default(Int32, -1),
    "leader_epoch" / default(Int32, -1),
)

SnapshotId = structure(
    "SnapshotId",
    "end_offset" / default(Int64, -1),
    "epoch" / default(Int32, -1),
)

AbortedTransaction = structure(
    "AbortedTransaction",
    "producer_id" / Int64,
    "first_offset" / Int64,
)

PartitionData = structure(
    "PartitionData",
    "partition_index" / Int32,
    "error_code" / Int16,
    "high_watermark" / Int64,
    "last_stable_offset" / default(Int64, -1),
    "log_start_offset" / since(5, Int64, default=-1),
    "diverging_epoch" / since(12, tagged(0, EpochEndOffset)),
    "current_leader" / since(12, tagged(1, LeaderIdAndEpoch)),
    "snapshot_id" / since(12, tagged(2, SnapshotId)),
    "aborted_transactions" / nullable(ArrayOf(AbortedTransaction)),
    "preferred_read_replica" / since(11, Int32, default=-1),
    "records" / nullable(Records),
)

FetchableTopicResponse = structure(
    "FetchableTopicResponse",
    "topic" / until(12, String),
    "topic_id" / since(13, Uuid),
    "partitions" / ArrayOf(PartitionData),
)

NodeEndpoint = structure(
    "NodeEndpoint",
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    "rack" / optional(String),
)

FetchResponse = structure(
    "FetchResponse",
    "throttle_time_ms" / Int32,
    "error_code" / since(7, Int16),
    "session_id" / since(7, Int32),
    "responses" / ArrayOf(FetchableTopicResponse),
    "node_endpoints" / since(16, tagged(0, ArrayOf(NodeEndpoint))),
)

FETCH = Api(
    ApiKey.FETCH,
    versions=(4, 18),
    flexible_from=12,
    request=FetchRequest,
    response=FetchResponse,
)
