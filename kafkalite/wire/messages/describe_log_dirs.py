"""DescribeLogDirs (API key 35), versions 1-5, flexible from 2.

KIP-113. Version 0 left Kafka with 4.0 (KIP-896).

v2: compact encoding and tag sections (KIP-482).
v3: top-level error_code (KIP-784).
v4: total_bytes and usable_bytes of the volume (KIP-827).
v5: is_cordoned (KIP-1066).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, nullable, since, structure

DescribableLogDirTopic = structure(
    "DescribableLogDirTopic",
    "topic" / String,
    "partitions" / ArrayOf(Int32),
)

DescribeLogDirsRequest = structure(
    "DescribeLogDirsRequest",
    "topics" / nullable(ArrayOf(DescribableLogDirTopic)),
)

DescribeLogDirsPartition = structure(
    "DescribeLogDirsPartition",
    "partition_index" / Int32,
    "partition_size" / Int64,
    "offset_lag" / Int64,
    "is_future_key" / Bool,
)

DescribeLogDirsTopic = structure(
    "DescribeLogDirsTopic",
    "name" / String,
    "partitions" / ArrayOf(DescribeLogDirsPartition),
)

DescribeLogDirsResult = structure(
    "DescribeLogDirsResult",
    "error_code" / Int16,
    "log_dir" / String,
    "topics" / ArrayOf(DescribeLogDirsTopic),
    "total_bytes" / since(4, Int64, default=-1),
    "usable_bytes" / since(4, Int64, default=-1),
    "is_cordoned" / since(5, Bool),
)

DescribeLogDirsResponse = structure(
    "DescribeLogDirsResponse",
    "throttle_time_ms" / Int32,
    "error_code" / since(3, Int16),
    "results" / ArrayOf(DescribeLogDirsResult),
)

DESCRIBE_LOG_DIRS = Api(
    ApiKey.DESCRIBE_LOG_DIRS,
    versions=(1, 5),
    flexible_from=2,
    request=DescribeLogDirsRequest,
    response=DescribeLogDirsResponse,
)
