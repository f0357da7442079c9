"""The files of one log: rolling, cutting, deleting, replacing and flushing its segments.

What a log does to itself; what requests ask of it is in `log`. After Kafka's LocalLog.
"""

import errno
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from zlib import crc32

from kafkalite.log.checkpoint import LEADER_EPOCH_FILE, write_epochs
from kafkalite.log.disk import TornFile
from kafkalite.log.producer_snapshots import restore
from kafkalite.log.retention import count_deletable
from kafkalite.log.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    Segment,
)
from kafkalite.log.state import LogListener, LogState
from kafkalite.types import LogPosition, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.clock import Clock
    from kafkalite.log.disk import Disk
    from kafkalite.log_config import LogConfig

NEVER: Final = 2**63 - 1
"""Kafka's default for flush.ms and flush.messages."""


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


class LogFiles:
    """Segments, snapshots and epochs of one partition, and the offsets that bound them.

    Invariants: log_start_offset <= log_end_offset; recovery_point <= log_end_offset; all that an
    append has returned for is in the file, all else in memory only describes the file.

    Attributes:
        topic_partition: whose log it is.
        topic_id: of the topic's present incarnation.
        directory: where it is.
        segments: for retention, compaction and dumps; not to be changed from outside.
        epochs: leader epochs and where they began.
        producers: idempotent and transactional producers.
        log_start_offset: first offset that can be read.
        log_end_offset: offset that the next record gets.
        recovery_point: all below it is on stable storage.
        unflushed_since_ms: wall clock of the oldest append since the last flush; None if none.
        failure: why the log is offline; None while it is not.
    """

    def __init__(
        self,
        disk: "Disk",
        directory: str,
        topic_partition: TopicPartition,
        topic_id: "UUID",
        config: "LogConfig",
        state: LogState,
        *,
        clock: "Clock",
        listener: LogListener,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.directory = directory
        self.segments = state.segments
        self.epochs = state.epochs
        self.producers = state.producers
        self.log_start_offset = state.log_start_offset
        self.log_end_offset = state.log_end_offset
        self.recovery_point = state.recovery_point
        self.unflushed_since_ms: int | None = None
        self.failure: str | None = None
        self._disk = disk
        self._config = config
        self._clock = clock
        self._listener = listener
        self._snapshots = state.snapshots
        self._epochs_unwritten = False
        # Changed since the last flush; the active segment's indexes need no care, recovery after
        # a crash builds them anew.
        self._epochs_unsynced = False
        self._names_unsynced = self._home_unsynced = True
        self._indexes_unsynced: list[Segment] = []
        self._truncations = 0
        self._unflushed_messages = 0
        # Next offset of a reader -> where its batch starts. Readers are mostly sequential, and
        # each read but the first then needs neither index nor scan.
        self._hints: dict[int, tuple[Segment, int]] = {}
        self._recently_read: dict[Segment, None] = {}

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    # --- Facts -----------------------------------------------------------------------------------

    @property
    def config(self) -> "LogConfig":
        """The topic's settings."""
        return self._config

    def update_config(self, config: "LogConfig") -> None:
        """Follow a change of the topic's settings."""
        self._config = config

    @property
    def log_end_position(self) -> LogPosition:
        """The log end offset with its place on disk.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the log is offline and may have no segment at all.
        """
        self._check_online()
        active = self.segments.active
        return LogPosition(self.log_end_offset, active.base_offset, active.size)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self.segments.size_bytes

    @property
    def truncations(self) -> int:
        """How often the log was cut; tells whether what was read of it before still holds."""
        return self._truncations

    # --- Leader epochs ---------------------------------------------------------------------------

    def begin_epoch(self, leader_epoch: int) -> None:
        """Note that a new leader writes from the log end on (rule 99).

        The file follows before the first append of that epoch, at the latest: an epoch without
        records is of no use to anyone after a crash.
        """
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, self.log_end_offset)
            self._epochs_unwritten = True

    def _write_epochs(self) -> None:
        if self._epochs_unwritten:
            path = f"{self.directory}/{LEADER_EPOCH_FILE}"
            write_epochs(self._disk, path, self.epochs.entries, sync=False)
            self._epochs_unwritten = False
            self._epochs_unsynced = True

    def check_writable(self) -> None:
        """Write something small, to find out whether the disk takes anything.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        self._check_online()
        self._epochs_unwritten = True
        try:
            self._write_epochs()
        except OSError as error:
            raise self._storage_error("write", error) from error

    # --- Rolling ---------------------------------------------------------------------------------

    def roll(self) -> None:
        """Begin a new segment at the log end, unless the active one is empty.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; then nothing has changed.
        """
        try:
            self._roll(self.log_end_offset, self._clock.wall_ms())
        except OSError as error:
            raise self._storage_error("roll", error) from error

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Return the new active segment. Raises OSError; then nothing has changed."""
        active = self.segments.active
        base_offset = max(base_offset, self.log_end_offset)
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
        self._listener.on_flush_due(self)
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
        config = self._config
        limit_ms = config.segment_ms
        if "compact" in config.cleanup_policy:
            limit_ms = min(limit_ms, config.max_compaction_lag_ms)
        jitter_ms = config.segment_jitter_ms
        if jitter_ms > 0:
            name = f"{self.topic_partition}:{segment.base_offset}"
            limit_ms -= crc32(name.encode()) % (jitter_ms + 1)
        return limit_ms

    # --- Cutting ---------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Remove all records from `offset` on, and the whole batch that holds it.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline then.
        """
        self._check_online()
        if offset >= self.log_end_offset:
            # This broker may have been a leader that wrote nothing before the next one came.
            if self.epochs.truncate_from_end(self.log_end_offset):
                self._epochs_unwritten = True
            return
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self._hints.clear()
        self._truncations += 1
        try:
            doomed = [each for each in self.segments if each.base_offset > offset]
            # The newest go first, so that a crash never leaves a hole.
            self._remove(doomed[::-1])
            self.log_end_offset = self.segments.active.truncate_to(offset)
            self._after_truncation()
        except OSError as error:
            self.failure = f"truncation to {offset} failed: {error}"
            raise self._storage_error("truncate", error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the log is empty and begins at `offset`.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline then.
        """
        self._check_online()
        self._hints.clear()
        self._truncations += 1
        try:
            doomed = list(self.segments)
            self._remove(doomed[::-1])
            self.segments.add(self._new_segment(offset, self._clock.wall_ms()))
            self.log_end_offset = offset
            self.log_start_offset = offset
            self.epochs.clear()
            self._epochs_unwritten = True
            self._after_truncation()
            self._listener.on_start_moved(self)
        except OSError as error:
            self.failure = f"truncation to {offset} failed: {error}"
            raise self._storage_error("truncate", error) from error

    def _after_truncation(self) -> None:
        end_offset = self.log_end_offset
        if self.epochs.truncate_from_end(end_offset):
            self._epochs_unwritten = True
        # A full disk takes them with the next append at the latest; a start cuts them, too.
        with suppress(OSError):
            self._write_epochs()
        self._snapshots.remove_after(end_offset)
        restore(self._snapshots, self.producers, self.segments, end_offset)
        if self.log_start_offset > end_offset:
            self.log_start_offset = end_offset
            self._listener.on_start_moved(self)
        self.recovery_point = min(self.recovery_point, end_offset)
        self._listener.on_truncated(self)

    # --- Deleting --------------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> None:
        """Move the log start up to `offset`; segments wholly below it go with the next retention.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE beyond the log end.
        """
        self._check_online()
        if offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} is beyond {self.log_end_offset}",
            )
        if offset > self.log_start_offset:
            self._move_start(offset)

    def apply_retention(self, now_ms: int, *, high_watermark: int | None = None) -> int:
        """Delete the segments whose time has come (rules 201-204); return how many.

        Args:
            now_ms: wall clock.
            high_watermark: nothing at or above it goes; the log end where there are no followers.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        self._check_online()
        try:
            count = count_deletable(
                list(self.segments),
                config=self._config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self.log_end_offset if high_watermark is None else high_watermark,
                now_ms=now_ms,
            )
            if count:
                self._delete_oldest(count)
        except OSError as error:
            raise self._storage_error("retention", error) from error
        return count

    def _move_start(self, offset: int) -> None:
        self.log_start_offset = offset
        if self.epochs.truncate_from_start(offset):
            self._epochs_unwritten = True
        self._listener.on_start_moved(self)

    def _delete_oldest(self, count: int) -> None:
        """Delete so many segments; if these are all, a new one is begun. Raises OSError."""
        if count == len(self.segments):
            self._roll(self.log_end_offset, self._clock.wall_ms())
        doomed = [segment for segment, _ in zip(self.segments.closed, range(count), strict=False)]
        if doomed:
            following = self.segments.after(doomed[-1])
            assert following is not None, "the active segment stays"
            if following.base_offset > self.log_start_offset:
                self._move_start(following.base_offset)
            self._hints.clear()
            self._remove(doomed)

    def _remove(self, segments: Sequence[Segment]) -> None:
        """Take segments out, in this order, and rename their files. Raises OSError."""
        if not segments:
            return
        self.segments.remove(segments)
        self._recently_read.clear()
        self._indexes_unsynced = [
            segment for segment in self._indexes_unsynced if segment not in segments
        ]
        for segment in segments:
            segment.rename(suffix=DELETED_SUFFIX)
            segment.close()
        self._snapshots.remove(segment.base_offset for segment in segments)
        self._listener.on_segments_removed(self, segments)

    # --- Replacing -------------------------------------------------------------------------------

    def new_cleaned_segment(self, base_offset: int) -> Segment:
        """Return an empty segment under the names of an unfinished compaction (`.cleaned`).

        For worker threads: nothing of the log is touched.
        """
        return self._new_segment(base_offset, self._clock.wall_ms(), suffix=CLEANED_SUFFIX)

    def replace_segments(self, cleaned: Iterable[Segment], replaced: Iterable[Segment]) -> None:
        """Put compacted segments in the place of those they were made from.

        A crash leaves either the old or the new: once the first is called `.swap`, start-up
        finishes what was begun (rule 205, Kafka's LogLoader).

        Args:
            cleaned: from `new_cleaned_segment`, finished and synced, in order.
            replaced: the closed segments of the log that they stand for.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline then.
        """
        new = list(cleaned)
        old = list(replaced)
        assert all(segment is not self.segments.active for segment in old)
        self._hints.clear()
        try:
            for segment in reversed(new):
                segment.rename(suffix=SWAP_SUFFIX)
            self.segments.remove(old)
            self._recently_read.clear()
            self._indexes_unsynced = [
                segment for segment in self._indexes_unsynced if segment not in old
            ]
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
        except OSError as error:
            self.failure = f"replacing segments failed: {error}"
            raise self._storage_error("replace segments", error) from error
        self._listener.on_segments_removed(self, old)

    # --- Flushing and closing --------------------------------------------------------------------

    @property
    def flush_due_ms(self) -> int | None:
        """When (wall clock) the log wants to be flushed: 0 for now, None for not yet."""
        config = self._config
        if self._indexes_unsynced or self._unflushed_messages >= config.flush_messages:
            return 0
        if self.unflushed_since_ms is not None and config.flush_ms < NEVER:
            return self.unflushed_since_ms + config.flush_ms
        return None

    @property
    def recovery_point_to_write(self) -> int:
        """The recovery point as the checkpoint on disk may have it.

        Recovery trusts the indexes of segments that end at or before it. A flush in the middle of
        a segment leaves its indexes alone, and the segment may be rolled right there: so the
        checkpoint stays within the first segment whose indexes are not safe.
        """
        segments = self.segments
        first = self._indexes_unsynced[0] if self._indexes_unsynced else segments.active
        if first is segments.active and first.size == 0:
            return self.recovery_point
        following = segments.after(first)
        end_offset = self.log_end_offset if following is None else following.base_offset
        return min(self.recovery_point, end_offset - 1)

    async def flush(self) -> None:
        """Return when all that was appended before the call is on stable storage.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline then, as the kernel may have
                dropped what it could not write.
        """
        flush = self.begin_flush()
        if flush is None:
            return
        try:
            await self._disk.run_in_thread(flush.run)
        except OSError as error:
            raise self._flush_failed(error) from error
        self.end_flush(flush)

    def flush_now(self) -> None:
        """Do the same and block; for shutdown."""
        flush = self.begin_flush()
        if flush is None:
            return
        try:
            flush.run()
        except OSError as error:
            raise self._flush_failed(error) from error
        self.end_flush(flush)

    def begin_flush(self) -> Flush | None:
        """Bring all files up to date and return what is left to do in a thread; None if nothing."""
        is_safe = self.recovery_point >= self.log_end_offset and not self._indexes_unsynced
        if self.failure is not None or is_safe:
            return None
        paths = [
            self._snapshots.path(offset)
            for offset in self._snapshots.offsets
            if offset >= self.recovery_point
        ]
        try:
            self._write_epochs()
            unsafe = self.segments.from_offset(self.recovery_point)
            steps: list[Callable[[], None]] = [segment.file.sync for segment in unsafe]
            for segment in self._indexes_unsynced:
                segment.write_indexes()
                paths += segment.index_paths()
        except OSError as error:
            raise self._storage_error("flush", error) from error
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
        return Flush(self.log_end_offset, steps, list(self._indexes_unsynced), self._truncations)

    def end_flush(self, flush: Flush) -> None:
        """Note that a flush is done."""
        self._indexes_unsynced = [
            segment for segment in self._indexes_unsynced if segment not in flush.indexes
        ]
        if flush.truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, flush.end_offset)

    def _flush_failed(self, error: OSError) -> KafkaError:
        self.failure = f"flush failed: {error}"
        return self._storage_error("flush", error)

    def close(self) -> None:
        """Complete the files, so that the next start need neither scan nor replay; let go of them.

        Flushes first; blocks.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the stop is not clean then.
        """
        self._check_online()
        try:
            self._write_epochs()
            end_offset = self.log_end_offset
            if end_offset > 0 and end_offset not in self._snapshots.offsets:
                self._snapshots.write(self.producers, end_offset)
                self._indexes_unsynced.append(self.segments.active)
            for segment in self.segments:
                segment.finish()
            self.flush_now()
        except OSError as error:
            raise self._storage_error("close", error) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Let go of the files and leave them as they are. What is being sent is sent to its end."""
        self.failure = self.failure or "the log is closed"
        self._hints.clear()
        for segment in self.segments:
            segment.close()

    # --- Failing ---------------------------------------------------------------------------------

    def _check_online(self) -> None:
        if self.failure is not None:
            raise self._offline()

    def _offline(self) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{self.topic_partition} in {self.directory} is offline: {self.failure}",
        )

    def _on_unreadable(self, error: OSError) -> None:
        """Take the log offline: what was read for somebody else to send cannot be."""
        if self.failure is None:
            self._storage_error("read", error)

    def _storage_error(self, action: str, error: OSError) -> KafkaError:
        """Return what to answer.

        Bytes that could not be cut off again make the log offline, and so do those that cannot be
        read: another replica has them, and its followers are to get them.
        """
        if action == "read" and error.errno == errno.EIO and self.failure is None:
            self.failure = f"it cannot be read: {error}"
        if isinstance(error, TornFile):
            self.failure = f"{self.segments.active.path(LOG_SUFFIX)} is torn: {error}"
        if self.failure is not None:
            self._listener.on_failed(self)
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{self.topic_partition} in {self.directory}: {action} failed: {error}",
        )
