# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class ShareGroupMemberMetadataKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class ShareGroupMemberMetadataValue(Structure):
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    def __init__(
        self,
        *,
        rack_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        subscribed_topic_names: list[str] = ...,
    ) -> None: ...

class ShareGroupMetadataKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class ShareGroupMetadataValue(Structure):
    epoch: int
    metadata_hash: int
    def __init__(
        self,
        *,
        epoch: int = ...,
        metadata_hash: int = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMetadataKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMetadataValue(Structure):
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = ...,
        assignment_timestamp: int = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMemberKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class TopicPartition(Structure):
    topic_id: UUID
    partitions: list[int]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMemberValue(Structure):
    topic_partitions: list[TopicPartition]
    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartition] = ...,
    ) -> None: ...

class ShareGroupCurrentMemberAssignmentKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class TopicPartitions(Structure):
    topic_id: UUID
    partitions: list[int]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class ShareGroupCurrentMemberAssignmentValue(Structure):
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[TopicPartitions]
    def __init__(
        self,
        *,
        member_epoch: int = ...,
        previous_member_epoch: int = ...,
        state: int = ...,
        assigned_partitions: list[TopicPartitions] = ...,
    ) -> None: ...

class ShareGroupStatePartitionMetadataKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class TopicPartitionsInfo(Structure):
    topic_id: UUID
    topic_name: str
    partitions: list[int]
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        topic_name: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class TopicInfo(Structure):
    topic_id: UUID
    topic_name: str
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        topic_name: str = ...,
    ) -> None: ...

class ShareGroupStatePartitionMetadataValue(Structure):
    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]
    def __init__(
        self,
        *,
        initializing_topics: list[TopicPartitionsInfo] = ...,
        initialized_topics: list[TopicPartitionsInfo] = ...,
        deleting_topics: list[TopicInfo] = ...,
    ) -> None: ...

SHARE_GROUP_MEMBER_METADATA_KEY: Codec[ShareGroupMemberMetadataKey]
SHARE_GROUP_MEMBER_METADATA_VALUE: Codec[ShareGroupMemberMetadataValue]
SHARE_GROUP_METADATA_KEY: Codec[ShareGroupMetadataKey]
SHARE_GROUP_METADATA_VALUE: Codec[ShareGroupMetadataValue]
SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY: Codec[ShareGroupTargetAssignmentMetadataKey]
SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE: Codec[ShareGroupTargetAssignmentMetadataValue]
SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY: Codec[ShareGroupTargetAssignmentMemberKey]
SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE: Codec[ShareGroupTargetAssignmentMemberValue]
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY: Codec[ShareGroupCurrentMemberAssignmentKey]
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE: Codec[ShareGroupCurrentMemberAssignmentValue]
SHARE_GROUP_STATE_PARTITION_METADATA_KEY: Codec[ShareGroupStatePartitionMetadataKey]
SHARE_GROUP_STATE_PARTITION_METADATA_VALUE: Codec[ShareGroupStatePartitionMetadataValue]
