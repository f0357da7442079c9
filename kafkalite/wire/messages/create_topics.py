"""CreateTopics (API key 19), versions 2-7, flexible from 5.

The versions before 2 left Kafka with 4.0 (KIP-896).

v3: the throttled client gets its answer before the pause (KIP-219).
v4: num_partitions and replication_factor may be -1, the broker's default (KIP-464).
v5: compact encoding and tag sections (KIP-482); the response has what was created: partitions,
    replication factor, configs (KIP-525).
v6: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
v7: the response has topic_id (KIP-516).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, default, nullable, since, structure, tagged

CreatableReplicaAssignment = structure(
    "CreatableReplicaAssignment",
    "partition_index" / Int32,
    "broker_ids" / ArrayOf(Int32),
)

CreatableTopicConfig = structure(
    "CreatableTopicConfig",
    "name" / String,
    "value" / nullable(String),
)

CreatableTopic = structure(
    "CreatableTopic",
    "name" / String,
    "num_partitions" / Int32,
    "replication_factor" / Int16,
    "assignments" / ArrayOf(CreatableReplicaAssignment),
    "configs" / ArrayOf(CreatableTopicConfig),
)

CreateTopicsRequest = structure(
    "CreateTopicsRequest",
    "topics" / ArrayOf(CreatableTopic),
    "timeout_ms" / default(Int32, 60000),
    "validate_only" / Bool,
)

CreatableTopicConfigs = structure(
    "CreatableTopicConfigs",
    "name" / String,
    "value" / nullable(String),
    "read_only" / Bool,
    "config_source" / default(Int8, -1),
    "is_sensitive" / Bool,
)

CreatableTopicResult = structure(
    "CreatableTopicResult",
    "name" / String,
    "topic_id" / since(7, Uuid),
    "error_code" / Int16,
    "error_message" / nullable(String),
    "topic_config_error_code" / since(5, tagged(0, Int16)),
    "num_partitions" / since(5, Int32, default=-1),
    "replication_factor" / since(5, Int16, default=-1),
    "configs" / since(5, nullable(ArrayOf(CreatableTopicConfigs))),
)

CreateTopicsResponse = structure(
    "CreateTopicsResponse",
    "throttle_time_ms" / Int32,
    "topics" / ArrayOf(CreatableTopicResult),
)

CREATE_TOPICS = Api(
    ApiKey.CREATE_TOPICS,
    versions=(2, 7),
    flexible_from=5,
    request=CreateTopicsRequest,
    response=CreateTopicsResponse,
)
