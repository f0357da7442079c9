"""Staying in and leaving a classic group: heartbeats, leaves, sessions (rules 140-142)."""

from dataclasses import dataclass

from kafkalite.coordinator.shard import Event
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.rebalance import (
    complete_join_if_all_joined,
    prepare_rebalance,
    remove_member,
)
from kafkalite.group.classic.states import GroupState
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkalite.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

FIRST_VERSION_WITH_SEVERAL_MEMBERS = 3


@dataclass(slots=True)
class Heartbeat(Event[HeartbeatResponse]):
    """A Heartbeat request."""

    request: HeartbeatRequest


@dataclass(slots=True)
class LeaveGroup(Event[LeaveGroupResponse]):
    """A LeaveGroup request; v0-2 names one member in another field."""

    request: LeaveGroupRequest
    api_version: int


def leave(
    transition: Transition, group: ClassicGroup, request: LeaveGroupRequest, api_version: int
) -> LeaveGroupResponse:
    """Remove the members that the request names; v0-2 names one (rule 142).

    Raises:
        KafkaError: that one member could not be removed (v0-2); nothing was changed.
    """
    members_before = len(group.members)
    answers = []
    if api_version < FIRST_VERSION_WITH_SEVERAL_MEMBERS:
        _leave_one(transition, group, request.member_id, None)
    else:
        answers = [_try_to_leave(transition, group, member) for member in request.members]
    _go_on(transition, group, is_smaller=len(group.members) < members_before)
    return LeaveGroupResponse(error_code=ErrorCode.NONE, members=answers)


def on_session_timer(transition: Transition, group: ClassicGroup, member_id: str) -> None:
    """Remove a silent member, or take back an id that was never used (rule 141).

    Who waits in JoinGroup or SyncGroup cannot heartbeat and is not silent, but a member that was
    never answered has only so long (rule 136).
    """
    if group.pending_joins.pop(member_id, None) is not None:
        _go_on(transition, group, is_smaller=False)
        return
    member = group.members.get(member_id)
    if member is None:
        return  # of a consumer group that did not come about
    is_waiting = member_id in group.join_tickets or member_id in group.sync_tickets
    if is_waiting and not member.is_new:
        return
    remove_member(transition, group, member)
    _go_on(transition, group, is_smaller=True)


def on_disconnect(transition: Transition, group: ClassicGroup, connection_id: int) -> None:
    """Remove the dynamic members whose last JoinGroup came over a connection that has closed.

    For tests: a killed consumer blocks its group no longer than that.
    """
    gone = [
        member
        for member in group.members.values()
        if member.connection_id == connection_id and member.group_instance_id is None
    ]
    for member in gone:
        remove_member(transition, group, member)
    pending = [key for key, value in group.pending_joins.items() if value == connection_id]
    for member_id in pending:
        del group.pending_joins[member_id]
        transition.timers.cancel((TimerKind.SESSION, group.group_id, member_id))
    _go_on(transition, group, is_smaller=bool(gone))


def _try_to_leave(
    transition: Transition, group: ClassicGroup, member: MemberIdentity
) -> MemberResponse:
    answer = MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=ErrorCode.NONE,
    )
    try:
        _leave_one(transition, group, member.member_id, member.group_instance_id)
    except KafkaError as error:
        answer.error_code = error.code
    return answer


def _leave_one(
    transition: Transition, group: ClassicGroup, member_id: str, group_instance_id: str | None
) -> None:
    if not member_id and group_instance_id is not None:
        # An operator removes a static member whose id he cannot know (KIP-345).
        member_id = group.static_members.get(group_instance_id, "")
    if group.pending_joins.pop(member_id, None) is not None:
        transition.timers.cancel((TimerKind.SESSION, group.group_id, member_id))
        return
    remove_member(transition, group, group.check_member(member_id, group_instance_id))


def _go_on(transition: Transition, group: ClassicGroup, *, is_smaller: bool) -> None:
    """See what somebody's leaving means for the others; a handed-out id is only waited for."""
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_join_if_all_joined(transition, group)
    elif is_smaller:
        prepare_rebalance(transition, group)
