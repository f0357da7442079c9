# Written by kafkalite.wire.stubs from the declarations; do not edit.

from collections.abc import Sized
from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class AcknowledgementBatch(Structure):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]
    def __init__(
        self,
        *,
        first_offset: int = ...,
        last_offset: int = ...,
        acknowledge_types: list[int] = ...,
    ) -> None: ...

class FetchPartition(Structure):
    partition_index: int
    acknowledgement_batches: list[AcknowledgementBatch]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        acknowledgement_batches: list[AcknowledgementBatch] = ...,
    ) -> None: ...

class FetchTopic(Structure):
    topic_id: UUID
    partitions: list[FetchPartition]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[FetchPartition] = ...,
    ) -> None: ...

class ForgottenTopic(Structure):
    topic_id: UUID
    partitions: list[int]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class ShareFetchRequest(Structure):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]
    def __init__(
        self,
        *,
        group_id: str | None = ...,
        member_id: str | None = ...,
        share_session_epoch: int = ...,
        max_wait_ms: int = ...,
        min_bytes: int = ...,
        max_bytes: int = ...,
        max_records: int = ...,
        batch_size: int = ...,
        share_acquire_mode: int = ...,
        is_renew_ack: bool = ...,
        topics: list[FetchTopic] = ...,
        forgotten_topics_data: list[ForgottenTopic] = ...,
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

class AcquiredRecords(Structure):
    first_offset: int
    last_offset: int
    delivery_count: int
    def __init__(
        self,
        *,
        first_offset: int = ...,
        last_offset: int = ...,
        delivery_count: int = ...,
    ) -> None: ...

class PartitionData(Structure):
    partition_index: int
    error_code: int
    error_message: str | None
    acknowledge_error_code: int
    acknowledge_error_message: str | None
    current_leader: LeaderIdAndEpoch
    records: bytes | bytearray | memoryview | Sized | None
    acquired_records: list[AcquiredRecords]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        acknowledge_error_code: int = ...,
        acknowledge_error_message: str | None = ...,
        current_leader: LeaderIdAndEpoch = ...,
        records: bytes | bytearray | memoryview | Sized | None = ...,
        acquired_records: list[AcquiredRecords] = ...,
    ) -> None: ...

class ShareFetchableTopicResponse(Structure):
    topic_id: UUID
    partitions: list[PartitionData]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[PartitionData] = ...,
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

class ShareFetchResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        acquisition_lock_timeout_ms: int = ...,
        responses: list[ShareFetchableTopicResponse] = ...,
        node_endpoints: list[NodeEndpoint] = ...,
    ) -> None: ...

SHARE_FETCH: Api[ShareFetchRequest, ShareFetchResponse]
