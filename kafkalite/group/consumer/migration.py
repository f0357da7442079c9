"""Between classic and consumer groups while members are in them (KIP-848, online migration).

The first member of the consumer protocol turns a classic group into a consumer group, and when the
last of them is gone, it becomes classic again. Members of the classic protocol stay in both.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from kafkalite.group.classic.group import ClassicGroup, Member
from kafkalite.group.classic.rebalance import reset_session
from kafkalite.group.classic.storing import store
from kafkalite.group.classic.subscription import CONSUMER_PROTOCOL_TYPE
from kafkalite.group.consumer import records
from kafkalite.group.consumer.embedded import (
    by_topic_id,
    read_assignment,
    read_subscription,
    read_version,
    write_assignment,
)
from kafkalite.group.consumer.group import ConsumerGroup
from kafkalite.group.consumer.member import ClassicMember, ConsumerMember, Target
from kafkalite.group.subscribers import Subscribers
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.messages.join_group import JoinGroupResponse
from kafkalite.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState

BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED = "bidirectional", "upgrade", "downgrade", "disabled"
POLICIES = (BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED)


# --- Upgrade -------------------------------------------------------------------------------------


def upgraded(shard: "ShardState", transition: Transition, group: ClassicGroup) -> ConsumerGroup:
    """Return the consumer group that a classic group with members becomes, with its records.

    Nothing is changed in the classic group: `turn_away` does that once nothing can be refused.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, the group must stay what it is.
    """
    settings = shard.settings
    if settings.consumer_group_migration_policy not in (BIDIRECTIONAL, UPGRADE):
        raise _refused(group, "online upgrade is disabled (group.consumer.migration.policy)")
    if not group.uses_consumer_protocol:
        raise _refused(group, "it does not use the consumer embedded protocol")
    if len(group.members) > settings.consumer_group_max_size:
        raise _refused(group, "it exceeds group.consumer.max.size")
    made = ConsumerGroup(group.group_id, Subscribers())
    made.group_epoch = made.target_epoch = group.generation
    try:
        for member in group.members.values():
            target = _target_of(shard, group, member)
            made.targets[member.member_id] = target
            made.put_member(_as_consumer(group, member, target))
    except MalformedMessage as error:
        raise _refused(group, f"its embedded consumer protocol is malformed: {error}") from error
    made.metadata_hash = shard.metadata.hash_of(made.names)
    group_id = group.group_id
    transition.records += [
        *group.tombstones(),
        *(records.member_record(group_id, member) for member in made.members.values()),
        records.group_record(group_id, made.group_epoch, made.metadata_hash),
        *(records.target_record(group_id, *entry) for entry in made.targets.items()),
        records.target_metadata_record(group_id, made.target_epoch, 0),
        *(records.current_record(group_id, member) for member in made.members.values()),
    ]
    return made


def _target_of(shard: "ShardState", group: ClassicGroup, member: Member) -> Target:
    if not member.assignment:
        return {}  # it never synced
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _refused(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch "
            "to a default assignor before re-attempting the upgrade",
        )
    return by_topic_id(assignment.assigned_partitions, shard.metadata)


def _as_consumer(group: ClassicGroup, member: Member, target: Target) -> ConsumerMember:
    # In the first rebalance no protocol is agreed on; any of the member's will do.
    name = group.protocol_name or member.protocols[0][0]
    subscription = read_subscription(member.metadata(name))
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        classic=ClassicMember(
            session_timeout_ms=member.session_timeout_ms, protocols=member.protocols
        ),
        member_epoch=group.generation,
        previous_member_epoch=group.generation,
        assigned={
            topic_id: dict.fromkeys(partitions, group.generation)
            for topic_id, partitions in target.items()
        },
    )


def turn_away(transition: Transition, group: ClassicGroup) -> None:
    """Have all members of a group that is to be a consumer group join again, each in its time."""
    for member_id, ticket in group.join_tickets.items():
        answer = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member_id)
        transition.reply(ticket, answer)
    for ticket in group.sync_tickets.values():
        transition.reply(ticket, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    group.join_tickets.clear()
    group.sync_tickets.clear()
    group.hands_sessions_on = True
    for member in group.members.values():
        reset_session(transition, group, member)


def _refused(group: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


# --- Downgrade -----------------------------------------------------------------------------------


def may_downgrade(shard: "ShardState", member_count: int) -> bool:
    """Whether the policy and the number of members let a group become classic again."""
    settings = shard.settings
    policy = settings.consumer_group_migration_policy
    return policy in (BIDIRECTIONAL, DOWNGRADE) and member_count <= settings.group_max_size


def is_downgraded_without(shard: "ShardState", group: ConsumerGroup, gone: Collection[str]) -> bool:
    """Whether the group becomes classic when these members leave: only classic ones remain."""
    remaining = len(group.members) - len(gone)
    classic = group.classic_members - sum(
        group.members[member_id].uses_classic_protocol for member_id in gone
    )
    return remaining > 0 and classic == remaining and may_downgrade(shard, remaining)


def downgrade(
    shard: "ShardState",
    transition: Transition,
    group: ConsumerGroup,
    *,
    leaving: Collection[str] = (),
    joining: ConsumerMember | None = None,
    rebalances: bool = True,
) -> None:
    """Make a group classic: its records, and a timer that goes on when they are replayed.

    Args:
        shard: that has it.
        transition: collects the records.
        group: only classic members of which remain.
        leaving: members that go.
        joining: a classic member that has taken a static one's place in the same event.
        rebalances: whether the classic group begins with a rebalance.
    """
    place = None if joining is None else group.static_member(joining.instance_id)
    members: dict[str, ConsumerMember] = {}
    owners: dict[str, str] = {}
    for member in group.members.values():
        if member.member_id in leaving:
            continue
        if joining is not None and member is place:
            continue
        members[member.member_id] = member
        owners[member.member_id] = member.member_id
    removed = [*group.members]
    if joining is not None:
        assert place is not None
        members[joining.member_id] = joining
        owners[joining.member_id] = place.member_id
        removed = [joining.member_id if each == place.member_id else each for each in removed]
    transition.records += group.tombstones_of(removed)
    classic = ClassicGroup(group.group_id)
    for member in members.values():
        classic.add(_as_classic(member), CONSUMER_PROTOCOL_TYPE)
    classic.generation = group.group_epoch
    classic.protocol_name = classic.select_protocol()
    assignments = {
        member.member_id: write_assignment(
            group.targets.get(owners[member.member_id], {}),
            shard.metadata,
            version=read_version(member.metadata(classic.protocol_name)),
        )
        for member in classic.members.values()
    }
    store(transition, classic, assignments=assignments)
    kind = TimerKind.BECAME_CLASSIC_STALE if rebalances else TimerKind.BECAME_CLASSIC
    transition.schedule((kind, group.group_id, ""), 0)


def _as_classic(member: ConsumerMember) -> Member:
    assert member.classic is not None
    return Member(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=member.classic.protocols,
    )
