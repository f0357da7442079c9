"""Consumer groups in `__consumer_offsets`: record keys of types 3 to 8 and 16 (KIP-848)."""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Int8, Int32, Int64, Uuid
from kafkalite.wire.schema import (
    ArrayOf,
    Bytes,
    String,
    default,
    nullable,
    structure,
    tagged,
)

ConsumerGroupMetadataKey = structure("ConsumerGroupMetadataKey", "group_id" / String)

ConsumerGroupMetadataValue = structure(
    "ConsumerGroupMetadataValue",
    "epoch" / Int32,
    "metadata_hash" / tagged(0, Int64),
)

ConsumerGroupPartitionMetadataKey = structure(
    "ConsumerGroupPartitionMetadataKey", "group_id" / String
)

PartitionMetadata = structure(
    "PartitionMetadata",
    "partition" / Int32,
    "racks" / ArrayOf(String),
)

TopicMetadata = structure(
    "TopicMetadata",
    "topic_id" / Uuid,
    "topic_name" / String,
    "num_partitions" / Int32,
    "partition_metadata" / ArrayOf(PartitionMetadata),
)

ConsumerGroupPartitionMetadataValue = structure(
    "ConsumerGroupPartitionMetadataValue", "topics" / ArrayOf(TopicMetadata)
)

ConsumerGroupMemberMetadataKey = structure(
    "ConsumerGroupMemberMetadataKey",
    "group_id" / String,
    "member_id" / String,
)

ClassicProtocol = structure(
    "ClassicProtocol",
    "name" / String,
    "metadata" / Bytes,
)

ClassicMemberMetadata = structure(
    "ClassicMemberMetadata",
    "session_timeout_ms" / Int32,
    "supported_protocols" / ArrayOf(ClassicProtocol),
)

ConsumerGroupMemberMetadataValue = structure(
    "ConsumerGroupMemberMetadataValue",
    "instance_id" / nullable(String),
    "rack_id" / nullable(String),
    "client_id" / String,
    "client_host" / String,
    "subscribed_topic_names" / ArrayOf(String),
    "subscribed_topic_regex" / nullable(String),
    "rebalance_timeout_ms" / default(Int32, -1),
    "server_assignor" / nullable(String),
    "classic_member_metadata" / tagged(0, nullable(ClassicMemberMetadata)),
)

ConsumerGroupTargetAssignmentMetadataKey = structure(
    "ConsumerGroupTargetAssignmentMetadataKey", "group_id" / String
)

ConsumerGroupTargetAssignmentMetadataValue = structure(
    "ConsumerGroupTargetAssignmentMetadataValue",
    "assignment_epoch" / Int32,
    "assignment_timestamp" / tagged(0, Int64),
)

ConsumerGroupTargetAssignmentMemberKey = structure(
    "ConsumerGroupTargetAssignmentMemberKey",
    "group_id" / String,
    "member_id" / String,
)

TargetTopicPartitions = structure(
    "TargetTopicPartitions",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(Int32),
)

ConsumerGroupTargetAssignmentMemberValue = structure(
    "ConsumerGroupTargetAssignmentMemberValue",
    "topic_partitions" / ArrayOf(TargetTopicPartitions),
)

ConsumerGroupCurrentMemberAssignmentKey = structure(
    "ConsumerGroupCurrentMemberAssignmentKey",
    "group_id" / String,
    "member_id" / String,
)

CurrentTopicPartitions = structure(
    "CurrentTopicPartitions",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(Int32),
    "assignment_epochs" / tagged(0, nullable(ArrayOf(Int32))),
)

ConsumerGroupCurrentMemberAssignmentValue = structure(
    "ConsumerGroupCurrentMemberAssignmentValue",
    "member_epoch" / Int32,
    "previous_member_epoch" / Int32,
    "state" / Int8,
    "assigned_partitions" / ArrayOf(CurrentTopicPartitions),
    "partitions_pending_revocation" / ArrayOf(CurrentTopicPartitions),
)

ConsumerGroupRegularExpressionKey = structure(
    "ConsumerGroupRegularExpressionKey",
    "group_id" / String,
    "regular_expression" / String,
)

ConsumerGroupRegularExpressionValue = structure(
    "ConsumerGroupRegularExpressionValue",
    "topics" / ArrayOf(String),
    "version" / Int64,
    "timestamp" / Int64,
)

METADATA_KEY = Codec(ConsumerGroupMetadataKey, versions=(3, 3), flexible_from=None)
METADATA_VALUE = Codec(ConsumerGroupMetadataValue, versions=(0, 0), flexible_from=0)
PARTITION_METADATA_KEY = Codec(
    ConsumerGroupPartitionMetadataKey, versions=(4, 4), flexible_from=None
)
PARTITION_METADATA_VALUE = Codec(
    ConsumerGroupPartitionMetadataValue, versions=(0, 0), flexible_from=0
)
MEMBER_KEY = Codec(ConsumerGroupMemberMetadataKey, versions=(5, 5), flexible_from=None)
MEMBER_VALUE = Codec(ConsumerGroupMemberMetadataValue, versions=(0, 0), flexible_from=0)
TARGET_METADATA_KEY = Codec(
    ConsumerGroupTargetAssignmentMetadataKey, versions=(6, 6), flexible_from=None
)
TARGET_METADATA_VALUE = Codec(
    ConsumerGroupTargetAssignmentMetadataValue, versions=(0, 0), flexible_from=0
)
TARGET_MEMBER_KEY = Codec(
    ConsumerGroupTargetAssignmentMemberKey, versions=(7, 7), flexible_from=None
)
TARGET_MEMBER_VALUE = Codec(
    ConsumerGroupTargetAssignmentMemberValue, versions=(0, 0), flexible_from=0
)
CURRENT_KEY = Codec(ConsumerGroupCurrentMemberAssignmentKey, versions=(8, 8), flexible_from=None)
CURRENT_VALUE = Codec(ConsumerGroupCurrentMemberAssignmentValue, versions=(0, 0), flexible_from=0)
PATTERN_KEY = Codec(ConsumerGroupRegularExpressionKey, versions=(16, 16), flexible_from=None)
PATTERN_VALUE = Codec(ConsumerGroupRegularExpressionValue, versions=(0, 0), flexible_from=0)
