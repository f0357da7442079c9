"""Record batches (magic 2): the 61-byte header, in-place patches, and the records inside.

The produce and fetch paths use the header functions alone; a batch's payload is opened only for
internal topics, timestamp look-up, compaction, and topics whose settings demand it. Layout after
Kafka's DefaultRecordBatch and DefaultRecord.

Offsets and positions: `position` is a byte in the given buffer; ends are exclusive except where a
name says `last_`.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from crc32c import crc32c

from kafkalite.wire.compression import Buffer, Codec, compress, decompress
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.record_codec import RecordLike, append_record, scan_payload

BATCH_OVERHEAD = 61
"""Bytes of a batch before its first record."""

LENGTH_OVERHEAD = 12
"""Bytes that `batch_length` does not count: base offset and the length itself."""

MAGIC_POSITION = 16
MAGIC = 2

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
"""Attribute bits. With DELETE_HORIZON the base timestamp is the delete horizon (KIP-534)."""

MAX_DECOMPRESSED_BYTES = 256 * 1024 * 1024
"""Most that one batch may hold when opened. Kafka streams and has no limit; with the default
`max.message.bytes` of 1 MiB this still allows for a ratio of 256, beyond real data."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_EPOCH_POSITION = 12
_CRC_POSITION = 17
_CRC_END = 21
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_POSITION = 35
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_SEQUENCE_RANGE = 1 << 31

_unpack_header = _HEADER.unpack_from


@dataclass(slots=True)
class BatchHeader:
    """The fields of a batch header, in the order of the bytes."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record (inclusive), also where compaction removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the last record."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, wrapped at 2^31 - 1; -1 without a base sequence."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_RANGE

    @property
    def codec(self) -> Codec:
        """Compression of the records.

        Raises:
            KafkaError: UNSUPPORTED_COMPRESSION_TYPE if the bits name no codec.
        """
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression codec {number}"
            )
        return Codec(number)

    @property
    def is_log_append_time(self) -> bool:
        """Whether `max_timestamp` stands for the timestamp of every record."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction, or ends one."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker, which consumers skip."""
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time from which tombstones or a marker may go."""
        return bool(self.attributes & DELETE_HORIZON)


@dataclass(slots=True)
class Record:
    """One record; `timestamp` in ms, -1 for none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)


@dataclass(slots=True, frozen=True, kw_only=True)
class EndMarker:
    """The one record of a transaction marker (Kafka's EndTransactionMarker)."""

    is_commit: bool
    coordinator_epoch: int


# --- Headers -------------------------------------------------------------------------------------


def read_batch_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Return the header that starts at `position`; no field is checked.

    Raises:
        struct.error: fewer than BATCH_OVERHEAD bytes follow.
    """
    return BatchHeader(*_unpack_header(buffer, position))


def iterate_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each whole batch; an incomplete tail ends the iteration.

    Raises:
        KafkaError: CORRUPT_MESSAGE for a length below a header's, or a magic other than 2.
    """
    position = 0
    end = len(buffer)
    while position + BATCH_OVERHEAD <= end:
        header = BatchHeader(*_unpack_header(buffer, position))
        if header.magic != MAGIC:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"batch at byte {position} has magic {header.magic}; only {MAGIC} is supported",
            )
        size = header.batch_length + LENGTH_OVERHEAD
        if size < BATCH_OVERHEAD:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"batch at byte {position} claims {size} bytes, fewer than a batch header has",
            )
        if position + size > end:
            return
        yield position, header
        position += size


def crc_matches(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Return whether the batch's CRC-32C is that of its bytes from the attributes to its end."""
    view = memoryview(buffer)
    checksum: int = crc32c(view[position + _CRC_END : position + header.batch_length + 12])
    return checksum == header.crc


def set_offset_and_epoch(
    buffer: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: int
) -> None:
    """Write what the leader assigns; both lie before the bytes that the CRC covers."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + _EPOCH_POSITION, leader_epoch)


def set_max_timestamp(
    buffer: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    *,
    log_append_time: bool,
    max_timestamp: int,
) -> None:
    """Write timestamp type and largest timestamp, into the bytes and `header`; renew the CRC.

    Base timestamp and the records' deltas stay. Nothing is done if both are as wanted already.
    """
    attributes = header.attributes & ~LOG_APPEND_TIME
    if log_append_time:
        attributes |= LOG_APPEND_TIME
    if attributes == header.attributes and max_timestamp == header.max_timestamp:
        return
    header.attributes = attributes
    header.max_timestamp = max_timestamp
    _ATTRIBUTES.pack_into(buffer, position + _CRC_END, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_POSITION, max_timestamp)
    view = memoryview(buffer)
    header.crc = crc32c(view[position + _CRC_END : position + header.size])
    _UINT32.pack_into(buffer, position + _CRC_POSITION, header.crc)


# --- Reading records -----------------------------------------------------------------------------


def iterate_records(batch: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """Yield the records of the batch that `batch` starts with; of a control batch too.

    Raises:
        KafkaError: CORRUPT_MESSAGE if the payload cannot be decompressed, INVALID_RECORD if it
            does not hold exactly the records that the header claims, MESSAGE_TOO_LARGE if it
            decompresses to more than `max_bytes`, UNSUPPORTED_COMPRESSION_TYPE.
    """
    header = read_whole_header(batch)
    payload = read_payload(batch, header, max_bytes=max_bytes)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    for (
        _,
        _,
        timestamp_delta,
        offset_delta,
        key,
        value_start,
        value_length,
        headers,
    ) in scan_payload(payload, header.record_count):
        yield Record(
            base_offset + offset_delta,
            base_timestamp + timestamp_delta if append_time is None else append_time,
            key,
            None if value_length < 0 else payload[value_start : value_start + value_length],
            headers,
        )


def read_whole_header(batch: Buffer) -> BatchHeader:
    """Return the header of a batch that must be there whole.

    Raises:
        KafkaError: CORRUPT_MESSAGE if magic or length are wrong or bytes are missing.
    """
    for _, header in iterate_batches(batch):
        return header
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "record batch is shorter than it claims")


def read_payload(
    batch: Buffer, header: BatchHeader, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Return the decompressed records of the batch that `batch` starts with.

    Raises:
        KafkaError: as `iterate_records`.
    """
    if header.record_count == 0:
        return b""  # compaction left only the header
    return decompress(
        header.codec, memoryview(batch)[BATCH_OVERHEAD : header.size], max_bytes=max_bytes
    )


def read_end_marker(batch: Buffer) -> EndMarker | None:
    """Return what a control batch says, or None if it is empty or of a type not known here.

    Raises:
        KafkaError: INVALID_RECORD if key or value are too short.
    """
    record = next(iterate_records(batch), None)
    if record is None:
        return None
    key = record.key or b""
    if len(key) < 4:
        raise KafkaError(ErrorCode.INVALID_RECORD, "control record has a key below 4 bytes")
    marker_type = int.from_bytes(key[2:4], "big", signed=True)
    if marker_type not in (_ABORT, _COMMIT):
        return None
    value = record.value or b""
    if len(value) < _MARKER_VALUE.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "transaction marker has a value below 6 bytes")
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(value)
    return EndMarker(is_commit=marker_type == _COMMIT, coordinator_epoch=coordinator_epoch)


_ABORT = 0
_COMMIT = 1
_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")


# --- Building batches ----------------------------------------------------------------------------


def build_batch(
    records: Sequence[RecordLike],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    last_offset_delta: int | None = None,
) -> bytearray:
    """Return one batch with the given records.

    Args:
        records: at least one; their offsets, ascending, count from 0 if `base_offset` is 0.
        base_offset: offset of the batch; a record's delta is its offset less this.
        leader_epoch: the leader overwrites it on append.
        producer_id: of an idempotent producer, with its epoch and the first sequence.
        producer_epoch: see `producer_id`.
        base_sequence: see `producer_id`.
        codec: compression, with `level` as in `compress`.
        level: see `codec`.
        transactional: the batch belongs to a transaction.
        control: the batch is a marker.
        log_append_time_ms: timestamp that every reader gives to all records.
        delete_horizon_ms: stored as base timestamp (KIP-534).
        last_offset_delta: if larger than the last record's, after compaction.
    """
    if not records:
        raise ValueError("a batch of no records is built by empty_batch()")
    base_timestamp = records[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    payload = bytearray()
    max_timestamp = NO_TIMESTAMP
    for record in records:
        timestamp = record.timestamp
        max_timestamp = max(max_timestamp, timestamp)
        append_record(payload, record, timestamp - base_timestamp, record.offset - base_offset)
    attributes = int(codec)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time_ms
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return assemble_batch(header, compress(codec, payload, level) if codec else payload)


def assemble_batch(header: BatchHeader, payload: Buffer) -> bytearray:
    """Return the batch of this header and (compressed) payload; sets length and CRC in both."""
    header.batch_length = BATCH_OVERHEAD - LENGTH_OVERHEAD + len(payload)
    batch = bytearray(header.size)
    _HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        header.batch_length,
        header.partition_leader_epoch,
        header.magic,
        0,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    batch[BATCH_OVERHEAD:] = payload
    header.crc = crc32c(memoryview(batch)[_CRC_END:])
    _UINT32.pack_into(batch, _CRC_POSITION, header.crc)
    return batch


def empty_batch(header: BatchHeader) -> bytearray:
    """Return the header alone of a batch that compaction emptied.

    It keeps offsets, producer id, epoch and sequences, so that a reader of the log rebuilds the
    producer's state; as Kafka's DefaultRecordBatch.writeEmptyHeader, nothing is compressed and
    there is no base timestamp or delete horizon.
    """
    empty = BatchHeader(
        base_offset=header.base_offset,
        batch_length=0,
        partition_leader_epoch=header.partition_leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
        last_offset_delta=header.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=0,
    )
    return assemble_batch(empty, b"")


def control_batch(
    *,
    is_commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the marker that ends a producer's transaction on a partition; it takes one offset."""
    record = Record(
        offset=base_offset,
        timestamp=timestamp_ms,
        key=_MARKER_KEY.pack(0, _COMMIT if is_commit else _ABORT),
        value=_MARKER_VALUE.pack(0, coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def recompress(
    batch: Buffer,
    header: BatchHeader,
    *,
    codec: Codec,
    level: int | None = None,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> bytearray:
    """Return the batch with another codec; all else stays, and `header` then describes the result.

    Raises:
        KafkaError: as `iterate_records`, without looking into the records.
    """
    payload = read_payload(batch, header, max_bytes=max_bytes)
    header.attributes = header.attributes & ~CODEC_MASK | codec
    return assemble_batch(header, compress(codec, payload, level))
