"""Records in flight: what becomes of one, or of a run of them that share a fate (KIP-932).

After Kafka's InFlightState and InFlightBatch. Times are monotonic milliseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kafkalite.share.batches import RecordState

NO_MEMBER = ""


@dataclass(slots=True)
class _Before:
    """State to go back to if the new one cannot be written."""

    state: RecordState
    member_id: str
    delivery_count_limit: int


@dataclass(slots=True)
class InFlightState:
    """The state of one record, or of all records of a batch.

    Attributes:
        delivery_count: how often it was acquired.
        member_id: who has it; NO_MEMBER unless it is acquired.
        lock_end_ms: when whoever has it loses it.
    """

    state: RecordState
    delivery_count: int
    member_id: str = NO_MEMBER
    lock_end_ms: int | None = None
    _before: _Before | None = None
    _is_final: bool = False

    @property
    def is_changing(self) -> bool:
        """Whether what it is was not written yet."""
        return self._before is not None

    @property
    def is_available(self) -> bool:
        """Whether it may be acquired."""
        return self.state is RecordState.AVAILABLE and self._before is None

    @property
    def is_settled(self) -> bool:
        """Whether it is finished with, and that is written."""
        return self.state.is_terminal and self._before is None

    def acquire(self, member_id: str, lock_end_ms: int) -> None:
        """Lock it for a member; it must be available."""
        assert self.is_available
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_end_ms = lock_end_ms

    def give_back(self, new_state: RecordState, delivery_count_limit: int) -> None:
        """Let it go at once; it must be acquired. After the last delivery it is archived."""
        assert self.state is RecordState.ACQUIRED
        assert not self.is_changing
        if new_state is RecordState.AVAILABLE and self.delivery_count >= delivery_count_limit:
            new_state = RecordState.ARCHIVED
        self.state = new_state
        self.member_id = NO_MEMBER
        self.lock_end_ms = None

    def start_change(self, new_state: RecordState, delivery_count_limit: int) -> None:
        """As `give_back`, but its lock stays until `complete_change` says what came of it."""
        lock_end_ms = self.lock_end_ms
        before = _Before(self.state, self.member_id, delivery_count_limit)
        self.give_back(new_state, delivery_count_limit)
        self.lock_end_ms = lock_end_ms
        self._before = before

    def complete_change(self, *, is_written: bool, now_ms: int) -> None:
        """End a change; what could not be written is acquired as before, if the lock holds."""
        before, self._before = self._before, None
        lock_end_ms = self.lock_end_ms
        if is_written or self._is_final or before is None:
            self.lock_end_ms = None
            return
        if lock_end_ms is not None and lock_end_ms <= now_ms:
            is_last = self.delivery_count >= before.delivery_count_limit
            self.state = RecordState.ARCHIVED if is_last else RecordState.AVAILABLE
            self.member_id = NO_MEMBER
            self.lock_end_ms = None
            return
        self.state = before.state
        self.member_id = before.member_id

    def archive(self) -> None:
        """Finish with it for good, whatever it was."""
        self._is_final = True
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.lock_end_ms = None


class InFlightBatch:
    """Offsets `first_offset` to `last_offset`, both inclusive.

    Invariant: `whole` is their common state, or None and `each` has one for every offset.
    """

    __slots__ = ("each", "first_offset", "last_offset", "whole")

    def __init__(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        assert first_offset <= last_offset
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: InFlightState | None = state
        self.each: list[InFlightState] = []

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    def split(self) -> None:
        """Have a state for every offset from now on."""
        whole = self.whole
        if whole is None:
            return
        self.each = [
            InFlightState(whole.state, whole.delivery_count, whole.member_id, whole.lock_end_ms)
            for _ in range(len(self))
        ]
        self.whole = None

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether all of it lies in a range, both ends inclusive."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def is_cut_by(self, start_offset: int) -> bool:
        """Whether a part of it, and not all, lies below an offset."""
        return self.first_offset < start_offset <= self.last_offset

    def offsets(
        self, first_offset: int | None = None, last_offset: int | None = None
    ) -> Iterator[tuple[int, InFlightState]]:
        """Yield offset and state of each record within a range, both ends inclusive.

        It must have been `split`.
        """
        first = self.first_offset
        begin = first if first_offset is None else max(first, first_offset)
        end = self.last_offset if last_offset is None else min(self.last_offset, last_offset)
        each = self.each
        for offset in range(begin, end + 1):
            yield offset, each[offset - first]
