# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class DescribeShareGroupOffsetsRequestTopic(Structure):
    topic_name: str
    partitions: list[int]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsRequestGroup(Structure):
    group_id: str
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsRequest(Structure):
    groups: list[DescribeShareGroupOffsetsRequestGroup]
    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponsePartition(Structure):
    partition_index: int
    start_offset: int
    leader_epoch: int
    lag: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        start_offset: int = ...,
        leader_epoch: int = ...,
        lag: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponseTopic(Structure):
    topic_name: str
    topic_id: UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: UUID = ...,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponseGroup(Structure):
    group_id: str
    topics: list[DescribeShareGroupOffsetsResponseTopic]
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[DescribeShareGroupOffsetsResponseTopic] = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponse(Structure):
    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = ...,
    ) -> None: ...

DESCRIBE_SHARE_GROUP_OFFSETS: Api[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse]
