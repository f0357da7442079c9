# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class AlterShareGroupOffsetsRequestPartition(Structure):
    partition_index: int
    start_offset: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        start_offset: int = ...,
    ) -> None: ...

class AlterShareGroupOffsetsRequestTopic(Structure):
    topic_name: str
    partitions: list[AlterShareGroupOffsetsRequestPartition]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partitions: list[AlterShareGroupOffsetsRequestPartition] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsRequest(Structure):
    group_id: str
    topics: list[AlterShareGroupOffsetsRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[AlterShareGroupOffsetsRequestTopic] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsResponsePartition(Structure):
    partition_index: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class AlterShareGroupOffsetsResponseTopic(Structure):
    topic_name: str
    topic_id: UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: UUID = ...,
        partitions: list[AlterShareGroupOffsetsResponsePartition] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: list[AlterShareGroupOffsetsResponseTopic] = ...,
    ) -> None: ...

ALTER_SHARE_GROUP_OFFSETS: Api[AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse]
