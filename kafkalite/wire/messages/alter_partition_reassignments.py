"""AlterPartitionReassignments (API key 45), versions 0-1, all flexible.

KIP-455.

v1: allow_replication_factor_change (KIP-860).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, default, nullable, optional, since, structure

ReassignablePartition = structure(
    "ReassignablePartition",
    "partition_index" / Int32,
    "replicas" / optional(ArrayOf(Int32)),
)

ReassignableTopic = structure(
    "ReassignableTopic",
    "name" / String,
    "partitions" / ArrayOf(ReassignablePartition),
)

AlterPartitionReassignmentsRequest = structure(
    "AlterPartitionReassignmentsRequest",
    "timeout_ms" / default(Int32, 60_000),
    "allow_replication_factor_change" / since(1, Bool, default=True),
    "topics" / ArrayOf(ReassignableTopic),
)

ReassignablePartitionResponse = structure(
    "ReassignablePartitionResponse",
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
)

ReassignableTopicResponse = structure(
    "ReassignableTopicResponse",
    "name" / String,
    "partitions" / ArrayOf(ReassignablePartitionResponse),
)

AlterPartitionReassignmentsResponse = structure(
    "AlterPartitionReassignmentsResponse",
    "throttle_time_ms" / Int32,
    "allow_replication_factor_change" / since(1, Bool, default=True),
    "error_code" / Int16,
    "error_message" / nullable(String),
    "responses" / ArrayOf(ReassignableTopicResponse),
)

ALTER_PARTITION_REASSIGNMENTS = Api(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    versions=(0, 1),
    flexible_from=0,
    request=AlterPartitionReassignmentsRequest,
    response=AlterPartitionReassignmentsResponse,
)
