"""A shard's records as batches, and back."""

import pytest

from kafkalite.coordinator.records import (
    TransactionMarker,
    UnreadableRecord,
    decode_batch,
    encode_batches,
)
from kafkalite.coordinator.shard import Result, StoredRecord
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.records import Record, build_batch, control_batch, read_batch_header


class TextCodec:
    """Keys and values are text; unknown kinds begin with '?', broken ones with '!'."""

    def encode(self, record):
        value = record.value
        return record.key.encode(), None if value is None else value.encode()

    def decode(self, key, value):
        text = key.decode()
        if text.startswith("!"):
            raise MalformedMessage("broken")
        if text.startswith("?"):
            return None
        return StoredRecord(text, None if value is None else value.decode())


def encode(result, *, max_batch_bytes=10_000):
    return encode_batches(result, TextCodec(), timestamp_ms=123, max_batch_bytes=max_batch_bytes)


def decode(data):
    return list(decode_batch(memoryview(bytes(data)), TextCodec()))


def test_records_come_back_with_their_offsets():
    records = [StoredRecord("a", "1"), StoredRecord("b", None)]
    (batch,) = encode(Result(records))
    assert batch.records == records
    assert read_batch_header(batch.data).max_timestamp == 123
    assert decode(batch.data) == [StoredRecord("a", "1", 0), StoredRecord("b", None, 1)]


def test_atomic_result_is_one_batch_however_large():
    records = [StoredRecord("a", "x" * 100) for _ in range(100)]
    assert len(encode(Result(records), max_batch_bytes=1000)) == 1


@pytest.mark.parametrize("limit", [100, 300, 1000])
def test_other_results_are_spread_over_batches_within_the_limit(limit):
    records = [StoredRecord(f"{number:04}", "x" * 30) for number in range(50)]
    batches = encode(Result(records, atomic=False), max_batch_bytes=limit)
    assert all(len(batch.data) <= max(limit, 130) for batch in batches)
    assert [record for batch in batches for record in batch.records] == records
    keys = [record.key for batch in batches for record in decode(batch.data)]
    assert keys == [record.key for record in records]


def test_single_record_above_the_limit_gets_a_batch_of_its_own():
    """The log will refuse it; it is not for this layer to drop it."""
    records = [StoredRecord("a", "x" * 500), StoredRecord("b", "y")]
    batches = encode(Result(records, atomic=False), max_batch_bytes=100)
    assert [len(batch.records) for batch in batches] == [1, 1]


def test_transactional_batch_names_its_producer():
    (batch,) = encode(Result([StoredRecord("a", "1")], producer_id=9, producer_epoch=2))
    header = read_batch_header(batch.data)
    assert (header.is_transactional, header.producer_id, header.producer_epoch) == (True, 9, 2)
    assert decode(batch.data)[0].producer_id == 9


def test_producer_of_a_batch_without_transaction_does_not_matter():
    batch = build_batch(
        [Record(0, 1, b"a", b"1")], producer_id=9, producer_epoch=0, base_sequence=0
    )
    assert decode(batch)[0].producer_id == -1


@pytest.mark.parametrize("is_commit", [True, False])
def test_marker(is_commit):
    """Rule 111."""
    batch = control_batch(
        is_commit=is_commit, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1
    )
    assert decode(batch) == [TransactionMarker(9, is_commit)]


def test_control_batch_of_another_type_is_skipped():
    """A KRaft leader-change record, say."""
    batch = build_batch([Record(0, 1, b"\0\0\0\x02", b"\0\0\0\0\0\0")], control=True)
    assert decode(batch) == []


def test_unknown_kinds_are_skipped_and_broken_ones_reported():
    batch = build_batch(
        [Record(0, 1, b"?new", b"1"), Record(1, 1, b"!bad", b"1"), Record(2, 1, b"good", b"1")]
    )
    assert decode(batch) == [UnreadableRecord(1, "broken"), StoredRecord("good", "1", 2)]


def test_record_without_a_key_is_given_to_the_codec_as_empty():
    assert decode(build_batch([Record(0, 1, None, b"1")])) == [StoredRecord("", "1", 0)]
