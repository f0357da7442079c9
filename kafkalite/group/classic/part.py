"""Classic groups in a shard: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and the record of type 2.

A group of another kind makes of these requests what its own part says (`Part.classic_protocol`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import Event, Now, Result, StoredRecord, Ticket
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.join import JoinGroup, check_session_timeout, join
from kafkalite.group.classic.membership import (
    Heartbeat,
    LeaveGroup,
    leave,
    on_disconnect,
    on_session_timer,
)
from kafkalite.group.classic.rebalance import (
    on_join_timer,
    on_sync_timer,
    prepare_rebalance,
    reset_session,
)
from kafkalite.group.classic.states import GroupState
from kafkalite.group.classic.sync import SyncGroup, sync
from kafkalite.group.kinds import Group, GroupKind
from kafkalite.group.part import Part
from kafkalite.group.transition import TimerKey, TimerKind, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.heartbeat import HeartbeatResponse
from kafkalite.wire.stored.group_metadata import GroupMetadataKey, GroupMetadataValue

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState


@dataclass(slots=True, frozen=True)
class ConnectionClosed(Event[None]):
    """A client went away."""

    connection_id: int


def unknown_member(group_id: str) -> KafkaError:
    """Return the refusal of somebody who says to be a member of a group that is not there."""
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {group_id}")


def _leave_to_others(
    shard: "ShardState", group: Group, event: object, ticket: Ticket, now: Now
) -> Result:
    """Have the part of another kind of group decide."""
    theirs = shard.classic_protocols[group.kind].get(type(event))
    if theirs is not None:
        return theirs(shard, event, ticket, now)
    is_join = isinstance(event, JoinGroup)
    raise KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL if is_join else ErrorCode.UNKNOWN_MEMBER_ID,
        f"group {group.group_id} is a {group.kind.value} group",
    )


def _heartbeat(shard: "ShardState", event: Heartbeat, ticket: Ticket, now: Now) -> Result:
    """Keep a member's session."""
    request = event.request
    group = shard.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        if group is None:
            raise unknown_member(request.group_id)
        return _leave_to_others(shard, group, event, ticket, now)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"group {request.group_id} is at generation {group.generation}, "
            f"{request.member_id} at {request.generation_id}",
        )
    shard.timers.schedule(
        (TimerKind.SESSION, request.group_id, request.member_id),
        now.monotonic_ms + member.session_timeout_ms,
    )
    is_rebalancing = group.state is GroupState.PREPARING_REBALANCE
    code = ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE
    # As in Kafka a heartbeat does not wait for replicas that are slow: it is about the session.
    return Result(replies=((ticket, HeartbeatResponse(error_code=code)),), at_once=True)


def join_classic(shard: "ShardState", event: JoinGroup, ticket: Ticket, now: Now) -> Result:
    """Have somebody join a classic group, which is made for its first member."""
    request = event.request
    group = shard.groups.get(request.group_id)
    check_session_timeout(request.session_timeout_ms, shard.settings)
    transition = shard.transition(now)
    if group is None:
        if request.member_id:
            raise unknown_member(request.group_id)
        # Made by somebody who wants to be its first member, and lost with this broker until
        # there is a generation or an offset to remember.
        group = ClassicGroup(request.group_id)
    assert isinstance(group, ClassicGroup)
    join(transition, group, event, ticket)
    shard.groups[request.group_id] = group
    return transition.result()


def _join(shard: "ShardState", event: JoinGroup, ticket: Ticket, now: Now) -> Result:
    group = shard.groups.get(event.request.group_id)
    if group is not None and not isinstance(group, ClassicGroup):
        return _leave_to_others(shard, group, event, ticket, now)
    return join_classic(shard, event, ticket, now)


def _sync(shard: "ShardState", event: SyncGroup, ticket: Ticket, now: Now) -> Result:
    request = event.request
    group = shard.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        if group is None:
            raise unknown_member(request.group_id)
        return _leave_to_others(shard, group, event, ticket, now)
    transition = shard.transition(now)
    sync(transition, group, request, ticket)
    return transition.result()


def _leave(shard: "ShardState", event: LeaveGroup, ticket: Ticket, now: Now) -> Result:
    group = shard.groups.get(event.request.group_id)
    if not isinstance(group, ClassicGroup):
        if group is None:
            raise unknown_member(event.request.group_id)
        return _leave_to_others(shard, group, event, ticket, now)
    transition = shard.transition(now)
    transition.reply(ticket, leave(transition, group, event.request, event.api_version))
    return transition.result()


def _disconnect(shard: "ShardState", event: ConnectionClosed, ticket: Ticket, now: Now) -> Result:
    transition = shard.transition(now)
    for group in shard.groups.values():
        if isinstance(group, ClassicGroup):
            on_disconnect(transition, group, event.connection_id)
    transition.reply(ticket, None)
    return transition.result()


def _on_timer(shard: "ShardState", key: TimerKey, now: Now) -> Result:
    kind, group_id, member_id = key
    transition = shard.transition(now)
    group = shard.groups[group_id]
    assert isinstance(group, ClassicGroup)
    if kind is TimerKind.SESSION:
        on_session_timer(transition, group, member_id)
    elif kind is TimerKind.JOIN:
        on_join_timer(transition, group)
    elif kind in (TimerKind.BECAME_CLASSIC, TimerKind.BECAME_CLASSIC_STALE):
        for member in group.members.values():
            reset_session(transition, group, member)
        if kind is TimerKind.BECAME_CLASSIC_STALE and group.state is GroupState.STABLE:
            prepare_rebalance(transition, group)
    else:
        assert kind is TimerKind.SYNC
        on_sync_timer(transition, group)
    return transition.result()


def _on_loaded(shard: "ShardState", transition: Transition, group: ClassicGroup) -> None:
    """Give every member its whole session, and a group that is too large a rebalance."""
    for member in group.members.values():
        reset_session(transition, group, member)
    if len(group.members) > shard.settings.group_max_size:
        prepare_rebalance(transition, group)


def _replay(shard: "ShardState", record: StoredRecord, key: GroupMetadataKey) -> None:
    value = record.value
    group = shard.groups.get(key.group)
    if value is None:
        if group is not None and group.kind is GroupKind.CLASSIC:
            shard.remove(group)
        return
    assert isinstance(value, GroupMetadataValue)
    if not isinstance(group, ClassicGroup):
        if group is not None:
            shard.remove(group)
        group = ClassicGroup(key.group)
        shard.groups[key.group] = group
    group.restore(value)


def _rebalance(transition: Transition, group: ClassicGroup) -> None:
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        prepare_rebalance(transition, group)


CLASSIC = Part(
    kind=GroupKind.CLASSIC,
    handlers={
        Heartbeat: _heartbeat,
        JoinGroup: _join,
        SyncGroup: _sync,
        LeaveGroup: _leave,
        ConnectionClosed: _disconnect,
    },
    replays={GroupMetadataKey: _replay},
    on_timer=_on_timer,
    on_loaded=_on_loaded,
    rebalance=_rebalance,
)
