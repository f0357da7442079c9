# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class TopicRequest(Structure):
    name: str
    def __init__(
        self,
        *,
        name: str = ...,
    ) -> None: ...

class Cursor(Structure):
    topic_name: str
    partition_index: int
    def __init__(
        self,
        *,
        topic_name: str = ...,
        partition_index: int = ...,
    ) -> None: ...

class DescribeTopicPartitionsRequest(Structure):
    topics: list[TopicRequest]
    response_partition_limit: int
    cursor: Cursor | None
    def __init__(
        self,
        *,
        topics: list[TopicRequest] = ...,
        response_partition_limit: int = ...,
        cursor: Cursor | None = ...,
    ) -> None: ...

class DescribeTopicPartitionsResponsePartition(Structure):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None
    offline_replicas: list[int]
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition_index: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        replica_nodes: list[int] = ...,
        isr_nodes: list[int] = ...,
        eligible_leader_replicas: list[int] | None = ...,
        last_known_elr: list[int] | None = ...,
        offline_replicas: list[int] = ...,
    ) -> None: ...

class DescribeTopicPartitionsResponseTopic(Structure):
    error_code: int
    name: str | None
    topic_id: UUID
    is_internal: bool
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        name: str | None = ...,
        topic_id: UUID = ...,
        is_internal: bool = ...,
        partitions: list[DescribeTopicPartitionsResponsePartition] = ...,
        topic_authorized_operations: int = ...,
    ) -> None: ...

class DescribeTopicPartitionsResponse(Structure):
    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[DescribeTopicPartitionsResponseTopic] = ...,
        next_cursor: Cursor | None = ...,
    ) -> None: ...

DESCRIBE_TOPIC_PARTITIONS: Api[DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse]
