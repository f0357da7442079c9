# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class StreamsGroupMetadataKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class LastAssignmentConfig(Structure):
    key: str
    value: str
    def __init__(
        self,
        *,
        key: str = ...,
        value: str = ...,
    ) -> None: ...

class StreamsGroupMetadataValue(Structure):
    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: list[LastAssignmentConfig] | None
    def __init__(
        self,
        *,
        epoch: int = ...,
        metadata_hash: int = ...,
        validated_topology_epoch: int = ...,
        last_assignment_configs: list[LastAssignmentConfig] | None = ...,
    ) -> None: ...

class StreamsGroupMemberMetadataKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class Endpoint(Structure):
    host: str
    port: int
    def __init__(
        self,
        *,
        host: str = ...,
        port: int = ...,
    ) -> None: ...

class KeyValue(Structure):
    key: str
    value: str
    def __init__(
        self,
        *,
        key: str = ...,
        value: str = ...,
    ) -> None: ...

class StreamsGroupMemberMetadataValue(Structure):
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: list[KeyValue]
    def __init__(
        self,
        *,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        rebalance_timeout_ms: int = ...,
        topology_epoch: int = ...,
        process_id: str = ...,
        user_endpoint: Endpoint | None = ...,
        client_tags: list[KeyValue] = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMetadataKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMetadataValue(Structure):
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = ...,
        assignment_timestamp: int = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMemberKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class TaskIds(Structure):
    subtopology_id: str
    partitions: list[int]
    def __init__(
        self,
        *,
        subtopology_id: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMemberValue(Structure):
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]
    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] = ...,
        standby_tasks: list[TaskIds] = ...,
        warmup_tasks: list[TaskIds] = ...,
    ) -> None: ...

class StreamsGroupCurrentMemberAssignmentKey(Structure):
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
    ) -> None: ...

class TaskIdsWithEpochs(Structure):
    subtopology_id: str
    partitions: list[int]
    assignment_epochs: list[int] | None
    def __init__(
        self,
        *,
        subtopology_id: str = ...,
        partitions: list[int] = ...,
        assignment_epochs: list[int] | None = ...,
    ) -> None: ...

class StreamsGroupCurrentMemberAssignmentValue(Structure):
    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: list[TaskIdsWithEpochs]
    standby_tasks: list[TaskIdsWithEpochs]
    warmup_tasks: list[TaskIdsWithEpochs]
    active_tasks_pending_revocation: list[TaskIdsWithEpochs]
    standby_tasks_pending_revocation: list[TaskIdsWithEpochs]
    warmup_tasks_pending_revocation: list[TaskIdsWithEpochs]
    def __init__(
        self,
        *,
        member_epoch: int = ...,
        previous_member_epoch: int = ...,
        state: int = ...,
        active_tasks: list[TaskIdsWithEpochs] = ...,
        standby_tasks: list[TaskIdsWithEpochs] = ...,
        warmup_tasks: list[TaskIdsWithEpochs] = ...,
        active_tasks_pending_revocation: list[TaskIdsWithEpochs] = ...,
        standby_tasks_pending_revocation: list[TaskIdsWithEpochs] = ...,
        warmup_tasks_pending_revocation: list[TaskIdsWithEpochs] = ...,
    ) -> None: ...

class StreamsGroupTopologyKey(Structure):
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
    ) -> None: ...

class TopicConfig(Structure):
    key: str
    value: str
    def __init__(
        self,
        *,
        key: str = ...,
        value: str = ...,
    ) -> None: ...

class TopicInfo(Structure):
    name: str
    partitions: int
    replication_factor: int
    topic_configs: list[TopicConfig]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: int = ...,
        replication_factor: int = ...,
        topic_configs: list[TopicConfig] = ...,
    ) -> None: ...

class CopartitionGroup(Structure):
    source_topics: list[int]
    source_topic_regex: list[int]
    repartition_source_topics: list[int]
    def __init__(
        self,
        *,
        source_topics: list[int] = ...,
        source_topic_regex: list[int] = ...,
        repartition_source_topics: list[int] = ...,
    ) -> None: ...

class Subtopology(Structure):
    subtopology_id: str
    source_topics: list[str]
    source_topic_regex: list[str]
    state_changelog_topics: list[TopicInfo]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[TopicInfo]
    copartition_groups: list[CopartitionGroup]
    def __init__(
        self,
        *,
        subtopology_id: str = ...,
        source_topics: list[str] = ...,
        source_topic_regex: list[str] = ...,
        state_changelog_topics: list[TopicInfo] = ...,
        repartition_sink_topics: list[str] = ...,
        repartition_source_topics: list[TopicInfo] = ...,
        copartition_groups: list[CopartitionGroup] = ...,
    ) -> None: ...

class StreamsGroupTopologyValue(Structure):
    epoch: int
    subtopologies: list[Subtopology]
    def __init__(
        self,
        *,
        epoch: int = ...,
        subtopologies: list[Subtopology] = ...,
    ) -> None: ...

METADATA_KEY: Codec[StreamsGroupMetadataKey]
METADATA_VALUE: Codec[StreamsGroupMetadataValue]
MEMBER_KEY: Codec[StreamsGroupMemberMetadataKey]
MEMBER_VALUE: Codec[StreamsGroupMemberMetadataValue]
TARGET_METADATA_KEY: Codec[StreamsGroupTargetAssignmentMetadataKey]
TARGET_METADATA_VALUE: Codec[StreamsGroupTargetAssignmentMetadataValue]
TARGET_MEMBER_KEY: Codec[StreamsGroupTargetAssignmentMemberKey]
TARGET_MEMBER_VALUE: Codec[StreamsGroupTargetAssignmentMemberValue]
CURRENT_KEY: Codec[StreamsGroupCurrentMemberAssignmentKey]
CURRENT_VALUE: Codec[StreamsGroupCurrentMemberAssignmentValue]
TOPOLOGY_KEY: Codec[StreamsGroupTopologyKey]
TOPOLOGY_VALUE: Codec[StreamsGroupTopologyValue]
