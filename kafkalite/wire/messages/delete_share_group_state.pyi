# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class PartitionData(Structure):
    partition: int
    def __init__(
        self,
        *,
        partition: int = ...,
    ) -> None: ...

class DeleteStateData(Structure):
    topic_id: UUID
    partitions: list[PartitionData]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionData] = ...,
    ) -> None: ...

class DeleteShareGroupStateRequest(Structure):
    group_id: str
    topics: list[DeleteStateData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[DeleteStateData] = ...,
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

class DeleteStateResult(Structure):
    topic_id: UUID
    partitions: list[PartitionResult]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionResult] = ...,
    ) -> None: ...

class DeleteShareGroupStateResponse(Structure):
    results: list[DeleteStateResult]
    def __init__(
        self,
        *,
        results: list[DeleteStateResult] = ...,
    ) -> None: ...

DELETE_SHARE_GROUP_STATE: Api[DeleteShareGroupStateRequest, DeleteShareGroupStateResponse]
