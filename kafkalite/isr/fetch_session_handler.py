"""A follower's half of incremental fetch sessions (KIP-227): a Fetch says what is new in it.

Pure. Kafka's class is FetchSessionHandler; the leader's half is `api/fetch_session`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from kafkalite.isr.follower import Position
from kafkalite.wire.errors import ErrorCode

Key = tuple[UUID, int]
"""Topic id and partition."""

NO_SESSION_ID: Final = 0
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1

SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""The leader does not know the session as it is here: the next Fetch says everything again."""


class Asked(NamedTuple):
    """All that a Fetch says of one partition."""

    topic: str
    position: Position
    high_watermark: int


class SessionFetch(NamedTuple):
    """The parts of a Fetch that are about its session.

    Attributes:
        session_id: 0 where a session is to be opened.
        epoch: 0 for a Fetch that says everything.
        asked: the partitions that it names.
        forgotten: those that leave the session.
    """

    session_id: int
    epoch: int
    asked: Mapping[Key, Asked]
    forgotten: list[Key]


class FetchSessionHandler:
    """The session with one leader: what it was told of each partition, and the next epoch.

    Attributes:
        is_refused: the leader has no place for a session: each Fetch has to name all partitions.
    """

    __slots__ = ("_epoch", "_session_id", "_told", "is_refused")

    def __init__(self) -> None:
        self.is_refused = False
        self._session_id = NO_SESSION_ID
        self._epoch = INITIAL_EPOCH
        self._told: dict[Key, Asked] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next Fetch opens a session: the leader has been told of no partition."""
        return self._epoch == INITIAL_EPOCH

    @property
    def is_empty(self) -> bool:
        """Whether the last Fetch that was built is about no partition."""
        return not self._told

    def build(self, wanted: Mapping[Key, Asked | None], *, is_all: bool) -> SessionFetch:
        """Return what the next Fetch says.

        Args:
            wanted: partitions to be fetched; None takes one out of the session.
            is_all: these are all partitions: others leave the session.
        """
        told, session_id, epoch = self._told, self._session_id, self._epoch
        if epoch == INITIAL_EPOCH:
            self._told = {key: asked for key, asked in wanted.items() if asked is not None}
            return SessionFetch(session_id, epoch, dict(self._told), [])
        forgotten = [key for key, asked in wanted.items() if asked is None and key in told]
        if is_all:
            forgotten += [key for key in told if key not in wanted]
        asked = {k: one for k, one in wanted.items() if one is not None and told.get(k) != one}
        for key in forgotten:
            del told[key]
        told.update(asked)
        return SessionFetch(session_id, epoch, asked, forgotten)

    def on_answer(self, session_id: int) -> None:
        """Go on after an answer without an error at its top; a leader may have opened no session.

        Args:
            session_id: that the answer names.
        """
        self.is_refused = session_id == NO_SESSION_ID
        if self.is_refused or (session_id != self._session_id and not self.is_full):
            self.reset()
            self._session_id = NO_SESSION_ID
            return
        self._session_id = session_id
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def reset(self) -> None:
        """Say everything in the next Fetch, after one whose answer is not known.

        The leader drops the session that it had.
        """
        self._epoch = INITIAL_EPOCH
        self._told = {}
