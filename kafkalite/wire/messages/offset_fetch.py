"""OffsetFetch (API key 9), versions 1-10, flexible from 6.

Version 0, which read from ZooKeeper, left Kafka with 4.0 (KIP-896).

v2: null asks for all topics; top-level error_code (KIP-88).
v3: throttle_time_ms (KIP-124).
v4: the throttled client gets its answer before the pause (KIP-219).
v5: committed_leader_epoch (KIP-320).
v6: compact encoding and tag sections (KIP-482).
v7: require_stable: offsets of open transactions are refused (KIP-447).
v8: several groups in one request (KIP-709).
v9: member_id and member_epoch of KIP-848 groups.
v10: topic ids instead of names (KIP-848).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Int64, Uuid
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

OffsetFetchRequestTopic = structure(
    "OffsetFetchRequestTopic",
    "name" / String,
    "partition_indexes" / ArrayOf(Int32),
)

OffsetFetchRequestTopics = structure(
    "OffsetFetchRequestTopics",
    "name" / until(9, String),
    "topic_id" / since(10, Uuid),
    "partition_indexes" / ArrayOf(Int32),
)

OffsetFetchRequestGroup = structure(
    "OffsetFetchRequestGroup",
    "group_id" / String,
    "member_id" / since(9, optional(String)),
    "member_epoch" / since(9, Int32, default=-1),
    "topics" / nullable(ArrayOf(OffsetFetchRequestTopics)),
)

OffsetFetchRequest = structure(
    "OffsetFetchRequest",
    "group_id" / until(7, String),
    "topics" / until(7, nullable(ArrayOf(OffsetFetchRequestTopic), since=2)),
    "groups" / since(8, ArrayOf(OffsetFetchRequestGroup)),
    "require_stable" / since(7, Bool),
)

OffsetFetchResponsePartition = structure(
    "OffsetFetchResponsePartition",
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / since(5, Int32, default=-1),
    "metadata" / nullable(String),
    "error_code" / Int16,
)

OffsetFetchResponseTopic = structure(
    "OffsetFetchResponseTopic",
    "name" / String,
    "partitions" / ArrayOf(OffsetFetchResponsePartition),
)

OffsetFetchResponsePartitions = structure(
    "OffsetFetchResponsePartitions",
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / default(Int32, -1),
    "metadata" / nullable(String),
    "error_code" / Int16,
)

OffsetFetchResponseTopics = structure(
    "OffsetFetchResponseTopics",
    "name" / until(9, String),
    "topic_id" / since(10, Uuid),
    "partitions" / ArrayOf(OffsetFetchResponsePartitions),
)

OffsetFetchResponseGroup = structure(
    "OffsetFetchResponseGroup",
    "group_id" / String,
    "topics" / ArrayOf(OffsetFetchResponseTopics),
    "error_code" / Int16,
)

OffsetFetchResponse = structure(
    "OffsetFetchResponse",
    "throttle_time_ms" / since(3, Int32),
    "topics" / until(7, ArrayOf(OffsetFetchResponseTopic)),
    "error_code" / since(2, Int16, until=7),
    "groups" / since(8, ArrayOf(OffsetFetchResponseGroup)),
)

OFFSET_FETCH = Api(
    ApiKey.OFFSET_FETCH,
    versions=(1, 10),
    flexible_from=6,
    request=OffsetFetchRequest,
    response=OffsetFetchResponse,
)
