"""Validation of what is appended (Kafka's LogValidator and UnifiedLog's analysis of records).

Every batch has its header and CRC checked. The records inside are looked at where a setting asks
about single records (keys of a compacted topic, a limit on timestamps that the header cannot
answer), and with `kafkalite.validate.records` always, as Kafka does: then a count, sizes or a
largest timestamp that contradict the records are found out (decision 0061).
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from kafkalite.deferred import drained
from kafkalite.log_config import UNLIMITED_MS, LogConfig
from kafkalite.types import TopicPartition
from kafkalite.wire.compression import CODEC_BY_NAME, Buffer, Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.record_check import ERRORS_MAX, RecordFacts, check_records
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_POSITION,
    MAX_DECOMPRESSED_BYTES,
    BatchHeader,
    crc_matches,
    iterate_batches,
    read_batch_header,
    recompress,
    set_max_timestamp,
)


class AppendOrigin(Enum):
    """Origin of an append; a client is trusted least (Kafka's AppendOrigin)."""

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
class CheckedBatch:
    """A client's batch whose header, CRC and records were looked at before it is appended."""

    buffer: bytearray | memoryview
    header: BatchHeader
    facts: RecordFacts


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


def check_client_batch(
    buffer: bytearray | memoryview,
    *,
    topic_partition: TopicPartition,
    config: LogConfig,
    now_ms: int,
) -> Generator[None, None, CheckedBatch]:
    """Return the steps that look at a client's batch and all of its records; nothing is changed.

    Raises:
        KafkaError: as `validate_batches`, but for what depends on the log.
    """
    header = _client_batch(buffer, topic_partition, config)
    if header.attributes & LOG_APPEND_TIME:
        _refuse_append_time(topic_partition)
    earliest = latest = None
    if config.message_timestamp_type == "CreateTime":
        latest = now_ms + config.message_timestamp_after_max_ms
        if config.message_timestamp_before_max_ms < UNLIMITED_MS:
            earliest = now_ms - config.message_timestamp_before_max_ms
    try:
        facts = yield from check_records(
            buffer,
            header,
            needs_keys="compact" in config.cleanup_policy,
            earliest=earliest,
            latest=latest,
        )
    except KafkaError as error:
        raise KafkaError(error.code, f"{topic_partition}: {error.message}") from None
    _refuse_records(facts, topic_partition, earliest=earliest, latest=latest)
    return CheckedBatch(buffer, header, facts)


def validate_batches(
    buffer: bytearray | memoryview | CheckedBatch,
    *,
    topic_partition: TopicPartition,
    config: LogConfig,
    now_ms: int,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> ValidBatches:
    """Return the batches that a leader may append, or refuse them all.

    Offsets and leader epoch are still to be assigned. With LogAppendTime, `buffer` is changed.

    Args:
        buffer: of a Produce request's partition, perhaps checked already, or made by a coordinator.
        topic_partition: for messages.
        config: the topic's settings.
        now_ms: wall clock, the append time.
        origin: CLIENT or COORDINATOR.

    Raises:
        KafkaError: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE,
            UNSUPPORTED_COMPRESSION_TYPE; as InvalidRecord, INVALID_RECORD or INVALID_TIMESTAMP
            with record errors (rules 38-49).
    """
    if isinstance(buffer, CheckedBatch) or origin is AppendOrigin.CLIENT:
        valid = _client_batches(buffer, topic_partition, config, now_ms)
    else:
        valid = _whole_batches(buffer, topic_partition)
    target = None
    if config.compression_type != "producer":
        target = CODEC_BY_NAME[config.compression_type]
    for index in range(len(valid.batches)):
        _, header = valid.batches[index]
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
    buffer: bytearray | memoryview,
    *,
    topic_partition: TopicPartition,
    next_offset: int,
    leader_epoch: int | None = None,
) -> ValidBatches:
    """Return the whole batches that a follower may append, as the leader has them.

    Args:
        buffer: of a Fetch response; an incomplete batch at its end is left out.
        topic_partition: for messages.
        next_offset: the follower's log end offset.
        leader_epoch: that the fetch was made in; batches of a later one are left out (rule 170).

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
    if leader_epoch is not None:
        for index, (position, header) in enumerate(valid.batches):
            if header.partition_leader_epoch > leader_epoch:
                del valid.batches[index:]
                valid.size = position
                break
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


def _client_batches(
    buffer: bytearray | memoryview | CheckedBatch,
    topic_partition: TopicPartition,
    config: LogConfig,
    now_ms: int,
) -> ValidBatches:
    """Return the one batch of a client, opening it only if its header leaves doubt.

    Coordinators are trusted: their records have keys and this broker's own time.
    """
    if isinstance(buffer, CheckedBatch):
        checked = buffer
    else:
        header = _client_batch(buffer, topic_partition, config)
        if not config.looks_at_records and (
            header.max_timestamp <= now_ms + config.message_timestamp_after_max_ms
            or config.message_timestamp_type != "CreateTime"
        ):
            if header.attributes & LOG_APPEND_TIME:
                _refuse_append_time(topic_partition)
            return ValidBatches(buffer, [(0, header)], header.batch_length + LENGTH_OVERHEAD)
        checked = drained(
            check_client_batch(
                buffer, topic_partition=topic_partition, config=config, now_ms=now_ms
            )
        )
    header = checked.header
    if config.message_timestamp_type == "CreateTime":
        # As Kafka does, for a header that says another time than the records.
        set_max_timestamp(
            checked.buffer,
            0,
            header,
            log_append_time=False,
            max_timestamp=checked.facts.max_timestamp,
        )
    return ValidBatches(checked.buffer, [(0, header)], header.batch_length + LENGTH_OVERHEAD)


def _refuse_append_time(topic_partition: TopicPartition) -> NoReturn:
    message = "the timestamp type LogAppendTime is not a producer's to set"
    raise InvalidRecord(
        ErrorCode.INVALID_TIMESTAMP, f"{topic_partition}: {message}", [(0, message)]
    )


def _refuse_records(
    facts: RecordFacts,
    topic_partition: TopicPartition,
    *,
    earliest: int | None,
    latest: int | None,
) -> None:
    """Raise with the errors of all records, if there are any (rules 45-47)."""
    if not facts.without_key and not facts.out_of_range:
        return
    needs_key = "a compacted topic needs a key in every record"
    errors = dict.fromkeys(facts.without_key, needs_key)
    for index, timestamp in facts.out_of_range:
        if earliest is not None and timestamp < earliest:
            found = f"timestamp {timestamp} is before {earliest}, the earliest allowed now"
        else:
            found = f"timestamp {timestamp} is after {latest}, the latest allowed now"
        errors.setdefault(index, found)
    is_by_time = any(message is not needs_key for message in errors.values())
    code = ErrorCode.INVALID_TIMESTAMP if is_by_time else ErrorCode.INVALID_RECORD
    hint = (
        "message.timestamp.before.max.ms or message.timestamp.after.max.ms"
        if is_by_time
        else "cleanup.policy"
    )
    first = min(errors)
    raise InvalidRecord(
        code,
        f"{topic_partition}: {len(errors)} records refused by {hint}; "
        f"record {first}: {errors[first]}",
        sorted(errors.items())[:ERRORS_MAX],
    )


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
