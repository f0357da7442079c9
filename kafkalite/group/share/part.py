"""Share groups in a shard: heartbeats, operators' wishes, timers, records 10 to 15."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkalite.coordinator.shard import NOTHING, Now, Result, StoredRecord, Ticket
from kafkalite.group.effects import InitializeStates
from kafkalite.group.kinds import EventOfKind, Group, GroupKind
from kafkalite.group.part import Part
from kafkalite.group.share import records
from kafkalite.group.share.group import (
    LEAVE_EPOCH,
    NO_TARGET_EPOCH,
    ShareGroup,
    ShareMember,
    StatePartitions,
    TopicState,
    member_tombstones,
    session_timer,
)
from kafkalite.group.share.heartbeat import JOIN_EPOCH, ShareHeartbeat, heartbeat
from kafkalite.group.share.states import (
    StatesInitialized,
    all_deleting,
    with_failed,
    with_initialized,
    with_initializing,
    without_deleted,
    without_topics,
)
from kafkalite.group.share.target import new_target
from kafkalite.group.transition import TimerKey, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kafkalite.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from kafkalite.wire.stored import share_group as stored

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState

ASSIGNOR = "simple"
RETRY_MS = 500
"""After this time a member is fenced again whose fencing the log refused."""


@dataclass(slots=True)
class DescribeShareGroup(EventOfKind[DescribedGroup]):
    """One group of a ShareGroupDescribe request; answered with a DescribedGroup."""

    kind = GroupKind.SHARE

    group_id: str


@dataclass(slots=True)
class ListShareStates(EventOfKind[Mapping[UUID, TopicState]]):
    """Answered with the initialised share partitions, {topic id: TopicState} (rule 392)."""

    kind = GroupKind.SHARE

    group_id: str


@dataclass(slots=True)
class AlterShareOffsets(EventOfKind[InitializeStates]):
    """Begin share partitions elsewhere; answered with `InitializeStates`, to be done (rule 393).

    Attributes:
        start_offsets: by topic id and partition, which there are.
    """

    kind = GroupKind.SHARE

    group_id: str
    start_offsets: Mapping[tuple[UUID, int], int]


@dataclass(slots=True)
class DeleteShareOffsets(EventOfKind["DeletedStates"]):
    """Forget how far topics are; answered with `DeletedStates`, to be done (rule 394).

    Attributes:
        topic_ids: None for all, before the group is deleted.
    """

    kind = GroupKind.SHARE

    group_id: str
    topic_ids: tuple[UUID, ...] | None


@dataclass(slots=True)
class DeletedStates:
    """Share-partition states to delete at share coordinators.

    Attributes:
        topics: by their ids.
        unknown: topics that there is nothing to delete of.
    """

    topics: Mapping[UUID, TopicState]
    unknown: tuple[UUID, ...] = ()


@dataclass(slots=True)
class ShareOffsetsDeleted(EventOfKind[None]):
    """Share coordinators have forgotten topics; answered with None."""

    kind = GroupKind.SHARE

    group_id: str
    topic_ids: tuple[UUID, ...]


def find_share_group(shard: "ShardState", group_id: str) -> ShareGroup:
    """Return a share group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, also for a group of another kind (rule 382).
    """
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return _as_share_group(group)


def _as_share_group(group: Group) -> ShareGroup:
    if not isinstance(group, ShareGroup):
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a share group."
        )
    return group


# --- Members ------------------------------------------------------------------------------------


def _on_heartbeat(shard: "ShardState", event: ShareHeartbeat, ticket: Ticket, now: Now) -> Result:
    request, transition = event.request, shard.transition(now)
    if request.member_epoch == LEAVE_EPOCH:
        group = find_share_group(shard, request.group_id)
        _fence(shard, transition, group, group.member(request.member_id))
        transition.reply(
            ticket,
            ShareGroupHeartbeatResponse(
                member_id=request.member_id, member_epoch=request.member_epoch
            ),
        )
        return transition.result()
    found = shard.groups.get(request.group_id)
    if found is None and request.member_epoch == JOIN_EPOCH:
        group = ShareGroup(request.group_id)
    else:
        group = find_share_group(shard, request.group_id)
    transition.reply(ticket, heartbeat(shard, transition, group, event))
    return transition.result()


def _fence(
    shard: "ShardState", transition: Transition, group: ShareGroup, member: ShareMember
) -> None:
    """Remove a member; the next heartbeat of anybody computes a target (rule 389)."""
    names = group.counts_with(member, None)
    transition.records += member_tombstones(group.group_id, member.member_id)
    transition.records.append(
        records.group_record(group.group_id, group.group_epoch + 1, shard.metadata.hash_of(names))
    )


def _describe(shard: "ShardState", event: DescribeShareGroup, ticket: Ticket, now: Now) -> Result:
    del now
    group = find_share_group(shard, event.group_id)
    described = DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=ASSIGNOR,
        members=[_described(shard, member) for member in group.members.values()],
    )
    return Result(replies=((ticket, described),))


def _described(shard: "ShardState", member: ShareMember) -> Member:
    topics = []
    for topic_id, partitions in member.assigned.items():
        topic = shard.metadata.topic_by_id(topic_id)
        if topic is not None:
            topics.append(
                TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=[*partitions])
            )
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=[*member.subscribed_topic_names],
        assignment=Assignment(topic_partitions=topics),
    )


# --- Share partitions ---------------------------------------------------------------------------


def _write_states(
    group: ShareGroup, states: StatePartitions, now: Now, ticket: Ticket, answer: object
) -> Result:
    group.states_changed_ms = now.wall_ms
    record = records.states_record(group.group_id, states)
    return Result((record,), ((ticket, answer),))


def _on_initialized(
    shard: "ShardState", event: StatesInitialized, ticket: Ticket, now: Now
) -> Result:
    group = shard.groups.get(event.group_id)
    if not isinstance(group, ShareGroup):
        return Result(replies=((ticket, None),))
    if event.is_done:
        states = with_initialized(group.states, event.partitions, shard.metadata)
    elif group.states is None:
        return Result(replies=((ticket, None),))
    else:
        states = with_failed(group.states, event.partitions)
    return _write_states(group, states, now, ticket, None)


def _list_states(shard: "ShardState", event: ListShareStates, ticket: Ticket, now: Now) -> Result:
    del now
    group = shard.groups.get(event.group_id)
    states = group.states if isinstance(group, ShareGroup) else None
    found = {} if states is None else dict(states.initialized)
    return Result(replies=((ticket, found),))


def _alter(shard: "ShardState", event: AlterShareOffsets, ticket: Ticket, now: Now) -> Result:
    found = shard.groups.get(event.group_id)
    group = ShareGroup(event.group_id) if found is None else _as_share_group(found)
    group.check_delete()
    topics: dict[UUID, TopicState] = {}
    for topic_id, index in event.start_offsets:
        topic = shard.metadata.topic_by_id(topic_id)
        state = TopicState("" if topic is None else topic.name, (index,))
        topics[topic_id] = topics[topic_id] | state if topic_id in topics else state
    plan = InitializeStates(event.group_id, group.group_epoch, dict(event.start_offsets))
    if not topics:
        return Result(replies=((ticket, plan),))
    return _write_states(group, with_initializing(group.states, topics), now, ticket, plan)


def _delete_offsets(
    shard: "ShardState", event: DeleteShareOffsets, ticket: Ticket, now: Now
) -> Result:
    group = find_share_group(shard, event.group_id)
    group.check_delete()
    states = group.states
    if states is None:
        return Result(replies=((ticket, DeletedStates({}, event.topic_ids or ())),))
    if event.topic_ids is None:
        states, topics = all_deleting(states, shard.metadata)
        return _write_states(group, states, now, ticket, DeletedStates(topics))
    topics = {}
    unknown = []
    for topic_id in event.topic_ids:
        topic = shard.metadata.topic_by_id(topic_id)
        if topic_id in states.initialized:
            topics[topic_id] = states.initialized[topic_id]
        elif topic_id in states.deleting and topic is not None:
            topics[topic_id] = TopicState(topic.name, tuple(range(len(topic.partitions))))
        else:
            unknown.append(topic_id)
    states = StatePartitions(
        states.initializing,
        {each: state for each, state in states.initialized.items() if each not in topics},
        {**states.deleting, **{each: state.name for each, state in topics.items()}},
    )
    return _write_states(group, states, now, ticket, DeletedStates(topics, tuple(unknown)))


def _on_deleted(
    shard: "ShardState", event: ShareOffsetsDeleted, ticket: Ticket, now: Now
) -> Result:
    group = shard.groups.get(event.group_id)
    if not isinstance(group, ShareGroup) or group.states is None:
        return Result(replies=((ticket, None),))
    return _write_states(group, without_deleted(group.states, event.topic_ids), now, ticket, None)


def states_of_deleted_topics(shard: "ShardState") -> list[StoredRecord]:
    """Return the records that take deleted topics out of all groups' share partitions."""
    found = []
    for group in shard.groups.values():
        if isinstance(group, ShareGroup) and group.states is not None:
            states = without_topics(group.states, shard.metadata)
            if states is not None:
                found.append(records.states_record(group.group_id, states))
    return found


# --- Timers -------------------------------------------------------------------------------------


def _on_timer(shard: "ShardState", key: TimerKey, now: Now) -> Result:
    _, group_id, member_id = key
    group = shard.groups[group_id]
    member = group.members.get(member_id) if isinstance(group, ShareGroup) else None
    if member is None:
        return NOTHING
    assert isinstance(group, ShareGroup)
    transition = shard.transition(now)
    transition.schedule(key, RETRY_MS)
    _fence(shard, transition, group, member)
    return transition.result()


def _on_loaded(shard: "ShardState", transition: Transition, group: ShareGroup) -> None:
    """Give every member its whole session, and what is being initialised time for that."""
    group.states_changed_ms = transition.now.wall_ms
    timeout_ms = shard.metadata.group_config(group.group_id).share_session_timeout_ms
    for member_id in group.members:
        transition.schedule(session_timer(group.group_id, member_id), timeout_ms)


# --- Replay -------------------------------------------------------------------------------------


def _found(shard: "ShardState", group_id: str) -> ShareGroup | None:
    group = shard.groups.get(group_id)
    return group if isinstance(group, ShareGroup) else None


def _made(shard: "ShardState", group_id: str) -> ShareGroup:
    """Return the group, in place of a classic one that was there for its offsets alone."""
    group = shard.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None:
        shard.remove(group)
    made = shard.groups[group_id] = ShareGroup(group_id)
    return made


def _put(shard: "ShardState", group: ShareGroup, member: ShareMember) -> None:
    before = set(group.topic_counts)
    group.put_member(member)
    _hear(shard, group, before)


def _hear(shard: "ShardState", group: ShareGroup, before: set[str]) -> None:
    """Have the group hear of the topics that it reads now, and of no others."""
    for topic in sorted(before - group.topic_counts.keys()):
        shard.subscribers.discard(topic, group.group_id)
    for topic in sorted(group.topic_counts.keys() - before):
        shard.subscribers.add(topic, group.group_id)


def _replay_member(
    shard: "ShardState", record: StoredRecord, key: stored.ShareGroupMemberMetadataKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None and key.member_id in group.members:
            before = set(group.topic_counts)
            group.remove_member(key.member_id)
            _hear(shard, group, before)
            shard.timers.cancel(session_timer(key.group_id, key.member_id))
        return
    assert isinstance(value, stored.ShareGroupMemberMetadataValue)
    group = _made(shard, key.group_id)
    member = group.members.get(key.member_id) or ShareMember(member_id=key.member_id)
    _put(shard, group, records.with_metadata(member, value))


def _replay_group(
    shard: "ShardState", record: StoredRecord, key: stored.ShareGroupMetadataKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None:
            before = set(group.topic_counts)
            group.topic_counts = {}
            _hear(shard, group, before)
            shard.remove(group)
        return
    assert isinstance(value, stored.ShareGroupMetadataValue)
    group = _made(shard, key.group_id)
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _replay_target_epoch(
    shard: "ShardState", record: StoredRecord, key: stored.ShareGroupTargetAssignmentMetadataKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None:
            group.target_epoch, group.target_timestamp_ms = NO_TARGET_EPOCH, 0
        return
    assert isinstance(value, stored.ShareGroupTargetAssignmentMetadataValue)
    group = _made(shard, key.group_id)
    group.target_epoch = value.assignment_epoch
    group.target_timestamp_ms = value.assignment_timestamp


def _replay_target(
    shard: "ShardState", record: StoredRecord, key: stored.ShareGroupTargetAssignmentMemberKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None:
            group.targets.pop(key.member_id, None)
        return
    assert isinstance(value, stored.ShareGroupTargetAssignmentMemberValue)
    group = _made(shard, key.group_id)
    group.targets[key.member_id] = records.partitions_of(value.topic_partitions)


def _replay_current(
    shard: "ShardState", record: StoredRecord, key: stored.ShareGroupCurrentMemberAssignmentKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        member = None if group is None else group.members.get(key.member_id)
        if group is not None and member is not None:
            gone = records.with_assignment(
                member,
                stored.ShareGroupCurrentMemberAssignmentValue(
                    member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH
                ),
            )
            _put(shard, group, gone)
        return
    assert isinstance(value, stored.ShareGroupCurrentMemberAssignmentValue)
    group = _made(shard, key.group_id)
    member = group.members.get(key.member_id) or ShareMember(member_id=key.member_id)
    _put(shard, group, records.with_assignment(member, value))


def _replay_states(
    shard: "ShardState", record: StoredRecord, key: stored.ShareGroupStatePartitionMetadataKey
) -> None:
    value: Any = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None:
            group.states = None
        return
    assert isinstance(value, stored.ShareGroupStatePartitionMetadataValue)
    _made(shard, key.group_id).states = records.states_of(value)


SHARE = Part(
    kind=GroupKind.SHARE,
    handlers={
        ShareHeartbeat: _on_heartbeat,
        DescribeShareGroup: _describe,
        StatesInitialized: _on_initialized,
        ListShareStates: _list_states,
        AlterShareOffsets: _alter,
        DeleteShareOffsets: _delete_offsets,
        ShareOffsetsDeleted: _on_deleted,
    },
    replays={
        stored.ShareGroupMemberMetadataKey: _replay_member,
        stored.ShareGroupMetadataKey: _replay_group,
        stored.ShareGroupTargetAssignmentMetadataKey: _replay_target_epoch,
        stored.ShareGroupTargetAssignmentMemberKey: _replay_target,
        stored.ShareGroupCurrentMemberAssignmentKey: _replay_current,
        stored.ShareGroupStatePartitionMetadataKey: _replay_states,
    },
    on_timer=_on_timer,
    on_loaded=_on_loaded,
    new_target=new_target,
    topics_deleted=states_of_deleted_topics,
)
