# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class OffsetCommitRequestPartition(Structure):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        committed_metadata: str | None = ...,
    ) -> None: ...

class OffsetCommitRequestTopic(Structure):
    name: str
    topic_id: UUID
    partitions: list[OffsetCommitRequestPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partitions: list[OffsetCommitRequestPartition] = ...,
    ) -> None: ...

class OffsetCommitRequest(Structure):
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[OffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        generation_id_or_member_epoch: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        retention_time_ms: int = ...,
        topics: list[OffsetCommitRequestTopic] = ...,
    ) -> None: ...

class OffsetCommitResponsePartition(Structure):
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetCommitResponseTopic(Structure):
    name: str
    topic_id: UUID
    partitions: list[OffsetCommitResponsePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partitions: list[OffsetCommitResponsePartition] = ...,
    ) -> None: ...

class OffsetCommitResponse(Structure):
    throttle_time_ms: int
    topics: list[OffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[OffsetCommitResponseTopic] = ...,
    ) -> None: ...

OFFSET_COMMIT: Api[OffsetCommitRequest, OffsetCommitResponse]
