"""ListTransactions (API key 66), versions 0-2, all flexible.

KIP-664.

v1: duration_filter (KIP-994).
v2: transactional_id_pattern (KIP-1152).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, optional, since, structure

ListTransactionsRequest = structure(
    "ListTransactionsRequest",
    "state_filters" / ArrayOf(String),
    "producer_id_filters" / ArrayOf(Int64),
    "duration_filter" / since(1, Int64, default=-1),
    "transactional_id_pattern" / since(2, optional(String)),
)

TransactionState = structure(
    "TransactionState",
    "transactional_id" / String,
    "producer_id" / Int64,
    "transaction_state" / String,
)

ListTransactionsResponse = structure(
    "ListTransactionsResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "unknown_state_filters" / ArrayOf(String),
    "transaction_states" / ArrayOf(TransactionState),
)

LIST_TRANSACTIONS = Api(
    ApiKey.LIST_TRANSACTIONS,
    versions=(0, 2),
    flexible_from=0,
    request=ListTransactionsRequest,
    response=ListTransactionsResponse,
)
