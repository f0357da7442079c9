"""EndTxn (API key 26), versions 0-5, flexible from 3.

KIP-98.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: PRODUCER_FENCED may be answered (KIP-588).
v3: compact encoding and tag sections (KIP-482).
v4: TRANSACTION_ABORTABLE may be answered (KIP-890).
v5: each transaction has an epoch of its own, which the response tells (KIP-890, part 2).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Int64
from kafkalite.wire.schema import String, since, structure

EndTxnRequest = structure(
    "EndTxnRequest",
    "transactional_id" / String,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "committed" / Bool,
)

EndTxnResponse = structure(
    "EndTxnResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "producer_id" / since(5, Int64, default=-1),
    "producer_epoch" / since(5, Int16, default=-1),
)

END_TXN = Api(
    ApiKey.END_TXN,
    versions=(0, 5),
    flexible_from=3,
    request=EndTxnRequest,
    response=EndTxnResponse,
)
