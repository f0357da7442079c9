"""Streams groups in a shard: StreamsGroupHeartbeat and -Describe, timers, records 17 and 19 to 23.

JoinGroup makes an empty streams group a classic one; the classic protocol's other requests know no
member of it (rule 481).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import NOTHING, Now, Result, StoredRecord, Ticket
from kafkalite.group.classic.join import JoinGroup
from kafkalite.group.classic.part import join_classic
from kafkalite.group.kinds import EventOfKind, GroupKind
from kafkalite.group.part import Part
from kafkalite.group.streams import records
from kafkalite.group.streams.describe import described_group
from kafkalite.group.streams.group import StreamsGroup, member_timers
from kafkalite.group.streams.heartbeat import (
    HeartbeatAnswer,
    StreamsHeartbeat,
    as_streams_group,
    heartbeat,
)
from kafkalite.group.streams.member import MemberState, StreamsMember
from kafkalite.group.streams.requests import LEAVE_EPOCH
from kafkalite.group.streams.target import build_target, new_target, write_target
from kafkalite.group.streams.topology import Topology
from kafkalite.group.transition import TimerKey, TimerKind, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.streams_group_describe import DescribedGroup
from kafkalite.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kafkalite.wire.stored import streams_group as stored

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState

RETRY_MS = 500
"""After this time a member is fenced again whose fencing the log refused; Kafka's own number."""


@dataclass(slots=True)
class DescribeStreamsGroup(EventOfKind[DescribedGroup]):
    """One group of a StreamsGroupDescribe request; answered with a DescribedGroup."""

    kind = GroupKind.STREAMS

    group_id: str


def _on_heartbeat(shard: "ShardState", event: StreamsHeartbeat, ticket: Ticket, now: Now) -> Result:
    transition = shard.transition(now)
    is_leaving = event.request.member_epoch == LEAVE_EPOCH
    answer = _leave(shard, transition, event) if is_leaving else heartbeat(shard, transition, event)
    transition.reply(ticket, answer)
    return transition.result()


def _leave(shard: "ShardState", transition: Transition, event: StreamsHeartbeat) -> HeartbeatAnswer:
    """Let a member go (rule 489)."""
    request = event.request
    group = _existing(shard, request.group_id)
    if request.shutdown_application and group.soft.shutdown_member_id is None:
        group.soft.shutdown_member_id = request.member_id
    _fence(transition, group, group.member(request.member_id))
    response = StreamsGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return HeartbeatAnswer(response=response, missing_topics={})


def _fence(transition: Transition, group: StreamsGroup, member: StreamsMember) -> None:
    """Remove a member; the next heartbeat of anybody gives its tasks to others."""
    transition.records += records.member_tombstones(group.group_id, member.member_id)
    transition.records.append(
        records.metadata_record(
            group.group_id,
            epoch=group.group_epoch + 1,
            metadata_hash=group.metadata_hash,
            validated_topology_epoch=group.validated_topology_epoch,
            assignment_configs=group.assignment_configs,
        )
    )


def _describe(shard: "ShardState", event: DescribeStreamsGroup, ticket: Ticket, now: Now) -> Result:
    del now
    return Result(replies=((ticket, described_group(_existing(shard, event.group_id))),))


def _existing(shard: "ShardState", group_id: str) -> StreamsGroup:
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return as_streams_group(group)


def _on_join(shard: "ShardState", event: JoinGroup, ticket: Ticket, now: Now) -> Result:
    """Make an empty group a classic one; its offsets stay."""
    group = as_streams_group(shard.groups[event.request.group_id])
    if group.members:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"group {group.group_id} is a streams group"
        )
    del shard.groups[group.group_id]
    try:
        result = join_classic(shard, event, ticket, now)
    except KafkaError:
        shard.groups[group.group_id] = group
        raise
    _set_topology(shard, group, None)
    for key in group.timers():
        shard.timers.cancel(key)
    result.records = [*group.tombstones(), *result.records]
    return result


# --- Timers -------------------------------------------------------------------------------------


def _on_timer(shard: "ShardState", key: TimerKey, now: Now) -> Result:
    kind, group_id, member_id = key
    transition = shard.transition(now)
    group = as_streams_group(shard.groups[group_id])
    if kind is TimerKind.INITIAL_REBALANCE:
        _end_initial_delay(shard, transition, group)
        return transition.result()
    member = group.members.get(member_id)
    if member is None:
        return NOTHING
    if kind is TimerKind.REBALANCE and not _is_late(group, member):
        return NOTHING
    transition.schedule(key, RETRY_MS)
    _fence(transition, group, member)
    return transition.result()


def _is_late(group: StreamsGroup, member: StreamsMember) -> bool:
    since = group.soft.revoking_since.get(member.member_id)
    return member.state is MemberState.UNREVOKED_TASKS and member.member_epoch == since


def _end_initial_delay(shard: "ShardState", transition: Transition, group: StreamsGroup) -> None:
    """Compute the target for all that joined meanwhile (rule 473).

    Where the topology is not configured, or topics may be others, the next heartbeat does it.
    """
    configured = group.soft.configured
    is_due = group.group_epoch > group.assignment_epoch
    is_computing = group.group_id in shard.new_targets
    if group.is_empty or configured is None or not is_due or is_computing:
        return
    work = build_target(group.targets, group.members, configured, group.assignment_configs)
    write_target(shard, transition, group, group.group_epoch, work)


def _on_loaded(shard: "ShardState", transition: Transition, group: StreamsGroup) -> None:
    """Give every member its whole session, and who gives up tasks its whole time for that."""
    config = shard.metadata.group_config(group.group_id)
    for member in group.members.values():
        session, rebalance = member_timers(group.group_id, member.member_id)
        transition.schedule(session, config.streams_session_timeout_ms)
        if member.state is MemberState.UNREVOKED_TASKS:
            group.soft.revoking_since[member.member_id] = member.member_epoch
            transition.schedule(rebalance, member.rebalance_timeout_ms)


# --- Replay (rule 486) --------------------------------------------------------------------------


def _found(shard: "ShardState", group_id: str) -> StreamsGroup | None:
    group = shard.groups.get(group_id)
    return group if isinstance(group, StreamsGroup) else None


def _made(shard: "ShardState", group_id: str) -> StreamsGroup:
    """Return the group, in place of a classic one that was there for its offsets alone."""
    group = shard.groups.get(group_id)
    if isinstance(group, StreamsGroup):
        return group
    if group is not None:
        shard.remove(group)
    made = shard.groups[group_id] = StreamsGroup(group_id)
    return made


def _replay_metadata(
    shard: "ShardState", record: StoredRecord, key: stored.StreamsGroupMetadataKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None:
            _set_topology(shard, group, None)
            shard.remove(group)
        return
    assert isinstance(value, stored.StreamsGroupMetadataValue)
    group = _made(shard, key.group_id)
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = {
        config.key: config.value for config in value.last_assignment_configs or ()
    }


def _replay_member(
    shard: "ShardState", record: StoredRecord, key: stored.StreamsGroupMemberMetadataKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None and key.member_id in group.members:
            group.remove_member(key.member_id)
            for timer in member_timers(key.group_id, key.member_id):
                shard.timers.cancel(timer)
        return
    assert isinstance(value, stored.StreamsGroupMemberMetadataValue)
    group = _made(shard, key.group_id)
    before = group.members.get(key.member_id) or StreamsMember(member_id=key.member_id)
    group.put_member(records.with_metadata(before, value))


def _replay_target_metadata(
    shard: "ShardState", record: StoredRecord, key: stored.StreamsGroupTargetAssignmentMetadataKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None:
            group.assignment_epoch, group.assignment_timestamp_ms = NO_TARGET_EPOCH, 0
        return
    assert isinstance(value, stored.StreamsGroupTargetAssignmentMetadataValue)
    group = _made(shard, key.group_id)
    group.assignment_epoch = value.assignment_epoch
    group.assignment_timestamp_ms = value.assignment_timestamp


def _replay_target(
    shard: "ShardState", record: StoredRecord, key: stored.StreamsGroupTargetAssignmentMemberKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None:
            group.targets.pop(key.member_id, None)
        return
    assert isinstance(value, stored.StreamsGroupTargetAssignmentMemberValue)
    _made(shard, key.group_id).targets[key.member_id] = records.target_of(value)


def _replay_current(
    shard: "ShardState", record: StoredRecord, key: stored.StreamsGroupCurrentMemberAssignmentKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None and key.member_id in group.members:
            group.put_member(records.without_assignment(group.members[key.member_id]))
        return
    assert isinstance(value, stored.StreamsGroupCurrentMemberAssignmentValue)
    group = _made(shard, key.group_id)
    before = group.members.get(key.member_id) or StreamsMember(member_id=key.member_id)
    group.put_member(records.with_assignment(before, value))


def _replay_topology(
    shard: "ShardState", record: StoredRecord, key: stored.StreamsGroupTopologyKey
) -> None:
    value = record.value
    if value is None:
        group = _found(shard, key.group_id)
        if group is not None:
            _set_topology(shard, group, None)
        return
    assert isinstance(value, stored.StreamsGroupTopologyValue)
    _set_topology(shard, _made(shard, key.group_id), Topology(value))


def _set_topology(shard: "ShardState", group: StreamsGroup, topology: Topology | None) -> None:
    """Have the group hear of the topics that it needs now, and of no others."""
    for topic in () if group.topology is None else group.topology.required_topics:
        shard.subscribers.discard(topic, group.group_id)
    group.topology = topology
    for topic in () if topology is None else topology.required_topics:
        shard.subscribers.add(topic, group.group_id)


NO_TARGET_EPOCH = -1

STREAMS = Part(
    kind=GroupKind.STREAMS,
    handlers={StreamsHeartbeat: _on_heartbeat, DescribeStreamsGroup: _describe},
    replays={
        stored.StreamsGroupMetadataKey: _replay_metadata,
        stored.StreamsGroupMemberMetadataKey: _replay_member,
        stored.StreamsGroupTargetAssignmentMetadataKey: _replay_target_metadata,
        stored.StreamsGroupTargetAssignmentMemberKey: _replay_target,
        stored.StreamsGroupCurrentMemberAssignmentKey: _replay_current,
        stored.StreamsGroupTopologyKey: _replay_topology,
    },
    on_timer=_on_timer,
    on_loaded=_on_loaded,
    classic_protocol={JoinGroup: _on_join},
    new_target=new_target,
)
