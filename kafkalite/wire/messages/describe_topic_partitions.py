"""DescribeTopicPartitions (API key 75), version 0, all flexible.

KIP-966. Metadata for topics with many partitions: a cursor goes on where a response ended.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, default, nullable, optional, structure

TopicRequest = structure(
    "TopicRequest",
    "name" / String,
)

Cursor = structure(
    "Cursor",
    "topic_name" / String,
    "partition_index" / Int32,
)

DescribeTopicPartitionsRequest = structure(
    "DescribeTopicPartitionsRequest",
    "topics" / ArrayOf(TopicRequest),
    "response_partition_limit" / default(Int32, 2000),
    "cursor" / optional(Cursor),
)

DescribeTopicPartitionsResponsePartition = structure(
    "DescribeTopicPartitionsResponsePartition",
    "error_code" / Int16,
    "partition_index" / Int32,
    "leader_id" / Int32,
    "leader_epoch" / default(Int32, -1),
    "replica_nodes" / ArrayOf(Int32),
    "isr_nodes" / ArrayOf(Int32),
    "eligible_leader_replicas" / optional(ArrayOf(Int32)),
    "last_known_elr" / optional(ArrayOf(Int32)),
    "offline_replicas" / ArrayOf(Int32),
)

DescribeTopicPartitionsResponseTopic = structure(
    "DescribeTopicPartitionsResponseTopic",
    "error_code" / Int16,
    "name" / nullable(String),
    "topic_id" / Uuid,
    "is_internal" / Bool,
    "partitions" / ArrayOf(DescribeTopicPartitionsResponsePartition),
    "topic_authorized_operations" / default(Int32, -(2**31)),
)

DescribeTopicPartitionsResponse = structure(
    "DescribeTopicPartitionsResponse",
    "throttle_time_ms" / Int32,
    "topics" / ArrayOf(DescribeTopicPartitionsResponseTopic),
    "next_cursor" / optional(Cursor),
)

DESCRIBE_TOPIC_PARTITIONS = Api(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    versions=(0, 0),
    flexible_from=0,
    request=DescribeTopicPartitionsRequest,
    response=DescribeTopicPartitionsResponse,
)
