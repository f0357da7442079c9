"""SyncGroup for one classic group: handing out the leader's assignment (rules 137-139)."""

from dataclasses import dataclass

from kafkalite.coordinator.shard import Event, Ticket
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.rebalance import reset_session
from kafkalite.group.classic.states import GroupState
from kafkalite.group.classic.storing import store
from kafkalite.group.transition import Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


@dataclass(slots=True)
class SyncGroup(Event[SyncGroupResponse]):
    """A SyncGroup request."""

    request: SyncGroupRequest


def sync(
    transition: Transition, group: ClassicGroup, request: SyncGroupRequest, ticket: Ticket
) -> None:
    """Answer at once, or park the ticket until the leader has spoken.

    The leader's request becomes a record, and with it the group STABLE; all tickets are answered
    behind that record.

    Raises:
        KafkaError: refused; nothing was changed.
    """
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"group {group.group_id} is at generation {group.generation}, "
            f"{request.member_id} at {request.generation_id}",
        )
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol_name
    ):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.group_id} has protocol {group.protocol_type}/{group.protocol_name}",
        )
    if group.state is GroupState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.group_id} is rebalancing")
    group.pending_syncs.pop(member.member_id, None)
    if group.state is GroupState.STABLE:
        transition.reply(ticket, _answer(group, member.assignment))
        return
    assert group.state is GroupState.COMPLETING_REBALANCE
    before = group.sync_tickets.get(member.member_id)
    if before is not None:
        # Asked again on another connection: whoever listens on the old one is to join anew.
        transition.reply(before, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    group.sync_tickets[member.member_id] = ticket
    if member.member_id == group.leader_id:
        _distribute_assignment(transition, group, request)


def _distribute_assignment(
    transition: Transition, group: ClassicGroup, request: SyncGroupRequest
) -> None:
    """Store the leader's assignment and give everybody theirs; b"" for whom it left out."""
    assignments = {a.member_id: bytes(a.assignment) for a in request.assignments}
    store(transition, group, assignments=assignments)
    for member in group.members.values():
        ticket = group.sync_tickets.pop(member.member_id, None)
        if ticket is not None:
            transition.reply(ticket, _answer(group, assignments.get(member.member_id, b"")))
            reset_session(transition, group, member)


def _answer(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )


def _differs(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known
