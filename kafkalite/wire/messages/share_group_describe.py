"""ShareGroupDescribe (API key 77), version 1, all flexible.

KIP-932. Version 0 was early access in 4.0 and left with 4.1.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, default, optional, since, structure

ShareGroupDescribeRequest = structure(
    "ShareGroupDescribeRequest",
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
    "rack_id" / optional(String),
    "member_epoch" / Int32,
    "client_id" / String,
    "client_host" / String,
    "subscribed_topic_names" / ArrayOf(String),
    "assignment" / since(1, Assignment),
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

ShareGroupDescribeResponse = structure(
    "ShareGroupDescribeResponse",
    "throttle_time_ms" / Int32,
    "groups" / ArrayOf(DescribedGroup),
)

SHARE_GROUP_DESCRIBE = Api(
    ApiKey.SHARE_GROUP_DESCRIBE,
    versions=(1, 1),
    flexible_from=0,
    request=ShareGroupDescribeRequest,
    response=ShareGroupDescribeResponse,
)
