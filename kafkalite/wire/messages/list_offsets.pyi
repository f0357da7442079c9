# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class ListOffsetsPartition(Structure):
    partition_index: int
    current_leader_epoch: int
    timestamp: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        current_leader_epoch: int = ...,
        timestamp: int = ...,
    ) -> None: ...

class ListOffsetsTopic(Structure):
    name: str
    partitions: list[ListOffsetsPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[ListOffsetsPartition] = ...,
    ) -> None: ...

class ListOffsetsRequest(Structure):
    replica_id: int
    isolation_level: int
    topics: list[ListOffsetsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        replica_id: int = ...,
        isolation_level: int = ...,
        topics: list[ListOffsetsTopic] = ...,
        timeout_ms: int = ...,
    ) -> None: ...

class ListOffsetsPartitionResponse(Structure):
    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        timestamp: int = ...,
        offset: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...

class ListOffsetsTopicResponse(Structure):
    name: str
    partitions: list[ListOffsetsPartitionResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[ListOffsetsPartitionResponse] = ...,
    ) -> None: ...

class ListOffsetsResponse(Structure):
    throttle_time_ms: int
    topics: list[ListOffsetsTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[ListOffsetsTopicResponse] = ...,
    ) -> None: ...

LIST_OFFSETS: Api[ListOffsetsRequest, ListOffsetsResponse]
