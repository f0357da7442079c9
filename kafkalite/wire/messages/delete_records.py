"""DeleteRecords (API key 21), versions 0-2, flexible from 2.

KIP-107.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, structure

DeleteRecordsPartition = structure(
    "DeleteRecordsPartition",
    "partition_index" / Int32,
    "offset" / Int64,
)

DeleteRecordsTopic = structure(
    "DeleteRecordsTopic",
    "name" / String,
    "partitions" / ArrayOf(DeleteRecordsPartition),
)

DeleteRecordsRequest = structure(
    "DeleteRecordsRequest",
    "topics" / ArrayOf(DeleteRecordsTopic),
    "timeout_ms" / Int32,
)

DeleteRecordsPartitionResult = structure(
    "DeleteRecordsPartitionResult",
    "partition_index" / Int32,
    "low_watermark" / Int64,
    "error_code" / Int16,
)

DeleteRecordsTopicResult = structure(
    "DeleteRecordsTopicResult",
    "name" / String,
    "partitions" / ArrayOf(DeleteRecordsPartitionResult),
)

DeleteRecordsResponse = structure(
    "DeleteRecordsResponse",
    "throttle_time_ms" / Int32,
    "topics" / ArrayOf(DeleteRecordsTopicResult),
)

DELETE_RECORDS = Api(
    ApiKey.DELETE_RECORDS,
    versions=(0, 2),
    flexible_from=2,
    request=DeleteRecordsRequest,
    response=DeleteRecordsResponse,
)
