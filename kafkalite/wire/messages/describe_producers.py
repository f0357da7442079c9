"""DescribeProducers (API key 61), version 0, all flexible.

KIP-664.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, default, optional, structure

TopicRequest = structure(
    "TopicRequest",
    "name" / String,
    "partition_indexes" / ArrayOf(Int32),
)

DescribeProducersRequest = structure(
    "DescribeProducersRequest",
    "topics" / ArrayOf(TopicRequest),
)

ProducerState = structure(
    "ProducerState",
    "producer_id" / Int64,
    "producer_epoch" / Int32,
    "last_sequence" / default(Int32, -1),
    "last_timestamp" / default(Int64, -1),
    "coordinator_epoch" / Int32,
    "current_txn_start_offset" / default(Int64, -1),
)

PartitionResponse = structure(
    "PartitionResponse",
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "active_producers" / ArrayOf(ProducerState),
)

TopicResponse = structure(
    "TopicResponse",
    "name" / String,
    "partitions" / ArrayOf(PartitionResponse),
)

DescribeProducersResponse = structure(
    "DescribeProducersResponse",
    "throttle_time_ms" / Int32,
    "topics" / ArrayOf(TopicResponse),
)

DESCRIBE_PRODUCERS = Api(
    ApiKey.DESCRIBE_PRODUCERS,
    versions=(0, 0),
    flexible_from=0,
    request=DescribeProducersRequest,
    response=DescribeProducersResponse,
)
