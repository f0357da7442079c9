"""ListPartitionReassignments (API key 46), version 0, flexible.

KIP-455.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, default, nullable, optional, structure

ListPartitionReassignmentsTopics = structure(
    "ListPartitionReassignmentsTopics",
    "name" / String,
    "partition_indexes" / ArrayOf(Int32),
)

ListPartitionReassignmentsRequest = structure(
    "ListPartitionReassignmentsRequest",
    "timeout_ms" / default(Int32, 60_000),
    "topics" / optional(ArrayOf(ListPartitionReassignmentsTopics)),
)

OngoingPartitionReassignment = structure(
    "OngoingPartitionReassignment",
    "partition_index" / Int32,
    "replicas" / ArrayOf(Int32),
    "adding_replicas" / ArrayOf(Int32),
    "removing_replicas" / ArrayOf(Int32),
)

OngoingTopicReassignment = structure(
    "OngoingTopicReassignment",
    "name" / String,
    "partitions" / ArrayOf(OngoingPartitionReassignment),
)

ListPartitionReassignmentsResponse = structure(
    "ListPartitionReassignmentsResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
    "topics" / ArrayOf(OngoingTopicReassignment),
)

LIST_PARTITION_REASSIGNMENTS = Api(
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    versions=(0, 0),
    flexible_from=0,
    request=ListPartitionReassignmentsRequest,
    response=ListPartitionReassignmentsResponse,
)
