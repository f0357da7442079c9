"""Streams groups in `__consumer_offsets`: record keys of types 17 and 19 to 23 (KIP-1071).

`TaskIdsWithEpochs` is what Kafka calls TaskIds in a current assignment; its epochs are absent where
a task has none. A tagged list is empty by default: null would be written.
"""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Int8, Int16, Int32, Int64, UInt16
from kafkalite.wire.schema import ArrayOf, String, default, nullable, optional, structure, tagged

StreamsGroupMetadataKey = structure(
    "StreamsGroupMetadataKey",
    "group_id" / String,
)

LastAssignmentConfig = structure(
    "LastAssignmentConfig",
    "key" / String,
    "value" / String,
)

StreamsGroupMetadataValue = structure(
    "StreamsGroupMetadataValue",
    "epoch" / Int32,
    "metadata_hash" / Int64,
    "validated_topology_epoch" / tagged(0, Int32, default=-1),
    "last_assignment_configs" / tagged(1, nullable(ArrayOf(LastAssignmentConfig))),
)

StreamsGroupMemberMetadataKey = structure(
    "StreamsGroupMemberMetadataKey",
    "group_id" / String,
    "member_id" / String,
)

Endpoint = structure(
    "Endpoint",
    "host" / String,
    "port" / UInt16,
)

KeyValue = structure(
    "KeyValue",
    "key" / String,
    "value" / String,
)

StreamsGroupMemberMetadataValue = structure(
    "StreamsGroupMemberMetadataValue",
    "instance_id" / nullable(String),
    "rack_id" / nullable(String),
    "client_id" / String,
    "client_host" / String,
    "rebalance_timeout_ms" / default(Int32, -1),
    "topology_epoch" / Int32,
    "process_id" / String,
    "user_endpoint" / optional(Endpoint),
    "client_tags" / ArrayOf(KeyValue),
)

StreamsGroupTargetAssignmentMetadataKey = structure(
    "StreamsGroupTargetAssignmentMetadataKey",
    "group_id" / String,
)

StreamsGroupTargetAssignmentMetadataValue = structure(
    "StreamsGroupTargetAssignmentMetadataValue",
    "assignment_epoch" / Int32,
    "assignment_timestamp" / tagged(0, Int64),
)

StreamsGroupTargetAssignmentMemberKey = structure(
    "StreamsGroupTargetAssignmentMemberKey",
    "group_id" / String,
    "member_id" / String,
)

TaskIds = structure(
    "TaskIds",
    "subtopology_id" / String,
    "partitions" / ArrayOf(Int32),
)

StreamsGroupTargetAssignmentMemberValue = structure(
    "StreamsGroupTargetAssignmentMemberValue",
    "active_tasks" / ArrayOf(TaskIds),
    "standby_tasks" / ArrayOf(TaskIds),
    "warmup_tasks" / ArrayOf(TaskIds),
)

StreamsGroupCurrentMemberAssignmentKey = structure(
    "StreamsGroupCurrentMemberAssignmentKey",
    "group_id" / String,
    "member_id" / String,
)

TaskIdsWithEpochs = structure(
    "TaskIdsWithEpochs",
    "subtopology_id" / String,
    "partitions" / ArrayOf(Int32),
    "assignment_epochs" / tagged(0, nullable(ArrayOf(Int32))),
)

StreamsGroupCurrentMemberAssignmentValue = structure(
    "StreamsGroupCurrentMemberAssignmentValue",
    "member_epoch" / Int32,
    "previous_member_epoch" / Int32,
    "state" / Int8,
    "active_tasks" / ArrayOf(TaskIdsWithEpochs),
    "standby_tasks" / ArrayOf(TaskIdsWithEpochs),
    "warmup_tasks" / ArrayOf(TaskIdsWithEpochs),
    "active_tasks_pending_revocation" / ArrayOf(TaskIdsWithEpochs),
    "standby_tasks_pending_revocation" / ArrayOf(TaskIdsWithEpochs),
    "warmup_tasks_pending_revocation" / ArrayOf(TaskIdsWithEpochs),
)

StreamsGroupTopologyKey = structure(
    "StreamsGroupTopologyKey",
    "group_id" / String,
)

TopicConfig = structure(
    "TopicConfig",
    "key" / String,
    "value" / String,
)

TopicInfo = structure(
    "TopicInfo",
    "name" / String,
    "partitions" / Int32,
    "replication_factor" / Int16,
    "topic_configs" / ArrayOf(TopicConfig),
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

StreamsGroupTopologyValue = structure(
    "StreamsGroupTopologyValue",
    "epoch" / Int32,
    "subtopologies" / ArrayOf(Subtopology),
)

METADATA_KEY = Codec(StreamsGroupMetadataKey, versions=(17, 17), flexible_from=None)
METADATA_VALUE = Codec(StreamsGroupMetadataValue, versions=(0, 0), flexible_from=0)
MEMBER_KEY = Codec(StreamsGroupMemberMetadataKey, versions=(19, 19), flexible_from=None)
MEMBER_VALUE = Codec(StreamsGroupMemberMetadataValue, versions=(0, 0), flexible_from=0)
TARGET_METADATA_KEY = Codec(
    StreamsGroupTargetAssignmentMetadataKey, versions=(20, 20), flexible_from=None
)
TARGET_METADATA_VALUE = Codec(
    StreamsGroupTargetAssignmentMetadataValue, versions=(0, 0), flexible_from=0
)
TARGET_MEMBER_KEY = Codec(
    StreamsGroupTargetAssignmentMemberKey, versions=(21, 21), flexible_from=None
)
TARGET_MEMBER_VALUE = Codec(
    StreamsGroupTargetAssignmentMemberValue, versions=(0, 0), flexible_from=0
)
CURRENT_KEY = Codec(StreamsGroupCurrentMemberAssignmentKey, versions=(22, 22), flexible_from=None)
CURRENT_VALUE = Codec(StreamsGroupCurrentMemberAssignmentValue, versions=(0, 0), flexible_from=0)
TOPOLOGY_KEY = Codec(StreamsGroupTopologyKey, versions=(23, 23), flexible_from=None)
TOPOLOGY_VALUE = Codec(StreamsGroupTopologyValue, versions=(0, 0), flexible_from=0)
