"""ElectLeaders (API key 43), versions 0-2, flexible from 2.

KIP-183.

v1: election_type, and a top-level error_code (KIP-460).
v2: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, default, nullable, since, structure

TopicPartitions = structure(
    "TopicPartitions",
    "topic" / String,
    "partitions" / ArrayOf(Int32),
)

ElectLeadersRequest = structure(
    "ElectLeadersRequest",
    "election_type" / since(1, Int8),
    "topic_partitions" / nullable(ArrayOf(TopicPartitions)),
    "timeout_ms" / default(Int32, 60_000),
)

PartitionResult = structure(
    "PartitionResult",
    "partition_id" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
)

ReplicaElectionResult = structure(
    "ReplicaElectionResult",
    "topic" / String,
    "partition_result" / ArrayOf(PartitionResult),
)

ElectLeadersResponse = structure(
    "ElectLeadersResponse",
    "throttle_time_ms" / Int32,
    "error_code" / since(1, Int16),
    "replica_election_results" / ArrayOf(ReplicaElectionResult),
)

ELECT_LEADERS = Api(
    ApiKey.ELECT_LEADERS,
    versions=(0, 2),
    flexible_from=2,
    request=ElectLeadersRequest,
    response=ElectLeadersResponse,
)
