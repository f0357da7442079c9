# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class DeleteRecordsPartition(Structure):
    partition_index: int
    offset: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        offset: int = ...,
    ) -> None: ...

class DeleteRecordsTopic(Structure):
    name: str
    partitions: list[DeleteRecordsPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[DeleteRecordsPartition] = ...,
    ) -> None: ...

class DeleteRecordsRequest(Structure):
    topics: list[DeleteRecordsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] = ...,
        timeout_ms: int = ...,
    ) -> None: ...

class DeleteRecordsPartitionResult(Structure):
    partition_index: int
    low_watermark: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        low_watermark: int = ...,
        error_code: int = ...,
    ) -> None: ...

class DeleteRecordsTopicResult(Structure):
    name: str
    partitions: list[DeleteRecordsPartitionResult]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[DeleteRecordsPartitionResult] = ...,
    ) -> None: ...

class DeleteRecordsResponse(Structure):
    throttle_time_ms: int
    topics: list[DeleteRecordsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[DeleteRecordsTopicResult] = ...,
    ) -> None: ...

DELETE_RECORDS: Api[DeleteRecordsRequest, DeleteRecordsResponse]
