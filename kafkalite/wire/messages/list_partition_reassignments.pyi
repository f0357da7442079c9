# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class ListPartitionReassignmentsTopics(Structure):
    name: str
    partition_indexes: list[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: list[int] = ...,
    ) -> None: ...

class ListPartitionReassignmentsRequest(Structure):
    timeout_ms: int
    topics: list[ListPartitionReassignmentsTopics] | None
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        topics: list[ListPartitionReassignmentsTopics] | None = ...,
    ) -> None: ...

class OngoingPartitionReassignment(Structure):
    partition_index: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        replicas: list[int] = ...,
        adding_replicas: list[int] = ...,
        removing_replicas: list[int] = ...,
    ) -> None: ...

class OngoingTopicReassignment(Structure):
    name: str
    partitions: list[OngoingPartitionReassignment]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[OngoingPartitionReassignment] = ...,
    ) -> None: ...

class ListPartitionReassignmentsResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[OngoingTopicReassignment]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        topics: list[OngoingTopicReassignment] = ...,
    ) -> None: ...

LIST_PARTITION_REASSIGNMENTS: Api[ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse]
