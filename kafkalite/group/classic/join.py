"""JoinGroup for one classic group: who may join, and what follows (rules 127-136, 143, 144)."""

from dataclasses import dataclass

from kafkalite.coordinator.shard import Event, Ticket
from kafkalite.group.classic.group import (
    NO_CONNECTION,
    ClassicGroup,
    Member,
    Protocols,
    protocols_of,
)
from kafkalite.group.classic.rebalance import (
    join_answer,
    prepare_rebalance,
    rebalance_or_complete,
    reset_session,
)
from kafkalite.group.classic.states import GroupState
from kafkalite.group.classic.storing import NEW_MEMBER_JOIN_TIMEOUT_MS, store
from kafkalite.group.settings import GroupSettings
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkalite.wire.messages.sync_group import SyncGroupResponse

FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_WITH_MEMBER_ID_REQUIRED = 4
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


@dataclass(slots=True)
class JoinGroup(Event[JoinGroupResponse]):
    """A JoinGroup request and what it needs from outside."""

    request: JoinGroupRequest
    api_version: int
    client_id: str
    client_host: str
    random_id: str
    """A new UUID, for the member id if the client has none (rule 128)."""
    connection_id: int = NO_CONNECTION
    principal: str = "User:ANONYMOUS"

    @property
    def new_member_id(self) -> str:
        """Return the id for a client that has none."""
        return f"{self.request.group_instance_id or self.client_id}-{self.random_id}"

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the rebalance timeout; v0 has none and uses the session timeout (rule 127)."""
        if self.api_version < FIRST_VERSION_WITH_REBALANCE_TIMEOUT:
            return int(self.request.session_timeout_ms)
        return int(self.request.rebalance_timeout_ms)

    def new_member(self, member_id: str, protocols: Protocols) -> Member:
        """Return the member that this request describes."""
        return Member(
            member_id=member_id,
            group_instance_id=self.request.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.request.session_timeout_ms,
            protocols=protocols,
            is_new=True,
            connection_id=self.connection_id,
        )


def check_session_timeout(session_timeout_ms: int, settings: GroupSettings) -> None:
    """Refuse a session timeout that the broker does not allow (rule 127).

    Raises:
        KafkaError: INVALID_SESSION_TIMEOUT.
    """
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not shortest <= session_timeout_ms <= longest:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"session timeout {session_timeout_ms} ms is not between group.min.session.timeout.ms="
            f"{shortest} and group.max.session.timeout.ms={longest}",
        )


def join(transition: Transition, group: ClassicGroup, event: JoinGroup, ticket: Ticket) -> None:
    """Answer at once, or park the ticket in the group and move it on.

    Raises:
        KafkaError: refused; nothing was changed.
    """
    request = event.request
    protocols = protocols_of(request.protocols)
    if not _has_room(group, request.member_id, transition.settings.group_max_size):
        _refuse_full_group(transition, group, request.member_id, ticket)
        return
    if not group.supports(request.protocol_type, protocols):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.group_id} of type {group.protocol_type!r} has no protocol in common "
            f"with {[name for name, _ in protocols]} of type {request.protocol_type!r}",
        )
    if request.member_id:
        _join_known(transition, group, event, protocols, ticket)
    elif request.group_instance_id is not None:
        _join_static(transition, group, event, request.group_instance_id, protocols, ticket)
    elif event.api_version >= FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
        _require_member_id(transition, group, event, ticket)
    else:
        _add(transition, group, event, event.new_member_id, protocols, ticket)


def _has_room(group: ClassicGroup, member_id: str, size_max: int) -> bool:
    """Whether the member may be in the next generation (rule 144).

    While the group rebalances, those who have joined are counted, so that of too many members the
    last to come back are left out (the setting may have been lowered).
    """
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        return member_id in group.join_tickets or len(group.join_tickets) < size_max
    return member_id in group.members or len(group.members) < size_max


def _refuse_full_group(
    transition: Transition, group: ClassicGroup, member_id: str, ticket: Ticket
) -> None:
    """Tell a member that the group is full; nobody waits for it any more."""
    if member_id in group.members:
        group.remove(member_id)
        transition.timers.cancel((TimerKind.SESSION, group.group_id, member_id))
    elif group.pending_joins.pop(member_id, None) is not None:
        transition.timers.cancel((TimerKind.SESSION, group.group_id, member_id))
    transition.reply(ticket, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
    if group.state is GroupState.PREPARING_REBALANCE:
        rebalance_or_complete(transition, group)


def _require_member_id(
    transition: Transition, group: ClassicGroup, event: JoinGroup, ticket: Ticket
) -> None:
    """Let a client come again with an id, so that a lost answer leaves no member behind."""
    member_id = event.new_member_id
    group.pending_joins[member_id] = event.connection_id
    transition.schedule(
        (TimerKind.SESSION, group.group_id, member_id), event.request.session_timeout_ms
    )
    transition.reply(
        ticket, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    )


def _add(
    transition: Transition,
    group: ClassicGroup,
    event: JoinGroup,
    member_id: str,
    protocols: Protocols,
    ticket: Ticket,
) -> None:
    """Add a member, which waits for the next generation."""
    group.new_member_added = True
    group.add(event.new_member(member_id, protocols), event.request.protocol_type)
    group.join_tickets[member_id] = ticket
    # It cannot heartbeat before it is answered. A client that gave up meanwhile leaves a member
    # that never comes back, so there is a limit all the same (rule 136).
    transition.schedule((TimerKind.SESSION, group.group_id, member_id), NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(transition, group)


def _join_known(
    transition: Transition,
    group: ClassicGroup,
    event: JoinGroup,
    protocols: Protocols,
    ticket: Ticket,
) -> None:
    """A client that has an id joins: for the first time, again, or after a lost answer."""
    request = event.request
    if request.member_id in group.pending_joins and request.group_instance_id is None:
        _add(transition, group, event, request.member_id, protocols, ticket)
        return
    member = group.check_member(request.member_id, request.group_instance_id)
    # The leader of a stable group joins again when something but its metadata has changed: the
    # number of partitions, say. Followers, and everybody who lost the first answer, just get it.
    may_repeat_answer = group.state is GroupState.COMPLETING_REBALANCE or (
        group.state is GroupState.STABLE and member.member_id != group.leader_id
    )
    if may_repeat_answer and member.protocols == protocols:
        transition.reply(ticket, join_answer(group, member))
        return
    _update(transition, group, member, event, protocols, ticket)
    rebalance_or_complete(transition, group)


def _update(
    transition: Transition,
    group: ClassicGroup,
    member: Member,
    event: JoinGroup,
    protocols: Protocols,
    ticket: Ticket,
) -> None:
    """Take over what a member says now, and park its ticket in place of any before."""
    group.update_protocols(member, protocols)
    member.rebalance_timeout_ms = event.rebalance_timeout_ms
    member.session_timeout_ms = event.request.session_timeout_ms
    member.connection_id = event.connection_id
    before = group.join_tickets.get(member.member_id)
    if before is not None:
        # The client asks again on another connection: whoever listens on the old one, if anybody,
        # is to join anew.
        transition.reply(
            before,
            JoinGroupResponse(
                error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id
            ),
        )
    group.join_tickets[member.member_id] = ticket


def _join_static(
    transition: Transition,
    group: ClassicGroup,
    event: JoinGroup,
    group_instance_id: str,
    protocols: Protocols,
    ticket: Ticket,
) -> None:
    """A static member starts: new, or in the place of its former self (rule 143, KIP-345)."""
    old_id = group.static_members.get(group_instance_id)
    if old_id is None:
        _add(transition, group, event, event.new_member_id, protocols, ticket)
        return
    old_leader_id = group.leader_id
    _fence(transition, group, old_id)
    member = event.new_member(event.new_member_id, protocols)
    member.is_new = False
    member.assignment = group.members[old_id].assignment
    group.replace(old_id, member)
    transition.timers.cancel((TimerKind.SESSION, group.group_id, old_id))
    reset_session(transition, group, member)
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        answer = join_answer(group, member)
        if event.api_version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
            answer.skip_assignment = member.member_id == group.leader_id
        else:
            # Named as follower it will not compute an assignment that nobody waits for.
            answer.leader = old_leader_id or ""
            answer.members = []
        store(transition, group)
        transition.reply(ticket, answer)
        return
    group.join_tickets[member.member_id] = ticket
    if group.state is GroupState.PREPARING_REBALANCE:
        rebalance_or_complete(transition, group)
    else:
        # In CompletingRebalance too: the leader may be assigning to the old id already.
        prepare_rebalance(transition, group)


def _fence(transition: Transition, group: ClassicGroup, old_id: str) -> None:
    """Tell the former holder of a static member's place that it has been replaced."""
    ticket = group.join_tickets.pop(old_id, None)
    if ticket is not None:
        transition.reply(
            ticket, JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id)
        )
    ticket = group.sync_tickets.pop(old_id, None)
    if ticket is not None:
        transition.reply(ticket, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
