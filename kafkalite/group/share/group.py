"""One share group: its members, what they are to have, and its share partitions.

All of it is hard state, which replay changes, but what is marked soft.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.kinds import Committer, GroupKind, PartitionCheck
from kafkalite.group.offsets import CommittedOffset
from kafkalite.group.transition import TimerKey, TimerKind
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.list_groups import ListedGroup
from kafkalite.wire.stored import share_group as stored

EMPTY, STABLE = "Empty", "Stable"
PROTOCOL_TYPE = "share"
INITIAL_EPOCH = 1
NO_TARGET_EPOCH = -1
LEAVE_EPOCH = -1

Partitions = dict[UUID, tuple[int, ...]]
"""Partitions by topic id, ascending."""


@dataclass(slots=True, frozen=True, kw_only=True)
class ShareMember:
    """One member; names are those of its records."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    """Sorted, each once."""
    member_epoch: int = 0
    previous_member_epoch: int = 0
    assigned: Partitions = field(default_factory=dict)

    def has_subscription_of(self, other: "ShareMember") -> bool:
        """Whether the record of its subscription would be that of the other."""
        return (
            self.rack_id == other.rack_id
            and self.client_id == other.client_id
            and self.client_host == other.client_host
            and self.subscribed_topic_names == other.subscribed_topic_names
        )


@dataclass(slots=True, frozen=True)
class TopicState:
    """Share partitions of one topic: its name, and their indexes, ascending."""

    name: str
    partitions: tuple[int, ...]

    def __or__(self, other: "TopicState") -> "TopicState":
        return TopicState(other.name, tuple(sorted({*self.partitions, *other.partitions})))

    def without(self, partitions: Iterable[int]) -> "TopicState":
        """Return what is left without some partitions."""
        gone = {*partitions}
        return TopicState(self.name, tuple(each for each in self.partitions if each not in gone))


@dataclass(slots=True, frozen=True)
class StatePartitions:
    """Which share partitions a group has at its share coordinators (record 15)."""

    initializing: Mapping[UUID, TopicState] = field(default_factory=dict)
    initialized: Mapping[UUID, TopicState] = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)


class ShareGroup:
    """A share group; a `kinds.Group`."""

    kind = GroupKind.SHARE
    vanishes = False

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.target_epoch = INITIAL_EPOCH
        self.target_timestamp_ms = 0
        self.states: StatePartitions | None = None
        self.states_changed_ms: int | None = None
        """Soft: wall time of the last change of `states`; None until the heartbeat after the one
        that made the group, whose object is gone."""
        self.looked_at_epoch: int | None = None
        """Soft: the group epoch when the hash of its topics was looked at last; None if they may
        be others since."""
        self.topic_counts: dict[str, int] = {}
        """How many members read each topic."""

    # --- As every group -------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def state_name(self) -> str:
        """Its state as ListGroups shows it."""
        return STABLE if self.members else EMPTY

    def listed(self) -> ListedGroup:
        """Return its line in ListGroups."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=PROTOCOL_TYPE,
            group_state=self.state_name,
            group_type=self.kind.value,
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads a topic."""
        return topic in self.topic_counts

    def check_commit(self, committer: Committer) -> PartitionCheck:
        """Refuse: share groups have no committed offsets (rule 390)."""
        del committer
        raise self._is_no_consumer_group()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Let it be asked: there are no offsets (rule 390)."""
        del member_id, member_epoch

    def check_delete(self) -> None:
        """Refuse to delete a group with members.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if self.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} has {len(self.members)} members"
            )

    def check_delete_offsets(self) -> None:
        """Refuse (rule 390)."""
        raise self._is_no_consumer_group()

    def retention_start(self, committed: CommittedOffset) -> int | None:
        """Return None: what is committed under its name by mistake stays."""
        del committed
        return None

    def tombstones(self) -> list[StoredRecord]:
        """Return the records that remove the group (rule 394)."""
        group_id = self.group_id
        records = []
        for member_id in self.members:
            records += member_tombstones(group_id, member_id)
        records.append(
            StoredRecord(stored.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None)
        )
        if self.states is not None:
            records.append(
                StoredRecord(stored.ShareGroupStatePartitionMetadataKey(group_id=group_id), None)
            )
        records.append(StoredRecord(stored.ShareGroupMetadataKey(group_id=group_id), None))
        return records

    def timers(self) -> Iterator[TimerKey]:
        """Yield the keys of all timers that it may have."""
        for member_id in self.members:
            yield session_timer(self.group_id, member_id)

    def on_topics_changed(self) -> None:
        """Have the hash of the topics looked at by the next heartbeat."""
        self.looked_at_epoch = None

    def _is_no_consumer_group(self) -> KafkaError:
        return KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group."
        )

    # --- Members --------------------------------------------------------------------------------

    def member(self, member_id: str) -> ShareMember:
        """Return a member.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID.
        """
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def put_member(self, member: ShareMember) -> None:
        """Add a member, or replace it."""
        self._count(self.members.get(member.member_id), -1)
        self.members[member.member_id] = member
        self._count(member, 1)

    def remove_member(self, member_id: str) -> None:
        """Forget a member, if it is there."""
        self._count(self.members.pop(member_id, None), -1)

    def counts_with(self, before: ShareMember | None, after: ShareMember | None) -> dict[str, int]:
        """Return how many members would read each topic were one member another."""
        counts = dict(self.topic_counts)
        for member, change in ((before, -1), (after, 1)):
            for name in () if member is None else member.subscribed_topic_names:
                counts[name] = counts.get(name, 0) + change
                if not counts[name]:
                    del counts[name]
        return counts

    def _count(self, member: ShareMember | None, change: int) -> None:
        if member is None:
            return
        self.topic_counts = self.counts_with(
            member if change < 0 else None, member if change > 0 else None
        )

    @property
    def is_settled(self) -> bool:
        """Whether all members have what they are to have, and that is all there is."""
        return (
            self.target_epoch == self.group_epoch
            and not self.has_unassigned
            and (self.states is None or not self.states.initializing)
            and all(member.member_epoch == self.target_epoch for member in self.members.values())
        )

    # --- Share partitions -----------------------------------------------------------------------

    @property
    def has_unassigned(self) -> bool:
        """Whether there are initialised partitions that nobody is to have, or other ones."""
        if not self.members or self.states is None:
            return False
        assigned: dict[UUID, set[int]] = {}
        for target in self.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            assigned.get(topic_id) != set(state.partitions)
            for topic_id, state in self.states.initialized.items()
            if state.name in self.topic_counts
        )


def session_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of a member's session timer."""
    return (TimerKind.SESSION, group_id, member_id)


def member_tombstones(group_id: str, member_id: str) -> list[StoredRecord]:
    """Return the records that remove a member, in Kafka's order."""
    return [
        StoredRecord(key(group_id=group_id, member_id=member_id), None)
        for key in (
            stored.ShareGroupCurrentMemberAssignmentKey,
            stored.ShareGroupTargetAssignmentMemberKey,
            stored.ShareGroupMemberMetadataKey,
        )
    ]
