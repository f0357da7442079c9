"""Batches byte for byte as the clients build and read them, and every way of being malformed."""

import contextlib
import struct
import warnings
from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    EndMarker,
    Record,
    build_batch,
    control_batch,
    crc_matches,
    empty_batch,
    iterate_batches,
    iterate_records,
    read_batch_header,
    read_end_marker,
    read_whole_header,
    recompress,
    set_max_timestamp,
    set_offset_and_epoch,
)
from tests.wire.capture_batches import TIMESTAMP_MS, key, value

with warnings.catch_warnings():  # kafka-python reads its schemas by a deprecated call
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

optional_bytes = st.none() | st.binary(max_size=200)
header_lists = st.lists(st.tuples(st.text(max_size=10), optional_bytes), max_size=3)
timestamps = st.integers(0, 2**41)
record_lists = st.lists(
    st.tuples(timestamps, optional_bytes, optional_bytes, header_lists), min_size=1, max_size=20
).map(
    lambda fields: [
        Record(offset, timestamp, key, value, headers)
        for offset, (timestamp, key, value, headers) in enumerate(fields)
    ]
)
codecs = st.sampled_from(Codec)


def some_records(count=3):
    return [Record(n, 1000 + n, b"key%d" % n, b"value%d" % n, []) for n in range(count)]


def code_of(batch):
    with pytest.raises(KafkaError) as caught:
        list(iterate_records(batch))
    return caught.value.code


class TestHeader:
    def test_fields_and_what_follows_from_them(self):
        batch = build_batch(
            [Record(offset, 5, b"k", b"v") for offset in (100, 101, 104)],
            base_offset=100,
            leader_epoch=7,
            producer_id=9,
            producer_epoch=2,
            base_sequence=30,
            codec=Codec.GZIP,
            transactional=True,
        )
        header = read_batch_header(b"junk" + batch, 4)
        assert (header.base_offset, header.last_offset, header.next_offset) == (100, 104, 105)
        assert header.size == len(batch)
        assert (header.partition_leader_epoch, header.magic) == (7, 2)
        assert (header.producer_id, header.producer_epoch) == (9, 2)
        assert (header.base_sequence, header.last_sequence) == (30, 34)
        assert (header.record_count, header.codec) == (3, Codec.GZIP)
        assert header.is_transactional
        assert not header.is_control
        assert not header.is_log_append_time
        assert not header.has_delete_horizon

    def test_sequences_wrap_from_the_largest_int32_to_zero(self):
        """Rule 57."""
        batch = build_batch(some_records(3), producer_id=1, base_sequence=2**31 - 2)
        assert read_batch_header(batch).last_sequence == 0

    def test_no_sequence_without_a_base_sequence(self):
        assert read_batch_header(build_batch(some_records())).last_sequence == -1

    def test_unknown_codec_is_refused(self):
        header = read_batch_header(build_batch(some_records()))
        header.attributes = 5
        with pytest.raises(KafkaError) as caught:
            _ = header.codec
        assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

    def test_header_needs_all_its_bytes(self):
        with pytest.raises(struct.error):
            read_batch_header(bytes(BATCH_OVERHEAD - 1))


class TestIterateBatches:
    def test_batches_one_after_another(self):
        first, second = build_batch(some_records(1)), build_batch(some_records(5))
        found = list(iterate_batches(first + second))
        assert [position for position, _ in found] == [0, len(first)]
        assert [header.record_count for _, header in found] == [1, 5]

    @given(cut=st.integers(0, 200))
    def test_incomplete_tail_ends_the_iteration(self, cut):
        first, second = build_batch(some_records(1)), build_batch(some_records(5))
        whole = first + second
        found = list(iterate_batches(memoryview(whole)[: len(whole) - cut]))
        left = len(whole) - cut
        assert len(found) == (left >= len(first)) + (left >= len(whole))

    def test_length_below_a_header_is_corrupt(self):
        """Such a length would make the walk stand still, or go back."""
        batch = build_batch(some_records())
        struct.pack_into(">i", batch, 8, -12)
        with pytest.raises(KafkaError) as caught:
            list(iterate_batches(batch))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE

    def test_old_magic_is_corrupt(self):
        batch = build_batch(some_records())
        batch[16] = 1
        with pytest.raises(KafkaError, match="magic 1"):
            list(iterate_batches(batch))


class TestInPlace:
    def test_offset_and_epoch_lie_before_the_crc(self):
        """Rule 42."""
        batch = bytearray(b"junk") + build_batch(some_records())
        set_offset_and_epoch(batch, 4, base_offset=2**40, leader_epoch=3)
        header = read_batch_header(batch, 4)
        assert (header.base_offset, header.partition_leader_epoch) == (2**40, 3)
        assert crc_matches(batch, 4, header)
        assert [record.offset for record in iterate_records(memoryview(batch)[4:])] == [
            2**40,
            2**40 + 1,
            2**40 + 2,
        ]

    def test_log_append_time_renews_the_crc_and_speaks_for_all_records(self):
        """Rule 43."""
        batch = bytearray(b"junk") + build_batch(some_records())
        header = read_batch_header(batch, 4)
        set_max_timestamp(memoryview(batch), 4, header, log_append_time=True, max_timestamp=77)
        assert header == read_batch_header(batch, 4)
        assert header.is_log_append_time
        assert header.base_timestamp == 1000
        assert crc_matches(batch, 4, header)
        assert {record.timestamp for record in iterate_records(memoryview(batch)[4:])} == {77}

    def test_nothing_is_written_when_all_is_as_wanted(self):
        batch = bytes(build_batch(some_records()))
        header = read_batch_header(batch)
        set_max_timestamp(  # a write into bytes would raise
            batch, 0, header, log_append_time=False, max_timestamp=header.max_timestamp
        )

    def test_wrong_largest_timestamp_is_put_right(self):
        batch = build_batch(some_records(), log_append_time_ms=5)
        header = read_batch_header(batch)
        set_max_timestamp(batch, 0, header, log_append_time=False, max_timestamp=1002)
        assert batch == build_batch(some_records())

    @given(data=st.data())
    def test_any_changed_byte_under_the_crc_is_noticed(self, data):
        """Rule 40."""
        batch = build_batch(some_records())
        position = data.draw(st.integers(17, len(batch) - 1))
        batch[position] ^= data.draw(st.integers(1, 255))
        assert not crc_matches(batch, 0, read_batch_header(batch))


class TestRoundTrip:
    @given(records=record_lists, codec=codecs, base_offset=st.integers(0, 2**50))
    def test_records_come_back(self, records, codec, base_offset):
        for record in records:
            record.offset += base_offset
        batch = build_batch(records, base_offset=base_offset, codec=codec)
        header = read_whole_header(batch)
        assert crc_matches(batch, 0, header)
        assert header.max_timestamp == max(record.timestamp for record in records)
        assert list(iterate_records(memoryview(batch))) == records

    def test_varints_of_every_length(self):
        records = [
            Record(0, 0, None, None),
            Record(63, -(2**62), b"", b""),
            Record(64, 2**62, b"k" * 63, b"v" * 64),
            Record(8191, 1, b"k" * 8191, b"v" * 8192),
            Record(2**31 - 1, -1, b"k", b"v" * 1_100_000),
        ]
        assert list(iterate_records(build_batch(records))) == records

    def test_many_headers_and_header_keys_that_are_not_utf8(self):
        name = b"\xff\xfe".decode("utf-8", "surrogateescape")
        records = [Record(0, 0, None, None, [(name, b"x"), ("n", None)] * 100)]
        assert list(iterate_records(build_batch(records))) == records

    def test_log_append_time(self):
        batch = build_batch(some_records(), log_append_time_ms=50)
        assert read_batch_header(batch).is_log_append_time
        assert [record.timestamp for record in iterate_records(batch)] == [50] * 3

    def test_delete_horizon_is_the_base_timestamp(self):
        """Rule 206 (KIP-534): records keep their timestamps all the same."""
        batch = build_batch(some_records(), delete_horizon_ms=123_456, last_offset_delta=9)
        header = read_batch_header(batch)
        assert header.has_delete_horizon
        assert (header.base_timestamp, header.max_timestamp) == (123_456, 1002)
        assert header.last_offset == 9
        assert list(iterate_records(batch)) == some_records()

    def test_batch_of_nothing_cannot_be_built_by_mistake(self):
        with pytest.raises(ValueError, match="empty_batch"):
            build_batch([])

    def test_recompressing_changes_nothing_else(self):
        """Rule 48."""
        options = {"producer_id": 4, "producer_epoch": 1, "base_sequence": 8, "leader_epoch": 2}
        batch = build_batch(some_records(50), codec=Codec.ZSTD, **options)
        header = read_batch_header(batch)
        again = recompress(batch, header, codec=Codec.LZ4)
        assert header == read_batch_header(again)
        assert header.codec is Codec.LZ4
        assert crc_matches(again, 0, header)
        assert recompress(again, header, codec=Codec.ZSTD) == batch
        assert recompress(batch, read_batch_header(batch), codec=Codec.NONE) == build_batch(
            some_records(50), **options
        )

    def test_empty_batch_keeps_offsets_and_producer(self):
        """Rule 207."""
        batch = build_batch(
            some_records(),
            base_offset=0,
            leader_epoch=6,
            producer_id=4,
            producer_epoch=1,
            base_sequence=8,
            codec=Codec.GZIP,
            transactional=True,
            delete_horizon_ms=5,
        )
        empty = empty_batch(read_batch_header(batch))
        header = read_whole_header(empty)
        assert crc_matches(empty, 0, header)
        assert len(empty) == BATCH_OVERHEAD
        assert (header.record_count, header.last_offset, header.last_sequence) == (0, 2, 10)
        assert (header.producer_id, header.producer_epoch) == (4, 1)
        assert header.is_transactional
        assert (header.codec, header.has_delete_horizon) == (Codec.NONE, False)
        assert (header.partition_leader_epoch, header.max_timestamp) == (6, 1002)
        assert list(iterate_records(empty)) == []


class TestMarkers:
    @pytest.mark.parametrize("is_commit", [True, False])
    def test_marker_round_trip(self, is_commit):
        """Rule 111."""
        batch = control_batch(
            is_commit=is_commit,
            producer_id=5,
            producer_epoch=1,
            coordinator_epoch=3,
            timestamp_ms=99,
            base_offset=40,
            leader_epoch=2,
        )
        header = read_whole_header(batch)
        assert header.is_control
        assert header.is_transactional
        assert (header.record_count, header.base_sequence, header.next_offset) == (1, -1, 41)
        assert read_end_marker(batch) == EndMarker(is_commit=is_commit, coordinator_epoch=3)
        (record,) = iterate_records(batch)
        assert record.key == struct.pack(">hh", 0, is_commit)
        assert record.value == struct.pack(">hi", 0, 3)

    def test_marker_as_kafka_python_reads_it(self):
        batch = control_batch(
            is_commit=False, producer_id=5, producer_epoch=1, coordinator_epoch=3, timestamp_ms=99
        )
        (record,) = KafkaPythonBatch(bytes(batch))
        assert record.abort
        assert not record.commit

    def test_emptied_marker_and_unknown_control_type_say_nothing(self):
        marker = control_batch(
            is_commit=True, producer_id=5, producer_epoch=1, coordinator_epoch=3, timestamp_ms=99
        )
        assert read_end_marker(empty_batch(read_batch_header(marker))) is None
        snapshot = Record(0, 0, struct.pack(">hh", 0, 3), b"")
        assert read_end_marker(build_batch([snapshot], control=True)) is None

    @pytest.mark.parametrize(
        ("key", "value"), [(None, None), (b"\0\0\0", None), (b"\0\0\0\1", b"\0\0\0\0\0")]
    )
    def test_short_marker_is_invalid(self, key, value):
        with pytest.raises(KafkaError) as caught:
            read_end_marker(build_batch([Record(0, 0, key, value)], control=True))
        assert caught.value.code is ErrorCode.INVALID_RECORD


class TestMalformed:
    @pytest.mark.parametrize("count", [-1, 0, 2, 2**31 - 1])
    def test_count_must_be_that_of_the_records(self, count):
        batch = build_batch(some_records(1))
        struct.pack_into(">i", batch, 57, count)
        if count == 0:  # an emptied batch: what follows its header is of no interest
            assert list(iterate_records(batch)) == []
        else:
            assert code_of(batch) is ErrorCode.INVALID_RECORD

    def test_batch_cut_short_is_corrupt(self):
        batch = build_batch(some_records())
        assert code_of(batch[:-1]) is ErrorCode.CORRUPT_MESSAGE
        assert code_of(batch[:20]) is ErrorCode.CORRUPT_MESSAGE

    def test_payload_of_another_codec_is_corrupt(self):
        batch = build_batch(some_records())
        batch[22] = Codec.ZSTD
        assert code_of(batch) is ErrorCode.CORRUPT_MESSAGE

    def test_decompressed_size_is_bounded(self):
        batch = build_batch([Record(0, 0, None, bytes(1 << 20))], codec=Codec.ZSTD)
        with pytest.raises(KafkaError) as caught:
            list(iterate_records(batch, max_bytes=1 << 19))
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE

    @pytest.mark.slow
    @settings(max_examples=300)
    @given(data=st.data(), records=record_lists, codec=codecs)
    def test_mutated_batches_give_records_or_a_kafka_error(self, data, records, codec):
        batch = build_batch(records, codec=codec)
        for _ in range(data.draw(st.integers(1, 4))):
            batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
        with contextlib.suppress(KafkaError):
            for record in iterate_records(memoryview(batch), max_bytes=1 << 20):
                assert record.key is None or isinstance(record.key, bytes)


class TestAgainstClients:
    """Byte for byte: the same records give the same batch in kafka-python and aiokafka."""

    @given(records=record_lists, transactional=st.booleans())
    def test_kafka_python_builds_the_same_bytes(self, records, transactional):
        builder = KafkaPythonBuilder(
            2,
            0,
            is_transactional=transactional,
            producer_id=77,
            producer_epoch=3,
            base_sequence=12,
            batch_size=1 << 30,
        )
        for record in records:
            builder.append(
                record.offset, record.timestamp, record.key, record.value, record.headers
            )
        built = build_batch(
            records,
            leader_epoch=0,
            producer_id=77,
            producer_epoch=3,
            base_sequence=12,
            transactional=transactional,
        )
        theirs = bytearray(builder.build())
        theirs[12:16] = bytes(4)  # the leader epoch is the broker's to set
        assert theirs == built

    @given(records=record_lists)
    def test_aiokafka_builds_the_same_bytes(self, records):
        builder = AiokafkaBuilder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 30,
        )
        for record in records:
            builder.append(
                record.offset, record.timestamp, record.key, record.value, record.headers
            )
        theirs = bytearray(builder.build())
        theirs[12:16] = b"\xff" * 4
        assert theirs == build_batch(records)

    @given(records=record_lists, codec=st.sampled_from([Codec.NONE, Codec.GZIP]))
    def test_kafka_python_reads_our_batches(self, records, codec):
        batch = KafkaPythonBatch(bytes(build_batch(records, codec=codec)))
        assert batch.validate_crc()
        assert [
            Record(read.offset, read.timestamp, read.key, read.value, read.headers)
            for read in batch
        ] == records

    @pytest.mark.parametrize("codec", Codec)
    def test_aiokafka_both_ways_with_every_codec(self, codec):
        records = [Record(n, 10 + n, b"k%d" % n, b"v" * 1000, []) for n in range(200)]
        batch = AiokafkaBatch(bytes(build_batch(records, codec=codec)))
        assert batch.validate_crc()
        assert [(read.offset, read.key, read.value) for read in batch] == [
            (record.offset, record.key, record.value) for record in records
        ]
        builder = AiokafkaBuilder(
            magic=2,
            compression_type=int(codec),
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 30,
        )
        for record in records:
            builder.append(record.offset, record.timestamp, record.key, record.value, [])
        assert list(iterate_records(memoryview(builder.build()))) == records


CAPTURED = sorted((Path(__file__).parent / "testdata" / "batches").glob("*.batch"))


@pytest.mark.parametrize("path", CAPTURED, ids=lambda path: path.stem)
def test_batches_that_clients_sent_are_read(path):
    """Each client's own framing of each codec; see capture_batches.py."""
    batch = path.read_bytes()
    header = read_whole_header(batch)
    assert header.size == len(batch)
    assert crc_matches(batch, 0, header)
    assert header.codec is Codec[path.stem.rpartition("-")[2].upper()]
    assert header.record_count == header.last_offset_delta + 1 > 20
    found = list(iterate_records(batch))
    first = int(found[0].key.removeprefix(b"key-"))
    assert [record.key for record in found] == [key(first + n) for n in range(len(found))]
    assert [record.value for record in found] == [value(first + n) for n in range(len(found))]
    assert [record.timestamp for record in found] == [
        TIMESTAMP_MS + first + n for n in range(len(found))
    ]
    assert {tuple(record.headers) for record in found} == {(("h", b"x"),)}
    assert max(record.timestamp for record in found) == header.max_timestamp


def test_captured_batches_are_there():
    assert len(CAPTURED) == 28


def test_crc_is_castagnoli():
    """Rule 40: the check value of CRC-32C."""
    assert crc32c(b"123456789") == 0xE3069283
