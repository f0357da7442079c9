"""InitProducerId (API key 22), versions 0-5, flexible from 2.

KIP-98. Version 6 (two-phase commit, KIP-939) is not yet stable in Kafka 4.3.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: compact encoding and tag sections (KIP-482).
v3: a producer may go on with its id and epoch after an error (KIP-360).
v4: PRODUCER_FENCED may be answered (KIP-588).
v5: TRANSACTION_ABORTABLE may be answered (KIP-890).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import String, default, nullable, since, structure

InitProducerIdRequest = structure(
    "InitProducerIdRequest",
    "transactional_id" / nullable(String),
    "transaction_timeout_ms" / Int32,
    "producer_id" / since(3, Int64, default=-1),
    "producer_epoch" / since(3, Int16, default=-1),
)

InitProducerIdResponse = structure(
    "InitProducerIdResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "producer_id" / default(Int64, -1),
    "producer_epoch" / Int16,
)

INIT_PRODUCER_ID = Api(
    ApiKey.INIT_PRODUCER_ID,
    versions=(0, 5),
    flexible_from=2,
    request=InitProducerIdRequest,
    response=InitProducerIdResponse,
)
