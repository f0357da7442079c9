"""ListOffsets (API key 2), versions 1-11, flexible from 6."""

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
