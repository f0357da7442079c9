# Written by kafkalite.wire.stubs from the declarations; do not edit.

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

class AcknowledgePartition(Structure):
    partition_index: int
    acknowledgement_batches: list[AcknowledgementBatch]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        acknowledgement_batches: list[AcknowledgementBatch] = ...,
    ) -> None: ...

class AcknowledgeTopic(Structure):
    topic_id: UUID
    partitions: list[AcknowledgePartition]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[AcknowledgePartition] = ...,
    ) -> None: ...

class ShareAcknowledgeRequest(Structure):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: list[AcknowledgeTopic]
    def __init__(
        self,
        *,
        group_id: str | None = ...,
        member_id: str | None = ...,
        share_session_epoch: int = ...,
        is_renew_ack: bool = ...,
        topics: list[AcknowledgeTopic] = ...,
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

class PartitionData(Structure):
    partition_index: int
    error_code: int
    error_message: str | None
    current_leader: LeaderIdAndEpoch
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        current_leader: LeaderIdAndEpoch = ...,
    ) -> None: ...

class ShareAcknowledgeTopicResponse(Structure):
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

class ShareAcknowledgeResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareAcknowledgeTopicResponse]
    node_endpoints: list[NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        acquisition_lock_timeout_ms: int = ...,
        responses: list[ShareAcknowledgeTopicResponse] = ...,
        node_endpoints: list[NodeEndpoint] = ...,
    ) -> None: ...

SHARE_ACKNOWLEDGE: Api[ShareAcknowledgeRequest, ShareAcknowledgeResponse]
