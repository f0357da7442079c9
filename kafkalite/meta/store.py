"""The interface of all metadata stores.

`meta/local.py` is a lone broker's file, `meta/zookeeper/store.py` a ZooKeeper ensemble that brokers
share, `meta/ensemble.py` the same in memory for tests and the simulator.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kafkalite.meta.changes import Change
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.meta.events import Event

NO_CONTROLLER = -1

ReadOthers = Callable[[Image], Awaitable[Sequence[Change]]]
"""Returns what others than brokers made of an image."""


class Stored(NamedTuple):
    """Content of a store: changes that make the image, and the version that it then has."""

    version: int
    changes: Sequence[Change]


@dataclass(slots=True, frozen=True, kw_only=True)
class CommitEvent:
    """A commit by whichever broker is controller, also by this one.

    It is the next one after that of the last `CommitEvent` or `load`, so gaps are seen by its
    version.
    """

    version: int
    changes: Sequence[Change]


@dataclass(slots=True, frozen=True, kw_only=True)
class LiveBrokers:
    """All brokers with a session, by id. Only the controller is told."""

    brokers: Mapping[int, BrokerImage]


@dataclass(slots=True, frozen=True, kw_only=True)
class ControllerChanged:
    """Another broker is controller, or nobody (NO_CONTROLLER, with the epoch of the last one)."""

    broker_id: int
    epoch: int


@dataclass(slots=True, frozen=True)
class FellBehind:
    """Commits were missed that the store does not hold one by one any more: load again."""


@dataclass(slots=True, frozen=True, kw_only=True)
class WrittenByOthers:
    """Others than brokers may have written into the store. Only the controller is told.

    Attributes:
        read: returns what they made of an image, to be committed as it is. To be called while
            nobody commits, and again until nothing is left.
    """

    read: ReadOthers


class Requests(Protocol):
    """Requests of others than brokers to the controller, by nodes of the store."""

    async def read(self, image: Image) -> "Sequence[tuple[str, Sequence[Event]]]":
        """Return the nodes, and what each asks for."""
        ...

    async def answer(self, path: str, results: Sequence[object]) -> None:
        """Remove a node, for it was decided about what it asks for; errors are told."""
        ...


@dataclass(slots=True, frozen=True, kw_only=True)
class AskedByOthers:
    """There may be such requests. Only the controller is told."""

    requests: Requests


@dataclass(slots=True, frozen=True)
class SessionSuspended:
    """The store is not reached. Others may soon take this broker for dead: decide nothing."""


@dataclass(slots=True, frozen=True)
class SessionResumed:
    """The store is reached again, in time: what this broker held it still holds."""


@dataclass(slots=True, frozen=True)
class SessionLost:
    """The store is reached again, too late: this broker is not registered and not controller."""


StoreEvent = (
    CommitEvent
    | LiveBrokers
    | ControllerChanged
    | FellBehind
    | WrittenByOthers
    | AskedByOthers
    | SessionSuspended
    | SessionResumed
    | SessionLost
)


class MetadataStore(Protocol):
    """Keeps commits in order, each whole or not at all (or in parts, each of which makes sense).

    Attributes:
        shared: whether other brokers use it too.
    """

    @property
    def shared(self) -> bool:
        """Whether other brokers use it too; if not, this broker is controller from the start."""
        ...

    async def open(self) -> None:
        """Connect, and make what every cluster needs to be there. Called once, first.

        Raises:
            MetadataStoreError: it cannot be reached.
        """
        ...

    async def cluster_id(self, proposed: str) -> str:
        """Return the id of the cluster, which is `proposed` if it had none."""
        ...

    async def load(self, known_version: int = -1) -> Stored | None:
        """Return what was committed; None if `known_version` is still the newest.

        `next_event` goes on after this version.

        Raises:
            MetadataStoreError: what is stored cannot be read.
            KafkaError: the store is not reached at the moment (of a shared store).
        """
        ...

    async def register(self, broker: BrokerImage) -> int:
        """Show the others that this broker lives, as long as it does; return its broker epoch.

        Called again in the same session it only replaces the addresses.

        Raises:
            BrokerIdTaken: another broker lives under this id.
            KafkaError: the store is not reached at the moment.
        """
        ...

    async def campaign(self) -> int | None:
        """Become controller if nobody is; return the controller epoch, None if somebody is.

        From then on no earlier controller can commit. Load before deciding.

        Raises:
            KafkaError: the store is not reached at the moment.
        """
        ...

    async def commit(self, before: Image, after: Image, changes: Sequence[Change]) -> int:
        """Return when these changes would survive a crash: the version that the store then has.

        It is that of `after`, or a later one if the commit was split. Once begun it is not
        cancelled.

        Args:
            before: the image with the newest version.
            after: the image that the changes make of it.
            changes: at least one.

        Raises:
            OutcomeUnknown: perhaps committed. Load before the next commit.
            StoreConflict: nothing was committed, and loading changes nothing.
            KafkaError: nothing was committed: NOT_CONTROLLER if another broker took over,
                KAFKA_STORAGE_ERROR, INVALID_REQUEST if it is too much for the store.
        """
        ...

    async def next_event(self) -> StoreEvent:
        """Wait for what happens next, and return it. May be cancelled; nothing is then lost."""
        ...

    async def compact(self, image: Image) -> None:
        """Replace the history by the image if that is due; a failure leaves the history."""
        ...

    def close(self) -> None:
        """Give back what is held open; others are told at once that this broker is gone."""
        ...


class MetadataStoreError(Exception):
    """Metadata that cannot be read or reached; the message is one line and says where they are."""


class BrokerIdTaken(MetadataStoreError):
    """Another broker lives under this id."""


class OutcomeUnknown(KafkaError):
    """A commit that may have happened or not."""

    def __init__(self, message: str) -> None:
        # Clients find the controller anew and ask again: what was asked for may be there by then.
        super().__init__(ErrorCode.NOT_CONTROLLER, message)


class StoreConflict(OutcomeUnknown):
    """A commit that did not happen, though nobody else committed: a node is not as it should be."""
