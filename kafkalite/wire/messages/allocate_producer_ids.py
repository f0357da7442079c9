"""AllocateProducerIds (API key 67), version 0, flexible.

KIP-730. Sent by a broker that has no producer ids left to the controller.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import default, structure

AllocateProducerIdsRequest = structure(
    "AllocateProducerIdsRequest",
    "broker_id" / Int32,
    "broker_epoch" / default(Int64, -1),
)

AllocateProducerIdsResponse = structure(
    "AllocateProducerIdsResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "producer_id_start" / Int64,
    "producer_id_len" / Int32,
)

ALLOCATE_PRODUCER_IDS = Api(
    ApiKey.ALLOCATE_PRODUCER_IDS,
    versions=(0, 0),
    flexible_from=0,
    request=AllocateProducerIdsRequest,
    response=AllocateProducerIdsResponse,
)
