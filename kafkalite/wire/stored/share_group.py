"""Share groups in `__consumer_offsets`: record keys of types 10 to 15 (KIP-932)."""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Int8, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, nullable, structure, tagged

ShareGroupMemberMetadataKey = structure(
    "ShareGroupMemberMetadataKey",
    "group_id" / String,
    "member_id" / String,
)

ShareGroupMemberMetadataValue = structure(
    "ShareGroupMemberMetadataValue",
    "rack_id" / nullable(String),
    "client_id" / String,
    "client_host" / String,
    "subscribed_topic_names" / ArrayOf(String),
)

ShareGroupMetadataKey = structure(
    "ShareGroupMetadataKey",
    "group_id" / String,
)

ShareGroupMetadataValue = structure(
    "ShareGroupMetadataValue",
    "epoch" / Int32,
    "metadata_hash" / Int64,
)

ShareGroupTargetAssignmentMetadataKey = structure(
    "ShareGroupTargetAssignmentMetadataKey",
    "group_id" / String,
)

ShareGroupTargetAssignmentMetadataValue = structure(
    "ShareGroupTargetAssignmentMetadataValue",
    "assignment_epoch" / Int32,
    "assignment_timestamp" / tagged(0, Int64),
)

ShareGroupTargetAssignmentMemberKey = structure(
    "ShareGroupTargetAssignmentMemberKey",
    "group_id" / String,
    "member_id" / String,
)

TopicPartition = structure(
    "TopicPartition",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(Int32),
)

ShareGroupTargetAssignmentMemberValue = structure(
    "ShareGroupTargetAssignmentMemberValue",
    "topic_partitions" / ArrayOf(TopicPartition),
)

ShareGroupCurrentMemberAssignmentKey = structure(
    "ShareGroupCurrentMemberAssignmentKey",
    "group_id" / String,
    "member_id" / String,
)

TopicPartitions = structure(
    "TopicPartitions",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(Int32),
)

ShareGroupCurrentMemberAssignmentValue = structure(
    "ShareGroupCurrentMemberAssignmentValue",
    "member_epoch" / Int32,
    "previous_member_epoch" / Int32,
    "state" / Int8,
    "assigned_partitions" / ArrayOf(TopicPartitions),
)

ShareGroupStatePartitionMetadataKey = structure(
    "ShareGroupStatePartitionMetadataKey",
    "group_id" / String,
)

TopicPartitionsInfo = structure(
    "TopicPartitionsInfo",
    "topic_id" / Uuid,
    "topic_name" / String,
    "partitions" / ArrayOf(Int32),
)

TopicInfo = structure(
    "TopicInfo",
    "topic_id" / Uuid,
    "topic_name" / String,
)

ShareGroupStatePartitionMetadataValue = structure(
    "ShareGroupStatePartitionMetadataValue",
    "initializing_topics" / ArrayOf(TopicPartitionsInfo),
    "initialized_topics" / ArrayOf(TopicPartitionsInfo),
    "deleting_topics" / ArrayOf(TopicInfo),
)

SHARE_GROUP_MEMBER_METADATA_KEY = Codec(
    ShareGroupMemberMetadataKey, versions=(10, 10), flexible_from=None
)
SHARE_GROUP_MEMBER_METADATA_VALUE = Codec(
    ShareGroupMemberMetadataValue, versions=(0, 0), flexible_from=0
)
SHARE_GROUP_METADATA_KEY = Codec(ShareGroupMetadataKey, versions=(11, 11), flexible_from=None)
SHARE_GROUP_METADATA_VALUE = Codec(ShareGroupMetadataValue, versions=(0, 0), flexible_from=0)
SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = Codec(
    ShareGroupTargetAssignmentMetadataKey, versions=(12, 12), flexible_from=None
)
SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Codec(
    ShareGroupTargetAssignmentMetadataValue, versions=(0, 0), flexible_from=0
)
SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = Codec(
    ShareGroupTargetAssignmentMemberKey, versions=(13, 13), flexible_from=None
)
SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Codec(
    ShareGroupTargetAssignmentMemberValue, versions=(0, 0), flexible_from=0
)
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = Codec(
    ShareGroupCurrentMemberAssignmentKey, versions=(14, 14), flexible_from=None
)
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Codec(
    ShareGroupCurrentMemberAssignmentValue, versions=(0, 0), flexible_from=0
)
SHARE_GROUP_STATE_PARTITION_METADATA_KEY = Codec(
    ShareGroupStatePartitionMetadataKey, versions=(15, 15), flexible_from=None
)
SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = Codec(
    ShareGroupStatePartitionMetadataValue, versions=(0, 0), flexible_from=0
)
