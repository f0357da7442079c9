# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class TopicRequest(Structure):
    name: str
    partition_indexes: list[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: list[int] = ...,
    ) -> None: ...

class DescribeProducersRequest(Structure):
    topics: list[TopicRequest]
    def __init__(
        self,
        *,
        topics: list[TopicRequest] = ...,
    ) -> None: ...

class ProducerState(Structure):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        producer_epoch: int = ...,
        last_sequence: int = ...,
        last_timestamp: int = ...,
        coordinator_epoch: int = ...,
        current_txn_start_offset: int = ...,
    ) -> None: ...

class PartitionResponse(Structure):
    partition_index: int
    error_code: int
    error_message: str | None
    active_producers: list[ProducerState]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        active_producers: list[ProducerState] = ...,
    ) -> None: ...

class TopicResponse(Structure):
    name: str
    partitions: list[PartitionResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[PartitionResponse] = ...,
    ) -> None: ...

class DescribeProducersResponse(Structure):
    throttle_time_ms: int
    topics: list[TopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[TopicResponse] = ...,
    ) -> None: ...

DESCRIBE_PRODUCERS: Api[DescribeProducersRequest, DescribeProducersResponse]
