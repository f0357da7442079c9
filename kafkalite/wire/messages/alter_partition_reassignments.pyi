# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class ReassignablePartition(Structure):
    partition_index: int
    replicas: list[int] | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        replicas: list[int] | None = ...,
    ) -> None: ...

class ReassignableTopic(Structure):
    name: str
    partitions: list[ReassignablePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[ReassignablePartition] = ...,
    ) -> None: ...

class AlterPartitionReassignmentsRequest(Structure):
    timeout_ms: int
    allow_replication_factor_change: bool
    topics: list[ReassignableTopic]
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        allow_replication_factor_change: bool = ...,
        topics: list[ReassignableTopic] = ...,
    ) -> None: ...

class ReassignablePartitionResponse(Structure):
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

class ReassignableTopicResponse(Structure):
    name: str
    partitions: list[ReassignablePartitionResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[ReassignablePartitionResponse] = ...,
    ) -> None: ...

class AlterPartitionReassignmentsResponse(Structure):
    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: list[ReassignableTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        allow_replication_factor_change: bool = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: list[ReassignableTopicResponse] = ...,
    ) -> None: ...

ALTER_PARTITION_REASSIGNMENTS: Api[AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse]
