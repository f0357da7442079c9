"""AlterShareGroupOffsets (API key 91), version 0, all flexible.

KIP-932.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, optional, structure

AlterShareGroupOffsetsRequestPartition = structure(
    "AlterShareGroupOffsetsRequestPartition",
    "partition_index" / Int32,
    "start_offset" / Int64,
)

AlterShareGroupOffsetsRequestTopic = structure(
    "AlterShareGroupOffsetsRequestTopic",
    "topic_name" / String,
    "partitions" / ArrayOf(AlterShareGroupOffsetsRequestPartition),
)

AlterShareGroupOffsetsRequest = structure(
    "AlterShareGroupOffsetsRequest",
    "group_id" / String,
    "topics" / ArrayOf(AlterShareGroupOffsetsRequestTopic),
)

AlterShareGroupOffsetsResponsePartition = structure(
    "AlterShareGroupOffsetsResponsePartition",
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
)

AlterShareGroupOffsetsResponseTopic = structure(
    "AlterShareGroupOffsetsResponseTopic",
    "topic_name" / String,
    "topic_id" / Uuid,
    "partitions" / ArrayOf(AlterShareGroupOffsetsResponsePartition),
)

AlterShareGroupOffsetsResponse = structure(
    "AlterShareGroupOffsetsResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "responses" / ArrayOf(AlterShareGroupOffsetsResponseTopic),
)

ALTER_SHARE_GROUP_OFFSETS = Api(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    versions=(0, 0),
    flexible_from=0,
    request=AlterShareGroupOffsetsRequest,
    response=AlterShareGroupOffsetsResponse,
)
