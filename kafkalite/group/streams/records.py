"""The records of streams groups, made and read (types 17 and 19 to 23 in `__consumer_offsets`)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.streams.member import Endpoint, MemberState, StreamsMember
from kafkalite.group.streams.tasks import (
    HOLDS_NOTHING,
    HeldTasks,
    TaskId,
    Tasks,
    by_subtopology,
    task_set,
)
from kafkalite.wire.stored import streams_group as stored

GONE_EPOCH = -1
"""Epoch of a member between the first and the last of its tombstones."""


def metadata_record(
    group_id: str,
    *,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> StoredRecord:
    """Return the record of a group's epoch (17)."""
    value = stored.StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            stored.LastAssignmentConfig(key=key, value=value)
            for key, value in assignment_configs.items()
        ],
    )
    return StoredRecord(stored.StreamsGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: StreamsMember) -> StoredRecord:
    """Return the record of what a member says of itself (19)."""
    endpoint = member.user_endpoint
    value = stored.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=(
            None if endpoint is None else stored.Endpoint(host=endpoint.host, port=endpoint.port)
        ),
        client_tags=[
            stored.KeyValue(key=key, value=value)
            for key, value in sorted(member.client_tags.items())
        ],
    )
    return StoredRecord(_member_key(group_id, member.member_id), value)


def target_metadata_record(group_id: str, *, epoch: int, timestamp_ms: int) -> StoredRecord:
    """Return the record of a target's epoch and wall time (20)."""
    value = stored.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return StoredRecord(stored.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Tasks) -> StoredRecord:
    """Return the record of a member's target (21)."""
    value = stored.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_lists(target.active),
        standby_tasks=_lists(target.standby),
        warmup_tasks=_lists(target.warmup),
    )
    return StoredRecord(_target_key(group_id, member_id), value)


def current_record(group_id: str, member: StreamsMember) -> StoredRecord:
    """Return the record of a member's epochs, state and tasks (22)."""
    assigned, revoked = member.assigned, member.pending_revocation
    value = stored.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        active_tasks=_lists_with_epochs(assigned.active),
        standby_tasks=_held_lists(assigned.standby),
        warmup_tasks=_held_lists(assigned.warmup),
        active_tasks_pending_revocation=_lists_with_epochs(revoked.active),
        standby_tasks_pending_revocation=_held_lists(revoked.standby),
        warmup_tasks_pending_revocation=_held_lists(revoked.warmup),
    )
    return StoredRecord(_current_key(group_id, member.member_id), value)


def topology_record(group_id: str, value: stored.StreamsGroupTopologyValue) -> StoredRecord:
    """Return the record of a topology (23)."""
    return StoredRecord(stored.StreamsGroupTopologyKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[StoredRecord]:
    """Return the records that remove a member, in their order (22, 21, 19)."""
    return [
        StoredRecord(_current_key(group_id, member_id), None),
        StoredRecord(_target_key(group_id, member_id), None),
        StoredRecord(_member_key(group_id, member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[StoredRecord]:
    """Return the records that remove a group, in their order (22, 21, 20, 19, 17, 23)."""
    members = [*member_ids]
    return [
        *(StoredRecord(_current_key(group_id, each), None) for each in members),
        *(StoredRecord(_target_key(group_id, each), None) for each in members),
        StoredRecord(stored.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(StoredRecord(_member_key(group_id, each), None) for each in members),
        StoredRecord(stored.StreamsGroupMetadataKey(group_id=group_id), None),
        StoredRecord(stored.StreamsGroupTopologyKey(group_id=group_id), None),
    ]


def with_metadata(
    member: StreamsMember, value: stored.StreamsGroupMemberMetadataValue
) -> StreamsMember:
    """Return a member after its record 19."""
    endpoint = value.user_endpoint
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )


def with_assignment(
    member: StreamsMember, value: stored.StreamsGroupCurrentMemberAssignmentValue
) -> StreamsMember:
    """Return a member after its record 22."""
    epoch = value.member_epoch
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, MemberState.UNKNOWN),
        assigned=HeldTasks(
            active=_with_epochs(value.active_tasks, epoch),
            standby=task_set(value.standby_tasks),
            warmup=task_set(value.warmup_tasks),
        ),
        pending_revocation=HeldTasks(
            active=_with_epochs(value.active_tasks_pending_revocation, epoch),
            standby=task_set(value.standby_tasks_pending_revocation),
            warmup=task_set(value.warmup_tasks_pending_revocation),
        ),
    )


def without_assignment(member: StreamsMember) -> StreamsMember:
    """Return a member after the tombstone of its record 22."""
    return replace(
        member,
        member_epoch=GONE_EPOCH,
        previous_member_epoch=GONE_EPOCH,
        assigned=HOLDS_NOTHING,
        pending_revocation=HOLDS_NOTHING,
    )


def target_of(value: stored.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    """Return what a record 21 tells."""
    return Tasks(
        active=task_set(value.active_tasks),
        standby=task_set(value.standby_tasks),
        warmup=task_set(value.warmup_tasks),
    )


_STATES = {int(state): state for state in MemberState}


def _with_epochs(lists: Iterable[stored.TaskIdsWithEpochs], member_epoch: int) -> dict[TaskId, int]:
    """Return tasks with their epochs; brokers before 4.3 stored none: the member's counts then."""
    found: dict[TaskId, int] = {}
    for tasks in lists:
        epochs = tasks.assignment_epochs
        if epochs is None or len(epochs) != len(tasks.partitions):
            epochs = [member_epoch] * len(tasks.partitions)
        for partition, epoch in zip(tasks.partitions, epochs, strict=True):
            found[TaskId(tasks.subtopology_id, partition)] = epoch
    return found


def _lists(tasks: Iterable[TaskId]) -> list[stored.TaskIds]:
    return [
        stored.TaskIds(subtopology_id=name, partitions=partitions)
        for name, partitions in by_subtopology(tasks).items()
    ]


def _held_lists(tasks: Iterable[TaskId]) -> list[stored.TaskIdsWithEpochs]:
    return [
        stored.TaskIdsWithEpochs(subtopology_id=name, partitions=partitions)
        for name, partitions in by_subtopology(tasks).items()
    ]


def _lists_with_epochs(tasks: Mapping[TaskId, int]) -> list[stored.TaskIdsWithEpochs]:
    return [
        stored.TaskIdsWithEpochs(
            subtopology_id=name,
            partitions=partitions,
            assignment_epochs=[tasks[TaskId(name, partition)] for partition in partitions],
        )
        for name, partitions in by_subtopology(tasks).items()
    ]


def _member_key(group_id: str, member_id: str) -> stored.StreamsGroupMemberMetadataKey:
    return stored.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> stored.StreamsGroupTargetAssignmentMemberKey:
    return stored.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> stored.StreamsGroupCurrentMemberAssignmentKey:
    return stored.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
