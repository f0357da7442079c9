# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class AllocateProducerIdsRequest(Structure):
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
    ) -> None: ...

class AllocateProducerIdsResponse(Structure):
    throttle_time_ms: int
    error_code: int
    producer_id_start: int
    producer_id_len: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        producer_id_start: int = ...,
        producer_id_len: int = ...,
    ) -> None: ...

ALLOCATE_PRODUCER_IDS: Api[AllocateProducerIdsRequest, AllocateProducerIdsResponse]
