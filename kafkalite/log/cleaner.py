"""Compaction of closed segments: when a log is dirty enough, and the pass over its files.

After Kafka's LogCleaner (rules 205-209). What is kept is decided in `compaction`; here are the
files. Three kinds of steps, so that no request waits and nothing is shared between threads:

1. `plan_cleaning`, on the event loop: whether a log is worth a pass; and the making of a
   `CleaningPass`, which takes a picture of the log;
2. `CleaningPass.build_map` and `.clean_group`, in a worker thread: read the closed segments' files
   through their open descriptors, and write new `.cleaned` segments that nobody else knows;
3. `CleaningPass.swap`, on the event loop again: if the log has not lost or cut any of these
   segments meanwhile, the new ones take their place.

`clean` takes them all. Reading goes by small chunks,
each followed by a pause in which the event loop can have the interpreter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from time import sleep
from typing import TYPE_CHECKING, Final

from kafkalite.log.compaction import BatchFilter, CleanedTransactionMetadata, LastRecord, OffsetMap
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import BATCH_OVERHEAD, BatchHeader, iterate_batches, read_batch_header

if TYPE_CHECKING:
    from kafkalite.log.disk import Disk, File
    from kafkalite.log.log import Log
    from kafkalite.log.segment import Segment
    from kafkalite.log_config import LogConfig

READ_BYTES: Final = 128 * 1024
"""Read at once."""

PAUSE_S: Final = 100e-6
"""Letting go of the interpreter is not enough: who waits for it takes some 50 µs to wake up, and by
then the thread would have taken it back, for the 5 ms of sys.getswitchinterval()."""

PAUSE_RECORDS: Final = 300
"""Records between two pauses: half a millisecond of work. Compressed bytes say little of that."""

PAUSE_BYTES: Final = 512 * 1024
"""Bytes read or written between two pauses, where records are large."""

WRITE_BYTES: Final = 256 * 1024
"""Collected before a cleaned segment is appended to."""

MAX_RELATIVE_OFFSET: Final = 2**31 - 1


@dataclass(slots=True, frozen=True, kw_only=True)
class CleanerSettings:
    """Broker settings under Kafka's names, without the prefix `log.cleaner.`."""

    dedupe_buffer_size: int = 128 * 1024 * 1024
    io_buffer_load_factor: float = 0.9
    io_max_bytes_per_second: float = inf

    @property
    def map_bytes(self) -> int:
        """Memory that a pass's offset map may take."""
        return int(self.dedupe_buffer_size * self.io_buffer_load_factor)


class Throttle:
    """Pauses a worker thread for others' sake, and for `log.cleaner.io.max.bytes.per.second`."""

    __slots__ = ("_bytes", "_bytes_per_second", "_records", "_sleep")

    def __init__(self, bytes_per_second: float, sleep: Callable[[float], object]) -> None:
        self._bytes_per_second = bytes_per_second
        self._sleep = sleep
        self._records = 0
        self._bytes = 0

    def count(self, size_bytes: int, records: int = 0) -> None:
        """Note what was read or written; sleep when a pause is due."""
        self._bytes += size_bytes
        self._records += records
        if self._records >= PAUSE_RECORDS or self._bytes >= PAUSE_BYTES:
            self.pause()

    def pause(self) -> None:
        """Sleep for what was noted since the last pause."""
        self._sleep(max(PAUSE_S, self._bytes / self._bytes_per_second))
        self._records = self._bytes = 0


class CleaningAborted(Exception):
    """The log changed under a pass, or went away; what was swapped in before that stays."""


@dataclass(slots=True, frozen=True, kw_only=True)
class SourceSegment:
    """A closed segment as it was when the pass began.

    Attributes:
        segment: for telling whether it is still the log's.
        base_offset: that of the segment.
        next_base_offset: of the segment after it; exclusive end of the offsets it may hold.
        size: bytes of the log file.
        file: open, and readable also after a deletion.
        modified_ms: last modification, handed on to what it becomes.
        offset_index_bytes: size of `.index`.
        time_index_bytes: size of `.timeindex`.
    """

    segment: "Segment"
    base_offset: int
    next_base_offset: int
    size: int
    file: "File"
    modified_ms: int
    offset_index_bytes: int
    time_index_bytes: int


@dataclass(slots=True, frozen=True, kw_only=True)
class CleaningPlan:
    """Segments of a log that could be cleaned, found without opening a file.

    Attributes:
        log: whose it is.
        config: its settings then.
        segments: all that may be cleaned, in order.
        first_dirty_offset: all below was cleaned by earlier passes.
        upper_offset: exclusive end of the segments; the base offset of the one that follows.
        clean_bytes: size of the segments below the first dirty offset.
        dirty_bytes: size of the others.
        is_overdue: whether `max.compaction.lag.ms` demands a pass whatever the ratio.
    """

    log: "Log"
    config: "LogConfig"
    segments: "Sequence[Segment]"
    first_dirty_offset: int
    upper_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def topic_partition(self) -> TopicPartition:
        """Partition of the log."""
        return self.log.topic_partition

    @property
    def dirty_ratio(self) -> float:
        """Share of the cleanable bytes that no pass has seen."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the log is dirty enough by its topic's settings."""
        if self.dirty_bytes == 0:
            return False
        return self.is_overdue or self.dirty_ratio > self.config.min_cleanable_dirty_ratio


@dataclass(slots=True)
class CleaningStatistics:
    """Statistics of one pass.

    Attributes:
        clean_offset: for `cleaner-offset-checkpoint`: all below is clean. Less than the plan's
            upper offset if the offset map became full; then another pass is needed.
        segments_before: number of segments that were read.
        segments_after: number of segments that took their place.
        bytes_before: size of the segments that were read.
        bytes_after: size of what took their place.
        records_before: number of records read.
        records_after: number of records left.
        map_entries: different keys in the dirty part.
    """

    clean_offset: int = -1
    segments_before: int = 0
    segments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    records_before: int = 0
    records_after: int = 0
    map_entries: int = 0


# --- Planning ------------------------------------------------------------------------------------


def plan_cleaning(
    log: "Log", *, checkpoint: int | None, stable_offset: int, now_ms: int
) -> CleaningPlan | None:
    """Return what a pass over a compacted log would do, None if there is nothing to clean.

    On the event loop.

    Args:
        log: of a topic whose cleanup.policy contains compact.
        checkpoint: `clean_offset` of the last pass, None if there was none.
        stable_offset: last stable offset (never above the high watermark), exclusive end of what
            is decided.
        now_ms: wall clock, compared with timestamps of records.

    Raises:
        OSError: an index cannot be read.
    """
    segments = list(log.segments)
    config = log.config
    start_offset = log.log_start_offset
    first_dirty_offset = start_offset if checkpoint is None else checkpoint
    if not start_offset <= first_dirty_offset <= log.log_end_offset:
        first_dirty_offset = start_offset  # the log was cut or deleted since
    count = _count_cleanable(segments, config, first_dirty_offset, stable_offset, now_ms)
    if count == 0:
        return None
    upper_offset = segments[count].base_offset
    cleanable = segments[:count]
    dirty = [
        segment
        for segment, following in pairwise(segments[: count + 1])
        if following.base_offset > first_dirty_offset
    ]
    dirty_bytes = sum(segment.size for segment in dirty)
    return CleaningPlan(
        log=log,
        config=config,
        segments=cleanable,
        first_dirty_offset=first_dirty_offset,
        upper_offset=upper_offset,
        clean_bytes=sum(segment.size for segment in cleanable) - dirty_bytes,
        dirty_bytes=dirty_bytes,
        is_overdue=_is_overdue(dirty, config, now_ms),
    )


def filthiest(plans: Iterable[CleaningPlan | None]) -> CleaningPlan | None:
    """Return the plan of the log that is dirtiest of those due, None if none is."""
    due = [plan for plan in plans if plan is not None and plan.is_due]
    return max(due, key=lambda plan: plan.dirty_ratio, default=None)


def _count_cleanable(
    segments: "Sequence[Segment]",
    config: "LogConfig",
    first_dirty_offset: int,
    stable_offset: int,
    now_ms: int,
) -> int:
    """Return how many of the oldest segments a pass may touch.

    Not the active one, none with undecided records, none that holds a record younger than
    min.compaction.lag.ms (nor any behind that, unless it was cleaned before).
    """
    latest_ms = now_ms - config.min_compaction_lag_ms
    count = 0
    for segment, following in pairwise(segments):
        if following.base_offset > stable_offset:
            break
        is_dirty = following.base_offset > first_dirty_offset
        if is_dirty and config.min_compaction_lag_ms > 0 and segment.largest_timestamp > latest_ms:
            break
        count += 1
    return count


def _is_overdue(dirty: "Iterable[Segment]", config: "LogConfig", now_ms: int) -> bool:
    earliest_ms = now_ms - config.max_compaction_lag_ms
    return earliest_ms > 0 and any(0 < segment.first_timestamp < earliest_ms for segment in dirty)


def _source(segment: "Segment", next_base_offset: int) -> SourceSegment:
    return SourceSegment(
        segment=segment,
        base_offset=segment.base_offset,
        next_base_offset=next_base_offset,
        size=segment.size,
        file=segment.file,
        modified_ms=segment.modified_ms,
        offset_index_bytes=len(segment.offset_index) * segment.offset_index.entry.size,
        time_index_bytes=len(segment.time_index) * segment.time_index.entry.size,
    )


# --- The pass ------------------------------------------------------------------------------------


class CleaningPass:
    """One pass; its steps are to be taken in order, each by one thread at a time.

    Attributes:
        statistics: of the steps taken so far.
    """

    __slots__ = (
        "_aborted",
        "_filter",
        "_last_records",
        "_map_bytes",
        "_now_ms",
        "_plan",
        "_sources",
        "_throttle",
        "_truncations",
        "statistics",
    )

    def __init__(
        self,
        plan: CleaningPlan,
        settings: CleanerSettings,
        *,
        now_ms: int,
        sleep: Callable[[float], object] = sleep,
    ) -> None:
        """Open the files, and take a picture of what else the pass needs to know of the log.

        On the event loop.

        Args:
            plan: what to do.
            settings: the broker's.
            now_ms: wall clock.
            sleep: called in worker threads, with seconds.

        Raises:
            OSError: a file cannot be opened.
            KafkaError: KAFKA_STORAGE_ERROR, a transaction index cannot be read.
        """
        log = plan.log
        self.statistics = CleaningStatistics()
        self._plan = plan
        self._now_ms = now_ms
        self._map_bytes = settings.map_bytes
        self._throttle = Throttle(settings.io_max_bytes_per_second, sleep)
        self._truncations = log.local_log.truncations
        ends = [segment.base_offset for segment in plan.segments[1:]] + [plan.upper_offset]
        self._sources = [
            _source(segment, end) for segment, end in zip(plan.segments, ends, strict=True)
        ]
        self._aborted = log.aborted_transactions(self._sources[0].base_offset, plan.upper_offset)
        self._last_records = {
            state.producer_id: LastRecord(state.last_offset, state.epoch) for state in log.producers
        }
        self._filter: BatchFilter | None = None

    def build_map(self) -> list[list[SourceSegment]]:
        """Read the dirty part; return the groups that `clean_group` is to be called with, in order.

        In a worker thread. Raises OSError, or KafkaError if a batch is damaged.
        """
        plan = self._plan
        offset_map = OffsetMap(self._map_bytes, plan.first_dirty_offset)
        walk = CleanedTransactionMetadata(self._aborted)
        for source in self._sources:
            if source.next_base_offset <= plan.first_dirty_offset:
                continue
            if not _add_segment(offset_map, walk, source, self._throttle):
                break
            offset_map.advance_to(source.next_base_offset)
        self._filter = BatchFilter(
            offset_map,
            aborted=self._aborted,
            last_records=self._last_records,
            upper_offset=plan.upper_offset,
            now_ms=self._now_ms,
            delete_retention_ms=plan.config.delete_retention_ms,
        )
        self.statistics.clean_offset = offset_map.end_offset
        self.statistics.map_entries = len(offset_map)
        return group_sources(
            [source for source in self._sources if source.base_offset < offset_map.end_offset],
            plan.config,
        )

    def clean_group(self, group: Sequence[SourceSegment]) -> "Segment":
        """Write what is kept of a group's segments into one new segment, finished and synced.

        In a worker thread. Raises OSError, or KafkaError if a batch is damaged; then the new
        segment is removed again.
        """
        assert self._filter is not None, "build_map comes first"
        cleaned = self._plan.log.local_log.new_cleaned_segment(group[0].base_offset)
        try:
            _write_kept(
                self._filter,
                group,
                cleaned,
                index_interval_bytes=self._plan.config.index_interval_bytes,
                throttle=self._throttle,
            )
            cleaned.modified_ms = group[-1].modified_ms
            cleaned.finish()
            cleaned.sync()
        except BaseException:
            cleaned.close()
            cleaned.remove()
            raise
        statistics = self.statistics
        statistics.segments_before += len(group)
        statistics.segments_after += 1
        statistics.bytes_before += sum(source.size for source in group)
        statistics.bytes_after += cleaned.size
        statistics.records_before = self._filter.statistics.records_read
        statistics.records_after = self._filter.statistics.records_kept
        return cleaned

    def swap(self, group: Sequence[SourceSegment], cleaned: "Segment") -> None:
        """Give the cleaned segment the place of those it was made from.

        On the event loop.

        Raises:
            CleaningAborted: the log has lost or cut one of them since the plan was made.
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline then.
        """
        log = self._plan.log
        present = {id(segment) for segment in log.segments.closed}
        if self.has_lost_its_log or any(id(source.segment) not in present for source in group):
            cleaned.close()
            cleaned.remove()
            raise CleaningAborted(f"{log.topic_partition} has changed while it was compacted")
        log.replace_segments([cleaned], [source.segment for source in group])

    @property
    def has_lost_its_log(self) -> bool:
        """Whether the log was closed or cut since the pass began, so that errors mean nothing."""
        log = self._plan.log
        return log.failure is not None or log.local_log.truncations != self._truncations


async def clean(
    plan: CleaningPlan, disk: "Disk", *, settings: CleanerSettings, now_ms: int
) -> CleaningStatistics:
    """Clean a log, with all reading and writing in worker threads.

    Cancelling it lets the running step end, and leaves the log whole; a `.cleaned` segment that
    may be left behind is removed at the next start.

    Raises:
        CleaningAborted: the log changed meanwhile; plan again.
        KafkaError: a batch is damaged: leave this log alone.
        OSError: a file could not be read or written.
    """
    work = CleaningPass(plan, settings, now_ms=now_ms)
    try:
        for group in await disk.run_in_thread(work.build_map):
            cleaned = await disk.run_in_thread(work.clean_group, group)
            work.swap(group, cleaned)
    except (KafkaError, OSError) as error:
        if work.has_lost_its_log:
            raise CleaningAborted(f"{plan.topic_partition} was closed or cut: {error}") from error
        raise
    return work.statistics


def group_sources(
    sources: Sequence[SourceSegment], config: "LogConfig"
) -> list[list[SourceSegment]]:
    """Return neighbouring segments together as long as one segment could hold them all.

    So a log that compaction has made small does not stay in a thousand files.
    """
    groups: list[list[SourceSegment]] = []
    size = offset_index_bytes = time_index_bytes = 0
    for source in sources:
        size += source.size
        offset_index_bytes += source.offset_index_bytes
        time_index_bytes += source.time_index_bytes
        if (
            groups
            and size <= config.segment_bytes
            and offset_index_bytes <= config.segment_index_bytes
            and time_index_bytes <= config.segment_index_bytes
            and source.next_base_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
        ):
            groups[-1].append(source)
            continue
        groups.append([source])
        size = source.size
        offset_index_bytes = source.offset_index_bytes
        time_index_bytes = source.time_index_bytes
    return groups


def _add_segment(
    offset_map: OffsetMap,
    walk: CleanedTransactionMetadata,
    source: SourceSegment,
    throttle: Throttle,
) -> bool:
    """Put a segment's keys into the map; return False if it became full before the end."""
    for batch, header in _read_batches(source, throttle):
        if header.is_control:
            walk.on_control_batch(batch, header)
        elif not walk.on_batch(header) and header.next_offset > offset_map.end_offset:
            if offset_map.is_full:
                return False
            offset_map.add_batch(batch, header)
        offset_map.advance_to(header.next_offset)
    return True


def _write_kept(
    batch_filter: BatchFilter,
    group: Sequence[SourceSegment],
    cleaned: "Segment",
    *,
    index_interval_bytes: int,
    throttle: Throttle,
) -> None:
    chunks: list[bytes | bytearray | memoryview] = []
    batches: list[tuple[int, BatchHeader]] = []
    waiting_bytes = 0

    def write() -> None:
        if batches:
            cleaned.append(b"".join(chunks), batches, index_interval_bytes=index_interval_bytes)
            throttle.count(waiting_bytes)
            chunks.clear()
            batches.clear()

    for source in group:
        for batch, header in _read_batches(source, throttle):
            kept = batch_filter.filter(batch, header)
            if kept.aborted is not None:
                cleaned.aborted.append(kept.aborted)
            if kept.data is None:
                continue
            chunks.append(kept.data)
            batches.append((waiting_bytes, kept.header))
            waiting_bytes += kept.header.size
            if waiting_bytes >= WRITE_BYTES:
                write()
                waiting_bytes = 0
    write()


def _read_batches(
    source: SourceSegment, throttle: Throttle
) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Yield each batch of a segment and its header.

    Raises:
        KafkaError: CORRUPT_MESSAGE if the file is no sequence of whole batches.
    """
    position = 0
    read_bytes = READ_BYTES
    while position < source.size:
        length = min(read_bytes, source.size - position)
        data = memoryview(source.file.pread(length, position))
        consumed = 0
        for at, header in iterate_batches(data):
            consumed = at + header.size
            yield data[at:consumed], header
            throttle.count(header.size, header.record_count)
        position += consumed
        read_bytes = READ_BYTES
        if consumed == 0:
            # One batch is longer than a chunk; or it is not all there, and must not be waited for.
            needed = read_batch_header(data).size if len(data) >= BATCH_OVERHEAD else length + 1
            if needed <= length or needed > source.size - position:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{source.segment} holds no whole batch at byte {position}",
                )
            read_bytes = needed
