# Written by kafkalite.wire.stubs from the declarations; do not edit.

from collections.abc import Sized
from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class ReplicaState(Structure):
    replica_id: int
    replica_epoch: int
    def __init__(
        self,
        *,
        replica_id: int = ...,
        replica_epoch: int = ...,
    ) -> None: ...

class FetchPartition(Structure):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: UUID
    high_watermark: int
    def __init__(
        self,
        *,
        partition: int = ...,
        current_leader_epoch: int = ...,
        fetch_offset: int = ...,
        last_fetched_epoch: int = ...,
        log_start_offset: int = ...,
        partition_max_bytes: int = ...,
        replica_directory_id: UUID = ...,
        high_watermark: int = ...,
    ) -> None: ...

class FetchTopic(Structure):
    topic: str
    topic_id: UUID
    partitions: list[FetchPartition]
    def __init__(
        self,
        *,
        topic: str = ...,
        topic_id: UUID = ...,
        partitions: list[FetchPartition] = ...,
    ) -> None: ...

class ForgottenTopic(Structure):
    topic: str
    topic_id: UUID
    partitions: list[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        topic_id: UUID = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class FetchRequest(Structure):
    cluster_id: str | None
    replica_id: int
    replica_state: ReplicaState
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]
    rack_id: str
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        replica_id: int = ...,
        replica_state: ReplicaState = ...,
        max_wait_ms: int = ...,
        min_bytes: int = ...,
        max_bytes: int = ...,
        isolation_level: int = ...,
        session_id: int = ...,
        session_epoch: int = ...,
        topics: list[FetchTopic] = ...,
        forgotten_topics_data: list[ForgottenTopic] = ...,
        rack_id: str = ...,
    ) -> None: ...

class EpochEndOffset(Structure):
    epoch: int
    end_offset: int
    def __init__(
        self,
        *,
        epoch: int = ...,
        end_offset: int = ...,
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

class SnapshotId(Structure):
    end_offset: int
    epoch: int
    def __init__(
        self,
        *,
        end_offset: int = ...,
        epoch: int = ...,
    ) -> None: ...

class AbortedTransaction(Structure):
    producer_id: int
    first_offset: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        first_offset: int = ...,
    ) -> None: ...

class PartitionData(Structure):
    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: EpochEndOffset
    current_leader: LeaderIdAndEpoch
    snapshot_id: SnapshotId
    aborted_transactions: list[AbortedTransaction] | None
    preferred_read_replica: int
    records: bytes | bytearray | memoryview | Sized | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        high_watermark: int = ...,
        last_stable_offset: int = ...,
        log_start_offset: int = ...,
        diverging_epoch: EpochEndOffset = ...,
        current_leader: LeaderIdAndEpoch = ...,
        snapshot_id: SnapshotId = ...,
        aborted_transactions: list[AbortedTransaction] | None = ...,
        preferred_read_replica: int = ...,
        records: bytes | bytearray | memoryview | Sized | None = ...,
    ) -> None: ...

class FetchableTopicResponse(Structure):
    topic: str
    topic_id: UUID
    partitions: list[PartitionData]
    def __init__(
        self,
        *,
        topic: str = ...,
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

class FetchResponse(Structure):
    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        session_id: int = ...,
        responses: list[FetchableTopicResponse] = ...,
        node_endpoints: list[NodeEndpoint] = ...,
    ) -> None: ...

FETCH: Api[FetchRequest, FetchResponse]
