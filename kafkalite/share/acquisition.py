"""How a share partition hands records out (rule 399).

After Kafka's SharePartition.acquire. Decided by the bounds of batches in the log, not by records:
who consumes filters what it was not given.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kafkalite.share.batches import RecordState
from kafkalite.share.inflight import InFlightBatch, InFlightState
from kafkalite.share.partition import SharePartition

THROTTLED_FROM_MIN = 2
"""Least count of deliveries from which records are handed out with fewer others."""


class AcquireMode(IntEnum):
    """Whether batches of the log are kept together (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class LogBatch(NamedTuple):
    """A batch in the log; `last_offset` is inclusive."""

    base_offset: int
    last_offset: int
    producer_id: int = -1
    is_transactional: bool = False
    is_abort_marker: bool = False


class AcquiredRange(NamedTuple):
    """Offsets that were handed out, both ends inclusive."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def size(self) -> int:
        """Number of offsets."""
        return self.last_offset - self.first_offset + 1


@dataclass(slots=True)
class Acquired:
    """Records of one partition that were given to a fetch.

    Attributes:
        ranges: in order.
        count: of records, as it counts against the limit of the request.
    """

    ranges: list[AcquiredRange]
    count: int


class AbortedFrom(NamedTuple):
    """A transaction that was aborted, and its first offset here."""

    producer_id: int
    first_offset: int


@dataclass(slots=True, kw_only=True)
class Wish:
    """Fetching member, and the records it asks for.

    Attributes:
        max_records: that it takes, unless batches are kept together.
        batch_size: of records that it wants to acknowledge together.
    """

    member_id: str
    mode: AcquireMode
    max_records: int
    batch_size: int

    @property
    def is_exact(self) -> bool:
        """Whether never more than `max_records` are handed out."""
        return self.mode is AcquireMode.RECORD_LIMIT


def acquire(
    share: SharePartition,
    wish: Wish,
    *,
    fetch_offset: int,
    log_batches: Sequence[LogBatch],
    aborted: Sequence[AbortedFrom] = (),
    now_ms: int,
) -> Acquired:
    """Lock records for a member.

    Args:
        share: the share partition.
        wish: of the member.
        fetch_offset: at which `log_batches` were read.
        log_batches: what the log has there, the first may begin before `fetch_offset`.
        aborted: transactions that the member must not see.
        now_ms: monotonic time.
    """
    nothing = Acquired([], 0)
    if wish.max_records <= 0 or not log_batches:
        return nothing
    if log_batches[-1].last_offset < share.start_offset:
        return nothing
    limit, last_offset = _limits(share, wish, fetch_offset, log_batches[-1].last_offset)
    if limit <= 0:
        return nothing
    acquisition = _Acquisition(share, wish, log_batches, limit, last_offset, now_ms)
    _archive_missing(share, fetch_offset, log_batches[0].base_offset)
    acquisition.run()
    if aborted and acquisition.ranges:
        return _without_aborted(share, acquisition.ranges, log_batches, aborted)
    return Acquired(acquisition.ranges, acquisition.count)


def throttled_from(delivery_count_limit: int) -> int:
    """Return from which count of deliveries on a record is suspected to harm its consumers."""
    return max(THROTTLED_FROM_MIN, -(-delivery_count_limit // 2))


def _limits(
    share: SharePartition, wish: Wish, fetch_offset: int, last_offset: int
) -> tuple[int, int]:
    """Return how many records may be acquired, and up to which offset (inclusive)."""
    free = share.settings().share_partition_max_record_locks - share.in_flight_count
    limit = min(wish.max_records, free)
    if limit <= 0 and fetch_offset <= share.end_offset:
        # Full: what came back may be delivered all the same, and nothing new.
        limit = min(wish.max_records, share.end_offset - fetch_offset + 1)
        last_offset = min(last_offset, share.end_offset)
    return limit, last_offset


def _archive_missing(share: SharePartition, fetch_offset: int, base_offset: int) -> None:
    """Archive what came back and is no longer in the log, which begins at `base_offset`."""
    if not share.batches or fetch_offset >= base_offset:
        return
    batches = share.within(fetch_offset, base_offset - 1)
    if share.archive(fetch_offset, base_offset, batches, RecordState.AVAILABLE, is_counted=True):
        share.looks_back = True


class _Acquisition:
    """One walk over what is in flight and what is new."""

    def __init__(
        self,
        share: SharePartition,
        wish: Wish,
        log_batches: Sequence[LogBatch],
        limit: int,
        last_offset: int,
        now_ms: int,
    ) -> None:
        settings = share.settings()
        self.share = share
        self.wish = wish
        self.log_batches = log_batches
        self.limit = limit
        self.last_offset = last_offset
        self.base_offset = log_batches[0].base_offset
        self.lock_end_ms = now_ms + settings.share_record_lock_duration_ms
        self.delivery_count_limit = settings.share_delivery_count_limit
        self.throttled_from = throttled_from(settings.share_delivery_count_limit)
        self.ranges: list[AcquiredRange] = []
        self.count = 0
        self._is_over = False

    def run(self) -> None:
        share = self.share
        base = self.base_offset
        floor = share.floor(base)
        if floor is None:
            base = max(base, share.start_offset)
        elif floor.last_offset >= base:
            base = floor.first_offset
        known = share.starting_within(min(self.base_offset, base), self.last_offset)
        if not known:
            self._acquire_new(base, self.last_offset)
            return
        gap_start = base
        for batch in known:
            if self._is_over or self.count >= self.limit:
                break
            if share.active_gap is not None:
                if gap_start < batch.first_offset:
                    self._acquire_new(gap_start, batch.first_offset - 1)
                gap_start = batch.last_offset + 1
                if self.count >= self.limit:
                    break
            self._acquire_known(batch)
        end = known[-1].last_offset
        if not self._is_over and self.count < self.limit and end < self.last_offset:
            self._acquire_new(end + 1, self.last_offset)
        if self.ranges:
            self._narrow_gap(self.ranges[-1].last_offset + 1)

    # --- What is in flight ----------------------------------------------------------------------

    def _acquire_known(self, batch: InFlightBatch) -> None:
        """Acquire what is available of a batch in flight."""
        is_throttled = self._is_throttled(batch)
        if is_throttled and self.count:
            self._is_over = True  # it is delivered alone
            return
        whole = batch.whole
        if whole is not None:
            if not whole.is_available:
                return
            too_many = self.wish.is_exact and len(batch) > self.limit - self.count
            if (
                not too_many
                and not is_throttled
                and batch.is_within(self.base_offset, self.last_offset)
            ):
                whole.acquire(self.wish.member_id, self.lock_end_ms)
                self.share.lock(batch.first_offset, batch.last_offset, self.lock_end_ms)
                self.ranges.append(
                    AcquiredRange(batch.first_offset, batch.last_offset, whole.delivery_count)
                )
                self.count += len(batch)
                return
            batch.split()
        acquired = list(self._acquire_each(batch))
        if not acquired:
            return
        self.share.lock(acquired[0].first_offset, acquired[-1].last_offset, self.lock_end_ms)
        self.ranges += _joined(acquired)
        self.count += len(acquired)
        self._is_over = is_throttled

    def _acquire_each(self, batch: InFlightBatch) -> Iterator[AcquiredRange]:
        """Acquire single offsets; of records that were delivered often only a few."""
        last_delivery = self.delivery_count_limit
        count, few = 0, -1
        limit = self.limit - self.count if self.wish.is_exact else -1
        for offset, state in batch.offsets(self.base_offset, self.last_offset):
            if not state.is_available:
                continue
            is_last = last_delivery > 2 and state.delivery_count == last_delivery - 1
            if is_last and count:
                return
            if state.delivery_count >= self.throttled_from and few < 0:
                few = max(1, len(batch) >> (state.delivery_count - self.throttled_from + 1))
            state.acquire(self.wish.member_id, self.lock_end_ms)
            count += 1
            yield AcquiredRange(offset, offset, state.delivery_count)
            if is_last or count in (limit, few):
                return

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        """Whether some of it was delivered so often that it may harm whoever gets it."""
        whole = batch.whole
        if whole is not None:
            return whole.is_available and whole.delivery_count >= self.throttled_from
        return any(
            state.is_available and state.delivery_count >= self.throttled_from
            for _, state in batch.offsets(self.base_offset, self.last_offset)
        )

    # --- What is new ----------------------------------------------------------------------------

    def _acquire_new(self, first_offset: int, last_offset: int) -> None:
        """Put records in flight from `first_offset` on, at most to `last_offset`."""
        share = self.share
        limit = self.limit - self.count
        if not share.batches and share.end_offset > first_offset:
            first_offset = share.end_offset
        if limit < last_offset - first_offset + 1:
            aligned = self._batch_end(first_offset + limit - 1)
            is_gap = share.active_gap is not None
            last_offset = min(aligned, last_offset) if is_gap else aligned
        if last_offset < first_offset:
            return
        ranges = self._put_in_flight(first_offset, last_offset, limit)
        if share.firsts[0] == first_offset:
            share.start_offset = first_offset
        share.end_offset = max(share.end_offset, last_offset)
        if self.wish.is_exact:
            last_offset = ranges[0].last_offset
        self._narrow_gap(last_offset + 1)
        self.ranges += ranges
        self.count += last_offset - first_offset + 1

    def _put_in_flight(
        self, first_offset: int, last_offset: int, limit: int
    ) -> list[AcquiredRange]:
        member_id, lock_end_ms = self.wish.member_id, self.lock_end_ms
        if self.wish.is_exact and last_offset - first_offset + 1 > limit:
            # The rest of the log's batch is in flight too, and available at once.
            state = InFlightState(RecordState.ACQUIRED, 1, member_id, lock_end_ms)
            batch = InFlightBatch(first_offset, last_offset, state)
            batch.split()
            for offset, _ in batch.offsets(first_offset + limit):
                batch.each[offset - first_offset] = InFlightState(RecordState.AVAILABLE, 0)
            self.share.looks_back = True
            self.share.add(batch, lock_end_ms)
            return [AcquiredRange(first_offset, first_offset + limit - 1, 1)]
        ranges = [
            AcquiredRange(first, last, 1) for first, last in self._cut(first_offset, last_offset)
        ]
        for first, last, _ in ranges:
            state = InFlightState(RecordState.ACQUIRED, 1, member_id, lock_end_ms)
            self.share.add(InFlightBatch(first, last, state), lock_end_ms)
        return ranges

    def _cut(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int]]:
        """Yield runs of about `batch_size` records, which begin where the log's batches do."""
        batch_size = self.wish.batch_size
        if not self.wish.is_exact and last_offset - first_offset + 1 > batch_size:
            for batch in self.log_batches:
                if batch.base_offset > last_offset:
                    break
                if batch.base_offset - first_offset >= batch_size:
                    if batch.base_offset > first_offset:
                        yield first_offset, batch.base_offset - 1
                    first_offset = batch.base_offset
        yield first_offset, last_offset

    def _batch_end(self, offset: int) -> int:
        """Return the last offset of the log's batch that holds `offset`; in a gap, `offset`."""
        end = offset
        for batch in self.log_batches:
            if batch.base_offset > offset:
                break
            end = max(offset, batch.last_offset)
        return end

    def _narrow_gap(self, offset: int) -> None:
        """Take note that everything below `offset` is in flight."""
        gap = self.share.gap
        if gap is None:
            return
        if gap.end_offset == self.share.end_offset and offset <= gap.end_offset:
            gap.start_offset = offset
        else:
            self.share.gap = None


def _joined(ranges: Iterable[AcquiredRange]) -> list[AcquiredRange]:
    """Return ranges with neighbours of the same count made one."""
    joined: list[AcquiredRange] = []
    for each in ranges:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.last_offset + 1 == each.first_offset
            and last.delivery_count == each.delivery_count
        ):
            joined[-1] = last._replace(last_offset=each.last_offset)
        else:
            joined.append(each)
    return joined


# --- Aborted transactions ------------------------------------------------------------------------


def _without_aborted(
    share: SharePartition,
    ranges: list[AcquiredRange],
    log_batches: Iterable[LogBatch],
    aborted: Iterable[AbortedFrom],
) -> Acquired:
    """Archive what was acquired of aborted transactions, and return the rest."""
    for batch in _aborted_batches(log_batches, aborted):
        share.archive(
            batch.base_offset,
            batch.last_offset + 1,
            share.within(batch.base_offset, batch.last_offset),
            RecordState.ACQUIRED,
            is_counted=True,
        )
        ranges = [*_without(ranges, batch)]
    return Acquired(ranges, sum(each.size for each in ranges))


def _aborted_batches(
    log_batches: Iterable[LogBatch], aborted: Iterable[AbortedFrom]
) -> Iterator[LogBatch]:
    """Yield the batches that belong to aborted transactions, but for their markers."""
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    open_ids: set[int] = set()
    for batch in log_batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            open_ids.add(waiting.pop().producer_id)
        if batch.is_abort_marker:
            open_ids.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_ids:
            yield batch


def _without(ranges: Iterable[AcquiredRange], batch: LogBatch) -> Iterator[AcquiredRange]:
    """Yield what is left of ranges when the offsets of a batch are taken out."""
    for each in ranges:
        if each.last_offset < batch.base_offset or each.first_offset > batch.last_offset:
            yield each
            continue
        if each.first_offset < batch.base_offset:
            yield each._replace(last_offset=batch.base_offset - 1)
        if each.last_offset > batch.last_offset:
            yield each._replace(first_offset=batch.last_offset + 1)
