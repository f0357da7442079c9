"""ConsumerGroupHeartbeat: joining, staying in and leaving a consumer group (KIP-848)."""

from dataclasses import replace
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import Now, Result, Ticket
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.consumer import records
from kafkalite.group.consumer.events import ConsumerHeartbeat
from kafkalite.group.consumer.fencing import fence
from kafkalite.group.consumer.group import ConsumerGroup, away
from kafkalite.group.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
    ConsumerMember,
    Epochs,
)
from kafkalite.group.consumer.migration import turn_away, upgraded
from kafkalite.group.consumer.room import check_room
from kafkalite.group.consumer.update import MemberUpdate, replace_static
from kafkalite.group.kinds import Group
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState

FIRST_VERSION_WITH_OWN_MEMBER_ID = 1
NOT_SAID = -1


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: tuple[str, ...]
) -> None:
    """Refuse what no group could take, in Kafka's order.

    Args:
        request: as it came.
        api_version: of it.
        assignors: that members may ask for.

    Raises:
        KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR.
    """
    epoch = request.member_epoch
    needs_id = (
        api_version >= FIRST_VERSION_WITH_OWN_MEMBER_ID or epoch > 0 or epoch == LEAVING_EPOCH
    )
    if needs_id and not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    for name, text in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == NOT_SAID:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null.")
    elif epoch == LEAVING_STATIC_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVING_STATIC_EPOCH:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )


def heartbeat(shard: "ShardState", event: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Result:
    """Decide about a heartbeat whose form is right; the answer leaves with its records."""
    transition = shard.transition(now)
    if event.request.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH):
        transition.reply(ticket, _leave(shard, transition, event.request))
    else:
        transition.reply(ticket, _stay(shard, transition, event))
    return transition.result()


def consumer_group(group: Group | None, group_id: str) -> ConsumerGroup:
    """Return a group that must be a consumer group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.
    """
    if isinstance(group, ConsumerGroup):
        return group
    what = "not found" if group is None else "not a consumer group"
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is {what}.")


# --- Joining and staying -------------------------------------------------------------------------


def _stay(
    shard: "ShardState", transition: Transition, event: ConsumerHeartbeat
) -> ConsumerGroupHeartbeatResponse:
    request = event.request
    is_join = request.member_epoch == JOINING_EPOCH
    found = shard.groups.get(request.group_id)
    group = _group_of(shard, transition, request.group_id, is_join=is_join)
    check_room(shard, group, request.member_id)
    member_id = request.member_id or event.new_member_id
    if request.instance_id is None:
        before = _dynamic(group, member_id, request)
    else:
        before = _static(transition, group, member_id, request)
    after = _said(before, event)
    if after is not before or not group.has_settled(before):
        update = MemberUpdate(
            shard, transition, group, before=before, after=after, principal=event.principal
        )
        update.subscribe()
        update.reconcile(update.assign(), request.topic_partitions)
        after = update.after
        if isinstance(found, ClassicGroup):
            turn_away(transition, found)
    config = shard.metadata.group_config(request.group_id)
    transition.schedule(
        (TimerKind.SESSION, request.group_id, member_id), config.consumer_session_timeout_ms
    )
    answer = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=config.consumer_heartbeat_interval_ms,
    )
    is_other = after is not before and not _has_same(before.assigned, after.assigned)
    if is_join or is_other or _is_full(request):
        answer.assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in after.assigned.items()
            ]
        )
    return answer


def _group_of(
    shard: "ShardState", transition: Transition, group_id: str, *, is_join: bool
) -> ConsumerGroup:
    """Return the group, which a join makes: of nothing, of an empty or of a classic group."""
    group = shard.groups.get(group_id)
    if not is_join:
        return consumer_group(group, group_id)
    if group is None:
        return ConsumerGroup(group_id, shard.subscribers)
    if isinstance(group, ClassicGroup):
        if not group.is_empty:
            return upgraded(shard, transition, group)
        # Offsets alone make a group, of which the log has no record to remove.
        if group.generation or group.protocol_type is not None:
            transition.records += group.tombstones()
        return ConsumerGroup(group_id, shard.subscribers)
    return consumer_group(group, group_id)


def _dynamic(
    group: ConsumerGroup, member_id: str, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember:
    if request.member_epoch == JOINING_EPOCH and member_id not in group.members:
        return ConsumerMember(member_id=member_id)
    member = group.member(member_id)
    member.check_epoch(request.member_epoch, request.topic_partitions)
    return member


def _static(
    transition: Transition,
    group: ConsumerGroup,
    member_id: str,
    request: ConsumerGroupHeartbeatRequest,
) -> ConsumerMember:
    if request.member_epoch != JOINING_EPOCH:
        member = group.check_identity(member_id, request.instance_id)
        member.check_epoch(request.member_epoch, request.topic_partitions)
        return member
    owner = group.static_member(request.instance_id)
    if owner is None:
        return group.members.get(member_id) or ConsumerMember(member_id=member_id)
    if not owner.uses_classic_protocol and owner.member_epoch != LEAVING_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {request.instance_id} cannot join the "
            f"group because the instance id is owned by member {owner.member_id}.",
        )
    return replace_static(transition, group, owner, member_id)


def _said(member: ConsumerMember, event: ConsumerHeartbeat) -> ConsumerMember:
    """Return the member with what its client says; what it does not say stays as it was."""
    request = event.request
    names = request.subscribed_topic_names
    pattern = request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    if (
        names is None
        and pattern is None
        and timeout_ms == NOT_SAID
        and request.server_assignor is None
        and request.rack_id is None
        and member.classic is None
        and request.instance_id in (None, member.instance_id)
        and (event.client_id, event.client_host) == (member.client_id, member.client_host)
    ):
        return member
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NOT_SAID else timeout_ms,
        server_assignor=request.server_assignor or member.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names
        if names is None
        else tuple(sorted(set(names))),
        subscribed_topic_regex=member.subscribed_topic_regex if pattern is None else pattern,
        client_id=event.client_id,
        client_host=event.client_host,
        classic=None,
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the client says all that it can: it does so after an error, and knows nothing."""
    has_subscription = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    return (
        request.rebalance_timeout_ms != NOT_SAID
        and has_subscription
        and request.topic_partitions is not None
    )


def _has_same(before: Epochs, after: Epochs) -> bool:
    """Whether the partitions are the same; their epochs do not matter."""
    return before.keys() == after.keys() and all(
        partitions.keys() == after[topic_id].keys() for topic_id, partitions in before.items()
    )


# --- Leaving -------------------------------------------------------------------------------------


def _leave(
    shard: "ShardState", transition: Transition, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    group = consumer_group(shard.groups.get(request.group_id), request.group_id)
    member = group.check_identity(request.member_id, request.instance_id)
    if request.member_epoch == LEAVING_STATIC_EPOCH:
        gone = away(member, LEAVING_STATIC_EPOCH)
        transition.records.append(records.current_record(group.group_id, gone))
    else:
        fence(shard, transition, group, [member])
    return ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
