"""OffsetDelete (API key 47), version 0, never flexible.

KIP-496.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, structure

OffsetDeleteRequestPartition = structure(
    "OffsetDeleteRequestPartition",
    "partition_index" / Int32,
)

OffsetDeleteRequestTopic = structure(
    "OffsetDeleteRequestTopic",
    "name" / String,
    "partitions" / ArrayOf(OffsetDeleteRequestPartition),
)

OffsetDeleteRequest = structure(
    "OffsetDeleteRequest",
    "group_id" / String,
    "topics" / ArrayOf(OffsetDeleteRequestTopic),
)

OffsetDeleteResponsePartition = structure(
    "OffsetDeleteResponsePartition",
    "partition_index" / Int32,
    "error_code" / Int16,
)

OffsetDeleteResponseTopic = structure(
    "OffsetDeleteResponseTopic",
    "name" / String,
    "partitions" / ArrayOf(OffsetDeleteResponsePartition),
)

OffsetDeleteResponse = structure(
    "OffsetDeleteResponse",
    "error_code" / Int16,
    "throttle_time_ms" / Int32,
    "topics" / ArrayOf(OffsetDeleteResponseTopic),
)

OFFSET_DELETE = Api(
    ApiKey.OFFSET_DELETE,
    versions=(0, 0),
    flexible_from=None,
    request=OffsetDeleteRequest,
    response=OffsetDeleteResponse,
)
