"""What a broker refuses to append (Kafka's LogValidator and UnifiedLog's analysis of records).

Every batch has its header and CRC checked. The records inside are looked at only where a setting of
the topic asks about single records: keys of a compacted topic, a limit on timestamps that the
header cannot answer, another `compression.type`. Kafka always reads them; what is given up is to
find out that a producer's count or largest timestamp contradict its records.
"""

from dataclasses import dataclass
from enum import Enum

from kafkalite.log_config import LogConfig
from kafkalite.types import TopicPartition
from kafkalite.wire.compression import CODEC_BY_NAME, Buffer, Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_POSITION,
    MAX_DECOMPRESSED_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    crc_matches,
    iterate_batches,
    iterate_records,
    read_batch_header,
    recompress,
    set_max_timestamp,
)

_UNLIMITED_MS = 2**63 - 1
_RECORD_ERRORS_MAX = 1000
"""Most record errors of one batch that are told to the client; one refuses the batch."""


class AppendOrigin(Enum):
    """Who appends; a client is trusted least (Kafka's AppendOrigin)."""

    CLIENT = "client"
    """A Produce request: everything is checked."""

    COORDINATOR = "coordinator"
    """This broker's own records and markers: sequences are not checked."""

    REPLICATION = "replication"
    """Batches that the leader has accepted: only whole bytes and ascending offsets matter."""


class InvalidRecord(KafkaError):
    """A refusal because of single records (KIP-467).

    Attributes:
        record_errors: (index of the record in its batch, message) of each offender.
    """

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


@dataclass(slots=True)
class ValidBatches:
    """Batches fit to be appended.

    Attributes:
        buffer: the bytes given, patched where the topic's timestamp type asks for it; other bytes
            if the topic's `compression.type` asked for another codec.
        batches: (position in `buffer`, header) of each batch, in order and without gaps.
        size: bytes of all batches; `buffer` may be longer by an incomplete batch.
    """

    buffer: bytearray | memoryview
    batches: list[tuple[int, BatchHeader]]
    size: int


def validate_batches(
    buffer: bytearray | memoryview,
    *,
    topic_partition: TopicPartition,
    config: LogConfig,
    now_ms: int,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> ValidBatches:
    """Return the batches that a leader may append, or refuse them all.

    Offsets and leader epoch are still to be assigned. With LogAppendTime, `buffer` is changed.

    Args:
        buffer: of a Produce request's partition, or made by a coordinator.
        topic_partition: for messages.
        config: the topic's settings.
        now_ms: wall clock, the append time.
        origin: CLIENT or COORDINATOR.

    Raises:
        KafkaError: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE,
            UNSUPPORTED_COMPRESSION_TYPE; as InvalidRecord, INVALID_RECORD or INVALID_TIMESTAMP
            with record errors (rules 38-49).
    """
    if origin is AppendOrigin.CLIENT:
        header = _client_batch(buffer, topic_partition, config)
        valid = ValidBatches(buffer, [(0, header)], header.batch_length + LENGTH_OVERHEAD)
    else:
        valid = _whole_batches(buffer, topic_partition)
    target = None
    if config.compression_type != "producer":
        target = CODEC_BY_NAME[config.compression_type]
    for index in range(len(valid.batches)):
        position, header = valid.batches[index]
        _check_records(valid.buffer, position, header, topic_partition, config, now_ms, origin)
        if target is not None and header.attributes & CODEC_MASK != target:
            valid = _recompressed(valid, index, target, topic_partition, config)
        if config.message_timestamp_type == "LogAppendTime":
            set_max_timestamp(
                valid.buffer,
                valid.batches[index][0],
                header,
                log_append_time=True,
                max_timestamp=now_ms,
            )
    if valid.size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{topic_partition}: {valid.size} bytes of batches are more than "
            f"segment.bytes={config.segment_bytes}",
        )
    return valid


def validate_fetched_batches(
    buffer: bytearray | memoryview, *, topic_partition: TopicPartition, next_offset: int
) -> ValidBatches:
    """Return the whole batches that a follower may append, as the leader has them.

    Args:
        buffer: of a Fetch response; an incomplete batch at its end is left out.
        topic_partition: for messages.
        next_offset: the follower's log end offset.

    Raises:
        KafkaError: CORRUPT_MESSAGE for a wrong CRC, OFFSET_OUT_OF_RANGE if offsets do not ascend
            from `next_offset` (a gap is fine: the leader's log may be compacted).
    """
    valid = _whole_batches(buffer, topic_partition)
    for _, header in valid.batches:
        if header.base_offset < next_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{topic_partition}: fetched a batch of offset {header.base_offset} "
                f"where {next_offset} or later was expected",
            )
        next_offset = header.next_offset
    return valid


def _client_batch(
    buffer: Buffer, topic_partition: TopicPartition, config: LogConfig
) -> BatchHeader:
    """Return the header of the one batch that a client may send, checked (rules 38-41)."""
    length = len(buffer)
    if length < BATCH_OVERHEAD:
        if length > MAGIC_POSITION and buffer[MAGIC_POSITION] < MAGIC:
            raise _invalid(topic_partition, f"magic {buffer[MAGIC_POSITION]} instead of {MAGIC}")
        raise _invalid(topic_partition, "no whole record batch")
    header = read_batch_header(buffer)
    size = header.batch_length + LENGTH_OVERHEAD
    if header.magic != MAGIC:
        raise _invalid(topic_partition, f"magic {header.magic} instead of {MAGIC}")
    if size < BATCH_OVERHEAD:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{topic_partition}: record batch claims {size} bytes, fewer than its header has",
        )
    if size != length:
        raise _invalid(
            topic_partition, f"{length} bytes are not one whole record batch of {size} bytes"
        )
    if header.base_offset != 0:
        raise _invalid(topic_partition, f"base offset {header.base_offset} instead of 0")
    if size > config.max_message_bytes:
        raise _too_large(topic_partition, size, config)
    if not crc_matches(buffer, 0, header):
        raise _wrong_crc(topic_partition, header)
    count = header.record_count
    if count <= 0 or header.last_offset_delta + 1 != count:
        raise _invalid(
            topic_partition,
            f"{count} records with a last offset delta of {header.last_offset_delta}",
        )
    if header.attributes & CONTROL:
        raise _invalid(topic_partition, "clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(
            topic_partition,
            f"producer id {header.producer_id} with sequence {header.base_sequence}",
        )
    if header.attributes & CODEC_MASK > Codec.ZSTD:
        _ = header.codec  # raises
    return header


def _whole_batches(buffer: bytearray | memoryview, topic_partition: TopicPartition) -> ValidBatches:
    batches = []
    size = 0
    for position, header in iterate_batches(buffer):
        if not crc_matches(buffer, position, header):
            raise _wrong_crc(topic_partition, header)
        batches.append((position, header))
        size = position + header.size
    return ValidBatches(buffer, batches, size)


def _check_records(
    buffer: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    topic_partition: TopicPartition,
    config: LogConfig,
    now_ms: int,
    origin: AppendOrigin,
) -> None:
    """Refuse bad timestamps and missing keys, opening the batch only if the header leaves doubt.

    Coordinators are trusted: their records have keys and this broker's own time.
    """
    if origin is not AppendOrigin.CLIENT:
        return
    if header.attributes & LOG_APPEND_TIME:
        message = "the timestamp type LogAppendTime is not a producer's to set"
        raise InvalidRecord(
            ErrorCode.INVALID_TIMESTAMP, f"{topic_partition}: {message}", [(0, message)]
        )
    needs_keys = "compact" in config.cleanup_policy
    latest = earliest = None
    is_late = False
    if config.message_timestamp_type == "CreateTime":
        latest = now_ms + config.message_timestamp_after_max_ms
        is_late = header.max_timestamp > latest
        if config.message_timestamp_before_max_ms < _UNLIMITED_MS:
            earliest = now_ms - config.message_timestamp_before_max_ms
    if not needs_keys and earliest is None and not is_late:
        return
    max_timestamp = _check_each_record(
        memoryview(buffer)[position : position + header.size],
        topic_partition,
        needs_keys=needs_keys,
        earliest=earliest,
        latest=latest,
    )
    if is_late:  # and yet no record is: the header overstated its largest timestamp
        set_max_timestamp(
            buffer, position, header, log_append_time=False, max_timestamp=max_timestamp
        )


def _check_each_record(
    batch: memoryview,
    topic_partition: TopicPartition,
    *,
    needs_keys: bool,
    earliest: int | None,
    latest: int | None,
) -> int:
    """Return the largest timestamp; raise with the errors of all records (rules 45-47)."""
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    max_timestamp = NO_TIMESTAMP
    for index, record in enumerate(iterate_records(batch)):
        timestamp = record.timestamp
        max_timestamp = max(max_timestamp, timestamp)
        if needs_keys and record.key is None:
            errors.append((index, "a compacted topic needs a key in every record"))
        elif timestamp == NO_TIMESTAMP:
            continue
        elif earliest is not None and timestamp < earliest:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(
                (index, f"timestamp {timestamp} is before {earliest}, the earliest allowed now")
            )
        elif latest is not None and timestamp > latest:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(
                (index, f"timestamp {timestamp} is after {latest}, the latest allowed now")
            )
    if errors:
        hint = (
            "message.timestamp.before.max.ms or message.timestamp.after.max.ms"
            if code is ErrorCode.INVALID_TIMESTAMP
            else "cleanup.policy"
        )
        at, first = errors[0]
        raise InvalidRecord(
            code,
            f"{topic_partition}: {len(errors)} records refused by {hint}; record {at}: {first}",
            errors[:_RECORD_ERRORS_MAX],
        )
    return max_timestamp


def _recompressed(
    valid: ValidBatches,
    index: int,
    codec: Codec,
    topic_partition: TopicPartition,
    config: LogConfig,
) -> ValidBatches:
    """Return the batches with the one at `index` under another codec (rules 41 and 48).

    Control batches stay as they are, like Kafka's.
    """
    position, header = valid.batches[index]
    if header.attributes & CONTROL:
        return valid
    end = position + header.size
    view = memoryview(valid.buffer)
    level = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }.get(codec)
    batch = recompress(
        view[position:end], header, codec=codec, level=level, max_bytes=MAX_DECOMPRESSED_BYTES
    )
    if len(batch) > config.max_message_bytes:
        raise _too_large(topic_partition, len(batch), config)
    buffer = bytearray(view[:position]) + batch + view[end : valid.size]
    shift = len(batch) - (end - position)
    batches = [
        (at + shift if at > position else at, each_header) for at, each_header in valid.batches
    ]
    return ValidBatches(buffer, batches, valid.size + shift)


def _invalid(topic_partition: TopicPartition, message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"{topic_partition}: {message}")


def _too_large(topic_partition: TopicPartition, size: int, config: LogConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"{topic_partition}: record batch of {size} bytes is larger than "
        f"max.message.bytes={config.max_message_bytes}",
    )


def _wrong_crc(topic_partition: TopicPartition, header: BatchHeader) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"{topic_partition}: record batch does not match its CRC {header.crc:#010x}",
    )
