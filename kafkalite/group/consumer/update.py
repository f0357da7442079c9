"""Changes that follow when a member of a consumer group joins or changes, by either protocol.

In the order in which Kafka has it, which is the order of the records: subscription, patterns, group
epoch, target, and the member's own next step. Nothing in the group changes before the records are
replayed, so each step hands on to the next what it has made.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.group.consumer import records
from kafkalite.group.consumer.group import ConsumerGroup, NameCount
from kafkalite.group.consumer.member import ConsumerMember, MemberState, Target
from kafkalite.group.consumer.patterns import check_pattern
from kafkalite.group.consumer.reconcile import Surroundings, reconcile
from kafkalite.group.consumer.target import TargetBuilder, assignor_for, is_homogeneous
from kafkalite.group.effects import ResolvePatterns
from kafkalite.group.new_target import at_once
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.wire.messages.consumer_group_heartbeat import TopicPartitions

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState

PATTERN_REFRESH_MIN_MS = 10_000
"""Topics are not looked through again before; fixed in Kafka too."""


class MemberUpdate:
    """One member's change, while it is decided.

    Args:
        shard: that has the group.
        transition: collects records.
        group: as it is; it may be one that only the records will make.
        before: the member as it is, a blank one if it is new.
        after: the member as its client wants it to be.
        principal: the client's, who may see the topics that patterns find.

    Attributes:
        after: the member as it is after the steps so far.
        group_epoch, target_epoch: as they are after the steps so far.
        has_subscription_changed: whether the member reads other topics than before.
    """

    def __init__(
        self,
        shard: "ShardState",
        transition: Transition,
        group: ConsumerGroup,
        *,
        before: ConsumerMember,
        after: ConsumerMember,
        principal: str,
    ) -> None:
        self._shard = shard
        self._transition = transition
        self._group = group
        self._before = before
        self._principal = principal
        self.after = after
        self.group_epoch = group.group_epoch
        self.target_epoch = group.target_epoch
        self.has_subscription_changed = False
        self._homogeneous: bool | None = None

    def subscribe(self, *, bumps_for_any_pattern: bool = False) -> None:
        """Write the member and its pattern; raise the group epoch if topics are others now.

        Args:
            bumps_for_any_pattern: also where the new pattern's topics are not known.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        before, after = self._before, self.after
        if after != before:
            self._transition.records.append(records.member_record(self._group.group_id, after))
        other_names = after.subscribed_topic_names != before.subscribed_topic_names
        other_pattern = (after.subscribed_topic_regex or "") != (
            before.subscribed_topic_regex or ""
        )
        is_resolved = other_pattern and self._change_pattern()
        is_new = other_pattern and after.pattern not in (None, *self._group.patterns)
        self._look_for_topics(is_wanted=is_new)
        self.has_subscription_changed = other_names or other_pattern
        bumps = other_names or is_resolved or (bumps_for_any_pattern and other_pattern)
        if bumps or self._group.is_refresh_due:
            self._look_at_topics(bumps=bumps)

    def assign(self) -> Target:
        """Run the assignor if it is time to; return what the member is to have.

        Where that takes longer than a turn the target stays as it is until it is computed.
        """
        group, transition, shard = self._group, self._transition, self._shard
        if group.target_epoch >= self.group_epoch or not self._may_assign():
            return group.target_of(self.after)
        homogeneous = self._homogeneous
        if homogeneous is None:
            homogeneous = is_homogeneous(group.names, group.patterns, len(group.members))
        assignor = assignor_for(group.preferred_assignor(self._before, self.after), shard.settings)
        builder = TargetBuilder(group, shard.metadata.image, self.after)
        targets = at_once(builder.build(assignor, homogeneous=homogeneous))
        if targets is None:
            shard.compute_later(transition, group.group_id)
            return group.target_of(self.after)
        for member_id in targets.changed:
            target = targets.by_member[member_id]
            transition.records.append(records.target_record(group.group_id, member_id, target))
        epoch, wall_ms = self.group_epoch, transition.now.wall_ms
        transition.records.append(records.target_metadata_record(group.group_id, epoch, wall_ms))
        self.target_epoch = epoch
        return targets.by_member[self.after.member_id]

    def reconcile(self, target: Target, owned: list[TopicPartitions] | None) -> None:
        """Take the member's next step towards its target."""
        member = self.after
        is_there = member.is_reconciled_to(self.target_epoch)
        if is_there and not self.has_subscription_changed:
            return
        around = Surroundings(
            target_epoch=self.target_epoch,
            target=target,
            subscribed=self._subscribed_ids(),
            has_subscription_changed=self.has_subscription_changed,
            owned=owned,
            partition_epoch=self._group.partition_epoch,
        )
        self.after = reconcile(member, around)
        if self.after == member:
            return
        self._transition.records.append(records.current_record(self._group.group_id, self.after))
        if not self.after.uses_classic_protocol:
            self._time_revocation()

    # --- Internals ------------------------------------------------------------------------------

    def _change_pattern(self) -> bool:
        """Write that a pattern is nobody's any more; say whether the new one's topics are known."""
        group = self._group
        old, new = self._before.pattern, self.after.pattern
        if old is not None and group.patterns.get(old, 0) == 1:
            self._transition.records.append(records.pattern_tombstone(group.group_id, old))
        if new is None:
            return old is not None
        if not group.patterns.get(new, 0):
            check_pattern(new)
            return False
        return new in group.resolutions

    def _look_for_topics(self, *, is_wanted: bool) -> None:
        """Ask for the patterns' topics, if they are not known or there may be new ones."""
        group, now = self._group, self._transition.now
        patterns = self._patterns_after()
        if not patterns and not group.patterns:
            return
        until_ms = group.resolving_until_ms
        if until_ms is not None and now.monotonic_ms < until_ms:
            return
        # Of several, the first stands for all: they are resolved together.
        last = next(iter(group.resolutions.values()), None)
        is_due = is_wanted or len(patterns) != len(group.resolutions)
        if last is not None:
            if now.wall_ms <= last.timestamp_ms + PATTERN_REFRESH_MIN_MS:
                return
            refresh_ms = self._shard.settings.consumer_group_regex_refresh_interval_ms
            metadata = self._shard.metadata
            is_due = (
                is_due
                or not last.version <= metadata.version
                or last.version < metadata.newest_topic_version
                or now.wall_ms > last.timestamp_ms + refresh_ms
            )
        if is_due and patterns:
            group.resolving_until_ms = now.monotonic_ms + PATTERN_REFRESH_MIN_MS
            self._transition.effects.append(
                ResolvePatterns(
                    group.group_id,
                    tuple(patterns),
                    self._principal,
                    self.after.client_host.removeprefix("/"),
                )
            )

    def _patterns_after(self) -> dict[str, int]:
        """Return how many members have each pattern when this one has changed."""
        patterns = dict(self._group.patterns)
        for pattern, change in ((self._before.pattern, -1), (self.after.pattern, 1)):
            if pattern is not None:
                patterns[pattern] = patterns.get(pattern, 0) + change
                if not patterns[pattern]:
                    del patterns[pattern]
        return patterns

    def _look_at_topics(self, *, bumps: bool) -> None:
        """Raise the group epoch if it is to be raised, or the topics are not what they were."""
        group, transition = self._group, self._transition
        names = self._names_after()
        metadata_hash = self._shard.metadata.hash_of(names)
        if bumps or metadata_hash != group.metadata_hash:
            self.group_epoch = group.group_epoch + 1
            transition.records.append(
                records.group_record(group.group_id, self.group_epoch, metadata_hash)
            )
        group.refresh_epoch = self.group_epoch
        if group.has_partition_metadata:
            transition.records.append(records.partition_metadata_tombstone(group.group_id))
        member = self.after
        is_known = member.member_id in group.members or (
            member.instance_id is not None and member.instance_id in group.static_members
        )
        self._homogeneous = is_homogeneous(
            names, self._patterns_after(), len(group.members) + (not is_known)
        )

    def _names_after(self) -> Mapping[str, NameCount]:
        """Return the group's topics when this member has changed."""
        group, before, after = self._group, self._before, self.after
        changes: dict[str, NameCount] = {}
        if before.subscribed_topic_names != after.subscribed_topic_names:
            changes = dict.fromkeys(after.subscribed_topic_names, NameCount(by_name=1))
            for name in before.subscribed_topic_names:
                if changes.pop(name, None) is None:
                    changes[name] = NameCount(by_name=-1)
        old = before.pattern
        if old is not None and old != after.pattern and group.patterns.get(old, 0) == 1:
            found = group.resolutions.get(old)
            for name in () if found is None else found.topics:
                known = changes.get(name, NameCount())
                changes[name] = NameCount(known.by_name, known.by_pattern - 1)
        return group.names_with(changes)

    def _may_assign(self) -> bool:
        """Whether the assignor may run: not too soon after the last time (KIP-1263)."""
        group = self._group
        if group.group_id in self._shard.new_targets:
            return False
        interval_ms = self._shard.metadata.group_config(
            group.group_id
        ).consumer_assignment_interval_ms
        return (
            group.target_timestamp_ms == 0
            or interval_ms == 0
            or self._transition.now.wall_ms >= group.target_timestamp_ms + interval_ms
        )

    def _subscribed_ids(self) -> frozenset[UUID]:
        metadata = self._shard.metadata
        topics = (metadata.topic(name) for name in self._group.topics_of(self.after))
        return frozenset(topic.topic_id for topic in topics if topic is not None)

    def _time_revocation(self) -> None:
        """A member that has to give something up has only so long."""
        key = (TimerKind.REBALANCE, self._group.group_id, self.after.member_id)
        if self.after.state is MemberState.UNREVOKED_PARTITIONS:
            self._transition.schedule(key, self.after.rebalance_timeout_ms)
        else:
            self._transition.timers.cancel(key)


def replace_static(
    transition: Transition, group: ConsumerGroup, old: ConsumerMember, member_id: str
) -> ConsumerMember:
    """Write that a static member's place is another client's now; return that one."""
    new = replace(old, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    transition.records += [
        *records.member_tombstones(group_id, old.member_id),
        records.member_record(group_id, new),
        records.target_record(group_id, member_id, group.targets.get(old.member_id, {})),
        records.current_record(group_id, new),
    ]
    return new
