"""The metadata store of level 1: sessions, one controller, commits in order; after ZooKeeper."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kafkalite.meta.changes import Change
from kafkalite.meta.image import BrokerImage, Image

NO_BROKER = -1


@dataclass(slots=True)
class Session:
    """A broker that lives, as far as the store knows."""

    broker_epoch: int
    incarnation: int
    expires_ms: int


class ModelStore:
    """Content of an ensemble. Its callers bring the delays.

    Args:
        image: to begin with.
        session_timeout_ms: how long a broker may be silent.
        takes_over: whether a broker that is back replaces its old session.
        on_commit: told of the image before and after, and the changes.
        on_sessions: told when a session begins or ends.
    """

    def __init__(
        self,
        image: Image,
        *,
        session_timeout_ms: int,
        takes_over: bool,
        on_commit: Callable[[Image, Image, Sequence[Change]], object],
        on_sessions: Callable[[], object],
    ) -> None:
        self.image = image
        self.sessions: dict[int, Session] = {}
        self.controller_id = NO_BROKER
        self.controller_epoch = 0
        self._session_timeout_ms = session_timeout_ms
        self._takes_over = takes_over
        self._on_commit = on_commit
        self._on_sessions = on_sessions
        self._transactions = 0

    def live(self) -> dict[int, BrokerImage]:
        """Return the brokers with a session."""
        return {
            broker_id: BrokerImage(
                broker_id=broker_id, endpoints={}, broker_epoch=session.broker_epoch
            )
            for broker_id, session in self.sessions.items()
        }

    def heartbeat(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Let a session live on; False if it has ended."""
        session = self.sessions.get(broker_id)
        if session is None or session.broker_epoch != broker_epoch:
            return False
        session.expires_ms = now_ms + self._session_timeout_ms
        return True

    def register(self, broker_id: int, incarnation: int, now_ms: int) -> int | None:
        """Begin a session; return the broker epoch, None while an older process has one."""
        session = self.sessions.get(broker_id)
        if session is not None:
            if session.incarnation == incarnation:
                session.expires_ms = now_ms + self._session_timeout_ms
                return session.broker_epoch
            if not self._takes_over:
                return None
            self.end_session(broker_id)
        self._transactions += 1
        self.sessions[broker_id] = Session(
            self._transactions, incarnation, now_ms + self._session_timeout_ms
        )
        self._on_sessions()
        return self._transactions

    def end_session(self, broker_id: int) -> None:
        """Forget a broker."""
        if self.sessions.pop(broker_id, None) is None:
            return
        if self.controller_id == broker_id:
            self.controller_id = NO_BROKER
        self._on_sessions()

    def expire(self, now_ms: int) -> None:
        """Forget brokers that were silent for too long."""
        for broker_id, session in list(self.sessions.items()):
            if session.expires_ms <= now_ms:
                self.end_session(broker_id)

    def campaign(self, broker_id: int, broker_epoch: int) -> int | None:
        """Make a broker controller if nobody is; return the controller epoch."""
        session = self.sessions.get(broker_id)
        if session is None or session.broker_epoch != broker_epoch:
            return None
        if self.controller_id != NO_BROKER:
            return None
        self.controller_id = broker_id
        self.controller_epoch += 1
        return self.controller_epoch

    def accepts(self, controller_epoch: int, version: int) -> bool:
        """Say whether a commit that follows upon `version` is the present controller's."""
        return controller_epoch == self.controller_epoch and version == self.image.version

    def commit(self, controller_epoch: int, version: int, changes: Sequence[Change]) -> bool:
        """Take changes; False if they are refused."""
        if not self.accepts(controller_epoch, version):
            return False
        before = self.image
        self.image = before.apply(changes)
        self._on_commit(before, self.image, changes)
        return True
