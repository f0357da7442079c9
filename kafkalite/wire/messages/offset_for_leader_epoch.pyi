# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class OffsetForLeaderPartition(Structure):
    partition: int
    current_leader_epoch: int
    leader_epoch: int
    def __init__(
        self,
        *,
        partition: int = ...,
        current_leader_epoch: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...

class OffsetForLeaderTopic(Structure):
    topic: str
    partitions: list[OffsetForLeaderPartition]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: list[OffsetForLeaderPartition] = ...,
    ) -> None: ...

class OffsetForLeaderEpochRequest(Structure):
    replica_id: int
    topics: list[OffsetForLeaderTopic]
    def __init__(
        self,
        *,
        replica_id: int = ...,
        topics: list[OffsetForLeaderTopic] = ...,
    ) -> None: ...

class EpochEndOffset(Structure):
    error_code: int
    partition: int
    leader_epoch: int
    end_offset: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition: int = ...,
        leader_epoch: int = ...,
        end_offset: int = ...,
    ) -> None: ...

class OffsetForLeaderTopicResult(Structure):
    topic: str
    partitions: list[EpochEndOffset]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: list[EpochEndOffset] = ...,
    ) -> None: ...

class OffsetForLeaderEpochResponse(Structure):
    throttle_time_ms: int
    topics: list[OffsetForLeaderTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[OffsetForLeaderTopicResult] = ...,
    ) -> None: ...

OFFSET_FOR_LEADER_EPOCH: Api[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse]
