"""StreamsGroupHeartbeat (API key 88), version 0, all flexible.

KIP-1071. A member of a streams group joins with its topology, says what tasks it has, leaves; the
answer says what tasks it is to have.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32, Int64, UInt16
from kafkalite.wire.schema import ArrayOf, String, default, nullable, optional, since, structure

KeyValue = structure(
    "KeyValue",
    "key" / String,
    "value" / String,
)

TopicInfo = structure(
    "TopicInfo",
    "name" / String,
    "partitions" / Int32,
    "replication_factor" / Int16,
    "topic_configs" / ArrayOf(KeyValue),
)

CopartitionGroup = structure(
    "CopartitionGroup",
    "source_topics" / ArrayOf(Int16),
    "source_topic_regex" / ArrayOf(Int16),
    "repartition_source_topics" / ArrayOf(Int16),
)

Subtopology = structure(
    "Subtopology",
    "subtopology_id" / String,
    "source_topics" / ArrayOf(String),
    "source_topic_regex" / ArrayOf(String),
    "state_changelog_topics" / ArrayOf(TopicInfo),
    "repartition_sink_topics" / ArrayOf(String),
    "repartition_source_topics" / ArrayOf(TopicInfo),
    "copartition_groups" / ArrayOf(CopartitionGroup),
)

Topology = structure(
    "Topology",
    "epoch" / Int32,
    "subtopologies" / ArrayOf(Subtopology),
)

TaskIds = structure(
    "TaskIds",
    "subtopology_id" / String,
    "partitions" / ArrayOf(Int32),
)

Endpoint = structure(
    "Endpoint",
    "host" / String,
    "port" / UInt16,
)

TaskOffset = structure(
    "TaskOffset",
    "subtopology_id" / String,
    "partition" / Int32,
    "offset" / Int64,
)

StreamsGroupHeartbeatRequest = structure(
    "StreamsGroupHeartbeatRequest",
    "group_id" / String,
    "member_id" / String,
    "member_epoch" / Int32,
    "endpoint_information_epoch" / Int32,
    "instance_id" / optional(String),
    "rack_id" / optional(String),
    "rebalance_timeout_ms" / default(Int32, -1),
    "topology" / optional(Topology),
    "active_tasks" / optional(ArrayOf(TaskIds)),
    "standby_tasks" / optional(ArrayOf(TaskIds)),
    "warmup_tasks" / optional(ArrayOf(TaskIds)),
    "process_id" / optional(String),
    "user_endpoint" / optional(Endpoint),
    "client_tags" / optional(ArrayOf(KeyValue)),
    "task_offsets" / optional(ArrayOf(TaskOffset)),
    "task_end_offsets" / optional(ArrayOf(TaskOffset)),
    "shutdown_application" / Bool,
)

Status = structure(
    "Status",
    "status_code" / Int8,
    "status_detail" / String,
)

TopicPartition = structure(
    "TopicPartition",
    "topic" / String,
    "partitions" / ArrayOf(Int32),
)

EndpointToPartitions = structure(
    "EndpointToPartitions",
    "user_endpoint" / since(0, Endpoint),
    "active_partitions" / ArrayOf(TopicPartition),
    "standby_partitions" / ArrayOf(TopicPartition),
)

StreamsGroupHeartbeatResponse = structure(
    "StreamsGroupHeartbeatResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "member_id" / String,
    "member_epoch" / Int32,
    "heartbeat_interval_ms" / Int32,
    "acceptable_recovery_lag" / Int32,
    "task_offset_interval_ms" / Int32,
    "status" / nullable(ArrayOf(Status)),
    "active_tasks" / optional(ArrayOf(TaskIds)),
    "standby_tasks" / optional(ArrayOf(TaskIds)),
    "warmup_tasks" / optional(ArrayOf(TaskIds)),
    "endpoint_information_epoch" / Int32,
    "partitions_by_user_endpoint" / optional(ArrayOf(EndpointToPartitions)),
)

STREAMS_GROUP_HEARTBEAT = Api(
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    versions=(0, 0),
    flexible_from=0,
    request=StreamsGroupHeartbeatRequest,
    response=StreamsGroupHeartbeatResponse,
)
