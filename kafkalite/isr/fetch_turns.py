"""Which partitions a follower's next Fetch is built from, some of very many at a time.

Pure. A session (KIP-227) lets a Fetch name those of which there is something new to say, and need
not be opened with all of them at once.
"""

from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kafkalite.isr.fetch_session_handler import Key

STEP_MAX: Final = 250
"""Partitions that are looked at in one go for each reason: a few milliseconds."""


class FetchTurns:
    """The partitions that are to be looked at, in the order in which they came.

    Attributes:
        due_ms: monotonic time at which others are looked at, too.
    """

    __slots__ = ("_paused", "_round", "_touched", "due_ms")

    def __init__(self) -> None:
        self.due_ms = 0
        self._touched: dict[Key, None] = {}
        self._paused: dict[Key, None] = {}
        self._round: list[Key] = []

    @property
    def has_more(self) -> bool:
        """Whether there is something to say yet that the last Fetch had no place for."""
        return bool(self._touched)

    def touch(self, keys: "Iterable[Key]") -> None:
        """Look at partitions: they are new, gone, or were answered."""
        for key in keys:
            self._touched[key] = None

    def pause(self, key: "Key") -> None:
        """Look again at one that cannot be fetched now."""
        self._paused[key] = None

    def take(self, followed: "Collection[Key]", now_ms: int, *, every_ms: int) -> "list[Key]":
        """Return the partitions to look at now; those that are gone may be among them.

        Args:
            followed: all partitions; STEP_MAX of them have their turn when it is due, since
                retention moves the start of a log without any answer.
            now_ms: monotonic.
            every_ms: after this time it is due again.
        """
        taken = dict.fromkeys(islice(self._touched, STEP_MAX))
        for key in taken:
            del self._touched[key]
        for key in list(islice(self._paused, STEP_MAX)):
            del self._paused[key]
            taken[key] = None
        if now_ms >= self.due_ms:
            self.due_ms = now_ms + every_ms
            self._round = self._round or list(followed)[::-1]
            for _ in range(min(STEP_MAX, len(self._round))):
                taken[self._round.pop()] = None
        return list(taken)

    def take_all(self, followed: "Iterable[Key]") -> "list[Key]":
        """Return all partitions, and those that are gone."""
        taken = [*followed, *self._touched, *self._paused]
        self._touched, self._paused = {}, {}
        return list(dict.fromkeys(taken))
