"""Share sessions (KIP-932): which partitions a member of a share group fetches from this broker.

Rules 406 and 407. A session belongs to the connection that opened it. ShareFetch and
ShareAcknowledge count its epochs together.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kafkalite.wire.errors import ErrorCode, KafkaError

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1


class SessionKey(NamedTuple):
    """Group and member of a session."""

    group_id: str
    member_id: str


class TopicIdPartition(NamedTuple):
    """A partition as ShareFetch names it."""

    topic_id: UUID
    partition: int


@dataclass(slots=True)
class CachedSharePartition:
    """One partition of a session.

    Attributes:
        topic: name of the topic when it was added; None if there was none of this id.
        must_be_told: the next answer has it in any case.
    """

    key: TopicIdPartition
    topic: str | None
    must_be_told: bool = False


@dataclass(slots=True, eq=False)
class ShareSession:
    """Partitions that one share group member fetches.

    Attributes:
        epoch: that the next request must carry: 1 to 2147483647, then 1 again.
    """

    key: SessionKey
    connection_id: int
    epoch: int = 1
    partitions: dict[TopicIdPartition, CachedSharePartition] = field(default_factory=dict)


@dataclass(slots=True)
class Closed:
    """Session and member to release when a connection ends.

    Attributes:
        sessions: that ended with it.
        groups: that have no session left; some of them may have had none before.
    """

    sessions: list[ShareSession] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


class ShareSessions:
    """All share sessions of a broker, at most `max_sessions` of them."""

    def __init__(self, *, max_sessions: int) -> None:
        self.max_sessions = max_sessions
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._counts: dict[str, int] = {}
        """Sessions of each group that has any."""
        self._opened: dict[int, dict[SessionKey, None]] = {}
        """Whose sessions were opened by a connection, also those that ended since."""

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession:
        """Return the session of a member.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND.
        """
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_NOT_FOUND,
                f"member {key.member_id} of group {key.group_id} has no share session here",
            )
        return session

    def open(
        self,
        key: SessionKey,
        partitions: Iterable[tuple[TopicIdPartition, str | None]],
        connection_id: int,
    ) -> ShareSession:
        """Return a new session in place of any that the member has, whose locks stay.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED; the one before is gone all the same.
        """
        self.remove(key)
        if len(self._sessions) >= self.max_sessions:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"there are {self.max_sessions} share sessions (group.share.max.share.sessions)",
            )
        session = ShareSession(key, connection_id)
        session.partitions = {
            place: CachedSharePartition(place, topic) for place, topic in partitions
        }
        self._sessions[key] = session
        self._counts[key.group_id] = self._counts.get(key.group_id, 0) + 1
        self._opened.setdefault(connection_id, {})[key] = None
        return session

    def resume(
        self,
        key: SessionKey,
        epoch: int,
        added: Iterable[tuple[TopicIdPartition, str | None]],
        forgotten: Iterable[TopicIdPartition],
    ) -> ShareSession:
        """Return the session, with the partitions that it has from now on.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.advance(key, epoch)
        for place, topic in added:
            if place not in session.partitions:
                session.partitions[place] = CachedSharePartition(place, topic, must_be_told=True)
        for place in forgotten:
            session.partitions.pop(place, None)
        return session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session, which expects the next epoch from now on.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.find(key)
        if epoch != session.epoch:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"share session of {key.member_id}: got epoch {epoch}, expected {session.epoch}",
            )
        session.epoch = next_epoch(epoch)
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        """Forget a session; return it, None if there was none."""
        session = self._sessions.pop(key, None)
        if session is not None:
            count = self._counts[key.group_id] - 1
            if count:
                self._counts[key.group_id] = count
            else:
                del self._counts[key.group_id]
        return session

    def on_disconnect(self, connection_id: int) -> Closed:
        """Forget the sessions that a connection has opened."""
        opened = self._opened.pop(connection_id, None)
        closed = Closed()
        if opened is None:
            return closed
        groups: dict[str, None] = {}
        for key in opened:
            session = self._sessions.get(key)
            if session is not None and session.connection_id == connection_id:
                self.remove(key)
                closed.sessions.append(session)
            groups[key.group_id] = None
        closed.groups = [group_id for group_id in groups if group_id not in self._counts]
        return closed


def next_epoch(epoch: int) -> int:
    """Return the epoch after one that is positive."""
    return 1 if epoch == EPOCH_MAX else epoch + 1
