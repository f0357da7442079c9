"""The log of one partition: what is appended, read, cut and deleted.

Synchronous throughout. It knows neither role nor high watermark: bounds are given to it. After
Kafka's UnifiedLog; its files are in `local_log`.
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkalite.log.disk import TornFile
from kafkalite.log.local_log import LocalLog
from kafkalite.log.region import EMPTY_REGION, FileRegion
from kafkalite.log.retention import count_deletable
from kafkalite.log.segment import LOG_SUFFIX, Segment
from kafkalite.log.state import AppendInfo, LogListener, LogState
from kafkalite.log.validate import AppendOrigin, validate_batches, validate_fetched_batches
from kafkalite.types import LogPosition, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    CONTROL,
    EndMarker,
    iterate_batches,
    read_end_marker,
    set_offset_and_epoch,
)

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.clock import Clock
    from kafkalite.log.disk import Disk
    from kafkalite.log.local_log import Flush
    from kafkalite.log.transaction_index import AbortedTransaction
    from kafkalite.log.validate import CheckedBatch, ValidBatches
    from kafkalite.log_config import LogConfig

Markers = dict[int, EndMarker | None]
"""Control batches by their position in a buffer."""

REPLAY_BYTES: Final = 1 << 20
"""Read at once by `read_batches`."""


class Log:
    """One partition's batches: which offsets there are, over a `LocalLog` that has the files.

    Invariants: log_start_offset <= log_end_offset; recovery_point <= log_end_offset; all that an
    append has returned for is in the file, all else in memory only describes the file.

    Methods that touch files raise KAFKA_STORAGE_ERROR where the disk fails and while the log is
    offline. After a failed truncation, replacement or flush it is: nobody knows what is on disk.

    Attributes:
        topic_partition: whose log it is.
        topic_id: of the topic's present incarnation.
        directory: where it is.
        local_log: its files.
        segments, epochs, producers: those of `local_log`.
        config: the topic's settings.
        log_start_offset: first offset that can be read.
        log_end_offset: offset that the next record gets.
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
        self.local_log = LocalLog(
            disk,
            directory,
            topic_partition,
            config,
            state,
            clock=clock,
            on_flush_due=partial(listener.on_flush_due, self),
            on_segments_removed=partial(listener.on_segments_removed, self),
            on_unreadable=self._on_unreadable,
        )
        self.segments = state.segments
        self.epochs = state.epochs
        self.producers = state.producers
        self.config = config
        self.log_start_offset = state.log_start_offset
        self.log_end_offset = state.log_end_offset
        self.failure: str | None = None
        self._clock = clock
        self._listener = listener

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    # --- Facts -----------------------------------------------------------------------------------

    @property
    def log_end_position(self) -> LogPosition:
        """The log end offset with its place on disk. An offline log may have no segment at all."""
        self._check_online()
        active = self.segments.active
        return LogPosition(self.log_end_offset, active.base_offset, active.size)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self.segments.size_bytes

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction, None if none is open (rule 115)."""
        offset: int | None = self.producers.first_unstable_offset
        return offset if offset is None else max(offset, self.log_start_offset)

    @property
    def leader_epoch(self) -> int:
        """Latest epoch in the log, -1 if there is none."""
        return self.epochs.latest

    def end_offset_for(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) of the largest epoch <= leader_epoch; (-1, -1) if none.

        End offset is exclusive. Answers OffsetForLeaderEpoch (rule 98).
        """
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Note that a new leader writes from the log end on (rule 99).

        The file follows before the first append of that epoch, at the latest: an epoch without
        records is of no use to anyone after a crash.
        """
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, self.log_end_offset)

    def update_config(self, config: "LogConfig") -> None:
        """Follow a change of the topic's settings."""
        self.config = self.local_log.config = config

    # --- Appending -------------------------------------------------------------------------------

    def append_as_leader(
        self,
        batches: "bytearray | memoryview | CheckedBatch",
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Validate batches, give them offsets, and write them; all or none.

        Args:
            batches: patched in place (offset, epoch, perhaps timestamp); must be writable. A
                client's may have been checked already.
            leader_epoch: written into each batch.
            now_ms: wall clock.
            origin: who sent them.

        Raises:
            KafkaError: as `validate_batches` and `ProducerStates.check` refuse;
                KAFKA_STORAGE_ERROR if the disk does.
        """
        if self.failure is not None:
            raise self._offline()
        valid = validate_batches(
            batches,
            topic_partition=self.topic_partition,
            config=self.config,
            now_ms=now_ms,
            origin=origin,
        )
        producers = self.producers
        markers: Markers | None = None
        start_offset = self.log_start_offset
        offset = first_offset = self.log_end_offset
        for position, header in valid.batches:
            if header.producer_id >= 0:
                marker = None
                if header.attributes & CONTROL:
                    if markers is None:
                        markers = {}
                    marker = markers[position] = read_end_marker(
                        memoryview(valid.buffer)[position : position + header.size]
                    )
                same = producers.check(header, origin=origin, marker=marker)
                if same is not None:
                    return AppendInfo(
                        same.first_offset, same.last_offset, same.timestamp, start_offset, True, 0
                    )
            set_offset_and_epoch(
                valid.buffer, position, base_offset=offset, leader_epoch=leader_epoch
            )
            header.base_offset = offset
            header.partition_leader_epoch = leader_epoch
            offset += header.last_offset_delta + 1
        if leader_epoch > self.epochs.latest:
            self.begin_epoch(leader_epoch)
        self._write(valid, offset, markers, now_ms)
        append_time_ms = now_ms if self.config.message_timestamp_type != "CreateTime" else -1
        return AppendInfo(first_offset, offset - 1, append_time_ms, start_offset, False, valid.size)

    def append_as_follower(
        self, batches: bytearray | memoryview, *, leader_epoch: int | None = None
    ) -> AppendInfo | None:
        """Write batches as the leader has them; None if there is no whole one.

        Args:
            batches: of a Fetch response. An incomplete one at the end is left out.
            leader_epoch: that the fetch was made in; batches of a later one wait for a fetch that
                knows it (rule 170).

        Raises:
            KafkaError: CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE where offsets do not continue the log,
                KAFKA_STORAGE_ERROR.
        """
        if self.failure is not None:
            raise self._offline()
        self._adopt_start(batches)
        valid = validate_fetched_batches(
            batches,
            topic_partition=self.topic_partition,
            next_offset=self.log_end_offset,
            leader_epoch=leader_epoch,
        )
        if not valid.batches:
            return None
        if self.producers.has_whole_history:
            self.producers.look_for_gaps(valid.batches, self.log_end_offset)
        markers: Markers = {}
        for position, header in valid.batches:
            if header.attributes & CONTROL and header.producer_id >= 0:
                markers[position] = read_end_marker(
                    memoryview(batches)[position : position + header.size]
                )
            self.epochs.assign(header.partition_leader_epoch, header.base_offset)
        end_offset = header.base_offset + header.last_offset_delta + 1
        try:
            self._write(valid, end_offset, markers, self._clock.wall_ms())
        except KafkaError:
            self.epochs.truncate_from_end(self.log_end_offset)  # not to begin later the next time
            raise
        first = valid.batches[0][1].base_offset
        return AppendInfo(first, end_offset - 1, -1, self.log_start_offset, False, valid.size)

    def _adopt_start(self, batches: bytearray | memoryview) -> None:
        """Let an empty log start earlier, where the leader's first batch does.

        DeleteRecords can leave the leader's log start inside a batch, which it sends whole.
        """
        if self.log_end_offset == self.log_start_offset:
            for _, header in iterate_batches(batches):
                if header.base_offset < self.log_end_offset < header.next_offset:
                    start_offset = self.log_start_offset
                    self.truncate_fully_and_start_at(header.base_offset)
                    self.log_start_offset = start_offset
                return

    def _write(
        self, valid: "ValidBatches", end_offset: int, markers: Markers | None, now_ms: int
    ) -> None:
        """Append checked batches, and tell everyone inside; on failure nothing has changed."""
        try:
            segment = self.local_log.append(
                valid, end_offset=end_offset, count=end_offset - self.log_end_offset, now_ms=now_ms
            )
        except OSError as error:
            raise self._storage_error("append", error) from error
        for position, header in valid.batches:
            if header.producer_id >= 0:
                aborted = self.producers.update(
                    header,
                    base_offset=header.base_offset,
                    marker=markers.get(position) if markers else None,
                )
                if aborted is not None:
                    # The marker is in the log. What the disk refuses of the index stays in memory
                    # until the flush, which the recovery point waits for.
                    with suppress(OSError):
                        segment.aborted.append(aborted)
        self.log_end_offset = end_offset

    # --- Reading ---------------------------------------------------------------------------------

    def read(
        self, offset: int, *, max_bytes: int, upper: LogPosition, min_one_batch: bool
    ) -> FileRegion:
        """Return whole batches from the one that holds `offset`, of one segment.

        Args:
            offset: in log_start_offset..log_end_offset.
            max_bytes: limit of the region's length.
            upper: exclusive end of what may be read; no batch that reaches beyond it is returned.
            min_one_batch: the first batch is returned even if it is longer than max_bytes.

        Returns:
            A region, perhaps empty, whose `next_offset` is below that of `upper` if there is more.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
        """
        if self.failure is not None:
            raise self._offline()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise self._out_of_range(offset)
        if offset >= upper.offset:
            return EMPTY_REGION
        if max_bytes <= 0 and not min_one_batch:  # where it lies need not be looked for
            return FileRegion(None, 0, 0, next_offset=offset)
        try:
            return self.local_log.read(offset, max_bytes, upper, min_one_batch=min_one_batch)
        except OSError as error:
            raise self._storage_error("read", error) from error

    def position_of(self, offset: int) -> LogPosition:
        """Return `offset` with the place of the batch that holds it, or would hold it.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE beyond the log end.
        """
        self._check_online()
        if offset >= self.log_end_offset:
            if offset > self.log_end_offset:
                raise self._out_of_range(offset)
            return self.log_end_position
        try:
            return self.local_log.position_of(offset)
        except OSError as error:
            raise self._storage_error("read", error) from error

    def read_batches(self, offset: int, upper_offset: int | None = None) -> Iterator[memoryview]:
        """Yield the batches from the one that holds `offset`, up to `upper_offset` (exclusive).

        The log may grow, roll and lose old segments between two steps.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE where retention was faster; KAFKA_STORAGE_ERROR.
        """
        while True:
            upper = self.position_of(self.log_end_offset if upper_offset is None else upper_offset)
            region = self.read(offset, max_bytes=REPLAY_BYTES, upper=upper, min_one_batch=True)
            if not region:
                return
            try:
                data = memoryview(region.read())
            except OSError as error:
                raise self._storage_error("read", error) from error
            for position, header in iterate_batches(data):
                yield data[position : position + header.size]
                offset = header.next_offset

    def offset_for_timestamp(
        self, timestamp: int, *, upper_offset: int
    ) -> tuple[int, int, int] | None:
        """Return (offset, timestamp, leader epoch) of the first record at or after `timestamp`.

        None if there is none below `upper_offset` (rule 93).
        """
        self._check_online()
        with self._storage("read"):
            return self.local_log.offset_for_timestamp(
                timestamp, start_offset=self.log_start_offset, end_offset=upper_offset
            )

    def offset_of_max_timestamp(self) -> tuple[int, int, int] | None:
        """Return (offset, timestamp, leader epoch) of the record with the largest timestamp."""
        self._check_online()
        with self._storage("read"):
            return self.local_log.offset_of_max_timestamp()

    def aborted_transactions(
        self, first_offset: int, upper_offset: int
    ) -> "list[AbortedTransaction]":
        """Return aborted transactions with records in [first_offset, upper_offset) (rule 116)."""
        self._check_online()
        try:
            return self.local_log.aborted_transactions(first_offset, upper_offset)
        except OSError as error:
            raise self._storage_error("read", error) from error

    # --- Cutting and deleting --------------------------------------------------------------------

    def roll(self) -> None:
        """Begin a new segment at the log end, unless the active one is empty."""
        with self._storage("roll"):
            self.local_log.roll(self.log_end_offset, self._clock.wall_ms())

    def truncate_to(self, offset: int) -> None:
        """Remove all records from `offset` on, and the whole batch that holds it."""
        self._check_online()
        if offset >= self.log_end_offset:
            # This broker may have been a leader that wrote nothing before the next one came.
            self.epochs.truncate_from_end(self.log_end_offset)
        elif offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
        else:
            with self._storage("truncate", or_fail=f"truncation to {offset} failed"):
                self.log_end_offset = self.local_log.truncate_to(offset)
                self._after_truncation()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the log is empty and begins at `offset`."""
        self._check_online()
        with self._storage("truncate", or_fail=f"truncation to {offset} failed"):
            self.local_log.truncate_fully_and_start_at(offset)
            self.log_end_offset = offset
            self.log_start_offset = offset
            self._after_truncation()
            self._listener.on_start_moved(self)

    def _after_truncation(self) -> None:
        self.local_log.on_truncated(self.log_end_offset)
        if self.log_start_offset > self.log_end_offset:
            self.log_start_offset = self.log_end_offset
            self._listener.on_start_moved(self)
        self._listener.on_truncated(self)

    def delete_records_before(self, offset: int) -> None:
        """Move the log start up to `offset`; segments wholly below it go with the next retention.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE beyond the log end.
        """
        self._check_online()
        if offset > self.log_end_offset:
            raise self._out_of_range(offset)
        self._move_start(offset)

    def apply_retention(self, now_ms: int, *, high_watermark: int | None = None) -> int:
        """Delete the segments whose time has come (rules 201-204); return how many.

        Args:
            now_ms: wall clock.
            high_watermark: nothing at or above it goes; the log end where there are no followers.
        """
        self._check_online()
        with self._storage("retention"):
            count = count_deletable(
                list(self.segments),
                config=self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self.log_end_offset if high_watermark is None else high_watermark,
                now_ms=now_ms,
            )
            if count == len(self.segments):
                self.local_log.roll(self.log_end_offset, self._clock.wall_ms())
            doomed = self.segments.closed[:count]
            if doomed:
                following = self.segments.after(doomed[-1])
                assert following is not None, "the active segment stays"
                self._move_start(following.base_offset)
                self.local_log.delete(doomed)
        return count

    def _move_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            self._listener.on_start_moved(self)

    def replace_segments(self, cleaned: Iterable[Segment], replaced: Iterable[Segment]) -> None:
        """Put compacted segments in the place of those they were made from.

        A crash leaves either the old or the new: once the first is called `.swap`, start-up
        finishes what was begun (rule 205, Kafka's LogLoader).

        Args:
            cleaned: from `LocalLog.new_cleaned_segment`, finished and synced, in order.
            replaced: the closed segments of the log that they stand for.
        """
        new, old = list(cleaned), list(replaced)
        assert all(segment is not self.segments.active for segment in old)
        with self._storage("replace segments", or_fail="replacing segments failed"):
            self.local_log.replace(new, old)

    # --- Flushing and closing --------------------------------------------------------------------

    @property
    def recovery_point_to_write(self) -> int:
        """The recovery point as the checkpoint on disk may have it."""
        return self.local_log.recovery_point_to_write(self.log_end_offset)

    async def flush(self) -> None:
        """Return when all that was appended before the call is on stable storage.

        A failure takes the log offline: the kernel may have dropped what it could not write.
        """
        flush = self.begin_flush()
        if flush is not None:
            with self._storage("flush", or_fail="flush failed"):
                await self.local_log.run_in_thread(flush)
            self.local_log.end_flush(flush)

    def flush_now(self) -> None:
        """Do the same and block; for shutdown."""
        flush = self.begin_flush()
        if flush is not None:
            with self._storage("flush", or_fail="flush failed"):
                flush.run()
            self.local_log.end_flush(flush)

    def begin_flush(self) -> "Flush | None":
        """Bring all files up to date and return what is left to do in a thread; None if nothing."""
        if self.failure is not None:
            return None
        with self._storage("flush"):
            return self.local_log.begin_flush(self.log_end_offset)

    def check_writable(self) -> None:
        """Write something small, to find out whether the disk takes anything."""
        self._check_online()
        with self._storage("write"):
            self.local_log.write_epochs()

    def close(self) -> None:
        """Complete the files, so that the next start need neither scan nor replay; let go of them.

        Flushes first; blocks. The stop is not clean if it raises.
        """
        self._check_online()
        try:
            with self._storage("close"):
                self.local_log.finish(self.log_end_offset)
            self.flush_now()
        finally:
            self.discard()

    def discard(self) -> None:
        """Let go of the files and leave them as they are. What is being sent is sent to its end."""
        self.failure = self.failure or "the log is closed"
        self.local_log.discard()

    # --- Failing ---------------------------------------------------------------------------------

    def fail(self, why: str) -> None:
        """Go offline: what was appended last may be lost, and nothing more is to be."""
        if self.failure is None:
            self.failure = why
            self._listener.on_failed(self)

    def _check_online(self) -> None:
        if self.failure is not None:
            raise self._offline()

    def _out_of_range(self, offset: int) -> KafkaError:
        return KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{self.topic_partition}: offset {offset} is not in "
            f"{self.log_start_offset}..{self.log_end_offset}",
        )

    def _offline(self) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{self.topic_partition} in {self.directory} is offline: {self.failure}",
        )

    def _on_unreadable(self, error: OSError) -> None:
        """Take the log offline: the disk could not read what was being sent to a client."""
        if self.failure is None:
            self._storage_error("read", error)

    @contextmanager
    def _storage(self, action: str, *, or_fail: str | None = None) -> Iterator[None]:
        """Make KafkaErrors of the disk's errors; `or_fail` says why they take the log offline."""
        try:
            yield
        except OSError as error:
            if or_fail is not None:
                self.failure = f"{or_fail}: {error}"
            raise self._storage_error(action, error) from error

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
