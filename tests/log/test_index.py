"""Sparse indexes: Kafka's bytes, largest entry at most a key, files as long as their entries."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.log.disk import OsDisk
from kafkalite.log.index import WRITE_BYTES, OffsetEntry, OffsetIndex, TimeEntry, TimeIndex
from tests.log.sim_disk import SimDisk


def sim():
    disk = SimDisk()
    disk.make_directory("/d")
    return disk


def offset_index(disk=None, size=0, base_offset=100):
    return OffsetIndex(disk or sim(), "/d/i", base_offset, size=size)


def time_index(disk=None, size=0, base_offset=100):
    return TimeIndex(disk or sim(), "/d/i", base_offset, size=size)


def test_offset_entries_are_relative_offset_and_position():
    """Rule 199: int32 relative offset, int32 position."""
    disk = sim()
    index = offset_index(disk)
    index.append(105, 4200)
    index.append(300, 9000)
    index.write_pending()
    assert disk.read("/d/i") == struct.pack(">iiii", 5, 4200, 200, 9000)


def test_time_entries_are_timestamp_and_relative_offset():
    """Rule 199: int64 timestamp, int32 relative offset."""
    disk = sim()
    index = time_index(disk)
    index.append(1_700_000_000_000, 105)
    index.append(1_700_000_000_001, 300)
    index.write_pending()
    assert disk.read("/d/i") == struct.pack(">qiqi", 1_700_000_000_000, 5, 1_700_000_000_001, 200)


def test_time_index_only_gets_larger_timestamps():
    index = time_index()
    index.append(50, 101)
    index.append(50, 102)
    index.append(49, 103)
    index.append(51, 104)
    assert [index.entry_at(slot) for slot in range(len(index))] == [(50, 101), (51, 104)]


def test_an_empty_index_answers_the_segment_start():
    assert offset_index().lookup(7000) == OffsetEntry(100, 0)
    assert offset_index().lookup_position(7000) == OffsetEntry(100, 0)
    assert offset_index().last_entry() == OffsetEntry(100, 0)
    assert time_index().lookup(5) == TimeEntry(-1, 100)
    assert time_index().last_entry() == TimeEntry(-1, 100)


@given(st.sets(st.integers(1, 500), max_size=40), st.integers(0, 600), st.booleans())
def test_lookups_find_the_largest_entry_at_most_the_key(keys, key, closed):
    """Against a linear search, on a buffer being written and on a mapped file."""
    disk = sim()
    offsets, times = offset_index(disk), TimeIndex(disk, "/d/t", 100, size=0)
    entries = [(100 + offset, offset * 10) for offset in sorted(keys)]
    for offset, position in entries:
        offsets.append(offset, position)
        times.append(position, offset)
    if closed:
        offsets.write_pending()
        times.write_pending()
        offsets = offset_index(disk, size=8 * len(keys))
        times = TimeIndex(disk, "/d/t", 100, size=12 * len(keys))
    below = [e for e in entries if e[0] <= 100 + key]
    assert offsets.lookup(100 + key) == (below[-1] if below else (100, 0))
    below = [e for e in entries if e[1] <= key * 10 + 5]
    assert offsets.lookup_position(key * 10 + 5) == (below[-1] if below else (100, 0))
    assert times.lookup(key * 10 + 5) == (below[-1][::-1] if below else (-1, 100))
    assert len(offsets) == len(entries)


@given(st.sets(st.integers(1, 50), max_size=20), st.integers(0, 60), st.integers(0, 3))
def test_truncation_removes_entries_from_an_offset_on(keys, offset, how):
    """In memory, partly written, wholly written, and after a fresh start."""
    disk = sim()
    offsets, times = offset_index(disk), TimeIndex(disk, "/d/t", 100, size=0)
    for number, key in enumerate(sorted(keys)):
        if how == 1 and number == len(keys) // 2:
            offsets.write_pending()
            times.write_pending()
        offsets.append(100 + key, key)
        times.append(key, 100 + key)
    if how >= 2:
        offsets.write_pending()
        times.write_pending()
    if how == 3:
        offsets = offset_index(disk, size=8 * len(keys))
        times = TimeIndex(disk, "/d/t", 100, size=12 * len(keys))
    offsets.truncate_to(100 + offset)
    times.truncate_to(100 + offset)
    left = [key for key in sorted(keys) if key < offset]
    assert [offsets.entry_at(slot).position for slot in range(len(offsets))] == left
    assert [times.entry_at(slot).timestamp for slot in range(len(times))] == left
    offsets.append(900, 900)
    times.append(900, 900)
    offsets.write_pending()
    times.write_pending()
    again = offset_index(disk, size=8 * len(left) + 8)
    assert [again.entry_at(slot).position for slot in range(len(again))] == [*left, 900]
    assert len(disk.read("/d/i")) == 8 * len(left) + 8
    assert len(disk.read("/d/t")) == 12 * len(left) + 12


def test_entries_are_written_by_the_dozen():
    disk = sim()
    index = offset_index(disk)
    for number in range(WRITE_BYTES // 8):
        assert not index.has_enough_to_write
        index.append(101 + number, number)
    assert index.has_enough_to_write
    index.write_pending()
    assert not index.has_enough_to_write
    changes = len(disk.trace)
    index.write_pending()
    assert len(disk.trace) == changes
    assert len(disk.read("/d/i")) == WRITE_BYTES


def test_a_failed_write_is_made_good_by_the_next():
    disk = sim()
    index = offset_index(disk)
    index.append(101, 5)
    heal = disk.fail("append", error=errno.ENOSPC)
    with pytest.raises(OSError) as refused:
        index.write_pending()
    assert refused.value.errno == errno.ENOSPC
    heal()
    index.append(102, 6)
    index.write_pending()
    assert disk.read("/d/i") == struct.pack(">iiii", 1, 5, 2, 6)


def test_a_torn_tail_is_overwritten():
    disk = sim()
    disk.replace("/d/i", struct.pack(">ii", 1, 5) + b"\0\0\0")
    index = offset_index(disk, size=11)
    index.append(102, 6)
    index.write_pending()
    assert disk.read("/d/i") == struct.pack(">iiii", 1, 5, 2, 6)


def test_zeros_that_kafka_preallocated_are_no_entries():
    """A Kafka broker that crashed leaves `segment.index.bytes` of them."""
    disk = sim()
    disk.replace("/d/i", struct.pack(">iiii", 1, 5, 2, 6) + bytes(80))
    index = offset_index(disk, size=96)
    assert index.last_entry() == (102, 6)
    index.append(103, 7)
    index.write_pending()
    assert disk.read("/d/i") == struct.pack(">iiiiii", 1, 5, 2, 6, 3, 7)


def test_clear_empties_the_file():
    disk = sim()
    disk.replace("/d/i", struct.pack(">ii", 1, 5))
    index = offset_index(disk, size=8)
    index.clear()
    assert len(index) == 0
    assert disk.read("/d/i") == b""


def test_release_gives_up_memory_but_no_entry():
    disk = sim()
    index = offset_index(disk)
    index.append(101, 5)
    index.release()
    assert index.last_entry() == (101, 5)
    index.write_pending()
    index.release()
    reads = disk.reads
    assert index.last_entry() == (101, 5)
    assert disk.reads == reads + 1


def test_a_renamed_file_is_followed():
    disk = sim()
    index = offset_index(disk)
    index.append(101, 5)
    index.write_pending()
    disk.rename("/d/i", "/d/j")
    index.path = "/d/j"
    assert index.path == "/d/j"
    index.append(102, 6)
    index.write_pending()
    assert len(disk.read("/d/j")) == 16


def test_full_means_no_room_in_segment_index_bytes():
    """Rule 200. The time index keeps a slot for the entry at the segment's close."""
    offsets, times = offset_index(), time_index()
    for number in range(1, 4):
        offsets.append(100 + number, number)
        times.append(number, 100 + number)
    assert offsets.is_full(24)
    assert offsets.is_full(31)
    assert not offsets.is_full(32)
    assert times.is_full(48)
    assert not times.is_full(60)


def test_entries_come_from_a_real_mapped_file_too(tmp_path):
    disk = OsDisk()
    index = OffsetIndex(disk, f"{tmp_path}/i", 0, size=0)
    for number in range(1, 100):
        index.append(number, number * 100)
    index.write_pending()
    index.release()
    assert index.lookup(50) == (50, 5000)
    index.append(100, 10_000)
    index.write_pending()
    assert index.last_entry() == (100, 10_000)
    assert (tmp_path / "i").stat().st_size == 800
