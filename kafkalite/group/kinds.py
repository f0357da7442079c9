"""The kinds of groups that one shard holds, and what it asks of all of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Protocol
from uuid import UUID

from kafkalite.coordinator.shard import Answer_co, Event

if TYPE_CHECKING:
    from kafkalite.coordinator.shard import StoredRecord
    from kafkalite.group.offsets import CommittedOffset
    from kafkalite.group.transition import TimerKey
    from kafkalite.wire.messages.list_groups import ListedGroup


class GroupKind(Enum):
    """Kinds of groups; the values are the types that ListGroups shows (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class EventOfKind(Event[Answer_co]):
    """An event for groups of one kind.

    Attributes:
        kind: of the groups; whose `Part` handles it.
    """

    __slots__ = ()

    kind: ClassVar[GroupKind]


@dataclass(slots=True, kw_only=True)
class Committer:
    """Author of committed offsets, as OffsetCommit or TxnOffsetCommit names him.

    Attributes:
        epoch: generation or member epoch, -1 if none is said.
        api_version: of OffsetCommit; a TxnOffsetCommit is in a transaction, and has none.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    epoch: int
    api_version: int
    in_transaction: bool = False

    @property
    def says_nothing(self) -> bool:
        """Whether he does not say which member he is."""
        return self.epoch == -1 and not self.member_id and self.group_instance_id is None


def _any_partition(name: str, topic_id: UUID, index: int) -> None:
    """Refuse no partition."""


PartitionCheck = Callable[[str, UUID, int], None]
"""Raises if the committer may not commit for (topic name, topic id or zero, partition)."""

ANY_PARTITION: PartitionCheck = _any_partition


class Group(Protocol):
    """One group of any kind, as the shard sees it.

    Every refusal is a KafkaError, and changes nothing.
    """

    group_id: str

    @property
    def kind(self) -> GroupKind:
        """Kind of the group."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        ...

    @property
    def state_name(self) -> str:
        """Its state as ListGroups shows it."""
        ...

    @property
    def vanishes(self) -> bool:
        """Whether it is removed as soon as it is empty and nothing is committed."""
        ...

    def listed(self) -> "ListedGroup":
        """Return its line in ListGroups."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether it reads a topic, so that the offsets of that are kept."""
        ...

    def check_commit(self, committer: Committer) -> PartitionCheck:
        """Refuse a commit of the group's offsets, or say of which partitions it may be."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse a fetch of the group's offsets; who says nothing of himself has null and -1."""
        ...

    def check_delete(self) -> None:
        """Refuse to delete the group."""
        ...

    def check_delete_offsets(self) -> None:
        """Refuse to delete offsets of topics that it does not read."""
        ...

    def retention_start(self, committed: "CommittedOffset") -> int | None:
        """Return the wall time from which an offset's retention counts; None while it does not.

        Asked of topics that the group does not read.
        """
        ...

    def tombstones(self) -> "list[StoredRecord]":
        """Return the records that remove the group, in their order; offsets are not among them."""
        ...

    def timers(self) -> "Iterable[TimerKey]":
        """Return the keys of all timers that it may have."""
        ...

    def on_topics_changed(self) -> None:
        """Take note that a topic that it reads was created, changed or deleted."""
        ...
