"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

They are members as all others: the broker assigns, nobody leads, and a generation is a member's
epoch. Told of a rebalance they join again, as often as their next step needs it (KIP-848).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import Now, Result, Ticket
from kafkalite.group.classic.join import FIRST_VERSION_WITH_MEMBER_ID_REQUIRED, JoinGroup
from kafkalite.group.classic.membership import Heartbeat, LeaveGroup
from kafkalite.group.classic.part import join_classic
from kafkalite.group.classic.subscription import CONSUMER_PROTOCOL_TYPE
from kafkalite.group.classic.sync import SyncGroup
from kafkalite.group.consumer.embedded import (
    owned_by,
    read_subscription,
    read_version,
    write_assignment,
)
from kafkalite.group.consumer.fencing import fence
from kafkalite.group.consumer.group import ConsumerGroup
from kafkalite.group.consumer.member import ClassicMember, ConsumerMember, MemberState
from kafkalite.group.consumer.migration import DISABLED, downgrade, may_downgrade
from kafkalite.group.consumer.room import check_room
from kafkalite.group.consumer.update import MemberUpdate, replace_static
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.messages.heartbeat import HeartbeatResponse
from kafkalite.wire.messages.join_group import JoinGroupResponse
from kafkalite.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from kafkalite.wire.messages.sync_group import SyncGroupResponse
from kafkalite.wire.stored.consumer_protocol import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState

FIRST_LEAVE_WITH_SEVERAL_MEMBERS = 3


# --- JoinGroup -----------------------------------------------------------------------------------


def join(shard: "ShardState", event: JoinGroup, ticket: Ticket, now: Now) -> Result:
    """Have a classic member join; an empty group becomes a classic one with it."""
    group = _group(shard, event.request.group_id)
    if group.is_empty:
        return _join_empty(shard, group, event, ticket, now)
    request = event.request
    if shard.settings.consumer_group_migration_policy == DISABLED:
        raise _inconsistent(group, "group.consumer.migration.policy is disabled")
    member_id = request.member_id or event.random_id
    check_room(shard, group, member_id)
    names = [protocol.name for protocol in request.protocols]
    if not group.supports(request.protocol_type, names):
        raise _inconsistent(group, f"not all of its classic members support one of {names}")
    transition = shard.transition(now)
    is_unknown = not request.member_id
    if (
        is_unknown
        and request.group_instance_id is None
        and event.api_version >= FIRST_VERSION_WITH_MEMBER_ID_REQUIRED
    ):
        code = ErrorCode.MEMBER_ID_REQUIRED
        transition.reply(ticket, JoinGroupResponse(error_code=code, member_id=member_id))
        return transition.result()
    transition.reply(ticket, _join(shard, transition, group, event, member_id))
    return transition.result()


def _join_empty(
    shard: "ShardState", group: ConsumerGroup, event: JoinGroup, ticket: Ticket, now: Now
) -> Result:
    """Forget a group without members, and make a classic one of its name."""
    if event.request.member_id:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no members")
    del shard.groups[group.group_id]
    try:
        result = join_classic(shard, event, ticket, now)
    except BaseException:
        shard.groups[group.group_id] = group
        raise
    group.forget_subscriptions()
    result.records = [*group.tombstones(), *result.records]
    return result


def _join(
    shard: "ShardState",
    transition: Transition,
    group: ConsumerGroup,
    event: JoinGroup,
    member_id: str,
) -> JoinGroupResponse:
    request = event.request
    subscription = _subscription_of(group, event)
    owner = group.static_member(request.group_instance_id)
    before = _member_before(transition, group, event, member_id)
    classic = ClassicMember(
        session_timeout_ms=request.session_timeout_ms,
        protocols=tuple((each.name, bytes(each.metadata)) for each in request.protocols),
    )
    after = _said(before, event, subscription, classic)
    update = MemberUpdate(
        shard, transition, group, before=before, after=after, principal=event.principal
    )
    update.subscribe(bumps_for_any_pattern=True)
    owned = owned_by(subscription, shard.metadata)
    is_last = (
        owner is not None
        and not owner.uses_classic_protocol
        and group.classic_members == len(group.members) - 1
        and may_downgrade(shard, len(group.members))
    )
    if is_last:
        is_stale = group.target_epoch < update.group_epoch
        if not is_stale:
            update.reconcile(group.target_of(update.after), owned)
        downgrade(shard, transition, group, joining=update.after, rebalances=is_stale)
    else:
        update.reconcile(update.assign(), owned)
        key = (group.group_id, member_id)
        transition.timers.cancel((TimerKind.JOIN, *key))
        transition.schedule((TimerKind.SESSION, *key), request.session_timeout_ms)
        transition.schedule((TimerKind.SYNC, *key), event.rebalance_timeout_ms)
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=update.after.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=classic.protocols[0][0],
        leader="",
        member_id=member_id,
        members=[],
    )


def _subscription_of(group: ConsumerGroup, event: JoinGroup) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(bytes(event.request.protocols[0].metadata))
    except MalformedMessage as error:
        raise _inconsistent(group, f"the subscription cannot be read: {error}") from error


def _member_before(
    transition: Transition, group: ConsumerGroup, event: JoinGroup, member_id: str
) -> ConsumerMember:
    """Return the member as it is: a blank one if it is new, another's if it takes his place."""
    request = event.request
    if request.group_instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id=member_id)
    if request.member_id:
        return group.check_identity(member_id, request.group_instance_id)
    owner = group.static_member(request.group_instance_id)
    if owner is None:
        return ConsumerMember(member_id=member_id)
    return replace_static(transition, group, owner, member_id)


def _said(
    before: ConsumerMember,
    event: JoinGroup,
    subscription: ConsumerProtocolSubscription,
    classic: ClassicMember,
) -> ConsumerMember:
    request = event.request
    return replace(
        before,
        instance_id=request.group_instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=classic,
    )


# --- SyncGroup and Heartbeat ---------------------------------------------------------------------


def sync(shard: "ShardState", event: SyncGroup, ticket: Ticket, now: Now) -> Result:
    """Give a classic member what it is assigned; the answer leaves when that is committed."""
    request = event.request
    group = _group(shard, request.group_id)
    member, classic = _check(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    name, metadata = classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        raise _inconsistent(group, f"it has no protocol type {request.protocol_type!r}")
    if request.protocol_name not in (None, name):
        raise _inconsistent(group, f"{member.member_id} was told protocol {name!r}")
    transition = shard.transition(now)
    has_new_target = group.target_epoch > member.member_epoch
    if has_new_target and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _await_join(transition, group, member)
        raise KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"group {group.group_id} has a new assignment: {member.member_id} is to join again",
        )
    key = (group.group_id, member.member_id)
    transition.timers.cancel((TimerKind.SYNC, *key))
    transition.schedule((TimerKind.SESSION, *key), classic.session_timeout_ms)
    transition.reply(
        ticket,
        SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(
                member.assigned, shard.metadata, version=read_version(metadata)
            ),
        ),
    )
    return transition.result()


def heartbeat(shard: "ShardState", event: Heartbeat, ticket: Ticket, now: Now) -> Result:
    """Keep a classic member's session, and tell it if it is to join again."""
    request = event.request
    group = _group(shard, request.group_id)
    member, classic = _check(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    transition = shard.transition(now)
    transition.schedule(
        (TimerKind.SESSION, group.group_id, member.member_id), classic.session_timeout_ms
    )
    code = ErrorCode.NONE
    if (
        member.member_epoch < group.target_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (
            member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member)
        )
    ):
        code = ErrorCode.REBALANCE_IN_PROGRESS
        _await_join(transition, group, member)
    transition.reply(ticket, HeartbeatResponse(error_code=code))
    return transition.result()


def _check(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMember]:
    member = group.check_identity(member_id, instance_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} does not use the classic protocol"
        )
    if generation_id != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"member {member_id} is at epoch {member.member_epoch}, the request at {generation_id}",
        )
    return member, member.classic


def _await_join(transition: Transition, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Give a member its rebalance timeout to join again, from when it was first told."""
    key = (TimerKind.JOIN, group.group_id, member.member_id)
    if transition.timers.deadline_ms(key) is None:
        transition.schedule(key, member.rebalance_timeout_ms)


# --- LeaveGroup ----------------------------------------------------------------------------------


def leave(shard: "ShardState", event: LeaveGroup, ticket: Ticket, now: Now) -> Result:
    """Remove members of either protocol, all in one step."""
    request = event.request
    group = _group(shard, request.group_id)
    transition = shard.transition(now)
    response = LeaveGroupResponse(error_code=ErrorCode.NONE)
    gone: dict[str, ConsumerMember] = {}
    if event.api_version < FIRST_LEAVE_WITH_SEVERAL_MEMBERS:
        gone[request.member_id] = group.member(request.member_id)
    else:
        for each in request.members:
            response.members.append(_leave_one(group, each, gone))
    fence(shard, transition, group, [*gone.values()])
    transition.reply(ticket, response)
    return transition.result()


def _leave_one(
    group: ConsumerGroup, named: MemberIdentity, gone: dict[str, ConsumerMember]
) -> MemberResponse:
    answer = MemberResponse(
        member_id=named.member_id,
        group_instance_id=named.group_instance_id,
        error_code=ErrorCode.NONE,
    )
    member_id = named.member_id
    if named.group_instance_id is not None and not member_id:
        # An operator removes a static member whose id he cannot know (KIP-345).
        member_id = group.static_members.get(named.group_instance_id, "")
    try:
        member = group.check_identity(member_id, named.group_instance_id)
    except KafkaError as error:
        answer.error_code = error.code
    else:
        gone[member.member_id] = member
    return answer


def _group(shard: "ShardState", group_id: str) -> ConsumerGroup:
    group = shard.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def _inconsistent(group: ConsumerGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"consumer group {group.group_id}: {reason}"
    )
