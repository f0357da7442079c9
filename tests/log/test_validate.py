"""What the log refuses, and that nothing else is: semantics part C."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.log.validate import (
    AppendOrigin,
    InvalidRecord,
    validate_batches,
    validate_fetched_batches,
)
from kafkalite.log_config import LogConfig
from kafkalite.types import TopicPartition
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    Record,
    assemble_batch,
    build_batch,
    control_batch,
    crc_matches,
    empty_batch,
    iterate_records,
    read_batch_header,
)

PARTITION = TopicPartition("orders", 3)
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig()
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))


def batch_of(*timestamps, key=b"k", **options):
    records = [Record(n, ts, key, b"v", []) for n, ts in enumerate(timestamps or (NOW_MS,) * 3)]
    return build_batch(records, **options)


def changed(batch, **fields):
    """The batch with other header fields and a CRC that matches."""
    header = read_batch_header(batch)
    for name, value in fields.items():
        setattr(header, name, value)
    return assemble_batch(header, batch[61:])


def validate(batch, config=CONFIG, origin=AppendOrigin.CLIENT):
    return validate_batches(
        batch, topic_partition=PARTITION, config=config, now_ms=NOW_MS, origin=origin
    )


def refusal(batch, config=CONFIG, origin=AppendOrigin.CLIENT):
    with pytest.raises(KafkaError) as caught:
        validate(batch, config, origin)
    assert "orders-3" in caught.value.message or caught.value.code is (
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )
    return caught.value


class TestAccepted:
    @given(
        codec=st.sampled_from(Codec),
        producer=st.booleans(),
        transactional=st.booleans(),
        count=st.integers(1, 50),
    )
    def test_what_clients_send_comes_back_untouched(self, codec, producer, transactional, count):
        ids = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0} if producer else {}
        batch = batch_of(*[NOW_MS] * count, codec=codec, transactional=transactional, **ids)
        given = bytes(batch)
        valid = validate(batch)
        assert valid.buffer is batch
        assert batch == given
        assert valid.batches == [(0, read_batch_header(batch))]
        assert valid.size == len(batch)

    def test_payload_is_not_opened_without_need(self):
        """A batch whose records are nonsense is stored as it came."""
        batch = batch_of(codec=Codec.ZSTD)
        nonsense = assemble_batch(read_batch_header(batch), b"nonsense")
        assert validate(nonsense).size == len(nonsense)

    def test_coordinators_write_markers_and_several_batches(self):
        marker = control_batch(
            is_commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=5
        )
        batches = marker + batch_of(key=None)
        valid = validate(batches, COMPACTED, AppendOrigin.COORDINATOR)
        assert [position for position, _ in valid.batches] == [0, len(marker)]
        assert valid.size == len(batches)


class TestRefused:
    @pytest.mark.parametrize("length", [0, 1, 16, 17, 60])
    def test_no_whole_batch(self, length):
        """Rule 38."""
        assert refusal(batch_of()[:length]).code is ErrorCode.INVALID_RECORD

    def test_old_magic(self):
        """Rules 38 and 50."""
        batch = batch_of()
        batch[16] = 1
        assert refusal(batch).code is ErrorCode.INVALID_RECORD
        assert "magic 1" in refusal(batch[:40]).message

    def test_more_than_one_batch_or_less(self):
        """Rule 38."""
        assert refusal(batch_of() + batch_of()).code is ErrorCode.INVALID_RECORD
        assert refusal(batch_of()[:-1]).code is ErrorCode.INVALID_RECORD

    def test_length_below_a_header(self):
        batch = batch_of()
        struct.pack_into(">i", batch, 8, 20)
        assert refusal(batch).code is ErrorCode.CORRUPT_MESSAGE

    @pytest.mark.parametrize(
        "fields",
        [
            {"base_offset": 1},
            {"record_count": 0},
            {"record_count": -1},
            {"record_count": 4},
            {"last_offset_delta": 1},
            {"last_offset_delta": -1, "record_count": 0},
            {"attributes": 0x20},
            {"producer_id": 1, "base_sequence": -1},
        ],
        ids=str,
    )
    def test_header_that_no_client_may_send(self, fields):
        """Rule 39."""
        assert refusal(changed(batch_of(), **fields)).code is ErrorCode.INVALID_RECORD

    @given(data=st.data())
    def test_wrong_crc(self, data):
        """Rule 40."""
        batch = batch_of()
        batch[data.draw(st.integers(17, len(batch) - 1))] ^= 0x10
        assert refusal(batch).code is ErrorCode.CORRUPT_MESSAGE
        assert refusal(batch, origin=AppendOrigin.COORDINATOR).code is ErrorCode.CORRUPT_MESSAGE

    def test_size_beyond_max_message_bytes(self):
        """Rule 41: the compressed size, header included."""
        batch = batch_of()
        validate(batch, LogConfig(max_message_bytes=len(batch)))
        error = refusal(batch, LogConfig(max_message_bytes=len(batch) - 1))
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        assert "max.message.bytes" in error.message

    def test_size_beyond_segment_bytes(self):
        """Rule 41."""
        batch = batch_of()
        error = refusal(batch, LogConfig(segment_bytes=len(batch) - 1))
        assert error.code is ErrorCode.RECORD_LIST_TOO_LARGE

    def test_unknown_codec(self):
        error = refusal(changed(batch_of(), attributes=6))
        assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class TestTimestamps:
    """Rule 45."""

    late = NOW_MS + 3_600_001

    def test_within_the_limits(self):
        validate(batch_of(0, NOW_MS, NOW_MS + 3_600_000))

    def test_records_after_the_limit_are_named(self):
        error = refusal(batch_of(NOW_MS, self.late, NOW_MS, self.late, codec=Codec.LZ4))
        assert isinstance(error, InvalidRecord)
        assert error.code is ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in error.record_errors] == [1, 3]
        assert str(self.late) in error.record_errors[0][1]
        assert "message.timestamp.after.max.ms" in error.message

    def test_records_before_the_limit_are_named(self):
        config = LogConfig(message_timestamp_before_max_ms=1000)
        validate(batch_of(NOW_MS - 1000), config)
        error = refusal(batch_of(NOW_MS, NOW_MS - 1001), config)
        assert error.code is ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in error.record_errors] == [1]

    def test_no_timestamp_is_within_any_limit(self):
        validate(batch_of(-1), LogConfig(message_timestamp_before_max_ms=1000))

    def test_overstated_largest_timestamp_is_put_right(self):
        """Rule 43."""
        batch = changed(batch_of(NOW_MS, NOW_MS - 5), max_timestamp=self.late)
        header = validate(batch).batches[0][1]
        assert header.max_timestamp == NOW_MS
        assert header == read_batch_header(batch)
        assert crc_matches(batch, 0, header)

    @pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
    def test_client_may_not_flag_log_append_time(self, timestamp_type):
        config = LogConfig(message_timestamp_type=timestamp_type)
        error = refusal(batch_of(log_append_time_ms=NOW_MS), config)
        assert error.code is ErrorCode.INVALID_TIMESTAMP
        assert error.record_errors

    def test_log_append_time_is_the_brokers(self):
        """Rule 43: late timestamps do not matter where they are not kept."""
        batch = batch_of(0, self.late)
        header = validate(batch, LogConfig(message_timestamp_type="LogAppendTime")).batches[0][1]
        assert header.is_log_append_time
        assert header.max_timestamp == NOW_MS
        assert crc_matches(batch, 0, header)
        assert {record.timestamp for record in iterate_records(batch)} == {NOW_MS}

    def test_limits_do_not_bind_coordinators(self):
        validate(batch_of(self.late), CONFIG, AppendOrigin.COORDINATOR)

    def test_number_of_errors_told_is_bounded(self):
        error = refusal(batch_of(*[self.late] * 2000))
        assert len(error.record_errors) == 1000
        assert "1000 records" in error.message


class TestKeys:
    """Rule 46."""

    @pytest.mark.parametrize("codec", Codec)
    def test_compacted_topic_needs_keys(self, codec):
        records = [Record(n, NOW_MS, None if n in (2, 4) else b"", b"", []) for n in range(6)]
        batch = build_batch(records, codec=codec)
        validate(batch)
        error = refusal(batch, replace(COMPACTED, cleanup_policy=frozenset({"compact", "delete"})))
        assert error.code is ErrorCode.INVALID_RECORD
        assert [index for index, _ in error.record_errors] == [2, 4]
        assert "cleanup.policy" in error.message

    def test_keys_are_enough(self):
        validate(batch_of(), COMPACTED)

    def test_records_that_contradict_their_count_are_found_where_they_are_read(self):
        """Rule 49, in part."""
        with pytest.raises(KafkaError) as caught:
            validate(changed(batch_of(), record_count=4, last_offset_delta=3), COMPACTED)
        assert caught.value.code is ErrorCode.INVALID_RECORD

    def test_payload_of_another_codec_is_refused_as_by_kafka(self):
        with pytest.raises(KafkaError) as caught:
            validate(changed(batch_of(), attributes=Codec.GZIP), COMPACTED)
        assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


class TestRecompression:
    """Rule 48."""

    @pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
    @pytest.mark.parametrize("codec", Codec)
    def test_topic_decides_the_codec(self, codec, wanted):
        ids = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 9}
        batch = batch_of(*[NOW_MS] * 100, codec=codec, **ids)
        valid = validate(batch, LogConfig(compression_type=wanted))
        target = Codec.NONE if wanted == "uncompressed" else Codec[wanted.upper()]
        ((position, header),) = valid.batches
        assert position == 0
        assert header.codec is target
        assert header == read_batch_header(valid.buffer)
        assert crc_matches(valid.buffer, 0, header)
        assert (header.producer_id, header.base_sequence) == (5, 9)
        assert valid.size == len(valid.buffer)
        assert list(iterate_records(valid.buffer)) == list(iterate_records(batch))
        assert (valid.buffer is batch) == (codec is target)

    def test_size_is_checked_again(self):
        """Rule 41."""
        batch = batch_of(*[NOW_MS] * 100, codec=Codec.ZSTD)
        config = LogConfig(compression_type="uncompressed", max_message_bytes=len(batch))
        assert refusal(batch, config).code is ErrorCode.MESSAGE_TOO_LARGE

    def test_with_log_append_time(self):
        config = LogConfig(compression_type="zstd", message_timestamp_type="LogAppendTime")
        valid = validate(batch_of(), config)
        header = read_batch_header(valid.buffer)
        assert header.is_log_append_time
        assert crc_matches(valid.buffer, 0, header)

    def test_several_batches_stay_in_place_and_markers_stay_plain(self):
        marker = control_batch(
            is_commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=5
        )
        parts = [batch_of(*[NOW_MS] * 100), marker, batch_of(1, 2)]
        valid = validate(
            bytearray().join(parts), LogConfig(compression_type="gzip"), AppendOrigin.COORDINATOR
        )
        view = memoryview(valid.buffer)
        assert [header.codec for _, header in valid.batches] == [1, 0, 1]
        for (position, header), part in zip(valid.batches, parts, strict=True):
            assert header == read_batch_header(view, position)
            assert crc_matches(view, position, header)
            assert list(iterate_records(view[position:])) == list(iterate_records(part))
        last_position, last_header = valid.batches[-1]
        assert valid.size == len(view) == last_position + last_header.size


class TestFetched:
    def fetched(self, buffer, next_offset):
        return validate_fetched_batches(buffer, topic_partition=PARTITION, next_offset=next_offset)

    def batches(self):
        return [
            build_batch([Record(o, 1, None, b"")], base_offset=o, leader_epoch=2)
            for o in (10, 11, 20)
        ]

    def test_incomplete_tail_is_left_out(self):
        parts = self.batches()
        buffer = bytearray().join(parts)[:-1]
        valid = self.fetched(buffer, 10)
        assert [header.base_offset for _, header in valid.batches] == [10, 11]
        assert valid.size == len(parts[0]) + len(parts[1])
        assert self.fetched(bytearray(), 10).size == 0

    def test_what_the_leader_has_is_taken_as_it_is(self):
        """Rule 66: emptied batches, markers, gaps and any size."""
        empty = empty_batch(read_batch_header(self.batches()[2]))
        marker = control_batch(
            is_commit=True,
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=5,
            base_offset=30,
        )
        valid = self.fetched(empty + marker, 15)
        assert len(valid.batches) == 2

    @pytest.mark.parametrize(("order", "next_offset"), [((0, 1), 11), ((1, 0), 10), ((0, 0), 10)])
    def test_offsets_must_ascend_from_the_log_end(self, order, next_offset):
        parts = self.batches()
        with pytest.raises(KafkaError) as caught:
            self.fetched(bytearray().join(parts[at] for at in order), next_offset)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    def test_wrong_crc_is_corrupt(self):
        buffer = self.batches()[0]
        buffer[-1] ^= 1
        with pytest.raises(KafkaError) as caught:
            self.fetched(buffer, 0)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
