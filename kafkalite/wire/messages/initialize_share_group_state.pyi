# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class PartitionData(Structure):
    partition: int
    state_epoch: int
    start_offset: int
    def __init__(
        self,
        *,
        partition: int = ...,
        state_epoch: int = ...,
        start_offset: int = ...,
    ) -> None: ...

class InitializeStateData(Structure):
    topic_id: UUID
    partitions: list[PartitionData]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionData] = ...,
    ) -> None: ...

class InitializeShareGroupStateRequest(Structure):
    group_id: str
    topics: list[InitializeStateData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[InitializeStateData] = ...,
    ) -> None: ...

class PartitionResult(Structure):
    partition: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        partition: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class InitializeStateResult(Structure):
    topic_id: UUID
    partitions: list[PartitionResult]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionResult] = ...,
    ) -> None: ...

class InitializeShareGroupStateResponse(Structure):
    results: list[InitializeStateResult]
    def __init__(
        self,
        *,
        results: list[InitializeStateResult] = ...,
    ) -> None: ...

INITIALIZE_SHARE_GROUP_STATE: Api[InitializeShareGroupStateRequest, InitializeShareGroupStateResponse]
