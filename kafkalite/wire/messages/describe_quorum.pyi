# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class DescribeQuorumPartition(Structure):
    partition_index: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
    ) -> None: ...

class DescribeQuorumTopic(Structure):
    topic_name: str
    partitions: list[DescribeQuorumPartition]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partitions: list[DescribeQuorumPartition] = ...,
    ) -> None: ...

class DescribeQuorumRequest(Structure):
    topics: list[DescribeQuorumTopic]
    def __init__(
        self,
        *,
        topics: list[DescribeQuorumTopic] = ...,
    ) -> None: ...

class ReplicaState(Structure):
    replica_id: int
    replica_directory_id: UUID
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int
    def __init__(
        self,
        *,
        replica_id: int = ...,
        replica_directory_id: UUID = ...,
        log_end_offset: int = ...,
        last_fetch_timestamp: int = ...,
        last_caught_up_timestamp: int = ...,
    ) -> None: ...

class PartitionData(Structure):
    partition_index: int
    error_code: int
    error_message: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: list[ReplicaState]
    observers: list[ReplicaState]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        high_watermark: int = ...,
        current_voters: list[ReplicaState] = ...,
        observers: list[ReplicaState] = ...,
    ) -> None: ...

class TopicData(Structure):
    topic_name: str
    partitions: list[PartitionData]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partitions: list[PartitionData] = ...,
    ) -> None: ...

class Listener(Structure):
    name: str
    host: str
    port: int
    def __init__(
        self,
        *,
        name: str = ...,
        host: str = ...,
        port: int = ...,
    ) -> None: ...

class Node(Structure):
    node_id: int
    listeners: list[Listener]
    def __init__(
        self,
        *,
        node_id: int = ...,
        listeners: list[Listener] = ...,
    ) -> None: ...

class DescribeQuorumResponse(Structure):
    error_code: int
    error_message: str | None
    topics: list[TopicData]
    nodes: list[Node]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        topics: list[TopicData] = ...,
        nodes: list[Node] = ...,
    ) -> None: ...

DESCRIBE_QUORUM: Api[DescribeQuorumRequest, DescribeQuorumResponse]
