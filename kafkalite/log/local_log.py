"""The files of one log: segments that are rolled, cut, replaced, read and flushed.

After Kafka's LocalLog, with the snapshots of producers and the checkpoint of leader epochs, which
lie in the same directory. Which offsets there are, and who may read them, is known to `log`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from zlib import crc32

from kafkalite.log import timestamps
from kafkalite.log.checkpoint import LEADER_EPOCH_FILE, write_epochs
from kafkalite.log.producer_snapshots import restore
from kafkalite.log.region import EMPTY_REGION, FileRegion
from kafkalite.log.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    Segment,
)
from kafkalite.log.state import LogState
from kafkalite.types import LogPosition, TopicPartition

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.log.disk import Disk
    from kafkalite.log.transaction_index import AbortedTransaction
    from kafkalite.log.validate import ValidBatches
    from kafkalite.log_config import LogConfig

NEVER: Final = 2**63 - 1
"""Kafka's default for flush.ms and flush.messages."""

HINTS_MAX: Final = 16
"""Sequential readers of one log whose next position is remembered."""

OPEN_SEGMENTS_MAX: Final = 8
"""Segments other than the active one that a log keeps open for its readers."""


@dataclass(slots=True)
class Flush:
    """Work of a worker thread that makes the log safe up to `end_offset` (exclusive)."""

    end_offset: int
    steps: list[Callable[[], None]]
    indexes: list[Segment]
    truncations: int

    def run(self) -> None:
        """Do it. Blocks; raises OSError."""
        for step in self.steps:
            step()


class LocalLog:
    """Segments, snapshots and epochs of one partition, and how much of them is safe.

    Its methods raise OSError where the disk does; `Log` decides what that means.

    Attributes:
        topic_partition: whose log it is.
        directory: where it is.
        config: the topic's settings.
        segments: for retention, compaction and dumps; not to be changed from outside.
        epochs: leader epochs and where they began.
        producers: idempotent and transactional producers.
        recovery_point: all below it is on stable storage.
        unflushed_since_ms: wall clock of the oldest append since the last flush; None if none.
        truncations: how often the log was cut; tells whether what was read of it still holds.
    """

    def __init__(
        self,
        disk: "Disk",
        directory: str,
        topic_partition: TopicPartition,
        config: "LogConfig",
        state: LogState,
        *,
        clock: "Clock",
        on_flush_due: Callable[[], None],
        on_segments_removed: Callable[[Sequence[Segment]], None],
        on_unreadable: Callable[[OSError], None],
    ) -> None:
        self.topic_partition = topic_partition
        self.directory = directory
        self.config = config
        self.segments = state.segments
        self.epochs = state.epochs
        self.producers = state.producers
        self.recovery_point = state.recovery_point
        self.unflushed_since_ms: int | None = None
        self.truncations = 0
        self._disk = disk
        self._clock = clock
        self._snapshots = state.snapshots
        self._on_flush_due = on_flush_due
        self._on_segments_removed = on_segments_removed
        self._on_unreadable = on_unreadable
        # Changed since the last flush; the active segment's indexes need no care, recovery after
        # a crash builds them anew.
        self._epochs_unsynced = False
        self._names_unsynced = self._home_unsynced = True
        self._indexes_unsynced: list[Segment] = []
        self._unflushed_messages = 0
        # Next offset of a reader -> where its batch starts. Readers are mostly sequential, and
        # each read but the first then needs neither index nor scan.
        self._hints: dict[int, tuple[Segment, int]] = {}
        self._recently_read: dict[Segment, None] = {}

    # --- Appending -------------------------------------------------------------------------------

    def append(self, valid: "ValidBatches", *, end_offset: int, count: int, now_ms: int) -> Segment:
        """Write batches, and return the segment that has them now; on failure nothing has changed.

        Args:
            valid: with the offsets and epochs that they have from now on.
            end_offset: of the log with them, exclusive.
            count: offsets by which that is more than before.
            now_ms: wall clock.
        """
        batches = valid.batches
        first = batches[0][1]
        size = valid.size
        config = self.config
        segment = self.segments.active
        max_timestamp = first.max_timestamp
        if len(batches) > 1:
            max_timestamp = max(header.max_timestamp for _, header in batches)
        if self.epochs.is_unwritten:
            self.write_epochs()
        if segment.must_roll(
            incoming_bytes=size,
            last_offset=end_offset - 1,
            max_timestamp=max_timestamp,
            now_ms=now_ms,
            segment_bytes=config.segment_bytes,
            segment_ms=self.roll_after_ms(segment),
            index_bytes=config.segment_index_bytes,
        ):
            segment = self.roll(first.base_offset, now_ms)
        buffer = valid.buffer
        segment.append(
            buffer if len(buffer) == size else memoryview(buffer)[:size],
            batches,
            index_interval_bytes=config.index_interval_bytes,
        )
        segment.modified_ms = now_ms
        self._unflushed_messages += count
        if self.unflushed_since_ms is None:
            self.unflushed_since_ms = now_ms
            if config.flush_ms < NEVER:
                self._on_flush_due()
        if self._unflushed_messages >= config.flush_messages:
            self._on_flush_due()
        return segment

    # --- Rolling ---------------------------------------------------------------------------------

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Return the new active segment, which begins at the log end or, in a gap, behind it.

        The active one if it is empty and begins there. On failure nothing has changed.
        """
        active = self.segments.active
        if active.size == 0 and active.base_offset == base_offset:
            return active
        self._snapshots.write(self.producers, base_offset)
        segment = self._new_segment(base_offset, now_ms)
        self.segments.add(segment)
        if active.size == 0:
            self._remove([active])
        else:
            self._indexes_unsynced.append(active)
            # What the disk refuses now stays in memory until the flush, which the recovery point
            # waits for.
            with suppress(OSError):
                active.finish()
            active.close()
        self._names_unsynced = True
        self._on_flush_due()
        return segment

    def _new_segment(self, base_offset: int, now_ms: int, *, suffix: str = "") -> Segment:
        segment = Segment(self._disk, self.directory, base_offset, suffix=suffix, now_ms=now_ms)
        try:
            segment.create()
        except OSError:
            segment.remove()
            raise
        return segment

    def roll_after_ms(self, segment: Segment) -> int:
        """Return the age at which a segment is rolled: segment.ms less its jitter (rule 200).

        A compacted log rolls within max.compaction.lag.ms, as compaction spares the active segment.
        Jitter is spread over segments by a checksum of their names: random enough, and the same in
        each run.
        """
        config = self.config
        limit_ms = config.segment_ms
        if "compact" in config.cleanup_policy:
            limit_ms = min(limit_ms, config.max_compaction_lag_ms)
        jitter_ms = config.segment_jitter_ms
        if jitter_ms > 0:
            name = f"{self.topic_partition}:{segment.base_offset}"
            limit_ms -= crc32(name.encode()) % (jitter_ms + 1)
        return limit_ms

    def write_epochs(self) -> None:
        """Write the checkpoint, whether it is out of date or not."""
        path = f"{self.directory}/{LEADER_EPOCH_FILE}"
        write_epochs(self._disk, path, self.epochs.entries, sync=False)
        self.epochs.is_unwritten = False
        self._epochs_unsynced = True

    # --- Cutting ---------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Remove the batch that holds `offset` and all behind it; return the new log end.

        `on_truncated` is to follow.
        """
        self._hints.clear()
        self.truncations += 1
        doomed = [each for each in self.segments if each.base_offset > offset]
        # The newest go first, so that a crash never leaves a hole.
        self._remove(doomed[::-1])
        return self.segments.active.truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the first segment begins at `offset`. `on_truncated` is to follow."""
        self._hints.clear()
        self.truncations += 1
        doomed = list(self.segments)
        self._remove(doomed[::-1])
        self.segments.add(self._new_segment(offset, self._clock.wall_ms()))
        self.epochs.clear()

    def on_truncated(self, end_offset: int) -> None:
        """Bring epochs, producers and the recovery point to the log's new end."""
        self.epochs.truncate_from_end(end_offset)
        # A full disk takes them with the next append at the latest; a start cuts them, too.
        if self.epochs.is_unwritten:
            with suppress(OSError):
                self.write_epochs()
        self._snapshots.remove_after(end_offset)
        restore(self._snapshots, self.producers, self.segments, end_offset)
        self.recovery_point = min(self.recovery_point, end_offset)

    # --- Deleting and replacing ------------------------------------------------------------------

    def delete(self, segments: Sequence[Segment]) -> None:
        """Take segments out; their files are deleted later."""
        self._hints.clear()
        self._remove(segments)

    def _remove(self, segments: Sequence[Segment]) -> None:
        """Take segments out, in this order, and rename their files."""
        if not segments:
            return
        self._forget(segments)
        for segment in segments:
            segment.rename(suffix=DELETED_SUFFIX)
            segment.close()
        self._snapshots.remove(segment.base_offset for segment in segments)
        self._on_segments_removed(segments)

    def _forget(self, segments: Sequence[Segment]) -> None:
        self.segments.remove(segments)
        self._recently_read.clear()
        self._indexes_unsynced = [
            segment for segment in self._indexes_unsynced if segment not in segments
        ]

    def new_cleaned_segment(self, base_offset: int) -> Segment:
        """Return an empty segment under the names of an unfinished compaction (`.cleaned`).

        For worker threads: nothing of the log is touched.
        """
        return self._new_segment(base_offset, self._clock.wall_ms(), suffix=CLEANED_SUFFIX)

    def replace(self, new: Sequence[Segment], old: Sequence[Segment]) -> None:
        """As `Log.replace_segments`; on failure it is not known what is under which name."""
        self._hints.clear()
        for segment in reversed(new):
            segment.rename(suffix=SWAP_SUFFIX)
        self._forget(old)
        for segment in new:
            self.segments.add(segment)
        kept = {segment.base_offset for segment in new}
        for segment in old:
            segment.rename(suffix=DELETED_SUFFIX)
            segment.close()
        self._snapshots.remove(
            segment.base_offset for segment in old if segment.base_offset not in kept
        )
        for segment in new:
            segment.rename(suffix="")
        self._on_segments_removed(old)

    # --- Flushing and closing --------------------------------------------------------------------

    @property
    def flush_due_ms(self) -> int | None:
        """When (wall clock) the log wants to be flushed: 0 for now, None for not yet."""
        config = self.config
        if self._indexes_unsynced or self._unflushed_messages >= config.flush_messages:
            return 0
        if self.unflushed_since_ms is not None and config.flush_ms < NEVER:
            return self.unflushed_since_ms + config.flush_ms
        return None

    def recovery_point_to_write(self, log_end_offset: int) -> int:
        """Return the recovery point as the checkpoint on disk may have it.

        Recovery trusts the indexes of segments that end at or before it. A flush in the middle of
        a segment leaves its indexes alone, and the segment may be rolled right there: so the
        checkpoint stays within the first segment whose indexes are not safe.
        """
        segments = self.segments
        first = self._indexes_unsynced[0] if self._indexes_unsynced else segments.active
        if first is segments.active and first.size == 0:
            return self.recovery_point
        following = segments.after(first)
        end_offset = log_end_offset if following is None else following.base_offset
        return min(self.recovery_point, end_offset - 1)

    def begin_flush(self, log_end_offset: int) -> Flush | None:
        """Bring all files up to date and return what is left to do in a thread; None if nothing."""
        if self.recovery_point >= log_end_offset and not self._indexes_unsynced:
            return None
        paths = [
            self._snapshots.path(offset)
            for offset in self._snapshots.offsets
            if offset >= self.recovery_point
        ]
        if self.epochs.is_unwritten:
            self.write_epochs()
        unsafe = self.segments.from_offset(self.recovery_point)
        steps: list[Callable[[], None]] = [segment.file.sync for segment in unsafe]
        for segment in self._indexes_unsynced:
            segment.write_indexes()
            paths += segment.index_paths()
        if self._epochs_unsynced:
            paths.append(f"{self.directory}/{LEADER_EPOCH_FILE}")
        if self._names_unsynced:
            paths.append(self.directory)
        if self._home_unsynced:
            paths.append(self.directory.rpartition("/")[0])
        steps += [partial(self._disk.sync, path) for path in paths]
        self.unflushed_since_ms = None
        self._unflushed_messages = 0
        self._epochs_unsynced = self._names_unsynced = self._home_unsynced = False
        return Flush(log_end_offset, steps, list(self._indexes_unsynced), self.truncations)

    async def run_in_thread(self, flush: Flush) -> None:
        """Return when a flush was run."""
        await self._disk.run_in_thread(flush.run)

    def end_flush(self, flush: Flush) -> None:
        """Note that a flush is done."""
        self._indexes_unsynced = [
            segment for segment in self._indexes_unsynced if segment not in flush.indexes
        ]
        if flush.truncations == self.truncations:
            self.recovery_point = max(self.recovery_point, flush.end_offset)

    def finish(self, log_end_offset: int) -> None:
        """Complete all files, so that the next start need neither scan nor replay."""
        if self.epochs.is_unwritten:
            self.write_epochs()
        if log_end_offset > 0 and log_end_offset not in self._snapshots.offsets:
            self._snapshots.write(self.producers, log_end_offset)
            self._indexes_unsynced.append(self.segments.active)
        for segment in self.segments:
            segment.finish()

    def discard(self) -> None:
        """Let go of the files and leave them as they are. What is being sent is sent to its end."""
        self._hints.clear()
        for segment in self.segments:
            segment.close()

    # --- Reading ---------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, upper: LogPosition, *, min_one_batch: bool
    ) -> FileRegion:
        """As `Log.read`, of an offset that is there."""
        place = self._hints.get(offset)
        if place is None or place[1] >= place[0].size:
            place = self._place_of(offset)
            if place is None:
                return EMPTY_REGION
        segment, start = place
        end = self._end_in(segment, upper)
        limit = start + max_bytes
        next_offset = upper.offset
        if limit < end:
            boundary, next_offset = segment.boundary(start, limit)
            if boundary == start and min_one_batch:
                first = next(segment.spans(start))
                boundary, next_offset = first.end_position, first.last_offset + 1
            end = min(boundary, end)
        elif end == segment.size and segment is not self.segments.active:
            following = self.segments.after(segment)
            assert following is not None
            self._hint(following.base_offset, following, 0)
            self._keep_few_open(segment)
            next_offset = following.base_offset
            return self._region(segment, start, end, next_offset)
        if end <= start:
            return FileRegion(None, 0, 0, next_offset=next_offset)
        self._hint(next_offset, segment, end)
        self._keep_few_open(segment)
        return self._region(segment, start, end, next_offset)

    def _region(self, segment: Segment, start: int, end: int, next_offset: int) -> FileRegion:
        return FileRegion(
            segment.file,
            start,
            end - start,
            next_offset=next_offset,
            on_error=self._on_unreadable,
        )

    def _keep_few_open(self, segment: Segment) -> None:
        """Close the closed segment that was read first, if this one makes too many open."""
        recent = self._recently_read
        if segment not in recent and segment is not self.segments.active:
            recent[segment] = None
            if len(recent) > OPEN_SEGMENTS_MAX:
                oldest = next(iter(recent))
                del recent[oldest]
                if oldest is not self.segments.active:
                    oldest.close()

    def _hint(self, offset: int, segment: Segment, position: int) -> None:
        hints = self._hints
        hints[offset] = (segment, position)
        if len(hints) > HINTS_MAX:
            del hints[next(iter(hints))]

    def _place_of(self, offset: int) -> tuple[Segment, int] | None:
        """Return where the first batch starts whose last offset is >= `offset`, None at the end.

        Not always in the segment that `offset` belongs to: compaction leaves gaps.
        """
        for segment in self.segments.from_offset(offset):
            span = segment.locate(offset)
            if span is not None:
                return segment, span.position
        return None

    def _end_in(self, segment: Segment, upper: LogPosition) -> int:
        """Return the byte in `segment` at which readers bounded by `upper` must stop."""
        if segment is not self.segments.active:
            following = self.segments.after(segment)
            if following is not None and following.base_offset <= upper.offset:
                return segment.size
        if segment.base_offset != upper.segment_base_offset:
            # The bound was taken before compaction put its segment into this one.
            upper = self.position_of(upper.offset)
            if segment.base_offset != upper.segment_base_offset:
                return 0 if segment.base_offset > upper.segment_base_offset else segment.size
        return min(upper.position, segment.size)

    def position_of(self, offset: int) -> LogPosition:
        """Return `offset` with the place of the batch that holds it, or would hold it."""
        place = self._hints.get(offset)
        if place is None or place[1] >= place[0].size:
            place = self._place_of(offset)
            if place is None:  # the end of the log, or it ends with a compacted gap
                active = self.segments.active
                return LogPosition(offset, active.base_offset, active.size)
        return LogPosition(offset, place[0].base_offset, place[1])

    def offset_for_timestamp(
        self, timestamp: int, *, start_offset: int, end_offset: int
    ) -> tuple[int, int, int] | None:
        """Return (offset, timestamp, leader epoch) of the first record at or after `timestamp`.

        None if there is none in start_offset..end_offset (exclusive).
        """
        return timestamps.first_at_or_after(
            self.segments.from_offset(start_offset),
            timestamp,
            start_offset=start_offset,
            end_offset=end_offset,
        )

    def offset_of_max_timestamp(self) -> tuple[int, int, int] | None:
        """Return (offset, timestamp, leader epoch) of the record with the largest timestamp."""
        return timestamps.largest(self.segments)

    def aborted_transactions(
        self, first_offset: int, upper_offset: int
    ) -> "list[AbortedTransaction]":
        """Return aborted transactions with records in [first_offset, upper_offset) (rule 116)."""
        found: list[AbortedTransaction] = []
        for segment in self.segments.from_offset(first_offset):
            some, complete = segment.aborted.collect(first_offset, upper_offset)
            found += some
            if complete:
                break
        found.sort(key=lambda transaction: transaction.first_offset)
        return found
