"""Offsets by timestamp (rules 92-94)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.wire.compression import Codec
from tests.log.log_kit import append, make_log

SMALL = {"segment_bytes": 600, "index_interval_bytes": 150, "segment_ms": 2**60}


@given(
    st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), max_size=30),
    st.integers(0, 61),
    st.integers(0, 120),
    st.integers(0, 120),
)
def test_first_record_at_or_after_a_timestamp_is_found(batches, timestamp, start, upper):
    """Rule 93: per record, not per batch; below the bound; not below the log start."""
    log = make_log(**SMALL)
    records = []
    for stamps in batches:
        first = log.log_end_offset
        append(log, *stamps, timestamps=stamps, epoch=4)
        records += [(first + index, stamp, 4) for index, stamp in enumerate(stamps)]
    log.delete_records_before(min(start, log.log_end_offset))
    wanted = next((r for r in records if r[0] >= log.log_start_offset and r[1] >= timestamp), None)
    if wanted is not None and wanted[0] >= upper:
        wanted = None
    assert log.offset_for_timestamp(timestamp, upper_offset=upper) == wanted


@given(st.lists(st.lists(st.integers(-1, 60), min_size=1, max_size=4), max_size=30))
def test_the_record_with_the_largest_timestamp_is_found(batches):
    """Rule 92: -3 asks for it."""
    log = make_log(**SMALL)
    records = []
    for stamps in batches:
        first = log.log_end_offset
        append(log, *stamps, timestamps=stamps, epoch=4)
        records += [(first + index, stamp, 4) for index, stamp in enumerate(stamps)]
    largest = max((stamp for _, stamp, _ in records), default=-1)
    wanted = next((r for r in records if r[1] == largest), None) if largest >= 0 else None
    assert log.offset_of_max_timestamp() == wanted


@pytest.mark.parametrize("codec", list(Codec))
def test_only_the_batch_found_is_opened(codec):
    log = make_log()
    for number in range(50):
        stamps = [number * 10, number * 10 + 5]
        append(log, *stamps, timestamps=stamps, codec=codec)
    assert log.offset_for_timestamp(251, upper_offset=100) == (51, 255, 0)


def test_with_append_time_all_records_of_a_batch_have_it():
    log = make_log(message_timestamp_type="LogAppendTime")
    append(log, 1, 2, 3, timestamp=5, now_ms=1000)
    append(log, 1, 2, 3, timestamp=5, now_ms=2000)
    assert log.offset_for_timestamp(1001, upper_offset=6) == (3, 2000, 0)
    assert log.offset_of_max_timestamp() == (3, 2000, 0)


def test_segments_that_are_too_old_are_not_read(monkeypatch):
    log = make_log(segment_ms=2**60, segment_bytes=500)
    for number in range(100):
        append(log, number, timestamp=number)
    from tests.log.sim_disk import SimFile

    positions = []
    real = SimFile.pread
    monkeypatch.setattr(
        SimFile, "pread", lambda self, n, at: (positions.append(self.path), real(self, n, at))[1]
    )
    assert log.offset_for_timestamp(95, upper_offset=100) == (95, 95, 0)
    assert len(set(positions)) == 1
