# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class ConsumerGroupMetadataKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class ConsumerGroupMetadataValue(Structure):
    epoch: int
    metadata_hash: int
    def __init__(
        self,
        *,
        epoch: int = ...,
        metadata_hash: int = ...,
    ) -> None: ...

class ConsumerGroupPartitionMetadataKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class PartitionMetadata(Structure):
    partition: int
    racks: list[str]
    def __init__(
        self,
        *,
        partition: int = ...,
        racks: list[str] = ...,
    ) -> None: ...

class TopicMetadata(Structure):
    topic_id: UUID
    topic_name: str
    num_partitions: int
    partition_metadata: list[PartitionMetadata]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        topic_name: str = ...,
        num_partitions: int = ...,
        partition_metadata: list[PartitionMetadata] = ...,
    ) -> None: ...

class ConsumerGroupPartitionMetadataValue(Structure):
    topics: list[TopicMetadata]
    def __init__(
        self,
        *,
        topics: list[TopicMetadata] = ...,
    ) -> None: ...

class ConsumerGroupMemberMetadataKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class ClassicProtocol(Structure):
    name: str
    metadata: bytes
    def __init__(
        self,
        *,
        name: str = ...,
        metadata: bytes = ...,
    ) -> None: ...

class ClassicMemberMetadata(Structure):
    session_timeout_ms: int
    supported_protocols: list[ClassicProtocol]
    def __init__(
        self,
        *,
        session_timeout_ms: int = ...,
        supported_protocols: list[ClassicProtocol] = ...,
    ) -> None: ...

class ConsumerGroupMemberMetadataValue(Structure):
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None
    def __init__(
        self,
        *,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        subscribed_topic_names: list[str] = ...,
        subscribed_topic_regex: str | None = ...,
        rebalance_timeout_ms: int = ...,
        server_assignor: str | None = ...,
        classic_member_metadata: ClassicMemberMetadata | None = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMetadataKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMetadataValue(Structure):
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = ...,
        assignment_timestamp: int = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMemberKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class TargetTopicPartitions(Structure):
    topic_id: UUID
    partitions: list[int]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMemberValue(Structure):
    topic_partitions: list[TargetTopicPartitions]
    def __init__(
        self,
        *,
        topic_partitions: list[TargetTopicPartitions] = ...,
    ) -> None: ...

class ConsumerGroupCurrentMemberAssignmentKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class CurrentTopicPartitions(Structure):
    topic_id: UUID
    partitions: list[int]
    assignment_epochs: list[int] | None
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[int] = ...,
        assignment_epochs: list[int] | None = ...,
    ) -> None: ...

class ConsumerGroupCurrentMemberAssignmentValue(Structure):
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[CurrentTopicPartitions]
    partitions_pending_revocation: list[CurrentTopicPartitions]
    def __init__(
        self,
        *,
        member_epoch: int = ...,
        previous_member_epoch: int = ...,
        state: int = ...,
        assigned_partitions: list[CurrentTopicPartitions] = ...,
        partitions_pending_revocation: list[CurrentTopicPartitions] = ...,
    ) -> None: ...

class ConsumerGroupRegularExpressionKey(Structure):
    group_id: str
    regular_expression: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        regular_expression: str = ...,
    ) -> None: ...

class ConsumerGroupRegularExpressionValue(Structure):
    topics: list[str]
    version: int
    timestamp: int
    def __init__(
        self,
        *,
        topics: list[str] = ...,
        version: int = ...,
        timestamp: int = ...,
    ) -> None: ...

METADATA_KEY: Codec[ConsumerGroupMetadataKey]
METADATA_VALUE: Codec[ConsumerGroupMetadataValue]
PARTITION_METADATA_KEY: Codec[ConsumerGroupPartitionMetadataKey]
PARTITION_METADATA_VALUE: Codec[ConsumerGroupPartitionMetadataValue]
MEMBER_KEY: Codec[ConsumerGroupMemberMetadataKey]
MEMBER_VALUE: Codec[ConsumerGroupMemberMetadataValue]
TARGET_METADATA_KEY: Codec[ConsumerGroupTargetAssignmentMetadataKey]
TARGET_METADATA_VALUE: Codec[ConsumerGroupTargetAssignmentMetadataValue]
TARGET_MEMBER_KEY: Codec[ConsumerGroupTargetAssignmentMemberKey]
TARGET_MEMBER_VALUE: Codec[ConsumerGroupTargetAssignmentMemberValue]
CURRENT_KEY: Codec[ConsumerGroupCurrentMemberAssignmentKey]
CURRENT_VALUE: Codec[ConsumerGroupCurrentMemberAssignmentValue]
PATTERN_KEY: Codec[ConsumerGroupRegularExpressionKey]
PATTERN_VALUE: Codec[ConsumerGroupRegularExpressionValue]
