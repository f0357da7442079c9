# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class TopicPartitions(Structure):
    topic: str
    partitions: list[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class ElectLeadersRequest(Structure):
    election_type: int
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: int
    def __init__(
        self,
        *,
        election_type: int = ...,
        topic_partitions: list[TopicPartitions] | None = ...,
        timeout_ms: int = ...,
    ) -> None: ...

class PartitionResult(Structure):
    partition_id: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        partition_id: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class ReplicaElectionResult(Structure):
    topic: str
    partition_result: list[PartitionResult]
    def __init__(
        self,
        *,
        topic: str = ...,
        partition_result: list[PartitionResult] = ...,
    ) -> None: ...

class ElectLeadersResponse(Structure):
    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ReplicaElectionResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        replica_election_results: list[ReplicaElectionResult] = ...,
    ) -> None: ...

ELECT_LEADERS: Api[ElectLeadersRequest, ElectLeadersResponse]
