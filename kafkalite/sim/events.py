"""A queue of what is to happen: the clock and the scheduler of level 1."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class EventQueue:
    """Calls functions in the order of their times; those of one time in the order of asking.

    Attributes:
        now_ms: time of the event that happens now.
        count: events that have happened.
    """

    __slots__ = ("_heap", "_sequence", "count", "now_ms")

    def __init__(self) -> None:
        self.now_ms = 0
        self.count = 0
        self._sequence = 0
        self._heap: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []

    def at(self, when_ms: int, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function at a time, not before now."""
        self._sequence += 1
        heappush(self._heap, (max(when_ms, self.now_ms), self._sequence, function, arguments))

    def after(self, delay_ms: int, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function after some milliseconds."""
        self.at(self.now_ms + delay_ms, function, *arguments)

    def run_next(self, until_ms: int) -> bool:
        """Let the next event before `until_ms` (exclusive) happen; False if there is none."""
        if not self._heap or self._heap[0][0] >= until_ms:
            self.now_ms = until_ms
            return False
        self.now_ms, _, function, arguments = heappop(self._heap)
        self.count += 1
        function(*arguments)
        return True
