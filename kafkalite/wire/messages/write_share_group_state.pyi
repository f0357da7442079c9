# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

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

class PartitionData(Structure):
    partition: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[StateBatch]
    def __init__(
        self,
        *,
        partition: int = ...,
        state_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
        state_batches: list[StateBatch] = ...,
    ) -> None: ...

class WriteStateData(Structure):
    topic_id: UUID
    partitions: list[PartitionData]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionData] = ...,
    ) -> None: ...

class WriteShareGroupStateRequest(Structure):
    group_id: str
    topics: list[WriteStateData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[WriteStateData] = ...,
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

class WriteStateResult(Structure):
    topic_id: UUID
    partitions: list[PartitionResult]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionResult] = ...,
    ) -> None: ...

class WriteShareGroupStateResponse(Structure):
    results: list[WriteStateResult]
    def __init__(
        self,
        *,
        results: list[WriteStateResult] = ...,
    ) -> None: ...

WRITE_SHARE_GROUP_STATE: Api[WriteShareGroupStateRequest, WriteShareGroupStateResponse]
