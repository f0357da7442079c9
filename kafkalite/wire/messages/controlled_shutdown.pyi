# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class RemainingPartition(Structure):
    topic_name: str
    partition_index: int
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_index: int = ...,
    ) -> None: ...

class ControlledShutdownRequest(Structure):
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
    ) -> None: ...

class ControlledShutdownResponse(Structure):
    error_code: int
    remaining_partitions: list[RemainingPartition]
    def __init__(
        self,
        *,
        error_code: int = ...,
        remaining_partitions: list[RemainingPartition] = ...,
    ) -> None: ...

CONTROLLED_SHUTDOWN: Api[ControlledShutdownRequest, ControlledShutdownResponse]
