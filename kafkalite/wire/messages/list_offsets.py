"""ListOffsets (API key 2), versions 1-11, flexible from 6.

Version 0 left Kafka with 4.0 (KIP-896).

v2: isolation_level (KIP-98) and throttle_time_ms (KIP-124).
v3: the throttled client gets its answer before the pause (KIP-219).
v4: current_leader_epoch fences the request, the response has leader_epoch (KIP-320).
v5: OFFSET_NOT_AVAILABLE may be answered (KIP-207).
v6: compact encoding and tag sections (KIP-482).
v7: timestamp -3 asks for the record with the greatest timestamp (KIP-734).
v8: timestamp -4 asks for the first offset on local disk (KIP-405).
v9: timestamp -5 asks for the last tiered offset (KIP-1005).
v10: timeout_ms, for answers that need remote storage (KIP-1075).
v11: timestamp -6 asks for the first offset not yet uploaded (KIP-1023).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, default, since, structure

ListOffsetsPartition = structure(
    "ListOffsetsPartition",
    "partition_index" / Int32,
    "current_leader_epoch" / since(4, Int32, default=-1),
    "timestamp" / Int64,
)

ListOffsetsTopic = structure(
    "ListOffsetsTopic",
    "name" / String,
    "partitions" / ArrayOf(ListOffsetsPartition),
)

ListOffsetsRequest = structure(
    "ListOffsetsRequest",
    "replica_id" / Int32,
    "isolation_level" / since(2, Int8),
    "topics" / ArrayOf(ListOffsetsTopic),
    "timeout_ms" / since(10, Int32),
)

ListOffsetsPartitionResponse = structure(
    "ListOffsetsPartitionResponse",
    "partition_index" / Int32,
    "error_code" / Int16,
    "timestamp" / default(Int64, -1),
    "offset" / default(Int64, -1),
    "leader_epoch" / since(4, Int32, default=-1),
)

ListOffsetsTopicResponse = structure(
    "ListOffsetsTopicResponse",
    "name" / String,
    "partitions" / ArrayOf(ListOffsetsPartitionResponse),
)

ListOffsetsResponse = structure(
    "ListOffsetsResponse",
    "throttle_time_ms" / since(2, Int32),
    "topics" / ArrayOf(ListOffsetsTopicResponse),
)

LIST_OFFSETS = Api(
    ApiKey.LIST_OFFSETS,
    versions=(1, 11),
    flexible_from=6,
    request=ListOffsetsRequest,
    response=ListOffsetsResponse,
)
