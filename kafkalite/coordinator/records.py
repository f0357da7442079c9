"""Between a shard's records and the batches of its partition."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafkalite.coordinator.shard import NO_PRODUCER_ID, RecordCodec, Result, StoredRecord
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    Record,
    build_batch,
    iterate_records,
    read_batch_header,
    read_end_marker,
)

RECORD_OVERHEAD_MAX = 26
"""Bytes around a record's key and value: five varints of at most five bytes, and attributes."""


@dataclass(slots=True)
class EncodedBatch:
    """One batch, ready to be appended, and what it holds."""

    data: bytearray
    records: Sequence[StoredRecord]


@dataclass(slots=True)
class TransactionMarker:
    """The end of a transaction, as replayed."""

    producer_id: int
    committed: bool


@dataclass(slots=True)
class UnreadableRecord:
    """A record whose bytes are not what its key says; replay goes on without it."""

    offset: int
    reason: str


def encode_batches(
    result: Result, codec: RecordCodec, *, timestamp_ms: int, max_batch_bytes: int
) -> list[EncodedBatch]:
    """Return the batches of a result: one, unless it is not atomic and would be too large.

    Whether one batch is too large is left to the log to say.

    Raises:
        KafkaError: INVALID_REQUEST, something does not fit its field: a client's string is too
            long, or what replaces its invalid UTF-8 is.
    """
    try:
        encoded = [
            Record(position, timestamp_ms, *codec.encode(record))
            for position, record in enumerate(result.records)
        ]
    except struct.error as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"a record cannot be written: {error}"
        ) from error
    if result.atomic:
        return [_batch(result, encoded, 0, len(encoded))]
    batches = []
    start = 0
    size = BATCH_OVERHEAD
    for position, record in enumerate(encoded):
        record_size = RECORD_OVERHEAD_MAX + len(record.key or b"") + len(record.value or b"")
        if size + record_size > max_batch_bytes and position > start:
            batches.append(_batch(result, encoded, start, position))
            start = position
            size = BATCH_OVERHEAD
        size += record_size
    batches.append(_batch(result, encoded, start, len(encoded)))
    return batches


def decode_batch(
    batch: memoryview, codec: RecordCodec
) -> Iterator[StoredRecord | TransactionMarker | UnreadableRecord]:
    """Yield what a batch holds, but for kinds of records that are not known here.

    Raises:
        KafkaError: a corrupt batch.
    """
    header = read_batch_header(batch)
    if header.is_control:
        marker = read_end_marker(batch)
        if marker is not None:
            yield TransactionMarker(header.producer_id, marker.is_commit)
        return
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
    for record in iterate_records(batch):
        try:
            stored = codec.decode(record.key or b"", record.value)
        except MalformedMessage as error:
            yield UnreadableRecord(record.offset, str(error))
            continue
        if stored is not None:
            stored.offset = record.offset
            stored.producer_id = producer_id
            yield stored


def _batch(result: Result, encoded: list[Record], start: int, end: int) -> EncodedBatch:
    part = encoded[start:end]
    for delta, record in enumerate(part):
        record.offset = delta
    data = build_batch(
        part,
        producer_id=result.producer_id,
        producer_epoch=result.producer_epoch,
        transactional=result.producer_id != NO_PRODUCER_ID,
    )
    return EncodedBatch(data, result.records[start:end])
