# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class PartitionData(Structure):
    partition: int
    leader_epoch: int
    def __init__(
        self,
        *,
        partition: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...

class ReadStateData(Structure):
    topic_id: UUID
    partitions: list[PartitionData]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionData] = ...,
    ) -> None: ...

class ReadShareGroupStateRequest(Structure):
    group_id: str
    topics: list[ReadStateData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[ReadStateData] = ...,
    ) -> None: ...

class StateBatch(Structure):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int
    def __init__(
        self,
        *,
        first_offset: int = ...,
        last_offset: int = ...,
        delivery_state: int = ...,
        delivery_count: int = ...,
    ) -> None: ...

class PartitionResult(Structure):
    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    start_offset: int
    state_batches: list[StateBatch]
    def __init__(
        self,
        *,
        partition: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        state_epoch: int = ...,
        start_offset: int = ...,
        state_batches: list[StateBatch] = ...,
    ) -> None: ...

class ReadStateResult(Structure):
    topic_id: UUID
    partitions: list[PartitionResult]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionResult] = ...,
    ) -> None: ...

class ReadShareGroupStateResponse(Structure):
    results: list[ReadStateResult]
    def __init__(
        self,
        *,
        results: list[ReadStateResult] = ...,
    ) -> None: ...

READ_SHARE_GROUP_STATE: Api[ReadShareGroupStateRequest, ReadShareGroupStateResponse]
