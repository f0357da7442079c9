"""A partition as a share group has it: which records are in flight, and what becomes of them.

Rules 395-397 and 400-404; after Kafka's SharePartition, in whose order everything is done. Times
are monotonic milliseconds. `acquisition` has the rest of it: how records are handed out.

Nothing is written here: what must be stored before it counts is returned as a `Write`, whose end
`on_written` is told. Between the two such records are neither available nor finished with.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kafkalite.share.acknowledgement import STATE_AFTER, Acknowledgement, AcknowledgeType, Write
from kafkalite.share.batches import RecordState, StateBatch
from kafkalite.share.inflight import InFlightBatch, InFlightState
from kafkalite.share.settings import SharePartitionSettings
from kafkalite.wire.errors import ErrorCode, KafkaError

LOCKS_MAX_PER_BATCH = 8
"""Ends of locks that are kept for each batch in flight, most of them of locks since renewed;
beyond that the obsolete ones are thrown out. Chosen by hand."""


@dataclass(slots=True)
class _GapWindow:
    """Offsets that were acquired under an earlier leader and never acknowledged (rule 395).

    Valid while the share partition's end offset is `end_offset`.
    """

    start_offset: int
    end_offset: int


class SharePartition:
    """The records of one partition that one group has in flight.

    Invariant: `batches` are in order and do not overlap; `firsts` are their first offsets. Without
    batches `start_offset == end_offset`, the next offset to fetch; else `end_offset` is the last
    offset in flight, or the start offset if the log's start overtook that.

    Attributes:
        start_offset: first offset that is not finished with.
        delivery_complete_count: records from there on that are finished with.
    """

    def __init__(self, settings: Callable[[], SharePartitionSettings]) -> None:
        """Make an empty one; `load` it before anything else.

        Args:
            settings: of the group, asked at each use.
        """
        self.settings = settings
        self.state_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.delivery_complete_count = 0
        self.batches: list[InFlightBatch] = []
        self.firsts: list[int] = []
        self.gap: _GapWindow | None = None
        self.looks_back = False
        """Something below the end offset may be available."""
        self._locks: list[tuple[int, int, int]] = []
        """A heap of (end of the lock, first offset, last offset); the lock may have been renewed or
        given up since."""

    def load(self, state_epoch: int, start_offset: int, batches: Sequence[StateBatch]) -> None:
        """Begin with what was stored (rule 395).

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR, it contradicts itself.
        """
        gap_start = None
        before = start_offset - 1
        for first, last, count, state_number in batches:
            if first <= before or last < first:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"stored states are out of order: {first} to {last} after {before}",
                )
            if gap_start is None and first > before + 1:
                gap_start = before + 1
            before = last
            try:
                state = RecordState(state_number)
            except ValueError:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"stored state {state_number} is not known"
                ) from None
            self._add(InFlightBatch(first, last, InFlightState(state, count)))
            if state.is_terminal:
                self.delivery_complete_count += last - first + 1
        self.state_epoch = state_epoch
        self.start_offset = self.end_offset = start_offset
        if self.batches:
            self.looks_back = True
            self.end_offset = self.batches[-1].last_offset
            if gap_start is not None:
                self.gap = _GapWindow(gap_start, self.end_offset)
            self._move_start()

    # --- What is so -----------------------------------------------------------------------------

    @property
    def in_flight_count(self) -> int:
        """Offsets from the first that is not finished with to the last in flight."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def active_gap(self) -> _GapWindow | None:
        """The gap window, while it is valid."""
        gap = self.gap
        return gap if gap is not None and gap.end_offset == self.end_offset else None

    def next_fetch_offset(self) -> int:
        """Return the offset to read at: something available, or what was never in flight."""
        if not self.batches or self.start_offset > self.batches[-1].last_offset:
            self.looks_back = False
            return self.end_offset
        if not self.looks_back:
            return self.end_offset + 1
        gap = self.active_gap
        gap_start = -1 if gap is None else gap.start_offset
        for batch in self.batches:
            if gap is not None:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            if batch.whole is not None:
                if batch.whole.is_available:
                    return batch.first_offset
                continue
            for offset, state in batch.offsets():
                if state.is_available:
                    return offset
        self.looks_back = False
        return self.end_offset + 1

    def may_acquire(self) -> bool:
        """Whether a fetch makes sense now: there are not too many in flight, or some came back."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight_count < self.settings().share_partition_max_record_locks

    # --- Members --------------------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, acknowledgements: Iterable[Acknowledgement], now_ms: int
    ) -> Write | None:
        """Do what a member says; None if there is nothing to write (rule 400).

        Raises:
            KafkaError: INVALID_RECORD_STATE, INVALID_REQUEST; nothing has changed then.
        """
        write = self._new_write()
        try:
            for acknowledgement in acknowledgements:
                if acknowledgement.last_offset >= self.start_offset:
                    self._acknowledge(member_id, acknowledgement, write, now_ms)
        except KafkaError:
            self._roll_back(write, now_ms)
            raise
        return self._finished(write)

    def release(self, member_id: str) -> Write | None:
        """Take everything back that a member has; None if it has nothing (rule 404)."""
        write = self._new_write()
        for batch in self.batches:
            whole = batch.whole
            if whole is not None:
                if whole.state is not RecordState.ACQUIRED or whole.member_id != member_id:
                    continue
                if not batch.is_cut_by(self.start_offset):
                    self._change(batch, whole, AcknowledgeType.RELEASE, write)
                    continue
                batch.split()
            for offset, state in batch.offsets():
                if state.state is RecordState.ACQUIRED and state.member_id == member_id:
                    self._change_one(offset, state, AcknowledgeType.RELEASE, write)
        return self._finished(write)

    def on_written(self, write: Write, *, is_written: bool, now_ms: int) -> bool:
        """Take note that `write` is stored, or cannot be.

        Returns:
            Whether there may be more to fetch now.
        """
        if not is_written:
            self._roll_back(write, now_ms)
            return (not write.changes and self._move_start()) or self.looks_back
        for state in write.changes:
            state.complete_change(is_written=True, now_ms=now_ms)
            if state.state is RecordState.AVAILABLE:
                self.looks_back = True
        return self._move_start() or self.looks_back

    # --- Time -----------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """Return a time before which no lock ends; None without locks."""
        return self._locks[0][0] if self._locks else None

    def on_time(self, now_ms: int) -> Write | None:
        """Take back what was locked for too long; None if nothing was."""
        write = self._new_write()
        while self._locks and self._locks[0][0] <= now_ms:
            _, first, last = heapq.heappop(self._locks)
            for batch in self.within(first, last):
                self._end_locks(batch, first, last, write, now_ms)
        return self._finished(write)

    def on_log_start(self, log_start_offset: int) -> None:
        """Give up what is no longer in the log (rule 402)."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        finished = self._count_terminal(log_start_offset)
        if self.archive(
            self.start_offset,
            log_start_offset,
            self.batches,
            RecordState.AVAILABLE,
            is_counted=False,
        ):
            self.looks_back = True
        self.start_offset = log_start_offset
        self.delivery_complete_count -= finished
        self.end_offset = max(self.end_offset, self.start_offset)

    # --- For acquisition ------------------------------------------------------------------------

    def within(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches from the one that begins at `first_offset` or before it.

        Up to the last that begins at `last_offset` or before; the first may end before
        `first_offset`.
        """
        begin = max(bisect_right(self.firsts, first_offset) - 1, 0)
        return self.batches[begin : bisect_right(self.firsts, last_offset)]

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at `offset` or before it."""
        index = bisect_right(self.firsts, offset) - 1
        return self.batches[index] if index >= 0 else None

    def starting_within(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches that begin within a range, both ends inclusive."""
        begin = bisect_left(self.firsts, first_offset)
        return self.batches[begin : bisect_right(self.firsts, last_offset)]

    def add(self, batch: InFlightBatch, lock_end_ms: int) -> None:
        """Put records in flight that a member has acquired."""
        self._add(batch)
        self.lock(batch.first_offset, batch.last_offset, lock_end_ms)

    def lock(self, first_offset: int, last_offset: int, lock_end_ms: int) -> None:
        """Remember when to look whether locks have ended; both ends of the range inclusive."""
        if len(self._locks) > LOCKS_MAX_PER_BATCH * (len(self.batches) + LOCKS_MAX_PER_BATCH):
            self._locks = [*self._present_locks()]
            heapq.heapify(self._locks)
        heapq.heappush(self._locks, (lock_end_ms, first_offset, last_offset))

    def archive(
        self,
        start_offset: int,
        end_offset: int,
        batches: Iterable[InFlightBatch],
        initial: RecordState,
        *,
        is_counted: bool,
    ) -> bool:
        """Archive what has the state `initial` in a range; return whether there was any.

        Args:
            start_offset: inclusive.
            end_offset: exclusive.
            batches: in which to look.
            initial: state of what is archived; all else stays as it is.
            is_counted: they are not finished with, and now they are.
        """
        found = False
        for batch in batches:
            if batch.first_offset >= end_offset:
                break
            if batch.last_offset < start_offset:
                continue
            whole = batch.whole
            if whole is not None:
                if whole.state is not initial:
                    continue
                if batch.is_within(start_offset, end_offset - 1):
                    whole.archive()
                    self.delivery_complete_count += len(batch) if is_counted else 0
                    found = True
                    continue
                batch.split()
            for _, state in batch.offsets(start_offset, end_offset - 1):
                if state.state is initial:
                    state.archive()
                    self.delivery_complete_count += is_counted
                    found = True
        return found

    # --- Acknowledging --------------------------------------------------------------------------

    def _acknowledge(
        self, member_id: str, acknowledgement: Acknowledgement, write: Write, now_ms: int
    ) -> None:
        first, last = acknowledgement.first_offset, acknowledgement.last_offset
        batches = self._acknowledged(first, last)
        for batch in batches:
            if batch.last_offset < self.start_offset:
                continue
            whole = batch.whole
            if whole is not None:
                self._check_owner(whole, member_id)
                if (
                    len(acknowledgement.types) == 1
                    and batch.is_within(first, last)
                    and not batch.is_cut_by(self.start_offset)
                ):
                    self._settle_whole(batch, whole, acknowledgement.types[0], write, now_ms)
                    continue
                batch.split()
            self._settle_each(batch, member_id, acknowledgement, write, now_ms)

    def _acknowledged(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that an acknowledgement is about."""
        start = first
        if self.floor(first) is None:
            start = self.start_offset
            if not first < start <= last or self.floor(start) is None:
                raise _invalid(
                    "Batch record not found. The request batch offsets are not found in the cache."
                )
        batches = self.within(start, last)
        for end, name in ((first, "first"), (last, "last")):
            if batches[-1].last_offset < end:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Batch record not found. The {name} offset in request is past acquired "
                    "records.",
                )
        return batches

    @staticmethod
    def _check_owner(whole: InFlightState, member_id: str) -> None:
        if whole.member_id != member_id:
            if whole.state is not RecordState.ACQUIRED:
                raise _invalid(
                    "The batch cannot be acknowledged. The batch is not in the acquired state."
                )
            raise _invalid("Member is not the owner of batch record")
        if whole.is_changing:
            raise _invalid(CHANGING)

    def _settle_whole(
        self,
        batch: InFlightBatch,
        whole: InFlightState,
        acknowledge_type: int,
        write: Write,
        now_ms: int,
    ) -> None:
        if acknowledge_type == AcknowledgeType.RENEW:
            whole.lock_end_ms = self._renewed(now_ms)
            self.lock(batch.first_offset, batch.last_offset, whole.lock_end_ms)
            return
        self._change(batch, whole, acknowledge_type, write)

    def _settle_each(
        self,
        batch: InFlightBatch,
        member_id: str,
        acknowledgement: Acknowledgement,
        write: Write,
        now_ms: int,
    ) -> None:
        first, types = acknowledgement.first_offset, acknowledgement.types
        has_one_type = len(types) == 1
        lock_end_ms = None
        begin = max(first, self.start_offset)
        for offset, state in batch.offsets(begin, acknowledgement.last_offset):
            if state.state is not RecordState.ACQUIRED:
                raise _invalid("The offset cannot be acknowledged. The offset is not acquired.")
            if state.is_changing:
                raise _invalid(CHANGING)
            if state.member_id != member_id:
                raise _invalid("Member is not the owner of offset")
            acknowledge_type = types[0] if has_one_type else types[offset - first]
            if acknowledge_type == AcknowledgeType.RENEW:
                state.lock_end_ms = lock_end_ms = lock_end_ms or self._renewed(now_ms)
            else:
                self._change_one(offset, state, acknowledge_type, write)
        if lock_end_ms is not None:
            self.lock(batch.first_offset, batch.last_offset, lock_end_ms)

    def _renewed(self, now_ms: int) -> int:
        settings = self.settings()
        if not settings.share_renew_acknowledge_enable:
            raise _invalid("Renewing acquisition locks is not enabled for the group.")
        return now_ms + settings.share_record_lock_duration_ms

    def _change(
        self, batch: InFlightBatch, whole: InFlightState, acknowledge_type: int, write: Write
    ) -> None:
        is_gone = batch.last_offset < self.start_offset
        new_state = RecordState.ARCHIVED if is_gone else STATE_AFTER[acknowledge_type]
        whole.start_change(new_state, self.settings().share_delivery_count_limit)
        write.changes.append(whole)
        write.batches.append(_stored(batch.first_offset, batch.last_offset, whole))
        if whole.state.is_terminal:
            self.delivery_complete_count += self._count_counted(write.batches[-1])

    def _change_one(
        self, offset: int, state: InFlightState, acknowledge_type: int, write: Write
    ) -> None:
        is_gone = offset < self.start_offset
        new_state = RecordState.ARCHIVED if is_gone else STATE_AFTER[acknowledge_type]
        state.start_change(new_state, self.settings().share_delivery_count_limit)
        write.changes.append(state)
        write.batches.append(_stored(offset, offset, state))
        if state.state.is_terminal and not is_gone:
            self.delivery_complete_count += 1

    # --- Writing --------------------------------------------------------------------------------

    def _new_write(self) -> Write:
        return Write(self.state_epoch, self.start_offset, 0, [])

    def _finished(self, write: Write) -> Write | None:
        write.delivery_complete_count = self.delivery_complete_count
        return write if write.batches else None

    def _roll_back(self, write: Write, now_ms: int) -> None:
        for state, batch in zip(write.changes, write.batches, strict=False):
            state.complete_change(is_written=False, now_ms=now_ms)
            if state.state is RecordState.AVAILABLE:
                self.looks_back = True
            if RecordState(batch.delivery_state).is_terminal and not state.state.is_terminal:
                self.delivery_complete_count -= self._count_counted(batch)

    def _end_locks(
        self, batch: InFlightBatch, first: int, last: int, write: Write, now_ms: int
    ) -> None:
        """Take back of a batch what was locked too long, within a range of offsets."""
        whole = batch.whole
        if whole is not None:
            if not _has_ended(whole, now_ms):
                return
            if not batch.is_cut_by(self.start_offset):
                self._take_back(batch.first_offset, batch.last_offset, whole, write)
                return
            batch.split()
        for offset, state in batch.offsets(first, last):
            if _has_ended(state, now_ms):
                self._take_back(offset, offset, state, write)

    def _take_back(self, first: int, last: int, state: InFlightState, write: Write) -> None:
        is_gone = last < self.start_offset
        state.give_back(
            RecordState.ARCHIVED if is_gone else RecordState.AVAILABLE,
            self.settings().share_delivery_count_limit,
        )
        write.batches.append(_stored(first, last, state))
        if state.state.is_terminal:
            self.delivery_complete_count += self._count_counted(write.batches[-1])
        else:
            self.looks_back = True

    def _count_counted(self, batch: StateBatch) -> int:
        """Return how many records of a batch are not below the start offset."""
        return max(batch.last_offset - max(batch.first_offset, self.start_offset) + 1, 0)

    def _count_terminal(self, end_offset: int) -> int:
        """Return how many records are finished with from the start offset to `end_offset`."""
        count = 0
        for batch in self.batches:
            if batch.first_offset >= end_offset:
                break
            first = max(batch.first_offset, self.start_offset)
            last = min(batch.last_offset, end_offset - 1)
            if batch.whole is None:
                count += sum(state.state.is_terminal for _, state in batch.offsets(first, last))
            elif batch.whole.state.is_terminal:
                count += max(last - first + 1, 0)
        return count

    # --- The start offset (rule 401) ------------------------------------------------------------

    def _move_start(self) -> bool:
        """Move the start offset over what is finished with; return whether it moved."""
        if not self._may_move_start():
            return False
        last_finished, count = self._leading_finished()
        if last_finished is None:
            return False
        if last_finished == self.batches[-1].last_offset:
            # The log's start may have gone beyond what was in flight.
            self.start_offset = self.end_offset = max(last_finished + 1, self.start_offset)
            self.batches.clear()
            self.firsts.clear()
            self.delivery_complete_count = 0
            return True
        index = bisect_right(self.firsts, last_finished) - 1
        if last_finished == self.batches[index].last_offset:
            self.start_offset = max(self.firsts[index + 1], self.start_offset)
            gap = self.active_gap
            if gap is not None:
                self.start_offset = min(gap.start_offset, self.start_offset)
            index += 1
        else:
            self.start_offset = max(last_finished + 1, self.start_offset)
        self.delivery_complete_count -= count
        del self.batches[:index], self.firsts[:index]
        return True

    def _may_move_start(self) -> bool:
        batch = self.floor(self.start_offset)
        if batch is None:
            return False
        if batch.whole is not None:
            return batch.whole.is_settled
        if batch.last_offset < self.start_offset:
            return False
        return batch.each[self.start_offset - batch.first_offset].is_settled

    def _leading_finished(self) -> tuple[int | None, int]:
        """Return the last offset of those finished with at the beginning, and how many count."""
        last, count = None, 0
        gap = self.active_gap
        for batch in self.batches:
            if gap is not None and batch.last_offset >= gap.start_offset:
                break
            if batch.whole is not None:
                if not batch.whole.is_settled:
                    break
                last = batch.last_offset
                count += max(last - max(batch.first_offset, self.start_offset) + 1, 0)
                continue
            for offset, state in batch.offsets():
                if not state.is_settled:
                    return last, count
                last = offset
                count += offset >= self.start_offset
        return last, count

    def _add(self, batch: InFlightBatch) -> None:
        index = bisect_left(self.firsts, batch.first_offset)
        self.firsts.insert(index, batch.first_offset)
        self.batches.insert(index, batch)

    def _present_locks(self) -> Iterable[tuple[int, int, int]]:
        for batch in self.batches:
            states = (
                [batch.whole]
                if batch.whole is not None
                else [state for _, state in batch.offsets()]
            )
            for lock_end_ms in {state.lock_end_ms for state in states} - {None}:
                assert lock_end_ms is not None
                yield lock_end_ms, batch.first_offset, batch.last_offset


CHANGING = "The record state is invalid. The acknowledgement of delivery could not be completed."


def _stored(first_offset: int, last_offset: int, state: InFlightState) -> StateBatch:
    return StateBatch(first_offset, last_offset, state.delivery_count, state.state.value)


def _has_ended(state: InFlightState, now_ms: int) -> bool:
    return (
        state.state is RecordState.ACQUIRED
        and state.lock_end_ms is not None
        and state.lock_end_ms <= now_ms
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, message)
