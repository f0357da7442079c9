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

class ReadStateSummaryData(Structure):
    topic_id: UUID
    partitions: list[PartitionData]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionData] = ...,
    ) -> None: ...

class ReadShareGroupStateSummaryRequest(Structure):
    group_id: str
    topics: list[ReadStateSummaryData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[ReadStateSummaryData] = ...,
    ) -> None: ...

class PartitionResult(Structure):
    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    def __init__(
        self,
        *,
        partition: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        state_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
    ) -> None: ...

class ReadStateSummaryResult(Structure):
    topic_id: UUID
    partitions: list[PartitionResult]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionResult] = ...,
    ) -> None: ...

class ReadShareGroupStateSummaryResponse(Structure):
    results: list[ReadStateSummaryResult]
    def __init__(
        self,
        *,
        results: list[ReadStateSummaryResult] = ...,
    ) -> None: ...

READ_SHARE_GROUP_STATE_SUMMARY: Api[ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse]
