# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class StreamsGroupDescribeRequest(Structure):
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = ...,
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

class Subtopology(Structure):
    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    state_changelog_topics: list[TopicInfo]
    repartition_source_topics: list[TopicInfo]
    def __init__(
        self,
        *,
        subtopology_id: str = ...,
        source_topics: list[str] = ...,
        repartition_sink_topics: list[str] = ...,
        state_changelog_topics: list[TopicInfo] = ...,
        repartition_source_topics: list[TopicInfo] = ...,
    ) -> None: ...

class Topology(Structure):
    epoch: int
    subtopologies: list[Subtopology] | None
    def __init__(
        self,
        *,
        epoch: int = ...,
        subtopologies: list[Subtopology] | None = ...,
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

class TaskIds(Structure):
    subtopology_id: str
    partitions: list[int]
    def __init__(
        self,
        *,
        subtopology_id: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class Assignment(Structure):
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

class Member(Structure):
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: list[KeyValue]
    task_offsets: list[TaskOffset]
    task_end_offsets: list[TaskOffset]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: bool
    def __init__(
        self,
        *,
        member_id: str = ...,
        member_epoch: int = ...,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        topology_epoch: int = ...,
        process_id: str = ...,
        user_endpoint: Endpoint | None = ...,
        client_tags: list[KeyValue] = ...,
        task_offsets: list[TaskOffset] = ...,
        task_end_offsets: list[TaskOffset] = ...,
        assignment: Assignment = ...,
        target_assignment: Assignment = ...,
        is_classic: bool = ...,
    ) -> None: ...

class DescribedGroup(Structure):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    topology: Topology | None
    members: list[Member]
    authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        group_id: str = ...,
        group_state: str = ...,
        group_epoch: int = ...,
        assignment_epoch: int = ...,
        topology: Topology | None = ...,
        members: list[Member] = ...,
        authorized_operations: int = ...,
    ) -> None: ...

class StreamsGroupDescribeResponse(Structure):
    throttle_time_ms: int
    groups: list[DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        groups: list[DescribedGroup] = ...,
    ) -> None: ...

STREAMS_GROUP_DESCRIBE: Api[StreamsGroupDescribeRequest, StreamsGroupDescribeResponse]
