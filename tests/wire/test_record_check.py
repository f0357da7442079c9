"""Records that are not what their header says, whole and in pieces."""

import random

import pytest

from kafkalite.wire import compression
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.record_check import ERRORS_MAX, STEP_RECORDS, check_records
from kafkalite.wire.records import Record, build_batch, read_batch_header
from tests.log.bad_batches import (
    CODECS,
    NOW_MS,
    bad_batches,
    batch,
    expected_answer,
    record,
    varint,
)

BATCHES = bad_batches()
BY_HEADER = ("a count", "a negative count", "a last offset")
"""Refused for their header, before records are looked at."""


def check(data, **options):
    """What was found, and in how many steps."""
    steps = check_records(data, read_batch_header(data), **options)
    count = 1
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, count
        count += 1


def code_of(data, **options):
    try:
        check(data, **options)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize("name", [name for name in BATCHES if not name.startswith(BY_HEADER)])
class TestBadBatches:
    """Rule 252."""

    def test_is_answered_as_kafka_does(self, name):
        assert code_of(BATCHES[name]) == expected_answer(name)

    def test_however_it_comes_apart(self, name, monkeypatch):
        whole = compression.iterate_decompressed

        def in_bytes(codec, data, *, max_bytes):
            for piece in whole(codec, data, max_bytes=max_bytes):
                yield from (piece[at : at + 3] for at in range(0, len(piece), 3))

        monkeypatch.setattr("kafkalite.wire.record_check.iterate_decompressed", in_bytes)
        code = code_of(BATCHES[name])
        assert (code == 0) == (expected_answer(name) == 0)
        assert code in (0, ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("codec", CODECS)
class TestFacts:
    def test_largest_timestamp_is_that_of_the_records(self, codec):
        payload = record(0, time=3) + record(1, time=900) + record(2, time=-7)
        facts, _ = check(batch(payload, codec=codec))
        assert facts.max_timestamp == NOW_MS + 900

    def test_records_without_a_key(self, codec):
        payload = record(0) + record(1, key=None) + record(2, key=b"")
        assert check(batch(payload, codec=codec))[0].without_key == []
        assert check(batch(payload, codec=codec), needs_keys=True)[0].without_key == [1]

    def test_timestamps_out_of_range(self, codec):
        payload = record(0, time=-2) + record(1) + record(2, time=300)
        facts, _ = check(batch(payload, codec=codec), earliest=NOW_MS - 1, latest=NOW_MS + 200)
        assert facts.out_of_range == [(0, NOW_MS - 2), (2, NOW_MS + 300)]
        assert facts.max_timestamp == NOW_MS + 300

    def test_no_timestamp_is_out_of_no_range(self, codec):
        payload = record(0, time=-1 - NOW_MS) * 1
        facts, _ = check(batch(payload, codec=codec, count=1), earliest=NOW_MS)
        assert facts.out_of_range == []
        assert facts.max_timestamp == -1

    def test_errors_are_bounded(self, codec):
        count = ERRORS_MAX + 5
        payload = b"".join(record(index, key=None) for index in range(count))
        data = batch(payload, codec=codec, count=count)
        facts, _ = check(data, needs_keys=True, latest=NOW_MS - 1)
        assert len(facts.without_key) == len(facts.out_of_range) == ERRORS_MAX


class TestSteps:
    """The work of a step is bounded, whatever a batch holds."""

    def test_very_many_records(self):
        records = [Record(index, NOW_MS, None, b"", []) for index in range(5 * STEP_RECORDS)]
        for codec in CODECS:
            _, count = check(build_batch(records, codec=codec))
            assert count >= 6

    @pytest.mark.parametrize("codec", CODECS[1:])
    def test_a_few_bytes_that_become_very_many(self, codec, monkeypatch):
        made = []
        whole = compression.iterate_decompressed

        def noting(codec, data, *, max_bytes):
            for piece in whole(codec, data, max_bytes=max_bytes):
                made.append(len(piece))
                yield piece

        monkeypatch.setattr("kafkalite.wire.record_check.iterate_decompressed", noting)
        size = 16 * compression.CHUNK_BYTES
        data = build_batch([Record(0, NOW_MS, b"", bytes(size), [])], codec=codec)
        assert len(data) < size / 20
        facts, count = check(data)
        assert facts.max_timestamp == NOW_MS
        assert max(made) <= compression.CHUNK_BYTES
        assert count >= sum(made) // compression.CHUNK_BYTES

    @pytest.mark.parametrize("codec", CODECS[1:])
    def test_more_than_a_batch_may_hold(self, codec, monkeypatch):
        monkeypatch.setattr("kafkalite.wire.record_check.MAX_DECOMPRESSED_BYTES", 3_000_000)
        data = build_batch([Record(0, NOW_MS, b"", bytes(4_000_000), [])], codec=codec)
        assert code_of(data) is ErrorCode.MESSAGE_TOO_LARGE

    @pytest.mark.parametrize("codec", CODECS[1:])
    def test_records_of_all_sizes_come_through_in_pieces(self, codec, monkeypatch):
        chance = random.Random(5)
        records = [
            Record(index, NOW_MS + index, bytes(chance.randrange(300)), chance.randbytes(size), [])
            for index, size in enumerate(chance.choices((0, 5, 200, 70_000, 900_000), k=40))
        ]
        facts, _ = check(build_batch(records, codec=codec))
        assert facts.max_timestamp == NOW_MS + 39


def test_what_cannot_be_decompressed_is_told_when_it_is_reached():
    data = build_batch(
        [Record(0, NOW_MS, b"", random.Random(1).randbytes(3_000_000), [])], codec=Codec.GZIP
    )
    payload = bytes(data[61:])
    torn = batch(codec=Codec.GZIP, packed=payload[: len(payload) // 2], count=1)
    assert code_of(torn) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_number_of_more_than_ten_bytes():
    payload = varint(40) + b"\0" + b"\x80" * 39
    for codec in CODECS:
        assert code_of(batch(payload, codec=codec, count=1)) is ErrorCode.INVALID_RECORD
