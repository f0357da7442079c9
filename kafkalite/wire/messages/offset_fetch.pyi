# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class OffsetFetchRequestTopic(Structure):
    name: str
    partition_indexes: list[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: list[int] = ...,
    ) -> None: ...

class OffsetFetchRequestTopics(Structure):
    name: str
    topic_id: UUID
    partition_indexes: list[int]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partition_indexes: list[int] = ...,
    ) -> None: ...

class OffsetFetchRequestGroup(Structure):
    group_id: str
    member_id: str | None
    member_epoch: int
    topics: list[OffsetFetchRequestTopics] | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str | None = ...,
        member_epoch: int = ...,
        topics: list[OffsetFetchRequestTopics] | None = ...,
    ) -> None: ...

class OffsetFetchRequest(Structure):
    group_id: str
    topics: list[OffsetFetchRequestTopic] | None
    groups: list[OffsetFetchRequestGroup]
    require_stable: bool
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[OffsetFetchRequestTopic] | None = ...,
        groups: list[OffsetFetchRequestGroup] = ...,
        require_stable: bool = ...,
    ) -> None: ...

class OffsetFetchResponsePartition(Structure):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        metadata: str | None = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetFetchResponseTopic(Structure):
    name: str
    partitions: list[OffsetFetchResponsePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[OffsetFetchResponsePartition] = ...,
    ) -> None: ...

class OffsetFetchResponsePartitions(Structure):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        metadata: str | None = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetFetchResponseTopics(Structure):
    name: str
    topic_id: UUID
    partitions: list[OffsetFetchResponsePartitions]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partitions: list[OffsetFetchResponsePartitions] = ...,
    ) -> None: ...

class OffsetFetchResponseGroup(Structure):
    group_id: str
    topics: list[OffsetFetchResponseTopics]
    error_code: int
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[OffsetFetchResponseTopics] = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetFetchResponse(Structure):
    throttle_time_ms: int
    topics: list[OffsetFetchResponseTopic]
    error_code: int
    groups: list[OffsetFetchResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[OffsetFetchResponseTopic] = ...,
        error_code: int = ...,
        groups: list[OffsetFetchResponseGroup] = ...,
    ) -> None: ...

OFFSET_FETCH: Api[OffsetFetchRequest, OffsetFetchResponse]
