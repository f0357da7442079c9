"""AddPartitionsToTxn (API key 24), versions 0-5, flexible from 3.

KIP-98. Up to v3 sent by clients, from v4 on by brokers.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: PRODUCER_FENCED may be answered (KIP-588).
v3: compact encoding and tag sections (KIP-482).
v4: several transactions in one request, and verify_only (KIP-890).
v5: TRANSACTION_ABORTABLE may be answered (KIP-890).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, since, structure, until

AddPartitionsToTxnTopic = structure(
    "AddPartitionsToTxnTopic",
    "name" / String,
    "partitions" / ArrayOf(Int32),
)

AddPartitionsToTxnTransaction = structure(
    "AddPartitionsToTxnTransaction",
    "transactional_id" / String,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "verify_only" / Bool,
    "topics" / ArrayOf(AddPartitionsToTxnTopic),
)

AddPartitionsToTxnRequest = structure(
    "AddPartitionsToTxnRequest",
    "transactions" / since(4, ArrayOf(AddPartitionsToTxnTransaction)),
    "v3_and_below_transactional_id" / until(3, String),
    "v3_and_below_producer_id" / until(3, Int64),
    "v3_and_below_producer_epoch" / until(3, Int16),
    "v3_and_below_topics" / until(3, ArrayOf(AddPartitionsToTxnTopic)),
)

AddPartitionsToTxnPartitionResult = structure(
    "AddPartitionsToTxnPartitionResult",
    "partition_index" / Int32,
    "partition_error_code" / Int16,
)

AddPartitionsToTxnTopicResult = structure(
    "AddPartitionsToTxnTopicResult",
    "name" / String,
    "results_by_partition" / ArrayOf(AddPartitionsToTxnPartitionResult),
)

AddPartitionsToTxnResult = structure(
    "AddPartitionsToTxnResult",
    "transactional_id" / String,
    "topic_results" / ArrayOf(AddPartitionsToTxnTopicResult),
)

AddPartitionsToTxnResponse = structure(
    "AddPartitionsToTxnResponse",
    "throttle_time_ms" / Int32,
    "error_code" / since(4, Int16),
    "results_by_transaction" / since(4, ArrayOf(AddPartitionsToTxnResult)),
    "results_by_topic_v3_and_below" / until(3, ArrayOf(AddPartitionsToTxnTopicResult)),
)

ADD_PARTITIONS_TO_TXN = Api(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    versions=(0, 5),
    flexible_from=3,
    request=AddPartitionsToTxnRequest,
    response=AddPartitionsToTxnResponse,
)
