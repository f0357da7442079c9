"""The join phase of a classic group: when it starts, whom it waits for, how it ends.

After Kafka's GroupMetadataManager (rules 131-138). Every function here is sync and total: it
leaves the group in a state whose timer is set, so that no parked ticket waits for ever.
"""

from kafkalite.group.classic.group import ClassicGroup, Member
from kafkalite.group.classic.states import GroupState
from kafkalite.group.classic.storing import store_empty
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.join_group import JoinGroupResponse
from kafkalite.wire.messages.sync_group import SyncGroupResponse

EMPTY_RETRY_MS = 1_000
"""When to try again to store that a group is empty; nobody waits for it."""


def rebalance_or_complete(transition: Transition, group: ClassicGroup) -> None:
    """Start a rebalance, or if one is under way, see whether its join phase is over."""
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_join_if_all_joined(transition, group)
    else:
        prepare_rebalance(transition, group)


def prepare_rebalance(transition: Transition, group: ClassicGroup) -> None:
    """Enter the join phase; an empty group gets time for more members to come (rule 131)."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        _abort_pending_syncs(transition, group)
    group.pending_syncs.clear()
    transition.timers.cancel((TimerKind.SYNC, group.group_id, ""))
    is_initial = group.state is GroupState.EMPTY
    group.transition_to(GroupState.PREPARING_REBALANCE, now_wall_ms=transition.now.wall_ms)
    group.is_initial_rebalance = is_initial
    if not is_initial:
        if group.has_all_joined:
            complete_join(transition, group)
        else:
            transition.schedule((TimerKind.JOIN, group.group_id, ""), group.rebalance_timeout_ms)
        return
    delay_ms = transition.settings.group_initial_rebalance_delay_ms
    if delay_ms <= 0:
        complete_join(transition, group)
        return
    group.new_member_added = False
    group.initial_delay_ms = delay_ms
    group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    transition.schedule((TimerKind.JOIN, group.group_id, ""), delay_ms)


def complete_join_if_all_joined(transition: Transition, group: ClassicGroup) -> None:
    """End the join phase if it waits for nobody; the initial one ends by its timer alone."""
    assert group.state is GroupState.PREPARING_REBALANCE
    if not group.is_initial_rebalance and group.has_all_joined:
        complete_join(transition, group)


def on_join_timer(transition: Transition, group: ClassicGroup) -> None:
    """End the join phase, unless it is the initial one and somebody has come in the meantime."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return  # the group became EMPTY
    if not group.is_initial_rebalance or not group.new_member_added:
        complete_join(transition, group)
        return
    remaining_ms = group.initial_remaining_ms
    if remaining_ms == 0:
        complete_join(transition, group)
        return
    group.new_member_added = False
    next_delay_ms = min(transition.settings.group_initial_rebalance_delay_ms, remaining_ms)
    group.initial_remaining_ms = max(remaining_ms - group.initial_delay_ms, 0)
    group.initial_delay_ms = next_delay_ms
    transition.schedule((TimerKind.JOIN, group.group_id, ""), next_delay_ms)


def complete_join(transition: Transition, group: ClassicGroup) -> None:
    """Begin the next generation with those who joined (rules 132-134).

    Absent dynamic members are removed, absent static ones stay. If nobody joined but static
    members are left, the phase begins again, until their sessions expire. If nobody is left, the
    group becomes EMPTY by the record of that.
    """
    assert group.state is GroupState.PREPARING_REBALANCE
    transition.timers.cancel((TimerKind.JOIN, group.group_id, ""))
    absent = [
        member.member_id
        for member in group.members.values()
        if member.group_instance_id is None and member.member_id not in group.join_tickets
    ]
    for member_id in absent:
        group.remove(member_id)
        transition.timers.cancel((TimerKind.SESSION, group.group_id, member_id))
    if not group.members:
        store_empty(transition, group)
        # Of no use once the record is replayed; if the log refuses it, it is tried again.
        transition.schedule((TimerKind.JOIN, group.group_id, ""), EMPTY_RETRY_MS)
        return
    if not group.elect_joined_leader():
        transition.schedule((TimerKind.JOIN, group.group_id, ""), group.rebalance_timeout_ms)
        return
    group.start_generation(now_wall_ms=transition.now.wall_ms)
    for member in group.members.values():
        ticket = group.join_tickets.pop(member.member_id, None)
        if ticket is not None:
            transition.reply(ticket, join_answer(group, member))
        member.is_new = False
        reset_session(transition, group, member)
        group.pending_syncs[member.member_id] = None
    transition.schedule((TimerKind.SYNC, group.group_id, ""), group.rebalance_timeout_ms)


def on_sync_timer(transition: Transition, group: ClassicGroup) -> None:
    """Remove the members that never asked for their assignment (rule 138).

    If all have and there is still none, its record was refused, and the members begin again.
    """
    assert group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
    if group.state is GroupState.STABLE and not group.pending_syncs:
        return
    for member_id in [*group.pending_syncs]:
        group.remove(member_id)
        transition.timers.cancel((TimerKind.SESSION, group.group_id, member_id))
    prepare_rebalance(transition, group)


def remove_member(transition: Transition, group: ClassicGroup, member: Member) -> None:
    """Take a member out, and answer what it waits for; the caller sees to the rebalance."""
    ticket = group.join_tickets.pop(member.member_id, None)
    if ticket is not None:
        # A client that is still there will try again as a new member.
        transition.reply(ticket, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    ticket = group.sync_tickets.pop(member.member_id, None)
    if ticket is not None:
        transition.reply(ticket, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    transition.timers.cancel((TimerKind.SESSION, group.group_id, member.member_id))
    group.remove(member.member_id)


def join_answer(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """Return what a member of the current generation is told; members only if it leads."""
    is_leader = member.member_id == group.leader_id
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=group.members_for_leader() if is_leader else [],
    )


def reset_session(transition: Transition, group: ClassicGroup, member: Member) -> None:
    """Give the member its whole session timeout from now (rule 141)."""
    transition.schedule(
        (TimerKind.SESSION, group.group_id, member.member_id), member.session_timeout_ms
    )


def _abort_pending_syncs(transition: Transition, group: ClassicGroup) -> None:
    """Have those who wait for an assignment join again."""
    for member in group.members.values():
        member.assignment = b""
        ticket = group.sync_tickets.pop(member.member_id, None)
        if ticket is not None:
            transition.reply(ticket, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            reset_session(transition, group, member)
