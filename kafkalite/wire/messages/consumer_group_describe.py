"""ConsumerGroupDescribe (API key 69), versions 0-1, flexible from 0 (KIP-848).

v1: member_type: whether a member uses the classic or the consumer protocol (KIP-1099).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, default, optional, since, structure

ConsumerGroupDescribeRequest = structure(
    "ConsumerGroupDescribeRequest",
    "group_ids" / ArrayOf(String),
    "include_authorized_operations" / Bool,
)

TopicPartitions = structure(
    "TopicPartitions",
    "topic_id" / Uuid,
    "topic_name" / String,
    "partitions" / ArrayOf(Int32),
)

Assignment = structure(
    "Assignment",
    "topic_partitions" / ArrayOf(TopicPartitions),
)

Member = structure(
    "Member",
    "member_id" / String,
    "instance_id" / optional(String),
    "rack_id" / optional(String),
    "member_epoch" / Int32,
    "client_id" / String,
    "client_host" / String,
    "subscribed_topic_names" / ArrayOf(String),
    "subscribed_topic_regex" / optional(String),
    "assignment" / since(0, Assignment),
    "target_assignment" / since(0, Assignment),
    "member_type" / since(1, Int8, default=-1),
)

DescribedGroup = structure(
    "DescribedGroup",
    "error_code" / Int16,
    "error_message" / optional(String),
    "group_id" / String,
    "group_state" / String,
    "group_epoch" / Int32,
    "assignment_epoch" / Int32,
    "assignor_name" / String,
    "members" / ArrayOf(Member),
    "authorized_operations" / default(Int32, -(2**31)),
)

ConsumerGroupDescribeResponse = structure(
    "ConsumerGroupDescribeResponse",
    "throttle_time_ms" / Int32,
    "groups" / ArrayOf(DescribedGroup),
)

CONSUMER_GROUP_DESCRIBE = Api(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    versions=(0, 1),
    flexible_from=0,
    request=ConsumerGroupDescribeRequest,
    response=ConsumerGroupDescribeResponse,
)
