"""OffsetCommit (API key 8), versions 2-10, flexible from 8.

The versions before 2 left Kafka with 4.0 (KIP-896).

v3: throttle_time_ms (KIP-124).
v4: the throttled client gets its answer before the pause (KIP-219).
v5: retention_time_ms is gone: the broker's setting decides (KIP-211).
v6: committed_leader_epoch (KIP-320).
v7: group_instance_id (KIP-345).
v8: compact encoding and tag sections (KIP-482).
v9: usable by members of KIP-848 groups; GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH.
v10: topic ids instead of names (KIP-848).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import (
    ArrayOf,
    String,
    default,
    nullable,
    optional,
    since,
    structure,
    until,
)

OffsetCommitRequestPartition = structure(
    "OffsetCommitRequestPartition",
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / since(6, Int32, default=-1),
    "committed_metadata" / nullable(String),
)

OffsetCommitRequestTopic = structure(
    "OffsetCommitRequestTopic",
    "name" / until(9, String),
    "topic_id" / since(10, Uuid),
    "partitions" / ArrayOf(OffsetCommitRequestPartition),
)

OffsetCommitRequest = structure(
    "OffsetCommitRequest",
    "group_id" / String,
    "generation_id_or_member_epoch" / default(Int32, -1),
    "member_id" / String,
    "group_instance_id" / since(7, optional(String)),
    "retention_time_ms" / until(4, Int64, default=-1),
    "topics" / ArrayOf(OffsetCommitRequestTopic),
)

OffsetCommitResponsePartition = structure(
    "OffsetCommitResponsePartition",
    "partition_index" / Int32,
    "error_code" / Int16,
)

OffsetCommitResponseTopic = structure(
    "OffsetCommitResponseTopic",
    "name" / until(9, String),
    "topic_id" / since(10, Uuid),
    "partitions" / ArrayOf(OffsetCommitResponsePartition),
)

OffsetCommitResponse = structure(
    "OffsetCommitResponse",
    "throttle_time_ms" / since(3, Int32),
    "topics" / ArrayOf(OffsetCommitResponseTopic),
)

OFFSET_COMMIT = Api(
    ApiKey.OFFSET_COMMIT,
    versions=(2, 10),
    flexible_from=8,
    request=OffsetCommitRequest,
    response=OffsetCommitResponse,
)
