"""DescribeTransactions (API key 65), version 0, all flexible.

KIP-664.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, structure

DescribeTransactionsRequest = structure(
    "DescribeTransactionsRequest",
    "transactional_ids" / ArrayOf(String),
)

TopicData = structure(
    "TopicData",
    "topic" / String,
    "partitions" / ArrayOf(Int32),
)

TransactionState = structure(
    "TransactionState",
    "error_code" / Int16,
    "transactional_id" / String,
    "transaction_state" / String,
    "transaction_timeout_ms" / Int32,
    "transaction_start_time_ms" / Int64,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "topics" / ArrayOf(TopicData),
)

DescribeTransactionsResponse = structure(
    "DescribeTransactionsResponse",
    "throttle_time_ms" / Int32,
    "transaction_states" / ArrayOf(TransactionState),
)

DESCRIBE_TRANSACTIONS = Api(
    ApiKey.DESCRIBE_TRANSACTIONS,
    versions=(0, 0),
    flexible_from=0,
    request=DescribeTransactionsRequest,
    response=DescribeTransactionsResponse,
)
