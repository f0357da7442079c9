# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class KeyValue(Structure):
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
    topic_configs: list[KeyValue]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: int = ...,
        replication_factor: int = ...,
        topic_configs: list[KeyValue] = ...,
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

class Topology(Structure):
    epoch: int
    subtopologies: list[Subtopology]
    def __init__(
        self,
        *,
        epoch: int = ...,
        subtopologies: list[Subtopology] = ...,
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

class Endpoint(Structure):
    host: str
    port: int
    def __init__(
        self,
        *,
        host: str = ...,
        port: int = ...,
    ) -> None: ...

class TaskOffset(Structure):
    subtopology_id: str
    partition: int
    offset: int
    def __init__(
        self,
        *,
        subtopology_id: str = ...,
        partition: int = ...,
        offset: int = ...,
    ) -> None: ...

class StreamsGroupHeartbeatRequest(Structure):
    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: Topology | None
    active_tasks: list[TaskIds] | None
    standby_tasks: list[TaskIds] | None
    warmup_tasks: list[TaskIds] | None
    process_id: str | None
    user_endpoint: Endpoint | None
    client_tags: list[KeyValue] | None
    task_offsets: list[TaskOffset] | None
    task_end_offsets: list[TaskOffset] | None
    shutdown_application: bool
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        endpoint_information_epoch: int = ...,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        rebalance_timeout_ms: int = ...,
        topology: Topology | None = ...,
        active_tasks: list[TaskIds] | None = ...,
        standby_tasks: list[TaskIds] | None = ...,
        warmup_tasks: list[TaskIds] | None = ...,
        process_id: str | None = ...,
        user_endpoint: Endpoint | None = ...,
        client_tags: list[KeyValue] | None = ...,
        task_offsets: list[TaskOffset] | None = ...,
        task_end_offsets: list[TaskOffset] | None = ...,
        shutdown_application: bool = ...,
    ) -> None: ...

class Status(Structure):
    status_code: int
    status_detail: str
    def __init__(
        self,
        *,
        status_code: int = ...,
        status_detail: str = ...,
    ) -> None: ...

class TopicPartition(Structure):
    topic: str
    partitions: list[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class EndpointToPartitions(Structure):
    user_endpoint: Endpoint
    active_partitions: list[TopicPartition]
    standby_partitions: list[TopicPartition]
    def __init__(
        self,
        *,
        user_endpoint: Endpoint = ...,
        active_partitions: list[TopicPartition] = ...,
        standby_partitions: list[TopicPartition] = ...,
    ) -> None: ...

class StreamsGroupHeartbeatResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    acceptable_recovery_lag: int
    task_offset_interval_ms: int
    status: list[Status] | None
    active_tasks: list[TaskIds] | None
    standby_tasks: list[TaskIds] | None
    warmup_tasks: list[TaskIds] | None
    endpoint_information_epoch: int
    partitions_by_user_endpoint: list[EndpointToPartitions] | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        heartbeat_interval_ms: int = ...,
        acceptable_recovery_lag: int = ...,
        task_offset_interval_ms: int = ...,
        status: list[Status] | None = ...,
        active_tasks: list[TaskIds] | None = ...,
        standby_tasks: list[TaskIds] | None = ...,
        warmup_tasks: list[TaskIds] | None = ...,
        endpoint_information_epoch: int = ...,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = ...,
    ) -> None: ...

STREAMS_GROUP_HEARTBEAT: Api[StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse]
