"""Printout of a log's files: `kafkalite dump-log`.

Lines are those of Apache's kafka-dump-log, so that what one knows of its output holds here too.
Files are read as they are; nothing is opened as a log, repaired or locked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kafkalite.log.checkpoint import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LEADER_EPOCH_FILE,
    LOG_START_FILE,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_FILE,
    format_uuid,
    parse_epochs,
    parse_offsets,
    parse_partition_metadata,
    parse_properties,
)
from kafkalite.log.index import OffsetIndex, TimeIndex
from kafkalite.log.producer_state import read_snapshot
from kafkalite.log.transaction_index import decode_aborted
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    MAGIC,
    NO_SEQUENCE,
    BatchHeader,
    Record,
    crc_matches,
    iterate_records,
    read_batch_header,
    read_end_marker,
)

if TYPE_CHECKING:
    from kafkalite.log.disk import Disk, File

RecordDecoder = Callable[[Record], tuple[str | None, str | None]]
"""Returns key and value of a record as text, None for what is absent."""

_RENAMED_SUFFIXES: Final = (".deleted", ".cleaned", ".swap")
_SEQUENCE_RANGE: Final = 1 << 31


@dataclass(slots=True, kw_only=True)
class DumpOptions:
    """Options for printing a `.log` file.

    Attributes:
        records: a line for each record (kafka-dump-log's --deep-iteration).
        contents: keys and values too (--print-data-log); implies `records`.
        decode: how they are printed; as UTF-8 text if None.
    """

    records: bool = False
    contents: bool = False
    decode: RecordDecoder | None = None


@dataclass(slots=True)
class Dump:
    """Prints files one after another, and collects what is wrong with them.

    Attributes:
        problems: sentences about files that contradict each other or themselves; what Apache's
            tool prints to standard error at its end.
    """

    disk: "Disk"
    options: DumpOptions = field(default_factory=DumpOptions)
    problems: list[str] = field(default_factory=list)

    def lines(self, path: str) -> Iterator[str]:
        """Yield what the file at `path` says, line by line.

        Raises:
            OSError: it cannot be read.
        """
        yield f"Dumping {path}"
        name = path.rpartition("/")[2]
        for suffix in _RENAMED_SUFFIXES:
            name = name.removesuffix(suffix)
        stem, _, kind = name.rpartition(".")
        try:
            if kind == "log":
                yield from self._log(path, _offset_of(stem))
            elif kind == "index":
                yield from self._offset_index(path, _offset_of(stem))
            elif kind == "timeindex":
                yield from self._time_index(path, _offset_of(stem))
            elif kind == "snapshot":
                yield from _producer_snapshot(self.disk.read(path))
            elif kind == "txnindex":
                yield from _transaction_index(self.disk.read(path))
            elif name in _TEXT_FILES:
                yield from _TEXT_FILES[name](self.disk.read(path).decode())
            else:
                self.problems.append(f"Ignoring unknown file {path}")
        except (KafkaError, ValueError) as error:
            self.problems.append(f"{path}: {error}")

    # --- .log ------------------------------------------------------------------------------------

    def _log(self, path: str, base_offset: int) -> Iterator[str]:
        yield f"Log starting offset: {base_offset}"
        file = self.disk.open(path)
        position = 0
        last_offset: int | None = None
        for position, header, batch in _walk(file):
            yield _batch_line(position, header, is_valid=crc_matches(batch, 0, header))
            if self.options.records or self.options.contents:
                for record in iterate_records(batch):
                    if last_offset is not None and record.offset != last_offset + 1:
                        self.problems.append(
                            f"Non-consecutive offsets in {path}: "
                            f"{last_offset} is followed by {record.offset}"
                        )
                    last_offset = record.offset
                    yield self._record_line(batch, header, record)
            position += header.size
        if position < file.size:
            name = path.rpartition("/")[2]
            yield f"Found {file.size - position} invalid bytes at the end of {name}"

    def _record_line(self, batch: bytes, header: BatchHeader, record: Record) -> str:
        sequence = NO_SEQUENCE
        if header.base_sequence >= 0:
            delta = record.offset - header.base_offset
            sequence = (header.base_sequence + delta) % _SEQUENCE_RANGE
        keys = ",".join(name for name, _ in record.headers)
        line = (
            f"| offset: {record.offset} {_timestamp_type(header)}: {record.timestamp} "
            f"keySize: {_size(record.key)} valueSize: {_size(record.value)} "
            f"sequence: {sequence} headerKeys: [{keys}]"
        )
        if header.is_control:
            marker = read_end_marker(batch)
            if marker is None:
                return f"{line} controlType: UNKNOWN"
            kind = "COMMIT" if marker.is_commit else "ABORT"
            return f"{line} endTxnMarker: {kind} coordinatorEpoch: {marker.coordinator_epoch}"
        if self.options.contents:
            key, value = (self.options.decode or _as_text)(record)
            if key is not None:
                line += f" key: {key}"
            if value is not None:
                line += f" payload: {value}"
        return line

    # --- Indexes ---------------------------------------------------------------------------------

    def _offset_index(self, path: str, base_offset: int) -> Iterator[str]:
        size = self.disk.open(path).size
        index = OffsetIndex(self.disk, path, base_offset, size=size)
        index.last_entry()  # reads the file, and leaves out the zeros of a preallocated one
        if len(index) == 0:
            yield f"{path} is empty."
            return
        log = self.disk.open(_sibling(path, "log"))
        for entry in map(index.entry_at, range(len(index))):
            batch = next(_walk(log, entry.position), None)
            found = batch[1].last_offset if batch else -1
            if found != entry.offset:
                self.problems.append(
                    f"Mismatches in {path}: index offset {entry.offset}, log offset {found}"
                )
            yield f"offset: {entry.offset} position: {entry.position}"

    def _time_index(self, path: str, base_offset: int) -> Iterator[str]:
        index_path = _sibling(path, "index")
        offsets = OffsetIndex(
            self.disk, index_path, base_offset, size=self.disk.open(index_path).size
        )
        times = TimeIndex(self.disk, path, base_offset, size=self.disk.open(path).size)
        log = self.disk.open(_sibling(path, "log"))
        previous = -1
        times.last_entry()  # reads the file, and leaves out the zeros of a preallocated one
        for entry in map(times.entry_at, range(len(times))):
            found = None
            for _, header, _ in _walk(log, offsets.lookup(entry.offset).position):
                if header.last_offset >= entry.offset:
                    found = header
                    break
            if found is None or found.last_offset != entry.offset:
                self.problems.append(
                    f"{path}: indexed offset {entry.offset} is not the last of a batch in the log, "
                    f"found {found.last_offset if found else -1}"
                )
            elif found.max_timestamp != entry.timestamp:
                self.problems.append(
                    f"{path}: index timestamp {entry.timestamp}, log timestamp "
                    f"{found.max_timestamp}"
                )
            elif previous >= entry.timestamp:
                self.problems.append(
                    f"{path}: timestamp {entry.timestamp} follows {previous}, out of order"
                )
            previous = entry.timestamp
            yield f"timestamp: {entry.timestamp} offset: {entry.offset}"


# --- Single formats ------------------------------------------------------------------------------


def _batch_line(position: int, header: BatchHeader, *, is_valid: bool) -> str:
    number = header.attributes & CODEC_MASK
    codec = Codec(number).name.lower() if number <= Codec.ZSTD else f"unknown({number})"
    horizon = header.base_timestamp if header.has_delete_horizon else -1
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
        f"count: {header.record_count} baseSequence: {header.base_sequence} "
        f"lastSequence: {header.last_sequence} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {_boolean(header.is_transactional)} "
        f"isControl: {_boolean(header.is_control)} deleteHorizonMs: {_optional(horizon)} "
        f"position: {position} {_timestamp_type(header)}: {header.max_timestamp} "
        f"size: {header.size} magic: {header.magic} compresscodec: {codec} crc: {header.crc} "
        f"isvalid: {_boolean(is_valid)}"
    )


def _producer_snapshot(data: bytes) -> Iterator[str]:
    for state in read_snapshot(data):
        line = (
            f"producerId: {state.producer_id} producerEpoch: {state.epoch} "
            f"coordinatorEpoch: {state.coordinator_epoch} "
            f"currentTxnFirstOffset: {_optional(state.transaction_first_offset)} "
            f"lastTimestamp: {state.last_timestamp} "
        )
        for batch in state.batches[-1:]:  # Kafka's tool knows of no earlier ones
            line += (
                f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                f"lastOffset: {batch.last_offset} "
                f"offsetDelta: {batch.last_offset - batch.first_offset} "
                f"timestamp: {batch.timestamp}"
            )
        yield line


def _transaction_index(data: bytes) -> Iterator[str]:
    for entry in decode_aborted(data):
        yield (
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )


def _offsets(text: str) -> Iterator[str]:
    for partition, offset in parse_offsets(text).items():
        yield f"partition: {partition} offset: {offset}"


def _epochs(text: str) -> Iterator[str]:
    for entry in parse_epochs(text):
        yield f"epoch: {entry.epoch} startOffset: {entry.start_offset}"


def _partition_metadata(text: str) -> Iterator[str]:
    yield f"topicId: {format_uuid(parse_partition_metadata(text))}"


def _properties(text: str) -> Iterator[str]:
    for name, value in parse_properties(text).items():
        yield f"{name}: {value}"


_TEXT_FILES: Final[dict[str, Callable[[str], Iterator[str]]]] = {
    CLEANER_FILE: _offsets,
    HIGH_WATERMARK_FILE: _offsets,
    LOG_START_FILE: _offsets,
    RECOVERY_POINT_FILE: _offsets,
    LEADER_EPOCH_FILE: _epochs,
    PARTITION_METADATA_FILE: _partition_metadata,
    META_PROPERTIES_FILE: _properties,
}


# --- Inside --------------------------------------------------------------------------------------


def _walk(file: "File", position: int = 0) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Yield (position, header, bytes) of whole batches; stop before what is none."""
    while position + BATCH_OVERHEAD <= file.size:
        header = read_batch_header(file.pread(BATCH_OVERHEAD, position))
        if (
            header.magic != MAGIC
            or header.size < BATCH_OVERHEAD
            or position + header.size > file.size
        ):
            return
        yield position, header, file.pread(header.size, position)
        position += header.size


def _offset_of(stem: str) -> int:
    if not stem.isdigit():
        raise ValueError(f"{stem!r} is no base offset")
    return int(stem)


def _sibling(path: str, kind: str) -> str:
    """Return the path of a segment's other file, which has the same suffix behind its kind."""
    folder, slash, name = path.rpartition("/")
    stem, _, rest = name.partition(".")
    _, dot, suffix = rest.partition(".")
    return f"{folder}{slash}{stem}.{kind}{dot}{suffix}"


def _as_text(record: Record) -> tuple[str | None, str | None]:
    key, value = record.key, record.value
    return (
        None if key is None else key.decode("utf-8", "replace"),
        None if value is None else value.decode("utf-8", "replace"),
    )


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _size(value: bytes | None) -> int:
    return -1 if value is None else len(value)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _optional(value: int) -> str:
    return "OptionalLong.empty" if value < 0 else f"OptionalLong[{value}]"
