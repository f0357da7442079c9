"""CreatePartitions (API key 37), versions 0-3, flexible from 2.

KIP-195.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: compact encoding and tag sections (KIP-482).
v3: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, nullable, optional, structure

CreatePartitionsAssignment = structure(
    "CreatePartitionsAssignment",
    "broker_ids" / ArrayOf(Int32),
)

CreatePartitionsTopic = structure(
    "CreatePartitionsTopic",
    "name" / String,
    "count" / Int32,
    "assignments" / nullable(ArrayOf(CreatePartitionsAssignment)),
)

CreatePartitionsRequest = structure(
    "CreatePartitionsRequest",
    "topics" / ArrayOf(CreatePartitionsTopic),
    "timeout_ms" / Int32,
    "validate_only" / Bool,
)

CreatePartitionsTopicResult = structure(
    "CreatePartitionsTopicResult",
    "name" / String,
    "error_code" / Int16,
    "error_message" / optional(String),
)

CreatePartitionsResponse = structure(
    "CreatePartitionsResponse",
    "throttle_time_ms" / Int32,
    "results" / ArrayOf(CreatePartitionsTopicResult),
)

CREATE_PARTITIONS = Api(
    ApiKey.CREATE_PARTITIONS,
    versions=(0, 3),
    flexible_from=2,
    request=CreatePartitionsRequest,
    response=CreatePartitionsResponse,
)
