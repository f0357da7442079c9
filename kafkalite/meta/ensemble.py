"""A store that brokers of one process share, with the mishaps of ZooKeeper at will.

The simulator and the tests use it, and `processes` for several brokers on one machine. It takes no
threads and no randomness, so a run is the same each time; time is trio's, also where a mock clock
turns it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from kafkalite.meta.changes import Change, snapshot
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.store import (
    NO_CONTROLLER,
    BrokerIdTaken,
    CommitEvent,
    ControllerChanged,
    FellBehind,
    LiveBrokers,
    MetadataStoreError,
    OutcomeUnknown,
    SessionLost,
    SessionResumed,
    SessionSuspended,
    Stored,
    StoreEvent,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

CHANGES_KEPT: Final = 1_000


@dataclass(slots=True, eq=False)
class _Session:
    """Session of a connected broker.

    Attributes:
        expires_at: when it ends unless it is heard of until then; trio's time.
        is_remembered: it is one of an earlier run, which its broker may still take up.
    """

    broker: BrokerImage | None = None
    expires_at: float = math.inf
    is_alive: bool = True
    is_remembered: bool = False


@dataclass(slots=True)
class Ensemble:
    """State that all stores of a cluster share.

    Attributes:
        session_timeout_s: how long a session outlives the connection.
        delay_s: of each answer.
        changes_kept: commits that can be followed one by one; who misses more loads it all.
    """

    session_timeout_s: float = 18.0
    delay_s: float = 0.0
    changes_kept: int = CHANGES_KEPT
    id: str = ""
    image: Image = field(default_factory=Image)
    epoch: int = 0
    controller: _Session | None = None
    commits: list[CommitEvent] = field(default_factory=list)
    sessions: list[_Session] = field(default_factory=list)
    broker_epoch: int = 0
    _changed: trio.Event = field(default_factory=trio.Event)

    def store(self) -> "EnsembleStore":
        """Return a store for one more broker."""
        return EnsembleStore(self)

    @property
    def controller_id(self) -> int:
        """The broker that is controller, -1 if none is."""
        if self.controller is None or self.controller.broker is None:
            return NO_CONTROLLER
        return self.controller.broker.broker_id

    def end(self, session: _Session) -> None:
        """End a session: what it held is free."""
        session.is_alive = False
        if session in self.sessions:
            self.sessions.remove(session)
        if self.controller is session:
            self.controller = None
        self.wake()

    def expire(self) -> None:
        """End the sessions whose time is up."""
        now = trio.current_time()
        for session in [each for each in self.sessions if each.expires_at <= now]:
            self.end(session)

    def live(self) -> dict[int, BrokerImage]:
        """Return the brokers that have a session, by id."""
        brokers = [each.broker for each in self.sessions if each.broker is not None]
        return {broker.broker_id: broker for broker in sorted(brokers, key=_id_of)}

    def next_expiry(self) -> float:
        """Return when the next session ends, by trio's clock."""
        return min((each.expires_at for each in self.sessions), default=math.inf)

    def remember(self, timeout_s: float) -> None:
        """Let the brokers of the image live until they have had time to register again."""
        until = trio.current_time() + timeout_s
        for broker in self.image.brokers.values():
            self.sessions.append(_Session(broker, until, is_remembered=True))

    def forget_remembered(self, broker_id: int) -> int:
        """End what is remembered of a broker that is here; return its epoch there, -1 without."""
        epoch = -1
        for each in [each for each in self.sessions if each.is_remembered]:
            if each.broker is not None and each.broker.broker_id == broker_id:
                epoch = each.broker.broker_epoch
                self.end(each)
        return epoch

    def append(self, commit: CommitEvent) -> None:
        """Take up one more commit."""
        self.image = replace(self.image.apply(commit.changes), version=commit.version)
        self.commits.append(commit)
        del self.commits[: -self.changes_kept]
        self.wake()

    def wake(self) -> None:
        """Let all stores look at what is new."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait(self) -> None:
        """Return when something may have changed, or a session has ended."""
        changed = self._changed
        with trio.move_on_at(self.next_expiry()):
            await changed.wait()
        self.expire()


def _id_of(broker: BrokerImage) -> int:
    return broker.broker_id


class EnsembleStore:
    """One broker's access to the ensemble; as `MetadataStore`, and more for those who test."""

    shared: Final = True

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._session = _Session()
        self._own_epoch = -1
        self._is_cut_off = False
        self._loses_answers = False
        self._version = 0
        self._told_controller: tuple[int, int] | None = None
        self._told_brokers: dict[int, BrokerImage] | None = None
        self._told_suspended = False

    # --- Mishaps ---------------------------------------------------------------------------------

    def cut_off(self) -> None:
        """Part the broker from the ensemble; its session ends after the session timeout."""
        self._is_cut_off = True
        self._session.expires_at = trio.current_time() + self._ensemble.session_timeout_s
        self._ensemble.wake()

    def reconnect(self) -> None:
        """Join both again; it shows then whether the session has survived."""
        self._ensemble.expire()
        self._is_cut_off = False
        self._session.expires_at = math.inf
        self._ensemble.wake()

    def expire_session(self) -> None:
        """End the session at once, as for a broker that was stopped for too long."""
        self._ensemble.end(self._session)

    def lose_next_answer(self) -> None:
        """Let the next commit happen and its answer get lost."""
        self._loses_answers = True

    # --- MetadataStore ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect."""
        await self._pause()
        if self._is_cut_off:
            raise MetadataStoreError("the ensemble in memory is not reached")
        self._ensemble.sessions.append(self._session)

    async def cluster_id(self, proposed: str) -> str:
        """Return the id of the cluster, which is `proposed` if it had none."""
        await self._ask()
        self._ensemble.id = self._ensemble.id or proposed
        return self._ensemble.id

    async def load(self, known_version: int = -1) -> Stored | None:
        """Return all metadata."""
        stored = await self.current(known_version)
        self._version = self._ensemble.image.version
        return stored

    async def current(self, known_version: int = -1) -> Stored | None:
        """Return the same, for somebody who follows the events by himself."""
        await self._ask()
        image = self._ensemble.image
        return None if known_version == image.version else Stored(image.version, snapshot(image))

    async def register(self, broker: BrokerImage) -> int:
        """Register; wait for a dead session's registration to go."""
        deadline = trio.current_time() + self._ensemble.session_timeout_s
        while True:
            await self._ask()
            before = self._ensemble.forget_remembered(broker.broker_id)
            others = [
                each
                for each in self._ensemble.sessions
                if each is not self._session
                and each.broker is not None
                and each.broker.broker_id == broker.broker_id
            ]
            if not others:
                break
            if trio.current_time() >= deadline:
                raise BrokerIdTaken(f"another broker is registered as node.id {broker.broker_id}")
            with trio.move_on_at(deadline):
                await self._ensemble.wait()
        known = self._session.broker
        if known is not None:
            epoch = known.broker_epoch
        elif before >= 0 and before == broker.broker_epoch:
            epoch = before  # the same process: only the first one was away
        else:
            self._ensemble.broker_epoch += 1
            epoch = self._ensemble.broker_epoch
        self._session.broker = replace(broker, broker_epoch=epoch)
        self._ensemble.wake()
        return epoch

    async def campaign(self) -> int | None:
        """Become controller if nobody is."""
        await self._ask()
        ensemble = self._ensemble
        if ensemble.controller is None:
            ensemble.controller = self._session
            ensemble.epoch += 1
            self._own_epoch = ensemble.epoch
            ensemble.wake()
        if ensemble.controller is not self._session:
            return None
        self._told_brokers = None
        return self._own_epoch

    async def commit(self, before: Image, after: Image, changes: Sequence[Change]) -> int:
        """Append one commit."""
        # The changes are made at once, so that a cancellation comes before or after.
        await self._ask()
        ensemble = self._ensemble
        if ensemble.epoch != self._own_epoch:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another broker became controller")
        if ensemble.image.version != before.version:
            raise OutcomeUnknown("the metadata are newer than was thought")
        ensemble.append(CommitEvent(version=after.version, changes=list(changes)))
        self._version = max(self._version, after.version)
        if self._loses_answers:
            self._loses_answers = False
            raise OutcomeUnknown("the answer was lost")
        return after.version

    async def next_event(self) -> StoreEvent:
        """Return what is new."""
        while True:
            await trio.lowlevel.checkpoint_if_cancelled()  # none is taken and lost
            event = self._take_event()
            if event is not None:
                return event
            await self._ensemble.wait()

    async def compact(self, image: Image) -> None:
        """Do nothing: the ensemble sums up by itself."""

    def close(self) -> None:
        """End the session."""
        self._ensemble.end(self._session)

    # --- Inside ----------------------------------------------------------------------------------

    def follow_from(self, version: int) -> None:
        """Let `next_event` begin with the controller, and the commits after a version."""
        self._version = version
        self._told_controller = None

    def _take_event(self) -> StoreEvent | None:
        if self._is_cut_off:
            if self._told_suspended:
                return None
            self._told_suspended = True
            return SessionSuspended()
        if not self._session.is_alive:
            self._session = _Session()
            self._ensemble.sessions.append(self._session)
            self._own_epoch = -1
            self._told_suspended = False
            self._told_controller = None
            return SessionLost()
        if self._told_suspended:
            self._told_suspended = False
            return SessionResumed()
        return self._take_news()

    def _take_news(self) -> StoreEvent | None:
        ensemble = self._ensemble
        controller = (ensemble.controller_id, ensemble.epoch)
        if controller != self._told_controller:
            self._told_controller = controller
            return ControllerChanged(broker_id=controller[0], epoch=controller[1])
        if self._version < ensemble.image.version:
            missed = ensemble.image.version - self._version
            if missed > len(ensemble.commits):
                self._version = ensemble.image.version
                return FellBehind()
            commit = ensemble.commits[-missed]
            self._version = commit.version
            return commit
        live = ensemble.live()
        if ensemble.controller is self._session and live != self._told_brokers:
            self._told_brokers = live
            return LiveBrokers(brokers=live)
        return None

    async def _ask(self) -> None:
        await self._pause()
        self._ensemble.expire()
        if self._is_cut_off or not self._session.is_alive:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the ensemble in memory is not reached")

    async def _pause(self) -> None:
        if self._ensemble.delay_s:
            await trio.sleep(self._ensemble.delay_s)
        else:
            await trio.lowlevel.checkpoint()
