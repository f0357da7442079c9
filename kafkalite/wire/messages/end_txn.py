"""EndTxn (API key 26), versions 0-5, flexible from 3."""

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
