"""AlterReplicaLogDirs (API key 34), versions 1-2, flexible from 2.

KIP-113.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, structure

AlterReplicaLogDirTopic = structure(
    "AlterReplicaLogDirTopic",
    "name" / String,
    "partitions" / ArrayOf(Int32),
)

AlterReplicaLogDir = structure(
    "AlterReplicaLogDir",
    "path" / String,
    "topics" / ArrayOf(AlterReplicaLogDirTopic),
)

AlterReplicaLogDirsRequest = structure(
    "AlterReplicaLogDirsRequest",
    "dirs" / ArrayOf(AlterReplicaLogDir),
)

AlterReplicaLogDirPartitionResult = structure(
    "AlterReplicaLogDirPartitionResult",
    "partition_index" / Int32,
    "error_code" / Int16,
)

AlterReplicaLogDirTopicResult = structure(
    "AlterReplicaLogDirTopicResult",
    "topic_name" / String,
    "partitions" / ArrayOf(AlterReplicaLogDirPartitionResult),
)

AlterReplicaLogDirsResponse = structure(
    "AlterReplicaLogDirsResponse",
    "throttle_time_ms" / Int32,
    "results" / ArrayOf(AlterReplicaLogDirTopicResult),
)

ALTER_REPLICA_LOG_DIRS = Api(
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    versions=(1, 2),
    flexible_from=2,
    request=AlterReplicaLogDirsRequest,
    response=AlterReplicaLogDirsResponse,
)
