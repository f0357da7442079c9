"""Acknowledgements of acks=all that wait for the high watermark to pass an offset (rules 51-52).

Pure: what is done is returned, and whoever owns the waiters passes it on.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True, eq=False)
class PendingAck:
    """One append that is to be acknowledged when it is replicated.

    Attributes:
        required_offset: the high watermark that is waited for: last offset + 1.
        deadline_ms: when the client is told that it took too long.
        on_done: called once when `outcome` is there, by whoever owns the waiters.
        outcome: None while waiting; NONE when replicated, else the error.
    """

    required_offset: int
    deadline_ms: int
    on_done: "Callable[[PendingAck], object]"
    outcome: ErrorCode | None = None


class PendingAcks:
    """PendingAcks of one partition, by the offset they wait for."""

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        # The number keeps waiters for the same offset in the order of their requests.
        self._heap: list[tuple[int, int, PendingAck]] = []
        self._sequence = 0

    def __len__(self) -> int:
        """Return how many are kept, cancelled ones among them."""
        return len(self._heap)

    def add(self, waiter: PendingAck) -> None:
        """Let one wait."""
        self._sequence += 1
        heappush(self._heap, (waiter.required_offset, self._sequence, waiter))

    def cancel(self, waiter: PendingAck) -> None:
        """Tell one that nobody asks for any more; it is kept no longer than its deadline."""
        if waiter.outcome is None:
            waiter.outcome = ErrorCode.REQUEST_TIMED_OUT

    def on_high_watermark(self, high_watermark: int) -> list[PendingAck]:
        """Return those whose records are replicated, in the order of their offsets."""
        heap = self._heap
        done: list[tuple[int, int, PendingAck]] = []
        while heap and heap[0][0] <= high_watermark:
            done.append(heappop(heap))
        return _ended(done, ErrorCode.NONE)

    def on_time(self, now_ms: int) -> list[PendingAck]:
        """Return those whose deadline has passed."""
        entries = sorted(self._heap)
        # What is left of a sorted list is sorted, and so a heap.
        self._heap = [entry for entry in entries if entry[2].deadline_ms > now_ms]
        late = [entry for entry in entries if entry[2].deadline_ms <= now_ms]
        return _ended(late, ErrorCode.REQUEST_TIMED_OUT)

    def on_isr_below_min(self) -> list[PendingAck]:
        """Return everyone: there are too few in-sync replicas to promise anything (rule 52)."""
        return self._fail_all(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def on_leadership_lost(self) -> list[PendingAck]:
        """Return everyone: the next leader may not have what they wait for."""
        return self._fail_all(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _fail_all(self, code: ErrorCode) -> list[PendingAck]:
        entries = sorted(self._heap)
        self._heap.clear()
        return _ended(entries, code)


def _ended(entries: list[tuple[int, int, PendingAck]], code: ErrorCode) -> list[PendingAck]:
    ended = [waiter for _, _, waiter in entries if waiter.outcome is None]
    for waiter in ended:
        waiter.outcome = code
    return ended
