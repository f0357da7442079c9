"""Produce (API key 0), versions 3-13, flexible from 9.

The versions before 3 left Kafka with 4.0 (KIP-896) but are still advertised.

v4: KAFKA_STORAGE_ERROR may be answered (KIP-112).
v5: the response has log_start_offset, so that a producer can tell retention from loss.
v6: the throttled client gets its answer before the pause (KIP-219).
v7: batches may be compressed by zstd (KIP-110).
v8: the response names the records that were refused and why (KIP-467).
v9: compact encoding and tag sections (KIP-482).
v10: the response may name the current leader and its address (KIP-951).
v11: TRANSACTION_ABORTABLE may be answered (KIP-890).
v12: in a transaction, the partition is added to it by producing (KIP-890, part 2).
v13: topic ids instead of names (KIP-516).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import (
    ArrayOf,
    Records,
    String,
    default,
    nullable,
    optional,
    since,
    structure,
    tagged,
    until,
)

PartitionProduceData = structure(
    "PartitionProduceData",
    "index" / Int32,
    "records" / nullable(Records),
)

TopicProduceData = structure(
    "TopicProduceData",
    "name" / until(12, String),
    "topic_id" / since(13, Uuid),
    "partition_data" / ArrayOf(PartitionProduceData),
)

ProduceRequest = structure(
    "ProduceRequest",
    "transactional_id" / optional(String),
    "acks" / Int16,
    "timeout_ms" / Int32,
    "topic_data" / ArrayOf(TopicProduceData),
)

BatchIndexAndErrorMessage = structure(
    "BatchIndexAndErrorMessage",
    "batch_index" / Int32,
    "batch_index_error_message" / optional(String),
)

LeaderIdAndEpoch = structure(
    "LeaderIdAndEpoch",
    "leader_id" / default(Int32, -1),
    "leader_epoch" / default(Int32, -1),
)

PartitionProduceResponse = structure(
    "PartitionProduceResponse",
    "index" / Int32,
    "error_code" / Int16,
    "base_offset" / Int64,
    "log_append_time_ms" / default(Int64, -1),
    "log_start_offset" / since(5, Int64, default=-1),
    "record_errors" / since(8, ArrayOf(BatchIndexAndErrorMessage)),
    "error_message" / since(8, optional(String)),
    "current_leader" / since(10, tagged(0, LeaderIdAndEpoch)),
)

TopicProduceResponse = structure(
    "TopicProduceResponse",
    "name" / until(12, String),
    "topic_id" / since(13, Uuid),
    "partition_responses" / ArrayOf(PartitionProduceResponse),
)

NodeEndpoint = structure(
    "NodeEndpoint",
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    "rack" / optional(String),
)

ProduceResponse = structure(
    "ProduceResponse",
    "responses" / ArrayOf(TopicProduceResponse),
    "throttle_time_ms" / Int32,
    "node_endpoints" / since(10, tagged(0, ArrayOf(NodeEndpoint))),
)

PRODUCE = Api(
    ApiKey.PRODUCE,
    versions=(3, 13),
    flexible_from=9,
    advertise_from=0,  # librdkafka < 2.11.1 stops compressing otherwise (KAFKA-18659)
    request=ProduceRequest,
    response=ProduceResponse,
)
