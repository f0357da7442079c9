"""One consumer group: what the log says of it, and what follows from that (KIP-848).

Three numbers move it. The group epoch goes up when members, subscriptions or topics change; the
target epoch follows when the assignor has run; each member's epoch follows when the member has
given up what the target takes from it. All of it is hard state and changes in `replay` alone, but
`refresh_epoch` and `resolving_until_ms`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.classic.subscription import CONSUMER_PROTOCOL_TYPE
from kafkalite.group.consumer import records
from kafkalite.group.consumer.member import ConsumerMember, Epochs, Target
from kafkalite.group.consumer.records import Resolution
from kafkalite.group.kinds import ANY_PARTITION, Committer, GroupKind, PartitionCheck
from kafkalite.group.offsets import CommittedOffset
from kafkalite.group.subscribers import Subscribers
from kafkalite.group.transition import TimerKey, TimerKind
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.list_groups import ListedGroup

INITIAL_EPOCH = 1
NOBODY = -1
"""The epoch of a partition that no member has."""
FIRST_COMMIT_OF_CONSUMERS = 9
MEMBER_TIMERS = (TimerKind.SESSION, TimerKind.REBALANCE, TimerKind.JOIN, TimerKind.SYNC)

EMPTY, ASSIGNING, RECONCILING, STABLE = "Empty", "Assigning", "Reconciling", "Stable"


@dataclass(slots=True)
class NameCount:
    """How often a topic is subscribed to: by members that name it, by patterns."""

    by_name: int = 0
    by_pattern: int = 0


class ConsumerGroup:
    """Members, epochs and assignments of one group; a `kinds.Group`.

    Attributes:
        group_epoch, target_epoch: see above; both 1 in a new group.
        target_timestamp_ms: wall time at which the target was computed, 0 if never.
        metadata_hash: of the subscribed topics, at the group epoch.
        has_partition_metadata: a broker before 4.1 wrote a record of type 4, which is to go.
        targets: by member. A member may have one before or without being known (compaction).
        partition_epochs: the member epoch of whoever has a partition, by topic and partition.
        names: subscribed topics.
        patterns: how many members have a pattern.
        resolutions: of patterns.
        assignors: how many members want an assignor.
        refresh_epoch: group epoch for which topics were looked at; None if they are to be.
        resolving_until_ms: monotonic time up to which somebody looks for the patterns' topics.
    """

    def __init__(self, group_id: str, subscribers: Subscribers) -> None:
        self.group_id = group_id
        self.group_epoch = INITIAL_EPOCH
        self.target_epoch = INITIAL_EPOCH
        self.target_timestamp_ms = 0
        self.metadata_hash = 0
        self.has_partition_metadata = False
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Target] = {}
        self.static_members: dict[str, str] = {}
        self.partition_epochs: dict[UUID, dict[int, int]] = {}
        self.names: dict[str, NameCount] = {}
        self.patterns: dict[str, int] = {}
        self.resolutions: dict[str, Resolution] = {}
        self.assignors: dict[str, int] = {}
        self.classic_members = 0
        self.refresh_epoch: int | None = None
        self.resolving_until_ms: int | None = None
        self._subscribers = subscribers

    # --- What is asked of groups of every kind --------------------------------------------------

    @property
    def kind(self) -> GroupKind:
        """Kind of the group."""
        return GroupKind.CONSUMER

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def state_name(self) -> str:
        """Its state, which follows from the epochs."""
        if not self.members:
            return EMPTY
        if self.group_epoch > self.target_epoch:
            return ASSIGNING
        is_stable = all(m.is_reconciled_to(self.target_epoch) for m in self.members.values())
        return STABLE if is_stable else RECONCILING

    @property
    def vanishes(self) -> bool:
        """Whether it goes when it is empty and nothing is committed."""
        return True

    def listed(self) -> ListedGroup:
        """Return its line in ListGroups."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            group_state=self.state_name,
            group_type=self.kind.value,
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads a topic, by its name or a pattern."""
        return topic in self.names

    def check_commit(self, committer: Committer) -> PartitionCheck:
        """Refuse a commit of somebody who is no member, or at another epoch.

        An older epoch will do for partitions that the member has had since then (KIP-1251).

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH, or
                ILLEGAL_GENERATION where the committer speaks the classic protocol.
        """
        if committer.epoch < 0 and not self.members:
            return ANY_PARTITION
        if committer.in_transaction and committer.says_nothing:
            return ANY_PARTITION
        member = self.member(committer.member_id)
        if (
            not committer.in_transaction
            and not member.uses_classic_protocol
            and committer.api_version < FIRST_COMMIT_OF_CONSUMERS
        ):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "members of consumer groups commit with OffsetCommit 9 or later",
            )
        if committer.epoch == member.member_epoch:
            return ANY_PARTITION
        code = ErrorCode.STALE_MEMBER_EPOCH
        if member.uses_classic_protocol or committer.in_transaction:
            code = ErrorCode.ILLEGAL_GENERATION
        if committer.epoch > member.member_epoch:
            raise _stale(code, committer.epoch, member)

        def check(name: str, topic_id: UUID, index: int) -> None:
            del name
            since = member.assignment_epoch(topic_id, index)
            if since is None or committer.epoch < since:
                raise _stale(code, committer.epoch, member)

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse a fetch of somebody who is no member, or at another epoch.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION.
        """
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            is_classic = member.uses_classic_protocol
            code = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
            raise _stale(code, member_epoch, member)

    def check_delete(self) -> None:
        """Refuse to delete a group with members.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} has members")

    def check_delete_offsets(self) -> None:
        """Refuse nothing: which topics the group reads is known."""

    def retention_start(self, committed: CommittedOffset) -> int | None:
        """Return when the offset was committed: nobody reads its topic."""
        return committed.commit_timestamp_ms

    def tombstones(self) -> list[StoredRecord]:
        """Return the records that remove the group, in the order that Kafka's replay wants."""
        return self.tombstones_of(self.members)

    def tombstones_of(self, member_ids: Iterable[str]) -> list[StoredRecord]:
        """Return the records that remove the group if these are its members."""
        group_id, ids = self.group_id, [*member_ids]
        return [
            *(records.current_tombstone(group_id, member_id) for member_id in ids),
            *(records.target_tombstone(group_id, member_id) for member_id in ids),
            records.target_metadata_tombstone(group_id),
            *(records.member_tombstone(group_id, member_id) for member_id in ids),
            *(records.pattern_tombstone(group_id, pattern) for pattern in self.resolutions),
            records.partition_metadata_tombstone(group_id),
            records.group_tombstone(group_id),
        ]

    def timers(self) -> Iterable[TimerKey]:
        """Return the keys of all timers that it may have."""
        for member_id in self.members:
            yield from self.timers_of(member_id)

    def timers_of(self, member_id: str) -> Iterable[TimerKey]:
        """Return the keys of all timers that a member may have."""
        for kind in MEMBER_TIMERS:
            yield (kind, self.group_id, member_id)

    def on_topics_changed(self) -> None:
        """Have the next heartbeat look at the topics."""
        self.refresh_epoch = None

    # --- What others ask ------------------------------------------------------------------------

    @property
    def is_refresh_due(self) -> bool:
        """Whether topics are to be looked at: they changed, or the record of it was refused."""
        return self.refresh_epoch is None or self.group_epoch < self.refresh_epoch

    def has_settled(self, member: ConsumerMember) -> bool:
        """Whether there is nothing to decide about a member that says nothing new.

        So it is with nearly all heartbeats.
        """
        return (
            self.group_epoch == self.target_epoch
            and member.is_reconciled_to(self.target_epoch)
            and not self.is_refresh_due
            and not self.patterns
        )

    def member(self, member_id: str) -> ConsumerMember:
        """Return a member.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            raise self._unknown(f"member {member_id!r}")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member that has an instance id; None if nobody has."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def check_identity(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """Return the member that a request comes from.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another process has taken over
                the static member's place.
        """
        if instance_id is None:
            return self.member(member_id)
        member = self.static_member(instance_id)
        if member is None:
            raise self._unknown(f"instance {instance_id!r}")
        if member.member_id != member_id:
            raise KafkaError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"group {self.group_id}: instance {instance_id} is now {member.member_id}",
            )
        return member

    def target_of(self, member: ConsumerMember) -> Target:
        """Return what a member is to have; a static one what its place is to have."""
        if member.instance_id is None:
            return self.targets.get(member.member_id, {})
        owner = self.static_members.get(member.instance_id)
        return {} if owner is None else self.targets.get(owner, {})

    def partition_epoch(self, topic_id: UUID, partition: int) -> int:
        """Return the epoch of whoever has a partition; NOBODY if nobody has."""
        return self.partition_epochs.get(topic_id, {}).get(partition, NOBODY)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether somebody else still has a partition of the member's target."""
        return any(
            partition not in member.assigned.get(topic_id, {})
            and self.partition_epoch(topic_id, partition) != NOBODY
            for topic_id, partitions in self.targets.get(member.member_id, {}).items()
            for partition in partitions
        )

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether all classic members have one of these protocols too."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        counts: dict[str, int] = {}
        for member in self.members.values():
            for name in () if member.classic is None else dict(member.classic.protocols):
                counts[name] = counts.get(name, 0) + 1
        return any(counts.get(name, 0) == self.classic_members for name in names)

    def preferred_assignor(
        self, before: ConsumerMember | None = None, after: ConsumerMember | None = None
    ) -> str | None:
        """Return the assignor that most members want, None if nobody wants one.

        Of equals, the one that Kafka's hash map has first: "uniform", but of those that there are
        already, what this member alone brings along.

        Args:
            before: a member.
            after: what it is about to be.
        """
        counts = {name: self.assignors[name] for name in sorted(self.assignors, reverse=True)}
        _count(counts, None if before is None else before.server_assignor, -1)
        wanted = None if after is None else after.server_assignor
        if wanted is not None and wanted not in counts:
            counts = {wanted: 0, **counts}
        _count(counts, wanted, 1)
        return max(counts, key=counts.__getitem__, default=None)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return all topics that a member reads; of a pattern that is not resolved, none."""
        return topics_of(member, self.resolutions)

    def names_with(self, changes: Mapping[str, NameCount]) -> dict[str, NameCount]:
        """Return the subscribed topics as they are after changes of their counts."""
        names = dict(self.names)
        for name, change in changes.items():
            known = names.get(name)
            count = change
            if known is not None:
                count = NameCount(
                    known.by_name + change.by_name, known.by_pattern + change.by_pattern
                )
            if count.by_name or count.by_pattern:
                names[name] = count
            else:
                names.pop(name, None)
        return names

    # --- Replay ---------------------------------------------------------------------------------

    def put_member(self, member: ConsumerMember) -> None:
        """Add a member, or change it."""
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._recount(before, member)
        if before is not None:
            self._release(before)
        for epochs in (member.assigned, member.revoking):
            for topic_id, partitions in epochs.items():
                held = self.partition_epochs.setdefault(topic_id, {})
                for partition in partitions:
                    epoch = held.get(partition)
                    if epoch is None or epoch < member.member_epoch:
                        held[partition] = member.member_epoch
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def drop_member(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        before = self.members.pop(member_id, None)
        if before is None:
            return
        self._recount(before, None)
        self._release(before)
        if before.instance_id is not None and self.static_members[before.instance_id] == member_id:
            del self.static_members[before.instance_id]

    def put_resolution(self, pattern: str, resolution: Resolution | None) -> None:
        """Set what topics a pattern stands for; None forgets it."""
        before = self.resolutions.pop(pattern, None)
        if before is not None:
            self._count_names(before.topics, by_pattern=-1)
        if resolution is not None:
            self.resolutions[pattern] = resolution
            self._count_names(resolution.topics, by_pattern=1)

    def forget_subscriptions(self) -> None:
        """Hear of no topic any more: the group is removed."""
        for name in self.names:
            self._subscribers.discard(name, self.group_id)

    def _release(self, member: ConsumerMember) -> None:
        """Free what a member had, unless it was given to somebody else at another epoch."""
        for epochs in (member.assigned, member.revoking):
            for topic_id, partitions in epochs.items():
                held = self.partition_epochs.get(topic_id, {})
                for partition in partitions:
                    if held.get(partition) == member.member_epoch:
                        del held[partition]
                if not held:
                    self.partition_epochs.pop(topic_id, None)

    def _recount(self, before: ConsumerMember | None, after: ConsumerMember | None) -> None:
        for member, change in ((before, -1), (after, 1)):
            if member is None:
                continue
            _count(self.assignors, member.server_assignor, change)
            _count(self.patterns, member.pattern, change)
            self.classic_members += change * member.uses_classic_protocol
        old = () if before is None else before.subscribed_topic_names
        new = () if after is None else after.subscribed_topic_names
        if old != new:
            self._count_names(new, by_name=1)
            self._count_names(old, by_name=-1)

    def _count_names(self, names: Iterable[str], *, by_name: int = 0, by_pattern: int = 0) -> None:
        for name in names:
            count = self.names.get(name)
            if count is None:
                count = self.names[name] = NameCount()
                self._subscribers.add(name, self.group_id)
            count.by_name += by_name
            count.by_pattern += by_pattern
            if not count.by_name and not count.by_pattern:
                del self.names[name]
                self._subscribers.discard(name, self.group_id)

    def _unknown(self, who: str) -> KafkaError:
        return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id} has no {who}")


def topics_of(member: ConsumerMember, resolutions: Mapping[str, Resolution]) -> frozenset[str]:
    """Return all topics that a member reads, as far as its pattern is resolved."""
    names = frozenset(member.subscribed_topic_names)
    found = None if member.pattern is None else resolutions.get(member.pattern)
    return names if found is None else names | found.topics


def away(member: ConsumerMember, epoch: int) -> ConsumerMember:
    """Return a static member that has left for a while; its partitions stay with its place."""
    assigned: Epochs = {
        topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()
    }
    nothing: Epochs = {}
    return replace(member, member_epoch=epoch, assigned=assigned, revoking=nothing)


def _count(counts: dict[str, int], name: str | None, change: int) -> None:
    if name is None:
        return
    count = counts.get(name, 0) + change
    if count:
        counts[name] = count
    else:
        counts.pop(name, None)


def _stale(code: ErrorCode, epoch: int, member: ConsumerMember) -> KafkaError:
    return KafkaError(
        code, f"member {member.member_id} is at epoch {member.member_epoch}, the request at {epoch}"
    )
