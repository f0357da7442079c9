# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class AlterReplicaLogDirTopic(Structure):
    name: str
    partitions: list[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class AlterReplicaLogDir(Structure):
    path: str
    topics: list[AlterReplicaLogDirTopic]
    def __init__(
        self,
        *,
        path: str = ...,
        topics: list[AlterReplicaLogDirTopic] = ...,
    ) -> None: ...

class AlterReplicaLogDirsRequest(Structure):
    dirs: list[AlterReplicaLogDir]
    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] = ...,
    ) -> None: ...

class AlterReplicaLogDirPartitionResult(Structure):
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class AlterReplicaLogDirTopicResult(Structure):
    topic_name: str
    partitions: list[AlterReplicaLogDirPartitionResult]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partitions: list[AlterReplicaLogDirPartitionResult] = ...,
    ) -> None: ...

class AlterReplicaLogDirsResponse(Structure):
    throttle_time_ms: int
    results: list[AlterReplicaLogDirTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[AlterReplicaLogDirTopicResult] = ...,
    ) -> None: ...

ALTER_REPLICA_LOG_DIRS: Api[AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse]
