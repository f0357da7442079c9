"""Sparse offset and time indexes of a segment, in Kafka's file formats (rule 199).

`.index` holds (int32 relative offset, int32 position) and `.timeindex` (int64 timestamp, int32
relative offset), big-endian, ascending, an entry per `index.interval.bytes` of log. Offsets are
*last* offsets of batches, positions are where these batches start.

Kafka preallocates the files of the active segment and maps them; here a file is never longer than
its entries. So it can be read by anyone at any time: on a preallocated one Kafka's own dump tool
takes the zeros for entries. The writer keeps its entries in memory and hands them to the file a
few dozen at a time; what a crash loses is rebuilt from the log by recovery, which has to rebuild
the last segment's indexes anyway. Closed segments' indexes are mapped when first asked.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kafkalite.log.disk import Disk, MappedBytes

WRITE_BYTES: Final = 512
"""Unwritten bytes that are worth a write: 64 offset entries, 256 KiB of log at Kafka's interval."""

MAX_RELATIVE_OFFSET: Final = 2**31 - 1

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_OFFSET: Final = Struct(">i")
_TIMESTAMP: Final = Struct(">q")


class OffsetEntry(NamedTuple):
    """`offset` is the last one of the batch that starts at `position`."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """No record up to `offset` (inclusive) has a larger timestamp than `timestamp`."""

    timestamp: int
    offset: int


class _Index:
    """Entries of one size, ascending, in a buffer and (mostly) in a file.

    Invariant: the file's content is `buffer[:written]`; `entry_count * entry_size == len(buffer)`.
    """

    __slots__ = ("_buffer", "_disk", "_path", "_written", "base_offset", "entry_count")

    entry: Struct

    def __init__(self, disk: "Disk", path: str, base_offset: int, *, size: int) -> None:
        """Describe the index file at `path` that has `size` bytes; nothing is read yet."""
        self._disk = disk
        self._path = path
        self.base_offset = base_offset
        self.entry_count = size // self.entry.size
        self._written = self.entry_count * self.entry.size
        self._buffer: bytearray | MappedBytes | None = None if size else bytearray()

    def __len__(self) -> int:
        return self.entry_count

    @property
    def path(self) -> str:
        """Path of the file now."""
        return self._path

    @path.setter
    def path(self, path: str) -> None:
        """Follow a rename of the file, or of its directory."""
        self._path = path

    def _load(self) -> "bytearray | MappedBytes":
        buffer = self._buffer
        if buffer is None:
            buffer = self._disk.map(self._path)
            self._buffer = buffer
            self.entry_count = min(len(buffer), self._written) // self.entry.size
            self._drop_preallocated()
        return buffer

    def _drop_preallocated(self) -> None:
        """Ignore the zeros that a crashed Kafka leaves behind its last entry."""
        buffer = self._buffer
        assert buffer is not None
        size = self.entry.size
        zeros = bytes(size)
        last = (self.entry_count - 1) * size
        if last < size or buffer[last : last + size] != zeros:
            return
        # The first entry may be zeros by right (a record from 1970); no later one can, and none
        # of them is followed by anything else.
        low, high = 1, self.entry_count
        while low < high:
            middle = (low + high) // 2
            if buffer[middle * size : middle * size + size] == zeros:
                high = middle
            else:
                low = middle + 1
        self.entry_count = low
        self._written = low * size

    def _writable(self) -> bytearray:
        buffer = self._load()
        if not isinstance(buffer, bytearray):
            size = self.entry_count * self.entry.size
            buffer = bytearray(buffer[:size])
            self._buffer = buffer
        return buffer

    def _slot_at_most(self, shape: Struct, at: int, target: int) -> int:
        """Return the last slot whose field at byte `at` is <= target; -1 if there is none."""
        buffer = self._load()
        size = self.entry.size
        low, high = 0, self.entry_count
        while low < high:
            middle = (low + high) // 2
            if shape.unpack_from(buffer, middle * size + at)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _cut(self, entry_count: int) -> None:
        """Keep the first `entry_count` entries, in the file too."""
        if entry_count >= self.entry_count and self._buffer is not None:
            return
        buffer = self._writable()
        size = entry_count * self.entry.size
        del buffer[size:]
        self.entry_count = entry_count
        if self._written > size:
            file = self._disk.open(self._path, create=True)
            try:
                file.truncate(size)
            finally:
                file.close()
            self._written = size

    def clear(self) -> None:
        """Forget all entries, to be rebuilt; whatever the file holds is cut off."""
        self._buffer = bytearray()
        self.entry_count = 0
        file = self._disk.open(self._path, create=True)
        try:
            file.truncate(0)
        finally:
            file.close()
        self._written = 0

    def write_pending(self) -> None:
        """Bring the file up to date. Raises OSError; nothing is lost, the next call tries again."""
        buffer = self._buffer
        if not isinstance(buffer, bytearray) or len(buffer) == self._written:
            return
        file = self._disk.open(self._path, create=True)
        try:
            if file.size != self._written:  # left longer by a writer that crashed
                file.truncate(self._written)
            file.append(bytes(buffer[self._written :]))
            self._written = len(buffer)
        finally:
            file.close()

    def _append(self, entry: bytes) -> None:
        buffer = self._writable()
        buffer += entry
        self.entry_count += 1

    @property
    def has_enough_to_write(self) -> bool:
        """Whether `write_pending` is worth its system calls."""
        return self.entry_count * self.entry.size - self._written >= WRITE_BYTES

    def release(self) -> None:
        """Give the memory back (written entries are read again when asked for)."""
        if self._written and self._written == self.entry_count * self.entry.size:
            self._buffer = None


class OffsetIndex(_Index):
    """`.index`: from an offset to a position in the log file that is not behind it."""

    __slots__ = ()

    entry = _OFFSET_ENTRY

    def append(self, offset: int, position: int) -> None:
        """Add an entry; offsets must ascend.

        Args:
            offset: last offset of the batch.
            position: where the batch starts.
        """
        relative_offset = offset - self.base_offset
        assert 0 <= relative_offset <= MAX_RELATIVE_OFFSET, (offset, self.base_offset)
        self._append(_OFFSET_ENTRY.pack(relative_offset, position))

    def lookup(self, offset: int) -> OffsetEntry:
        """Return the entry with the largest offset <= `offset`; the segment's start if none."""
        return self._at(self._slot_at_most(_OFFSET, 0, offset - self.base_offset))

    def lookup_position(self, position: int) -> OffsetEntry:
        """Return the entry with the largest position <= `position`; the segment's start if none."""
        return self._at(self._slot_at_most(_OFFSET, 4, position))

    def last_entry(self) -> OffsetEntry:
        """Return the last entry; the segment's start if there is none."""
        self._load()
        return self._at(self.entry_count - 1)

    def entry_at(self, slot: int) -> OffsetEntry:
        """Return the entry in a slot, counted from 0."""
        self._load()
        assert 0 <= slot < self.entry_count, slot
        return self._at(slot)

    def _at(self, slot: int) -> OffsetEntry:
        if slot < 0:
            return OffsetEntry(self.base_offset, 0)
        relative_offset, position = _OFFSET_ENTRY.unpack_from(self._load(), slot * 8)
        return OffsetEntry(self.base_offset + relative_offset, position)

    def truncate_to(self, offset: int) -> None:
        """Remove entries of offsets >= `offset`."""
        self._cut(self._slot_at_most(_OFFSET, 0, offset - 1 - self.base_offset) + 1)

    def is_full(self, max_bytes: int) -> bool:
        """Whether `segment.index.bytes` leaves no room for another entry."""
        return self.entry_count >= max_bytes // 8


class TimeIndex(_Index):
    """`.timeindex`: from a timestamp to an offset that is not behind its first record.

    Timestamps strictly ascend: an entry is the largest timestamp so far and the last offset of the
    batch that has it.
    """

    __slots__ = ()

    entry = _TIME_ENTRY

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless its timestamp is no larger than the last one's."""
        if timestamp > self.last_entry().timestamp:
            relative_offset = offset - self.base_offset
            assert 0 <= relative_offset <= MAX_RELATIVE_OFFSET, (offset, self.base_offset)
            self._append(_TIME_ENTRY.pack(timestamp, relative_offset))

    def lookup(self, timestamp: int) -> TimeEntry:
        """Return the entry with the largest timestamp <= `timestamp`; (-1, base) if none."""
        return self._at(self._slot_at_most(_TIMESTAMP, 0, timestamp))

    def last_entry(self) -> TimeEntry:
        """Return the last entry; (-1, base offset) if there is none."""
        self._load()
        return self._at(self.entry_count - 1)

    def entry_at(self, slot: int) -> TimeEntry:
        """Return the entry in a slot, counted from 0."""
        self._load()
        assert 0 <= slot < self.entry_count, slot
        return self._at(slot)

    def _at(self, slot: int) -> TimeEntry:
        if slot < 0:
            return TimeEntry(-1, self.base_offset)
        timestamp, relative_offset = _TIME_ENTRY.unpack_from(self._load(), slot * 12)
        return TimeEntry(timestamp, self.base_offset + relative_offset)

    def truncate_to(self, offset: int) -> None:
        """Remove entries of offsets >= `offset`."""
        self._cut(self._slot_at_most(_OFFSET, 8, offset - 1 - self.base_offset) + 1)

    def is_full(self, max_bytes: int) -> bool:
        """Whether only the slot for the entry at the segment's close is left."""
        return self.entry_count >= max_bytes // 12 - 1
