"""Readers of a log, and listeners."""

import pytest

from kafkalite.log.local_log import HINTS_MAX, OPEN_SEGMENTS_MAX
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import iterate_batches, read_batch_header
from tests.log.log_kit import (
    NOW_MS,
    NotingListener,
    append,
    contents,
    make_log,
)
from tests.log.log_reading_kit import read
from tests.log.sim_disk import SimDisk


def offsets_in(data):
    """Return (base offset, last offset) of each batch, having checked that all are whole."""
    spans = [(header.base_offset, header.last_offset) for _, header in iterate_batches(data)]
    assert sum(header.size for _, header in iterate_batches(data)) == len(data)
    return spans


def test_reading_outside_the_log_is_refused():
    """Rule 73."""
    log = make_log()
    append(log, "a", "b", "c")
    log.delete_records_before(1)
    for offset in (0, 4):
        with pytest.raises(KafkaError) as error:
            read(log, offset)
        assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(log, 3) == b""


def test_a_read_starts_with_the_batch_that_holds_the_offset():
    """Rule 67."""
    log = make_log()
    append(log, "a", "b", "c")
    append(log, "d")
    assert offsets_in(read(log, 1)) == [(0, 2), (3, 3)]


def test_one_batch_may_exceed_the_limit_only_if_asked_for():
    """Rule 68."""
    log = make_log()
    append(log, "a" * 1000)
    append(log, "b")
    assert offsets_in(read(log, 0, max_bytes=10)) == [(0, 0)]
    assert read(log, 0, max_bytes=10, min_one_batch=False) == b""


def test_where_nothing_fits_nothing_is_looked_for():
    """Most partitions of a fetch whose limit the first ones have reached."""
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    append(log, "b")
    disk.reads = 0
    region = log.read(0, max_bytes=0, upper=log.log_end_position, min_one_batch=False)
    assert disk.reads == 0
    assert len(region) == 0
    assert region.next_offset == 0  # there is more


def test_sequential_readers_need_neither_index_nor_scan():
    disk = SimDisk()
    log = make_log(disk, index_interval_bytes=200)
    for number in range(100):
        append(log, number)
    end = log.log_end_position
    offset = 0
    while offset < 100:
        data = log.read(offset, max_bytes=700, upper=end, min_one_batch=True).read()
        offset = offsets_in(data)[-1][1] + 1
    disk.reads = 0
    append(log, "new")
    log.read(100, max_bytes=700, upper=log.log_end_position, min_one_batch=True)
    assert disk.reads == 0


def test_a_reader_goes_on_in_the_next_segment():
    log = make_log(segment_bytes=300)
    for number in range(10):
        append(log, number)
    offset = 0
    while offset < 10:
        data = read(log, offset)
        assert data
        offset = offsets_in(data)[-1][1] + 1
    hints = len(log.local_log._hints)
    assert hints <= HINTS_MAX
    log.roll()
    append(log, "more")
    assert offsets_in(read(log, 10)) == [(10, 10)]


def test_few_closed_segments_are_kept_open():
    disk = SimDisk()
    log = make_log(disk, segment_bytes=100)
    for number in range(50):
        append(log, number)
    for offset in range(50):
        read(log, offset)
    assert len(log.segments) == 50
    assert disk.open_count <= OPEN_SEGMENTS_MAX + 2


def test_regions_outlive_rolls_deletions_and_the_log():
    disk = SimDisk()
    log = make_log(disk, segment_bytes=100, retention_bytes=0)
    append(log, "a")
    region = log.read(0, max_bytes=1000, upper=log.log_end_position, min_one_batch=True)
    append(log, "b")
    log.apply_retention(NOW_MS)
    assert log.log_start_offset == 2
    log.close()
    assert offsets_in(region.read()) == [(0, 0)]
    del region
    assert disk.open_count == 0


def test_positions_of_bounds():
    log = make_log(segment_bytes=200)
    append(log, "a", "b")
    append(log, "c", "d")
    append(log, "e")
    size = log.segments.first.size
    assert log.position_of(0) == (0, 0, 0)
    assert log.position_of(3) == (3, 0, size // 2)
    assert log.position_of(4) == (4, 4, 0)
    assert log.position_of(5) == log.log_end_position == (5, 4, log.segments.active.size)
    with pytest.raises(KafkaError) as error:
        log.position_of(6)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_bound_taken_before_a_roll_still_holds():
    log = make_log()
    append(log, "a")
    bound = log.log_end_position
    log.roll()
    append(log, "b")
    assert offsets_in(read(log, 0, upper=bound)) == [(0, 0)]
    assert read(log, 1, upper=bound) == b""


def test_replay_survives_a_log_that_grows_and_rolls():
    log = make_log(segment_bytes=300)
    for number in range(10):
        append(log, number)
    seen = []
    for data in log.read_batches(0):
        header = read_batch_header(data)
        seen.append(header.base_offset)
        if header.base_offset < 5:
            append(log, "more")
    assert seen == list(range(15))
    assert contents(log, 3, 5) == [(3, "3"), (4, "4")]


def test_replay_tells_when_retention_was_faster():
    log = make_log(segment_bytes=100)
    for number in range(5):
        append(log, number)
    batches = log.read_batches(0)
    next(batches)
    log.delete_records_before(3)
    log.apply_retention(NOW_MS)
    with pytest.raises(KafkaError) as error:
        list(batches)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_listener_hears_of_a_roll_and_of_too_many_unflushed_records():
    listener = NotingListener()
    log = make_log(listener=listener, flush_messages=3)
    append(log, "a", "b")
    assert listener.notes == []
    append(log, "c")
    assert listener.notes == ["flush"]
    assert log.local_log.flush_due_ms == 0
    log.flush_now()
    assert log.local_log.flush_due_ms is None
    log.roll()
    assert listener.notes == ["flush", "flush"]
    assert log.local_log.flush_due_ms == 0


def test_the_listener_hears_when_flush_ms_begins_to_count():
    listener = NotingListener()
    log = make_log(listener=listener, flush_ms=500)
    append(log, "a", now_ms=NOW_MS + 1)
    append(log, "b", now_ms=NOW_MS + 2)
    assert listener.notes == ["flush"]
    assert log.local_log.flush_due_ms == NOW_MS + 501
    log.flush_now()
    append(log, "c", now_ms=NOW_MS + 900)
    assert log.local_log.flush_due_ms == NOW_MS + 1400
