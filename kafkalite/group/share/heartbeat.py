"""ShareGroupHeartbeat: joining, staying and what follows (rules 382-388).

In Kafka's order, which is that of the records. Nothing in the group changes before they are
replayed, so each step hands on to the next what it has made.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafkalite.group.effects import InitializeStates
from kafkalite.group.kinds import EventOfKind, GroupKind
from kafkalite.group.new_target import Targets, at_once
from kafkalite.group.share import records
from kafkalite.group.share.group import Partitions, ShareGroup, ShareMember, session_timer
from kafkalite.group.share.states import missing, with_initializing
from kafkalite.group.share.target import build_target
from kafkalite.group.slices import Sliced
from kafkalite.group.transition import Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kafkalite.group.shard_state import ShardState

JOIN_EPOCH = 0


@dataclass(slots=True)
class ShareHeartbeat(EventOfKind[ShareGroupHeartbeatResponse]):
    """A ShareGroupHeartbeat request, and who sent it."""

    kind = GroupKind.SHARE

    request: ShareGroupHeartbeatRequest
    client_id: str
    client_host: str


def heartbeat(
    shard: "ShardState", transition: Transition, group: ShareGroup, event: ShareHeartbeat
) -> ShareGroupHeartbeatResponse:
    """Let a member join or stay; return the answer.

    Args:
        shard: that has the group.
        transition: collects records and effects.
        group: as it is; it may be one that only the records will make.
        event: the request; it does not leave.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
    """
    request = event.request
    before = _subscribe(shard, group, request)
    names = request.subscribed_topic_names
    after = replace(
        before,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=event.client_id,
        client_host=event.client_host,
        subscribed_topic_names=(
            before.subscribed_topic_names if names is None else tuple(sorted(set(names)))
        ),
    )
    update = _Update(shard, transition, group, before, after)
    update.run()
    config = shard.metadata.group_config(group.group_id)
    transition.schedule(
        session_timer(group.group_id, after.member_id), config.share_session_timeout_ms
    )
    member = update.after
    response = ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=config.share_heartbeat_interval_ms,
    )
    is_told = request.member_epoch == JOIN_EPOCH or names is not None
    if is_told or member.assigned != before.assigned:
        response.assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=[*partitions])
                for topic_id, partitions in member.assigned.items()
            ]
        )
    return response


def _subscribe(
    shard: "ShardState", group: ShareGroup, request: ShareGroupHeartbeatRequest
) -> ShareMember:
    """Return the member as it is, a blank one if it joins (rules 382 and 383)."""
    member = group.members.get(request.member_id)
    size_max = shard.settings.share_group_max_size
    if member is None and len(group.members) >= size_max:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {size_max} members.",
        )
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        return member or ShareMember(member_id=request.member_id)
    member = group.member(request.member_id)
    if epoch > member.member_epoch:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by "
            f"the group coordinator ({member.member_epoch}). The member must abandon all its "
            "partitions and rejoin.",
        )
    if epoch not in (member.member_epoch, member.previous_member_epoch):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by "
            f"the group coordinator ({member.member_epoch}), and it does not match the previous "
            f"member epoch ({member.previous_member_epoch}). The member must abandon all its "
            "partitions and rejoin.",
        )
    return member


class _Update:
    """One member's change, while it is decided."""

    def __init__(
        self,
        shard: "ShardState",
        transition: Transition,
        group: ShareGroup,
        before: ShareMember,
        after: ShareMember,
    ) -> None:
        self._shard = shard
        self._transition = transition
        self._group = group
        self._before = before
        self.after = after
        self._counts: Mapping[str, int] = group.topic_counts
        self._group_epoch = group.group_epoch
        self._bumps = False

    def run(self) -> None:
        self._change_subscription()
        self._look_at_topics()
        target_epoch, target = self._assign()
        self._reconcile(target_epoch, target)
        self._initialize()

    def _change_subscription(self) -> None:
        before, after = self._before, self.after
        is_new = before.member_id not in self._group.members
        if is_new or not after.has_subscription_of(before):
            self._transition.records.append(records.member_record(self._group.group_id, after))
            self._bumps = after.subscribed_topic_names != before.subscribed_topic_names

    def _look_at_topics(self) -> None:
        """Raise the group epoch if topics are others, or partitions have nobody (rule 384)."""
        group = self._group
        if group.target_epoch >= group.group_epoch and group.has_unassigned:
            self._bumps = True
        is_known = group.looked_at_epoch is not None and group.group_epoch >= group.looked_at_epoch
        if is_known and not self._bumps:
            return
        present = group.members.get(self.after.member_id)
        self._counts = group.counts_with(present, self.after)
        metadata_hash = self._shard.metadata.hash_of(self._counts)
        if metadata_hash != group.metadata_hash:
            self._bumps = True
        if self._bumps:
            self._group_epoch += 1
            self._transition.records.append(
                records.group_record(group.group_id, self._group_epoch, metadata_hash)
            )
        group.looked_at_epoch = self._group_epoch

    # --- Target (rule 385) ----------------------------------------------------------------------

    def _assign(self) -> tuple[int, Partitions]:
        """Return the epoch of the target, and what the member is to have."""
        group, now_ms = self._group, self._transition.now.wall_ms
        known = group.targets.get(self.after.member_id, {})
        is_computing = group.group_id in self._shard.new_targets
        if group.target_epoch >= self._group_epoch or is_computing:
            return group.target_epoch, known
        interval_ms = self._shard.metadata.group_config(group.group_id).share_assignment_interval_ms
        if group.target_timestamp_ms and now_ms < group.target_timestamp_ms + interval_ms:
            return group.target_epoch, known
        targets = at_once(self._new_targets())
        if targets is None:
            self._shard.compute_later(self._transition, group.group_id)
            return group.target_epoch, known
        for member_id in targets.changed:
            target = targets.by_member[member_id]
            self._transition.records.append(
                records.target_record(group.group_id, member_id, target)
            )
        self._transition.records.append(
            records.target_epoch_record(group.group_id, self._group_epoch, now_ms)
        )
        return self._group_epoch, targets.by_member[self.after.member_id]

    def _new_targets(self) -> Sliced[Targets[Partitions]]:
        members = {**self._group.members, self.after.member_id: self.after}
        return build_target(
            self._group,
            self._shard.metadata.image,
            members,
            is_homogeneous=all(count == len(members) for count in self._counts.values()),
        )

    # --- The member's step (rule 386) -----------------------------------------------------------

    def _reconcile(self, target_epoch: int, target: Partitions) -> None:
        member = self.after
        if member.member_epoch == target_epoch and not self._bumps:
            return
        metadata = self._shard.metadata
        topics = (metadata.topic(name) for name in member.subscribed_topic_names)
        readable: set[UUID] = {topic.topic_id for topic in topics if topic is not None}
        assigned = {
            topic_id: partitions for topic_id, partitions in target.items() if topic_id in readable
        }
        if member.member_epoch != target_epoch:
            after = replace(
                member,
                assigned=assigned,
                member_epoch=target_epoch,
                previous_member_epoch=member.member_epoch,
            )
        else:
            after = replace(member, assigned=assigned)
        if after != member:
            self._transition.records.append(records.current_record(self._group.group_id, after))
        self.after = after

    # --- Share partitions (rule 388) ------------------------------------------------------------

    def _initialize(self) -> None:
        group, now_ms = self._group, self._transition.now.wall_ms
        if group.states_changed_ms is None:
            group.states_changed_ms = now_ms
        topics = missing(
            group,
            sorted(self._counts),
            self._shard.metadata,
            is_retried=now_ms - group.states_changed_ms
            >= self._shard.settings.share_initialize_retry_interval_ms,
        )
        if not topics:
            return
        group.states_changed_ms = now_ms
        states = with_initializing(group.states, topics)
        self._transition.records.append(records.states_record(group.group_id, states))
        self._transition.effects.append(
            InitializeStates(
                group.group_id,
                self._group_epoch,
                {
                    (topic_id, index): -1
                    for topic_id, state in topics.items()
                    for index in state.partitions
                },
            )
        )
