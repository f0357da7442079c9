"""The log of one partition: what is appended, read and found.

Synchronous throughout. It knows neither role nor high watermark: bounds are given to it. After
Kafka's UnifiedLog; what happens to the files themselves is in `files`.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkalite.log import timestamps
from kafkalite.log.files import NEVER, LogFiles
from kafkalite.log.region import EMPTY_REGION, FileRegion
from kafkalite.log.segment import Segment
from kafkalite.log.validate import AppendOrigin, validate_batches, validate_fetched_batches
from kafkalite.types import LogPosition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    CONTROL,
    EndMarker,
    iterate_batches,
    read_end_marker,
    set_offset_and_epoch,
)

if TYPE_CHECKING:
    from kafkalite.log.transaction_index import AbortedTransaction
    from kafkalite.log.validate import CheckedBatch, ValidBatches
    from kafkalite.wire.records import BatchHeader

HINTS_MAX: Final = 16
"""Sequential readers of one log whose next position is remembered."""

OPEN_SEGMENTS_MAX: Final = 8
"""Segments other than the active one that a log keeps open for its readers."""

REPLAY_BYTES: Final = 1 << 20
"""Read at once by `read_batches`."""


@dataclass(slots=True)
class AppendInfo:
    """Result of an append.

    Attributes:
        first_offset: of the first record; of the original if this was a duplicate.
        last_offset: of the last record, inclusive.
        log_append_time_ms: -1 for CreateTime topics.
        log_start_offset: of the log.
        duplicate: the producer had sent this batch before, nothing was appended (rule 56).
        size_bytes: appended.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool
    size_bytes: int


class Log(LogFiles):
    """One partition's batches on disk."""

    # --- Facts -----------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction, None if none is open (rule 115)."""
        offset = self.producers.first_unstable_offset
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

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch that the record at `offset` was written in, -1 if unknown."""
        return self.epochs.epoch_at(offset)

    def fail(self, why: str) -> None:
        """Go offline: what was appended last may be lost, and nothing more is to be."""
        if self.failure is None:
            self.failure = why
            self._listener.on_failed(self)

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
            config=self._config,
            now_ms=now_ms,
            origin=origin,
        )
        producers = self.producers
        markers = None
        offset = first_offset = self.log_end_offset
        for position, header in valid.batches:
            if header.producer_id >= 0:
                marker = None
                if header.attributes & CONTROL:
                    markers = markers or {}
                    marker = markers[position] = read_end_marker(
                        memoryview(valid.buffer)[position : position + header.size]
                    )
                duplicate = producers.check(header, origin=origin, marker=marker)
                if duplicate is not None:
                    return AppendInfo(
                        duplicate.first_offset,
                        duplicate.last_offset,
                        duplicate.timestamp,
                        self.log_start_offset,
                        True,
                        0,
                    )
            set_offset_and_epoch(
                valid.buffer, position, base_offset=offset, leader_epoch=leader_epoch
            )
            header.base_offset = offset
            header.partition_leader_epoch = leader_epoch
            offset += header.last_offset_delta + 1
        self.begin_epoch(leader_epoch)
        self._write(valid, markers, now_ms)
        append_time_ms = now_ms if self._config.message_timestamp_type != "CreateTime" else -1
        return AppendInfo(
            first_offset, offset - 1, append_time_ms, self.log_start_offset, False, valid.size
        )

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
            batches, topic_partition=self.topic_partition, next_offset=self.log_end_offset
        )
        if leader_epoch is not None:
            for index, (position, header) in enumerate(valid.batches):
                if header.partition_leader_epoch > leader_epoch:
                    del valid.batches[index:]
                    valid.size = position
                    break
        if not valid.batches:
            return None
        if self.producers.has_whole_history:
            self._look_for_gaps(valid.batches)
        markers: dict[int, EndMarker | None] = {}
        for position, header in valid.batches:
            if header.attributes & CONTROL and header.producer_id >= 0:
                markers[position] = read_end_marker(
                    memoryview(batches)[position : position + header.size]
                )
            if self.epochs.assign(header.partition_leader_epoch, header.base_offset):
                self._epochs_unwritten = True
        self._write(valid, markers, self._clock.wall_ms())
        return AppendInfo(
            valid.batches[0][1].base_offset,
            self.log_end_offset - 1,
            -1,
            self.log_start_offset,
            False,
            valid.size,
        )

    def _look_for_gaps(self, batches: "Iterable[tuple[int, BatchHeader]]") -> None:
        """Do not take producers for new whose batches compaction has removed at the leader."""
        next_offset = self.log_end_offset
        for _, header in batches:
            if header.base_offset != next_offset:
                self.producers.has_whole_history = False
            next_offset = header.next_offset

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
        self,
        valid: "ValidBatches",
        markers: dict[int, EndMarker | None] | None,
        now_ms: int,
    ) -> None:
        """Append checked batches, and tell everyone inside; on failure nothing has changed."""
        batches = valid.batches
        first = batches[0][1]
        last = batches[-1][1]
        size = valid.size
        config = self._config
        segment = self.segments.active
        max_timestamp = first.max_timestamp
        if first is not last:
            max_timestamp = max(header.max_timestamp for _, header in batches)
        try:
            self._write_epochs()
            if segment.must_roll(
                incoming_bytes=size,
                last_offset=last.base_offset + last.last_offset_delta,
                max_timestamp=max_timestamp,
                now_ms=now_ms,
                segment_bytes=config.segment_bytes,
                segment_ms=self.roll_after_ms(segment),
                index_bytes=config.segment_index_bytes,
            ):
                segment = self._roll(first.base_offset, now_ms)
            buffer = valid.buffer
            segment.append(
                buffer if len(buffer) == size else memoryview(buffer)[:size],
                batches,
                index_interval_bytes=config.index_interval_bytes,
            )
        except OSError as error:
            raise self._storage_error("append", error) from error
        segment.modified_ms = now_ms
        for position, header in batches:
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
        offset = last.base_offset + last.last_offset_delta + 1
        count = offset - self.log_end_offset
        self.log_end_offset = offset
        self._unflushed_messages += count
        if self.unflushed_since_ms is None:
            self.unflushed_since_ms = now_ms
            if config.flush_ms < NEVER:
                self._listener.on_flush_due(self)
        if self._unflushed_messages >= config.flush_messages:
            self._listener.on_flush_due(self)

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
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} is not in "
                f"{self.log_start_offset}..{self.log_end_offset}",
            )
        if offset >= upper.offset:
            return EMPTY_REGION
        if max_bytes <= 0 and not min_one_batch:  # where it lies need not be looked for
            return FileRegion(None, 0, 0, next_offset=offset)
        try:
            return self._read(offset, max_bytes, upper, min_one_batch=min_one_batch)
        except OSError as error:
            raise self._storage_error("read", error) from error

    def _read(
        self, offset: int, max_bytes: int, upper: LogPosition, *, min_one_batch: bool
    ) -> FileRegion:
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
        """Return `offset` with the place of the batch that holds it, or would hold it.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE beyond the log end.
        """
        self._check_online()
        if offset >= self.log_end_offset:
            if offset > self.log_end_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{self.topic_partition}: offset {offset} is beyond {self.log_end_offset}",
                )
            return self.log_end_position
        place = self._hints.get(offset)
        if place is None or place[1] >= place[0].size:
            try:
                place = self._place_of(offset)
            except OSError as error:
                raise self._storage_error("read", error) from error
            if place is None:  # the end of the log is one compacted gap
                end = self.log_end_position
                return LogPosition(offset, end.segment_base_offset, end.position)
        return LogPosition(offset, place[0].base_offset, place[1])

    def read_batches(self, offset: int, upper_offset: int | None = None) -> Iterator[memoryview]:
        """Yield the batches from the one that holds `offset`, up to `upper_offset` (exclusive).

        The log may grow, roll and lose old segments between two steps.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE where retention was faster; KAFKA_STORAGE_ERROR.
        """
        while True:
            upper = self.log_end_offset if upper_offset is None else upper_offset
            region = self.read(
                offset,
                max_bytes=REPLAY_BYTES,
                upper=self.position_of(upper),
                min_one_batch=True,
            )
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
        try:
            return timestamps.first_at_or_after(
                self.segments.from_offset(self.log_start_offset),
                timestamp,
                start_offset=self.log_start_offset,
                end_offset=upper_offset,
            )
        except OSError as error:
            raise self._storage_error("read", error) from error

    def offset_of_max_timestamp(self) -> tuple[int, int, int] | None:
        """Return (offset, timestamp, leader epoch) of the record with the largest timestamp."""
        self._check_online()
        try:
            return timestamps.largest(self.segments)
        except OSError as error:
            raise self._storage_error("read", error) from error

    def aborted_transactions(
        self, first_offset: int, upper_offset: int
    ) -> "list[AbortedTransaction]":
        """Return aborted transactions with records in [first_offset, upper_offset) (rule 116)."""
        self._check_online()
        found: list[AbortedTransaction] = []
        try:
            for segment in self.segments.from_offset(first_offset):
                some, complete = segment.aborted.collect(first_offset, upper_offset)
                found += some
                if complete:
                    break
        except OSError as error:
            raise self._storage_error("read", error) from error
        found.sort(key=lambda transaction: transaction.first_offset)
        return found
