"""Consumer groups in a shard: which code answers which event, and what their records do."""

from dataclasses import replace
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import Now, Result, StoredRecord, Ticket
from kafkalite.group.classic.join import JoinGroup
from kafkalite.group.classic.membership import Heartbeat, LeaveGroup
from kafkalite.group.classic.sync import SyncGroup
from kafkalite.group.consumer import classic_members, records
from kafkalite.group.consumer.describe import describe_consumer_group
from kafkalite.group.consumer.events import (
    ConsumerHeartbeat,
    DescribeConsumerGroup,
    PatternsResolved,
)
from kafkalite.group.consumer.fencing import fence
from kafkalite.group.consumer.group import INITIAL_EPOCH, ConsumerGroup, NameCount
from kafkalite.group.consumer.heartbeat import consumer_group, heartbeat
from kafkalite.group.consumer.member import (
    LEAVING_EPOCH,
    ConsumerMember,
    MemberState,
    with_current,
    with_metadata,
)
from kafkalite.group.consumer.records import Resolution
from kafkalite.group.consumer.target import new_target, read_target
from kafkalite.group.kinds import GroupKind
from kafkalite.group.part import Part
from kafkalite.group.transition import TimerKey, TimerKind, Transition
from kafkalite.wire.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState

FENCE_AGAIN_MS = 500
"""When to fence a member again whose tombstones the log refused; as in Kafka."""


# --- Events --------------------------------------------------------------------------------------


def _describe(
    shard: "ShardState", event: DescribeConsumerGroup, ticket: Ticket, now: Now
) -> Result:
    del now
    group = consumer_group(shard.groups.get(event.group_id), event.group_id)
    default = shard.settings.consumer_group_assignors[0]
    answer = describe_consumer_group(group, shard.metadata, default_assignor=default)
    return Result(replies=((ticket, answer),))


def _resolved(shard: "ShardState", event: PatternsResolved, ticket: Ticket, now: Now) -> Result:
    """Take over the topics of patterns, as far as they still have members."""
    transition = shard.transition(now)
    transition.reply(ticket, None)
    group = shard.groups.get(event.group_id)
    if not isinstance(group, ConsumerGroup):
        return transition.result()
    group.resolving_until_ms = None
    changes: dict[str, NameCount] = {}
    bumps = False
    for pattern, found in event.resolutions.items():
        if not group.patterns.get(pattern):
            continue
        known = group.resolutions.get(pattern)
        before = frozenset[str]() if known is None else known.topics
        bumps = bumps or before != found.topics
        for name in before - found.topics:
            changes.setdefault(name, NameCount()).by_pattern -= 1
        for name in found.topics - before:
            changes.setdefault(name, NameCount()).by_pattern += 1
        transition.records.append(records.pattern_record(group.group_id, pattern, found))
    metadata_hash = shard.metadata.hash_of(group.names_with(changes))
    if transition.records and (bumps or metadata_hash != group.metadata_hash):
        epoch = group.group_epoch + 1
        transition.records.append(records.group_record(group.group_id, epoch, metadata_hash))
        group.refresh_epoch = epoch
    return transition.result()


def _on_timer(shard: "ShardState", key: TimerKey, now: Now) -> Result:
    """Fence a member that was silent, or did not do in time what it was told to."""
    kind, group_id, member_id = key
    transition = shard.transition(now)
    group = shard.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    member = group.members.get(member_id)
    if member is None:
        return transition.result()  # the record that would have made it so was refused
    if kind is TimerKind.REBALANCE and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return transition.result()
    fence(shard, transition, group, [member])
    transition.schedule(key, FENCE_AGAIN_MS)
    return transition.result()


def _on_loaded(shard: "ShardState", transition: Transition, group: ConsumerGroup) -> None:
    """Give every member its whole session, and time to give up what it was told to."""
    session_ms = shard.metadata.group_config(group.group_id).consumer_session_timeout_ms
    for member in group.members.values():
        transition.schedule((TimerKind.SESSION, group.group_id, member.member_id), session_ms)
        is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
        if is_revoking and not member.uses_classic_protocol:
            key = (TimerKind.REBALANCE, group.group_id, member.member_id)
            transition.schedule(key, member.rebalance_timeout_ms)


# --- Replay --------------------------------------------------------------------------------------


def _known(shard: "ShardState", group_id: str) -> ConsumerGroup | None:
    group = shard.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None


def _made(shard: "ShardState", group_id: str) -> ConsumerGroup:
    """Return the group, made if it is not there; offsets that somebody committed stay."""
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is not None:
        shard.remove(group)
    made = ConsumerGroup(group_id, shard.subscribers)
    shard.groups[group_id] = made
    return made


def _replay_group(shard: "ShardState", record: StoredRecord, key: ConsumerGroupMetadataKey) -> None:
    value = record.value
    if value is None:
        group = _known(shard, key.group_id)
        if group is not None:
            group.forget_subscriptions()
            shard.remove(group)
        return
    assert isinstance(value, ConsumerGroupMetadataValue)
    group = _made(shard, key.group_id)
    group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _replay_partition_metadata(
    shard: "ShardState", record: StoredRecord, key: ConsumerGroupPartitionMetadataKey
) -> None:
    if record.value is not None:
        _made(shard, key.group_id).has_partition_metadata = True
    elif (group := _known(shard, key.group_id)) is not None:
        group.has_partition_metadata = False


def _replay_member(
    shard: "ShardState", record: StoredRecord, key: ConsumerGroupMemberMetadataKey
) -> None:
    value = record.value
    if value is None:
        group = _known(shard, key.group_id)
        if group is not None:
            group.drop_member(key.member_id)
            for timer in group.timers_of(key.member_id):
                shard.timers.cancel(timer)
        return
    assert isinstance(value, ConsumerGroupMemberMetadataValue)
    group = _made(shard, key.group_id)
    group.put_member(with_metadata(_member(group, key.member_id), value))


def _replay_target_metadata(
    shard: "ShardState", record: StoredRecord, key: ConsumerGroupTargetAssignmentMetadataKey
) -> None:
    value = record.value
    if value is None:
        group = _known(shard, key.group_id)
        if group is not None:
            group.target_epoch, group.target_timestamp_ms = INITIAL_EPOCH, 0
        return
    assert isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
    group = _made(shard, key.group_id)
    group.target_epoch = value.assignment_epoch
    group.target_timestamp_ms = value.assignment_timestamp


def _replay_target(
    shard: "ShardState", record: StoredRecord, key: ConsumerGroupTargetAssignmentMemberKey
) -> None:
    value = record.value
    if value is None:
        group = _known(shard, key.group_id)
        if group is not None:
            group.targets.pop(key.member_id, None)
        return
    assert isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
    _made(shard, key.group_id).targets[key.member_id] = read_target(value)


def _replay_current(
    shard: "ShardState", record: StoredRecord, key: ConsumerGroupCurrentMemberAssignmentKey
) -> None:
    value = record.value
    if value is None:
        group = _known(shard, key.group_id)
        member = None if group is None else group.members.get(key.member_id)
        if group is not None and member is not None:
            nothing = replace(
                member,
                member_epoch=LEAVING_EPOCH,
                previous_member_epoch=LEAVING_EPOCH,
                assigned={},
                revoking={},
            )
            group.put_member(nothing)
        return
    assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
    group = _made(shard, key.group_id)
    group.put_member(with_current(_member(group, key.member_id), value))


def _replay_pattern(
    shard: "ShardState", record: StoredRecord, key: ConsumerGroupRegularExpressionKey
) -> None:
    value = record.value
    if value is None:
        group = _known(shard, key.group_id)
        if group is not None:
            group.put_resolution(key.regular_expression, None)
        return
    assert isinstance(value, ConsumerGroupRegularExpressionValue)
    found = Resolution(frozenset(value.topics), value.version, value.timestamp)
    _made(shard, key.group_id).put_resolution(key.regular_expression, found)


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id=member_id)


def _rebalance(transition: Transition, group: ConsumerGroup) -> None:
    record = records.group_record(group.group_id, group.group_epoch + 1, group.metadata_hash)
    transition.records.append(record)


CONSUMER = Part(
    kind=GroupKind.CONSUMER,
    handlers={
        ConsumerHeartbeat: heartbeat,
        DescribeConsumerGroup: _describe,
        PatternsResolved: _resolved,
    },
    replays={
        ConsumerGroupMetadataKey: _replay_group,
        ConsumerGroupPartitionMetadataKey: _replay_partition_metadata,
        ConsumerGroupMemberMetadataKey: _replay_member,
        ConsumerGroupTargetAssignmentMetadataKey: _replay_target_metadata,
        ConsumerGroupTargetAssignmentMemberKey: _replay_target,
        ConsumerGroupCurrentMemberAssignmentKey: _replay_current,
        ConsumerGroupRegularExpressionKey: _replay_pattern,
    },
    on_timer=_on_timer,
    on_loaded=_on_loaded,
    classic_protocol={
        JoinGroup: classic_members.join,
        SyncGroup: classic_members.sync,
        Heartbeat: classic_members.heartbeat,
        LeaveGroup: classic_members.leave,
    },
    rebalance=_rebalance,
    new_target=new_target,
)
