# Written by kafkalite.wire.stubs from the declarations; do not edit.

from collections.abc import Sized
from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class PartitionProduceData(Structure):
    index: int
    records: bytes | bytearray | memoryview | Sized | None
    def __init__(
        self,
        *,
        index: int = ...,
        records: bytes | bytearray | memoryview | Sized | None = ...,
    ) -> None: ...

class TopicProduceData(Structure):
    name: str
    topic_id: UUID
    partition_data: list[PartitionProduceData]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partition_data: list[PartitionProduceData] = ...,
    ) -> None: ...

class ProduceRequest(Structure):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[TopicProduceData]
    def __init__(
        self,
        *,
        transactional_id: str | None = ...,
        acks: int = ...,
        timeout_ms: int = ...,
        topic_data: list[TopicProduceData] = ...,
    ) -> None: ...

class BatchIndexAndErrorMessage(Structure):
    batch_index: int
    batch_index_error_message: str | None
    def __init__(
        self,
        *,
        batch_index: int = ...,
        batch_index_error_message: str | None = ...,
    ) -> None: ...

class LeaderIdAndEpoch(Structure):
    leader_id: int
    leader_epoch: int
    def __init__(
        self,
        *,
        leader_id: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...

class PartitionProduceResponse(Structure):
    index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: list[BatchIndexAndErrorMessage]
    error_message: str | None
    current_leader: LeaderIdAndEpoch
    def __init__(
        self,
        *,
        index: int = ...,
        error_code: int = ...,
        base_offset: int = ...,
        log_append_time_ms: int = ...,
        log_start_offset: int = ...,
        record_errors: list[BatchIndexAndErrorMessage] = ...,
        error_message: str | None = ...,
        current_leader: LeaderIdAndEpoch = ...,
    ) -> None: ...

class TopicProduceResponse(Structure):
    name: str
    topic_id: UUID
    partition_responses: list[PartitionProduceResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partition_responses: list[PartitionProduceResponse] = ...,
    ) -> None: ...

class NodeEndpoint(Structure):
    node_id: int
    host: str
    port: int
    rack: str | None
    def __init__(
        self,
        *,
        node_id: int = ...,
        host: str = ...,
        port: int = ...,
        rack: str | None = ...,
    ) -> None: ...

class ProduceResponse(Structure):
    responses: list[TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[NodeEndpoint]
    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] = ...,
        throttle_time_ms: int = ...,
        node_endpoints: list[NodeEndpoint] = ...,
    ) -> None: ...

PRODUCE: Api[ProduceRequest, ProduceResponse]
