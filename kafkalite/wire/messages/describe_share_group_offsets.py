"""DescribeShareGroupOffsets (API key 90), versions 0-1, all flexible.

KIP-932.

v1: lag (KIP-1226).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, nullable, optional, since, structure

DescribeShareGroupOffsetsRequestTopic = structure(
    "DescribeShareGroupOffsetsRequestTopic",
    "topic_name" / String,
    "partitions" / ArrayOf(Int32),
)

DescribeShareGroupOffsetsRequestGroup = structure(
    "DescribeShareGroupOffsetsRequestGroup",
    "group_id" / String,
    "topics" / nullable(ArrayOf(DescribeShareGroupOffsetsRequestTopic)),
)

DescribeShareGroupOffsetsRequest = structure(
    "DescribeShareGroupOffsetsRequest",
    "groups" / ArrayOf(DescribeShareGroupOffsetsRequestGroup),
)

DescribeShareGroupOffsetsResponsePartition = structure(
    "DescribeShareGroupOffsetsResponsePartition",
    "partition_index" / Int32,
    "start_offset" / Int64,
    "leader_epoch" / Int32,
    "lag" / since(1, Int64, default=-1),
    "error_code" / Int16,
    "error_message" / optional(String),
)

DescribeShareGroupOffsetsResponseTopic = structure(
    "DescribeShareGroupOffsetsResponseTopic",
    "topic_name" / String,
    "topic_id" / Uuid,
    "partitions" / ArrayOf(DescribeShareGroupOffsetsResponsePartition),
)

DescribeShareGroupOffsetsResponseGroup = structure(
    "DescribeShareGroupOffsetsResponseGroup",
    "group_id" / String,
    "topics" / ArrayOf(DescribeShareGroupOffsetsResponseTopic),
    "error_code" / Int16,
    "error_message" / optional(String),
)

DescribeShareGroupOffsetsResponse = structure(
    "DescribeShareGroupOffsetsResponse",
    "throttle_time_ms" / Int32,
    "groups" / ArrayOf(DescribeShareGroupOffsetsResponseGroup),
)

DESCRIBE_SHARE_GROUP_OFFSETS = Api(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    versions=(0, 1),
    flexible_from=0,
    request=DescribeShareGroupOffsetsRequest,
    response=DescribeShareGroupOffsetsResponse,
)
