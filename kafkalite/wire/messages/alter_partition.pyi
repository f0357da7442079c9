# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class BrokerState(Structure):
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
    ) -> None: ...

class AlterPartitionData(Structure):
    partition_index: int
    leader_epoch: int
    new_isr: list[int]
    new_isr_with_epochs: list[BrokerState]
    leader_recovery_state: int
    partition_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        leader_epoch: int = ...,
        new_isr: list[int] = ...,
        new_isr_with_epochs: list[BrokerState] = ...,
        leader_recovery_state: int = ...,
        partition_epoch: int = ...,
    ) -> None: ...

class AlterPartitionTopic(Structure):
    topic_id: UUID
    partitions: list[AlterPartitionData]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[AlterPartitionData] = ...,
    ) -> None: ...

class AlterPartitionRequest(Structure):
    broker_id: int
    broker_epoch: int
    topics: list[AlterPartitionTopic]
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        topics: list[AlterPartitionTopic] = ...,
    ) -> None: ...

class AlterPartitionResult(Structure):
    partition_index: int
    error_code: int
    leader_id: int
    leader_epoch: int
    isr: list[int]
    leader_recovery_state: int
    partition_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        isr: list[int] = ...,
        leader_recovery_state: int = ...,
        partition_epoch: int = ...,
    ) -> None: ...

class AlterPartitionTopicResult(Structure):
    topic_id: UUID
    partitions: list[AlterPartitionResult]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[AlterPartitionResult] = ...,
    ) -> None: ...

class AlterPartitionResponse(Structure):
    throttle_time_ms: int
    error_code: int
    topics: list[AlterPartitionTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        topics: list[AlterPartitionTopicResult] = ...,
    ) -> None: ...

ALTER_PARTITION: Api[AlterPartitionRequest, AlterPartitionResponse]
