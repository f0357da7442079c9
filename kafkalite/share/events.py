"""Events of a share coordinator's shard, and effects it wants done elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafkalite.coordinator.shard import Answer_co, Event
from kafkalite.share.batches import SharePartitionKey, StateBatch

NO_EPOCH = -1
"""Of who does not want to be compared with anybody."""

NO_COUNT = -1
"""Nothing is known of how many records were finished with."""


class StateEvent(Event[Answer_co]):
    """An event about one share partition, which other brokers may ask about, too."""

    __slots__ = ()

    key: SharePartitionKey


@dataclass(slots=True)
class InitializeState(StateEvent[None]):
    """Begin anew with a share partition; answered with None."""

    key: SharePartitionKey
    state_epoch: int
    start_offset: int


@dataclass(slots=True)
class ReadState(StateEvent["ShareState"]):
    """Request for the state of a share partition, by its new leader; answered by a `ShareState`.

    Attributes:
        leader_epoch: of who asks; from now on leaders of lower epochs are fenced.
    """

    key: SharePartitionKey
    leader_epoch: int


@dataclass(slots=True)
class WriteState(StateEvent[None]):
    """State of records to store; answered with None once it is in the log.

    Attributes:
        start_offset: NO_OFFSET leaves it as it is.
        delivery_complete_count: records from the start offset on that are finished with.
    """

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


@dataclass(slots=True)
class DeleteState(StateEvent[None]):
    """Forget a share partition; answered with None, also where nothing is known of it."""

    key: SharePartitionKey


@dataclass(slots=True)
class ReadSummary(StateEvent["Summary"]):
    """How far a share partition is; answered with a `Summary`."""

    key: SharePartitionKey


@dataclass(slots=True, frozen=True)
class ForgetTopics(Event[None]):
    """Topics are gone: what is known of partitions that no longer exist is dropped."""

    topics: frozenset[str]


@dataclass(slots=True, frozen=True, kw_only=True)
class ShareState:
    """All that is stored of one share partition; timestamps are wall time in milliseconds.

    Attributes:
        snapshot_epoch: number of the last snapshot.
        state_epoch: of the group when it was initialised; lower ones are fenced.
        leader_epoch: of the leader that read it last.
        start_offset: first offset that is not finished with; NO_OFFSET before there is one.
        delivery_complete_count: records from there on that are finished with, NO_COUNT if unknown.
        batches: states of records from the start offset on, in order.
        create_timestamp, write_timestamp: of the last snapshot; they differ if it is a copy.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()
    create_timestamp: int = 0
    write_timestamp: int = 0


@dataclass(slots=True, frozen=True)
class StateUpdate:
    """A change of a `ShareState`, as it is stored."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()


@dataclass(slots=True, frozen=True)
class Summary:
    """How far a share partition is; that of one nobody has heard of is the default."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = -1
    delivery_complete_count: int = NO_COUNT
