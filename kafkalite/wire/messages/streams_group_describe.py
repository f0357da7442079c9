"""StreamsGroupDescribe (API key 89), version 0, all flexible.

KIP-1071. What operators see of streams groups: topology, members, their tasks.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Int64, UInt16
from kafkalite.wire.schema import ArrayOf, String, default, optional, since, structure

StreamsGroupDescribeRequest = structure(
    "StreamsGroupDescribeRequest",
    "group_ids" / ArrayOf(String),
    "include_authorized_operations" / Bool,
)

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

Subtopology = structure(
    "Subtopology",
    "subtopology_id" / String,
    "source_topics" / ArrayOf(String),
    "repartition_sink_topics" / ArrayOf(String),
    "state_changelog_topics" / ArrayOf(TopicInfo),
    "repartition_source_topics" / ArrayOf(TopicInfo),
)

Topology = structure(
    "Topology",
    "epoch" / Int32,
    "subtopologies" / optional(ArrayOf(Subtopology)),
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

TaskIds = structure(
    "TaskIds",
    "subtopology_id" / String,
    "partitions" / ArrayOf(Int32),
)

Assignment = structure(
    "Assignment",
    "active_tasks" / ArrayOf(TaskIds),
    "standby_tasks" / ArrayOf(TaskIds),
    "warmup_tasks" / ArrayOf(TaskIds),
)

Member = structure(
    "Member",
    "member_id" / String,
    "member_epoch" / Int32,
    "instance_id" / optional(String),
    "rack_id" / optional(String),
    "client_id" / String,
    "client_host" / String,
    "topology_epoch" / Int32,
    "process_id" / String,
    "user_endpoint" / optional(Endpoint),
    "client_tags" / ArrayOf(KeyValue),
    "task_offsets" / ArrayOf(TaskOffset),
    "task_end_offsets" / ArrayOf(TaskOffset),
    "assignment" / since(0, Assignment),
    "target_assignment" / since(0, Assignment),
    "is_classic" / Bool,
)

DescribedGroup = structure(
    "DescribedGroup",
    "error_code" / Int16,
    "error_message" / optional(String),
    "group_id" / String,
    "group_state" / String,
    "group_epoch" / Int32,
    "assignment_epoch" / Int32,
    "topology" / optional(Topology),
    "members" / ArrayOf(Member),
    "authorized_operations" / default(Int32, -2147483648),
)

StreamsGroupDescribeResponse = structure(
    "StreamsGroupDescribeResponse",
    "throttle_time_ms" / Int32,
    "groups" / ArrayOf(DescribedGroup),
)

STREAMS_GROUP_DESCRIBE = Api(
    ApiKey.STREAMS_GROUP_DESCRIBE,
    versions=(0, 0),
    flexible_from=0,
    request=StreamsGroupDescribeRequest,
    response=StreamsGroupDescribeResponse,
)
