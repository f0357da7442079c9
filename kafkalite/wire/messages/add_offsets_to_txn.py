"""AddOffsetsToTxn (API key 25), versions 0-4, flexible from 3.

KIP-98.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: PRODUCER_FENCED may be answered (KIP-588).
v3: compact encoding and tag sections (KIP-482).
v4: TRANSACTION_ABORTABLE may be answered (KIP-890).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import String, structure

AddOffsetsToTxnRequest = structure(
    "AddOffsetsToTxnRequest",
    "transactional_id" / String,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "group_id" / String,
)

AddOffsetsToTxnResponse = structure(
    "AddOffsetsToTxnResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
)

ADD_OFFSETS_TO_TXN = Api(
    ApiKey.ADD_OFFSETS_TO_TXN,
    versions=(0, 4),
    flexible_from=3,
    request=AddOffsetsToTxnRequest,
    response=AddOffsetsToTxnResponse,
)
