"""One segment: a `.log` file with its offset, time and transaction indexes.

Files are opened when they are first needed and indexes are read when first asked, so that a
thousand idle partitions cost a thousand directory listings at start and no descriptor.
Nothing here knows roles, watermarks or retention. Failures of the disk are `OSError`.
"""

import logging
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkalite.log.index import (
    MAX_RELATIVE_OFFSET,
    OffsetEntry,
    OffsetIndex,
    TimeEntry,
    TimeIndex,
)
from kafkalite.log.transaction_index import TransactionIndex
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    LENGTH_OVERHEAD,
    MAGIC,
    read_batch_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafkalite.log.disk import Bytes, Disk, File
    from kafkalite.wire.records import BatchHeader

logger = logging.getLogger(__name__)

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

SCAN_BYTES: Final = 8192
"""Read at once when walking batch headers: an index interval with its last batch, mostly."""

REBUILD_INTERVAL_BYTES: Final = 4096
"""Between two entries of an index that is rebuilt here: the default of index.interval.bytes."""

MAX_SEGMENT_BYTES: Final = 2**31 - 1
"""Positions are int32 in the offset index."""

# base offset, batch length, [leader epoch, magic, CRC, attributes], last offset delta,
# [base timestamp], max timestamp: what finding a place in the log takes, at a third of the price
# of the whole header.
_SPAN: Final = Struct(">qi4xb6xi8xq")
_span = _SPAN.unpack_from


class BatchSpan(NamedTuple):
    """Position of a batch in a segment, and the offsets it holds."""

    position: int
    end_position: int
    """Exclusive."""
    base_offset: int
    last_offset: int
    """Inclusive."""
    max_timestamp: int


def file_name(base_offset: int, suffix: str) -> str:
    """Return Kafka's name of a segment's file: the base offset in 20 digits (rule 199)."""
    return f"{base_offset:020d}{suffix}"


class Segment:
    """The batches from `base_offset` up to the next segment's base offset.

    Attributes:
        size: bytes of whole batches in the `.log` file.
        modified_ms: when the file was last written, as far as known; stands in for the largest
            timestamp where no record has one.
        created_ms: when it was begun, for `segment.ms` where records have no timestamp.
    """

    __slots__ = (
        "_bytes_since_index_entry",
        "_disk",
        "_file",
        "_first_timestamp",
        "_max",
        "_stem",
        "aborted",
        "base_offset",
        "created_ms",
        "modified_ms",
        "offset_index",
        "size",
        "suffix",
        "time_index",
    )

    def __init__(
        self,
        disk: "Disk",
        directory: str,
        base_offset: int,
        *,
        sizes: "dict[str, int] | None" = None,
        suffix: str = "",
        now_ms: int,
    ) -> None:
        """Describe a segment; nothing is opened or read.

        Args:
            disk: where it is.
            directory: of the partition.
            base_offset: least offset that it may hold.
            sizes: bytes of its files by suffix, as a directory listing has them; absent ones
                do not exist. None for a segment about to be created.
            suffix: `.cleaned`, `.swap` or `.deleted` behind the names of all its files.
            now_ms: creation or last modification.
        """
        sizes = sizes or {}
        self._disk = disk
        self._file: File | None = None
        self._stem = f"{directory}/{base_offset:020d}"
        self.suffix = suffix
        self.base_offset = base_offset
        self.size = sizes.get(LOG_SUFFIX, 0)
        self.created_ms = now_ms
        self.modified_ms = now_ms
        self._first_timestamp: int | None = None
        self._max: TimeEntry | None = None if self.size else TimeEntry(-1, base_offset)
        self._bytes_since_index_entry = 0
        self.offset_index = OffsetIndex(
            disk, self.path(INDEX_SUFFIX), base_offset, size=sizes.get(INDEX_SUFFIX, 0)
        )
        self.time_index = TimeIndex(
            disk, self.path(TIME_INDEX_SUFFIX), base_offset, size=sizes.get(TIME_INDEX_SUFFIX, 0)
        )
        self.aborted = TransactionIndex(
            disk, self.path(TXN_INDEX_SUFFIX), size=sizes.get(TXN_INDEX_SUFFIX, 0)
        )

    def __repr__(self) -> str:
        return f"Segment({self._stem}, size={self.size})"

    def path(self, kind: str) -> str:
        """Return where the file of a kind (`.log`, `.index`, ...) is."""
        return f"{self._stem}{kind}{self.suffix}"

    @property
    def file(self) -> "File":
        """The open `.log` file."""
        file = self._file
        if file is None:
            file = self._file = self._disk.open(self.path(LOG_SUFFIX))
            self._disk.open_files.opened(self)
        return file

    def create(self) -> None:
        """Make the files. The indexes are made too: Kafka takes a missing one for damage."""
        file = self._file = self._disk.open(self.path(LOG_SUFFIX), create=True)
        self._disk.open_files.opened(self)
        for kind in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._disk.open(self.path(kind), create=True).close()
        if file.size:  # left by a creation that a crash interrupted
            file.truncate(0)

    # --- Appending -------------------------------------------------------------------------------

    def append(
        self,
        data: "Bytes",
        batches: "Sequence[tuple[int, BatchHeader]]",
        *,
        index_interval_bytes: int,
    ) -> None:
        """Write whole batches at the end, and index them.

        Args:
            data: the batches' bytes, and nothing else.
            batches: position in `data` and header of each, in order and without gaps.
            index_interval_bytes: at least so many bytes of log between two index entries.

        Raises:
            OSError: nothing was appended (`TornFile`: something was, see `File.append`).
        """
        (self._file or self.file).append(data)
        position = self.size
        if position == 0:
            self._first_timestamp = batches[0][1].max_timestamp
        for at, header in batches:
            self.index_batch(header, position + at, index_interval_bytes)
        self.size = position + len(data)
        if self.offset_index.has_enough_to_write:
            # The batches are written: refusing the producer for its index would be a lie. What
            # the disk refuses stays in memory and goes with the next attempt.
            with suppress(OSError):
                self.offset_index.write_pending()
                self.time_index.write_pending()

    def index_batch(self, header: "BatchHeader", position: int, index_interval_bytes: int) -> None:
        """Count one batch that is (about to be) at `position`, indexing it when one is due."""
        largest = self._max or self._largest()
        if header.max_timestamp > largest.timestamp:
            largest = TimeEntry(header.max_timestamp, header.last_offset)
        self._max = largest
        if self._bytes_since_index_entry > index_interval_bytes:
            self.offset_index.append(header.last_offset, position)
            self.time_index.append(*largest)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += header.batch_length + LENGTH_OVERHEAD

    def must_roll(
        self,
        *,
        incoming_bytes: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        segment_bytes: int,
        segment_ms: int,
        index_bytes: int,
    ) -> bool:
        """Whether the next append belongs into a new segment (rule 200).

        Args:
            incoming_bytes: size of the append.
            last_offset: of the append, inclusive.
            max_timestamp: largest in the append.
            now_ms: wall clock.
            segment_bytes: `segment.bytes`.
            segment_ms: `segment.ms` less this segment's jitter.
            index_bytes: `segment.index.bytes`.
        """
        size = self.size
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if size == 0:
            return False
        return (
            size > segment_bytes - incoming_bytes
            or size > MAX_SEGMENT_BYTES - incoming_bytes
            or self.roll_age_ms(max_timestamp=max_timestamp, now_ms=now_ms) > segment_ms
            or self.offset_index.is_full(index_bytes)
            or self.time_index.is_full(index_bytes)
        )

    def roll_age_ms(self, *, max_timestamp: int, now_ms: int) -> int:
        """Return the age to compare with `segment.ms`, in milliseconds.

        From the first record's timestamp to the newest; since the segment was made, without one.
        """
        first_timestamp = self.first_timestamp
        if first_timestamp >= 0:
            return max_timestamp - first_timestamp
        return now_ms - self.created_ms

    # --- Finding ---------------------------------------------------------------------------------

    def spans(self, position: int = 0, end: int | None = None) -> "Iterator[BatchSpan]":
        """Yield the batches from the one that starts at `position` up to byte `end`.

        Raises:
            KafkaError: CORRUPT_MESSAGE if what is there is no batch.
        """
        end = self.size if end is None else end
        file = self._file or self.file
        window = b""
        window_position = position
        while position < end:
            at = position - window_position
            if at + _SPAN.size > len(window):
                window = file.pread(SCAN_BYTES, position)
                window_position = position
                at = 0
                if len(window) < _SPAN.size:
                    raise self._corrupt(position)
            base_offset, batch_length, magic, last_offset_delta, max_timestamp = _span(window, at)
            end_position = position + batch_length + LENGTH_OVERHEAD
            if (
                magic != MAGIC
                or batch_length < BATCH_OVERHEAD - LENGTH_OVERHEAD
                or end_position > self.size
            ):
                raise self._corrupt(position)
            yield BatchSpan(
                position, end_position, base_offset, base_offset + last_offset_delta, max_timestamp
            )
            position = end_position

    def headers(self, position: int = 0) -> "Iterator[tuple[int, BatchHeader]]":
        """Yield (position, header) of the batches from the one that starts at `position`.

        Raises:
            KafkaError: CORRUPT_MESSAGE if what is there is no batch.
        """
        file = self._file or self.file
        window = b""
        window_position = position
        while position < self.size:
            at = position - window_position
            if at + BATCH_OVERHEAD > len(window):
                window = file.pread(SCAN_BYTES, position)
                window_position = position
                at = 0
                if len(window) < BATCH_OVERHEAD:
                    raise self._corrupt(position)
            header = read_batch_header(window, at)
            if header.magic != MAGIC or header.size < BATCH_OVERHEAD:
                raise self._corrupt(position)
            yield position, header
            position += header.size

    def _corrupt(self, position: int) -> KafkaError:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{self.path(LOG_SUFFIX)} holds no record batch (of magic {MAGIC}) at byte {position}",
        )

    def locate(self, offset: int) -> BatchSpan | None:
        """Return the first batch whose last offset is >= `offset`; None if all are below."""
        for span in self.spans(self._position_before(offset)):
            if span.last_offset >= offset:
                return span
        return None

    def boundary(self, start: int, limit: int) -> tuple[int, int]:
        """Return (position, offset) of the end of the last batch that ends at or before `limit`.

        Args:
            start: a batch boundary, the result if the batch there is longer than the limit allows.
            limit: a byte below `size`.

        Returns:
            The boundary, and an offset whose batch starts there.
        """
        entry = self.offset_index.lookup_position(limit)
        if not self._holds(entry):
            self._rebuild_offset_index()
            entry = self.offset_index.lookup_position(limit)
        position = max(entry.position, start)
        span = None
        for span in self.spans(position):
            if span.end_position > limit:
                return span.position, span.base_offset
        assert span is not None, "the limit is below the size"
        return span.end_position, span.last_offset + 1

    def next_offset(self) -> int:
        """Return the offset after the last batch, found from the last index entry on."""
        next_offset = self.base_offset
        entry = self.offset_index.last_entry()
        if not self._holds(entry):
            self._rebuild_offset_index()
            entry = self.offset_index.last_entry()
        for span in self.spans(entry.position):
            next_offset = span.last_offset + 1
        return next_offset

    # --- Damaged indexes -------------------------------------------------------------------------

    def _position_before(self, offset: int) -> int:
        """Return where to look for an offset from."""
        entry = self.offset_index.lookup(offset)
        if not self._holds(entry):
            self._rebuild_offset_index()
            entry = self.offset_index.lookup(offset)
        return entry.position

    def _holds(self, entry: OffsetEntry) -> bool:
        """Whether an entry of the offset index fits the log: a batch that it may be of is there.

        The file is read at start and trusted; a flipped bit would hide all that is behind it, and
        the next append would give its offsets away again (rule 233).
        """
        position = entry.position
        if not position:
            return True
        if not 0 < position <= self.size - BATCH_OVERHEAD:
            return False
        base_offset, batch_length, magic, _, _ = _span(self.file.pread(_SPAN.size, position))
        return bool(
            magic == MAGIC
            and batch_length >= BATCH_OVERHEAD - LENGTH_OVERHEAD
            and position + batch_length + LENGTH_OVERHEAD <= self.size
            and self.base_offset <= base_offset <= entry.offset
        )

    def _rebuild_offset_index(self) -> None:
        """Make the offset index from the log. Raises OSError, KafkaError."""
        logger.warning("%s does not fit its log and is rebuilt", self.path(INDEX_SUFFIX))
        self.offset_index.clear()
        unindexed_bytes = 0
        for span in self.spans():
            if unindexed_bytes > REBUILD_INTERVAL_BYTES:
                self.offset_index.append(span.last_offset, span.position)
                unindexed_bytes = 0
            unindexed_bytes += span.end_position - span.position
        self.offset_index.write_pending()

    def _rebuild_time_index(self) -> TimeEntry:
        """Make the time index from the log; return the last entry. Raises OSError, KafkaError."""
        self.time_index.clear()
        unindexed_bytes = 0
        largest = TimeEntry(-1, self.base_offset)
        for span in self.spans():
            if span.max_timestamp > largest.timestamp:
                largest = TimeEntry(span.max_timestamp, span.last_offset)
            if unindexed_bytes > REBUILD_INTERVAL_BYTES:
                self.time_index.append(*largest)
                unindexed_bytes = 0
            unindexed_bytes += span.end_position - span.position
        self.time_index.append(*largest)
        self.time_index.write_pending()
        return largest

    def read(self, span: BatchSpan) -> bytes:
        """Return the bytes of a batch."""
        return self.file.pread(span.end_position - span.position, span.position)

    # --- Timestamps ------------------------------------------------------------------------------

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch, -1 if there is none."""
        first_timestamp = self._first_timestamp
        if first_timestamp is None:
            span = next(self.spans(), None)
            if span is None:
                return -1
            first_timestamp = self._first_timestamp = span.max_timestamp
        return first_timestamp

    @property
    def largest(self) -> TimeEntry:
        """Largest timestamp, and the last offset of the batch that has it; (-1, base) if none."""
        return self._max or self._largest()

    def _largest(self) -> TimeEntry:
        """Read what a closed segment's last time index entry says.

        Segments are closed with such an entry; one that was not has gone through recovery.
        """
        largest = self.time_index.last_entry()
        if len(self.time_index):
            span = self.locate(largest.offset)
            if (
                span is None
                or largest.timestamp < 0
                or span.base_offset > largest.offset
                or span.max_timestamp != largest.timestamp
            ):
                path = self.path(TIME_INDEX_SUFFIX)
                logger.warning("%s does not fit its log and is rebuilt", path)
                largest = self._rebuild_time_index()
        self._max = largest
        return largest

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp, or the file's age where no record has one (rule 201)."""
        timestamp = self.largest.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms

    def spans_from_timestamp(self, timestamp: int, offset: int) -> "Iterator[BatchSpan]":
        """Yield batches, beginning no later than the first that has `timestamp` or a larger one.

        Args:
            timestamp: ms.
            offset: batches wholly below it do not matter.
        """
        entry = self.time_index.lookup(timestamp)
        return self.spans(self._position_before(max(entry.offset, offset)))

    # --- Cutting, renaming, closing --------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Remove all batches from the one that holds `offset` on.

        Returns:
            Where the segment now ends (exclusive): `offset`, also if compaction left a gap before
            it, or where the batch began that reached beyond it.
        """
        span = self.locate(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.aborted.truncate_to(offset)
        if span is not None:
            self.truncate_at(span.position)
        self._bytes_since_index_entry = 0
        self._max = self._rescan_largest()
        return offset if span is None else min(offset, span.base_offset)

    def truncate_at(self, position: int) -> None:
        """Cut the log file at a byte; the indexes are the caller's business."""
        self.file.truncate(position)
        self.size = position
        if position == 0:
            self._first_timestamp = None

    def _rescan_largest(self) -> TimeEntry:
        largest = self.time_index.last_entry()
        for span in self.spans(self._position_before(largest.offset)):
            if span.max_timestamp > largest.timestamp:
                largest = TimeEntry(span.max_timestamp, span.last_offset)
        return largest

    def forget_indexes(self) -> None:
        """Empty all indexes, to be built again by `index_batch` in the order of the log."""
        self.offset_index.clear()
        self.time_index.clear()
        self.aborted.clear()
        self._max = TimeEntry(-1, self.base_offset)
        self._first_timestamp = None
        self._bytes_since_index_entry = 0

    def write_indexes(self) -> None:
        """Bring the index files up to date. Raises OSError; the next call tries again."""
        self.offset_index.write_pending()
        self.time_index.write_pending()
        self.aborted.write_pending()

    def finish(self) -> None:
        """Complete the indexes of a segment that gets no more batches, and free their memory.

        The last time index entry says the segment's largest timestamp, so that a start after a
        clean stop need not look for it.
        """
        if self.size and self._max is not None:
            self.time_index.append(*self._max)
        self.write_indexes()
        self.offset_index.release()
        self.time_index.release()

    def index_paths(self) -> list[str]:
        """Return where the indexes are, to have them synced."""
        return [self.path(kind) for kind in SEGMENT_SUFFIXES[1:]]

    def sync(self) -> None:
        """Return when the finished segment is on stable storage. Blocks; for worker threads."""
        self.file.sync()
        for path in self.index_paths():
            self._disk.sync(path)

    def rename(self, *, suffix: str) -> None:
        """Put another suffix behind the names of all files."""
        old = [(kind, self.path(kind)) for kind in SEGMENT_SUFFIXES]
        self.suffix = suffix
        for kind, path in old:
            try:
                self._disk.rename(path, self.path(kind))
            except FileNotFoundError:
                if kind == LOG_SUFFIX:
                    raise
        self._tell_paths()

    def move(self, directory: str) -> None:
        """Follow a rename of the partition's directory."""
        self._stem = f"{directory}/{self.base_offset:020d}"
        self._tell_paths()

    def _tell_paths(self) -> None:
        self.offset_index.path = self.path(INDEX_SUFFIX)
        self.time_index.path = self.path(TIME_INDEX_SUFFIX)
        self.aborted.path = self.path(TXN_INDEX_SUFFIX)

    def remove(self) -> None:
        """Remove the files; for worker threads. Regions being sent stay readable."""
        self._disk.open_files.closed(self)
        for kind in SEGMENT_SUFFIXES:
            self._disk.remove(self.path(kind))

    def close(self) -> None:
        """Let go of the log file. It is closed when the last region that is sent lets go too."""
        self._file = None
        self._disk.open_files.closed(self)
