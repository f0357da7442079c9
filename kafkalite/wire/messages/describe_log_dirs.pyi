# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class DescribableLogDirTopic(Structure):
    topic: str
    partitions: list[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class DescribeLogDirsRequest(Structure):
    topics: list[DescribableLogDirTopic] | None
    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None = ...,
    ) -> None: ...

class DescribeLogDirsPartition(Structure):
    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool
    def __init__(
        self,
        *,
        partition_index: int = ...,
        partition_size: int = ...,
        offset_lag: int = ...,
        is_future_key: bool = ...,
    ) -> None: ...

class DescribeLogDirsTopic(Structure):
    name: str
    partitions: list[DescribeLogDirsPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[DescribeLogDirsPartition] = ...,
    ) -> None: ...

class DescribeLogDirsResult(Structure):
    error_code: int
    log_dir: str
    topics: list[DescribeLogDirsTopic]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool
    def __init__(
        self,
        *,
        error_code: int = ...,
        log_dir: str = ...,
        topics: list[DescribeLogDirsTopic] = ...,
        total_bytes: int = ...,
        usable_bytes: int = ...,
        is_cordoned: bool = ...,
    ) -> None: ...

class DescribeLogDirsResponse(Structure):
    throttle_time_ms: int
    error_code: int
    results: list[DescribeLogDirsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        results: list[DescribeLogDirsResult] = ...,
    ) -> None: ...

DESCRIBE_LOG_DIRS: Api[DescribeLogDirsRequest, DescribeLogDirsResponse]
