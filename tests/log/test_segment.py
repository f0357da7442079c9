"""One segment: batches in a file, found by offset, position and time."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.log.segment import BatchSpan, Segment, file_name
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import iterate_batches, read_batch_header, set_offset_and_epoch
from tests.log.log_kit import NOW_MS, batch
from tests.log.sim_disk import SimDisk

SIZES = {".log": 1, ".index": 0, ".timeindex": 0}


def new_segment(disk=None, base_offset=100, **options):
    disk = disk or SimDisk()
    disk.make_directory("/d")
    segment = Segment(disk, "/d", base_offset, now_ms=NOW_MS, **options)
    segment.create()
    return segment


def reopened(disk, base_offset=100):
    sizes = {
        entry.name[20:]: entry.size
        for entry in disk.list("/d")
        if entry.name.startswith(file_name(base_offset, ""))
    }
    return Segment(disk, "/d", base_offset, sizes=sizes, now_ms=NOW_MS)


def add(segment, offset, count=1, *, interval=4096, timestamp=NOW_MS, size=10, **options):
    """Append a batch of `count` records from `offset` on; return the offset after it."""
    data = batch(*[b"x" * size] * count, timestamp=timestamp, **options)
    set_offset_and_epoch(data, 0, base_offset=offset, leader_epoch=3)
    segment.append(data, list(iterate_batches(data)), index_interval_bytes=interval)
    return offset + count


def test_files_are_named_by_base_offset_in_twenty_digits():
    """Rule 199."""
    disk = SimDisk()
    new_segment(disk, 1234)
    assert [entry.name for entry in disk.list("/d")] == [
        "00000000000000001234.index",
        "00000000000000001234.log",
        "00000000000000001234.timeindex",
    ]


def test_the_log_file_is_the_batches_and_nothing_else():
    disk = SimDisk()
    segment = new_segment(disk)
    first, second = batch("a", "b"), batch("c")
    for data, offset in ((first, 100), (second, 102)):
        set_offset_and_epoch(data, 0, base_offset=offset, leader_epoch=0)
        segment.append(data, list(iterate_batches(data)), index_interval_bytes=4096)
    assert disk.read(segment.path(".log")) == bytes(first + second)
    assert segment.size == len(first) + len(second)
    assert segment.next_offset() == 103


def test_a_creation_that_was_interrupted_leaves_no_bytes():
    disk = SimDisk()
    disk.make_directory("/d")
    disk.replace("/d/00000000000000000100.log", b"rubbish")
    segment = new_segment(disk)
    assert segment.size == 0
    add(segment, 100)
    assert disk.read(segment.path(".log"))[:8] == struct.pack(">q", 100)


def test_index_entries_come_each_interval():
    """As Kafka: before the first batch that comes after more than the interval's bytes."""
    segment = new_segment()
    offset = 100
    sizes = []
    for _ in range(10):
        offset = add(segment, offset, 2, interval=200)
        sizes.append(segment.size)
    size = sizes[0]
    per_entry = 200 // size + 1
    assert len(segment.offset_index) == 9 // per_entry
    for slot in range(len(segment.offset_index)):
        number = (slot + 1) * per_entry
        assert segment.offset_index.entry_at(slot) == (100 + 2 * number + 1, number * size)


def test_several_batches_of_one_append_are_indexed_each():
    segment = new_segment()
    data = bytearray()
    for offset in range(100, 120):
        one = batch("x" * 50)
        set_offset_and_epoch(one, 0, base_offset=offset, leader_epoch=0)
        data += one
    segment.append(data, list(iterate_batches(data)), index_interval_bytes=100)
    assert len(segment.offset_index) == 19
    for offset in range(100, 120):
        span = segment.locate(offset)
        assert (span.base_offset, span.position) == (offset, (offset - 100) * len(one))


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(1, 40)), max_size=30),
    st.integers(0, 120),
    st.booleans(),
)
def test_locate_finds_the_first_batch_that_ends_at_or_after_an_offset(batches, asked, again):
    """Against a list; with gaps as compaction leaves them, and from files alone."""
    disk = SimDisk()
    segment = new_segment(disk)
    offset = 100
    spans = []
    for count, gap, size in batches:
        offset += gap
        position = segment.size
        following = add(segment, offset, count, interval=100, size=size)
        spans.append(BatchSpan(position, segment.size, offset, following - 1, NOW_MS))
        offset = following
    if again:
        segment.finish()
        segment = reopened(disk)
    found = segment.locate(100 + asked)
    assert found == next((span for span in spans if span.last_offset >= 100 + asked), None)
    assert list(segment.spans()) == spans
    assert segment.next_offset() == (spans[-1].last_offset + 1 if spans else 100)


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=30), st.integers(0, 30), st.integers(0, 9000)
)
def test_boundary_is_the_last_batch_end_within_a_limit(sizes, start_index, limit):
    segment = new_segment()
    ends = [0]
    for number, size in enumerate(sizes):
        add(segment, 100 + number, size=size, interval=100)
        ends.append(segment.size)
    start = ends[start_index % len(sizes)]
    limit = max(start, min(limit, segment.size - 1))
    position, offset = segment.boundary(start, limit)
    assert position == max(end for end in ends if end <= limit)
    assert offset == 100 + ends.index(position)


def test_reading_a_span_gives_the_batch():
    segment = new_segment()
    add(segment, 100, 2)
    add(segment, 102, 2)
    assert read_batch_header(segment.read(segment.locate(103))).base_offset == 102


def test_headers_are_all_of_each_batch():
    segment = new_segment()
    for offset in range(100, 400):
        add(segment, offset, producer_id=offset, producer_epoch=0, base_sequence=0)
    headers = list(segment.headers())
    assert [header.producer_id for _, header in headers] == list(range(100, 400))
    assert [position for position, _ in headers] == [span.position for span in segment.spans()]
    assert len(list(segment.headers(headers[250][0]))) == 50


@pytest.mark.parametrize(
    ("walk", "damage"),
    [
        *[
            (walk, damage)
            for walk in ("spans", "headers")
            for damage in ("magic", "length", "stub")
        ],
        ("spans", "short"),
    ],
)
def test_what_is_no_batch_is_refused(walk, damage):
    disk = SimDisk()
    segment = new_segment(disk)
    add(segment, 100)
    size = segment.size
    add(segment, 101)
    data = disk.files[segment.path(".log")].data
    if damage == "magic":
        data[size + 16] = 1
    elif damage == "length":
        struct.pack_into(">i", data, size + 8, 10)
    elif damage == "short":
        struct.pack_into(">i", data, size + 8, 10_000)
    else:
        del data[size + 20 :]
        segment.size = len(data)
    with pytest.raises(KafkaError) as error:
        list(getattr(segment, walk)())
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    assert str(size) in error.value.message


# --- Rolling -------------------------------------------------------------------------------------

ROOMY = {
    "incoming_bytes": 100,
    "last_offset": 200,
    "max_timestamp": NOW_MS,
    "now_ms": NOW_MS,
    "segment_bytes": 10_000,
    "segment_ms": 1000,
    "index_bytes": 1000,
}


def filled():
    segment = new_segment()
    for offset in range(100, 110):
        add(segment, offset, interval=0)
    return segment


def test_a_segment_with_room_does_not_roll():
    assert not filled().must_roll(**ROOMY)


def test_size_rolls_when_the_append_does_not_fit():
    """Rule 200: size > segment.bytes - incoming."""
    segment = filled()
    assert not segment.must_roll(**ROOMY | {"segment_bytes": segment.size + 100})
    assert segment.must_roll(**ROOMY | {"segment_bytes": segment.size + 99})


def test_positions_stay_within_int32():
    segment = filled()
    segment.size = 2**31 - 100
    assert segment.must_roll(**ROOMY | {"segment_bytes": 2**40})


def test_time_rolls_by_the_records_own_time():
    """Rule 200: first batch's timestamp against the append's, not the clock."""
    segment = filled()
    assert not segment.must_roll(**ROOMY | {"max_timestamp": NOW_MS + 1000, "now_ms": 2 * NOW_MS})
    assert segment.must_roll(**ROOMY | {"max_timestamp": NOW_MS + 1001})


def test_time_rolls_by_the_clock_where_records_have_none():
    segment = new_segment()
    add(segment, 100, timestamp=-1)
    assert not segment.must_roll(**ROOMY | {"max_timestamp": -1, "now_ms": NOW_MS + 1000})
    assert segment.must_roll(**ROOMY | {"max_timestamp": -1, "now_ms": NOW_MS + 1001})


def test_a_full_index_rolls():
    segment = filled()
    entries = len(segment.offset_index)
    assert entries == 9
    assert segment.must_roll(**ROOMY | {"index_bytes": 8 * entries})
    assert not segment.must_roll(**ROOMY | {"index_bytes": 8 * entries + 8})


def test_a_full_time_index_rolls():
    segment = new_segment()
    for number in range(4):
        add(segment, 100 + number, interval=0, timestamp=NOW_MS + number)
    assert len(segment.time_index) == 3
    assert segment.must_roll(**ROOMY | {"index_bytes": 48})
    assert not segment.must_roll(**ROOMY | {"index_bytes": 60})


def test_an_offset_too_far_from_the_base_rolls_even_an_empty_segment():
    """Rule 200: relative offsets are int32."""
    segment = new_segment()
    assert not segment.must_roll(**ROOMY | {"last_offset": 100 + 2**31 - 1})
    assert segment.must_roll(**ROOMY | {"last_offset": 100 + 2**31})
    assert not segment.must_roll(**ROOMY | {"segment_bytes": 1, "max_timestamp": 2**50})


# --- Timestamps ----------------------------------------------------------------------------------


def test_largest_timestamp_is_kept_with_its_offset():
    segment = new_segment()
    assert segment.largest == (-1, 100)
    add(segment, 100, 2, timestamp=50)
    add(segment, 102, 2, timestamp=70)
    add(segment, 104, 2, timestamp=70)
    add(segment, 106, 2, timestamp=60)
    assert segment.largest == (70, 103)
    assert segment.largest_timestamp == 70
    assert segment.first_timestamp == 50


def test_a_finished_segment_tells_its_largest_timestamp_without_scanning_the_log():
    """It looks at the batch that the last entry of its index names, and that is all (rule 233)."""
    disk = SimDisk()
    segment = new_segment(disk)
    for number in range(500):
        add(segment, 100 + number, timestamp=50 + number, size=1_000, interval=3_000)
    segment.finish()
    again = reopened(disk)
    disk.bytes_read = 0
    assert again.largest == (549, 599)
    assert disk.bytes_read < again.size / 20


def test_a_segment_without_timestamps_is_as_old_as_its_file():
    """Rule 201."""
    segment = new_segment()
    add(segment, 100, timestamp=-1)
    segment.modified_ms = 12345
    assert segment.largest_timestamp == 12345


def test_first_timestamp_is_read_from_the_file_once():
    disk = SimDisk()
    segment = new_segment(disk)
    assert segment.first_timestamp == -1
    add(segment, 100, timestamp=50)
    segment.finish()
    again = reopened(disk)
    assert again.first_timestamp == 50
    disk.reads = 0
    assert again.first_timestamp == 50
    assert disk.reads == 0


def test_search_by_time_begins_no_later_than_the_first_match():
    segment = new_segment()
    for number in range(100):
        add(segment, 100 + number, timestamp=1000 + number // 2 * 2, interval=150)
    for timestamp in range(1000, 1099):
        first = next(segment.spans_from_timestamp(timestamp, 100))
        wanted = next(span for span in segment.spans() if span.max_timestamp >= timestamp)
        assert first.position <= wanted.position
        assert wanted.position - first.position < 600


# --- Cutting -------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 50)), max_size=25),
    st.integers(0, 80),
    st.booleans(),
)
def test_truncation_leaves_what_a_shorter_history_would_have(batches, cut, again):
    disk = SimDisk()
    segment, short = new_segment(disk), new_segment()
    offset = 100
    end = None
    for count, gap, timestamp in batches:
        offset += gap
        options = {"interval": 100, "timestamp": timestamp}
        if end is None and offset + count > 100 + cut:
            end = min(offset, 100 + cut)
        if end is None:
            add(short, offset, count, **options)
        offset = add(segment, offset, count, **options)
    if again:
        segment.finish()
        segment = reopened(disk)
    assert segment.truncate_to(100 + cut) == (100 + cut if end is None else end)
    assert segment.size == short.size
    assert list(segment.spans()) == list(short.spans())
    assert segment.largest.timestamp == short.largest.timestamp
    assert segment.first_timestamp == short.first_timestamp
    add(segment, 500, timestamp=1000)
    assert segment.locate(500).base_offset == 500
    assert segment.largest == (1000, 500)


# --- Failing, renaming, removing -----------------------------------------------------------------


def test_a_refused_append_changes_nothing():
    disk = SimDisk()
    segment = new_segment(disk)
    add(segment, 100, timestamp=50)
    size = segment.size
    disk.fail("append", ".log", error=errno.ENOSPC, times=1)
    with pytest.raises(OSError) as refused:
        add(segment, 101, timestamp=60)
    assert refused.value.errno == errno.ENOSPC
    assert segment.size == size
    assert segment.largest == (50, 100)
    add(segment, 101)
    assert segment.next_offset() == 102


def test_a_refused_index_write_fails_no_append():
    disk = SimDisk()
    segment = new_segment(disk)
    heal = disk.fail("append", "index", error=errno.ENOSPC)
    for number in range(200):
        add(segment, 100 + number, interval=0, timestamp=NOW_MS + number)
    heal()
    segment.finish()
    again = reopened(disk)
    assert len(again.offset_index) == 199
    assert again.largest == (NOW_MS + 199, 299)


def test_renaming_takes_all_files_and_keeps_them_usable():
    disk = SimDisk()
    segment = new_segment(disk)
    for number in range(200):
        add(segment, 100 + number, interval=0)
    segment.rename(suffix=".deleted")
    assert all(entry.name.endswith(".deleted") for entry in disk.list("/d"))
    segment.close()
    assert segment.locate(150).base_offset == 150
    segment.finish()
    assert len(disk.read("/d/00000000000000000100.index.deleted")) == 199 * 8
    disk.rename("/d", "/e")
    segment.move("/e")
    segment.close()
    assert segment.locate(150).base_offset == 150
    segment.remove()
    assert disk.list("/e") == []


def test_renaming_a_segment_without_log_file_fails():
    disk = SimDisk()
    segment = new_segment(disk)
    disk.remove(segment.path(".log"))
    with pytest.raises(FileNotFoundError):
        segment.rename(suffix=".deleted")


def test_a_close_gives_the_descriptor_back_when_no_region_is_left():
    disk = SimDisk()
    segment = new_segment(disk)
    add(segment, 100)
    file = segment.file
    segment.close()
    assert disk.open_count == 1
    assert file.pread(8, 0) == struct.pack(">q", 100)
    del file
    assert disk.open_count == 0


def test_sync_reaches_all_files():
    disk = SimDisk()
    segment = new_segment(disk)
    add(segment, 100)
    segment.finish()
    segment.sync()
    for entry in disk.list("/d"):
        content = disk.files[f"/d/{entry.name}"]
        assert content.synced == bytes(content.data)


def test_forgotten_indexes_are_built_again_from_headers():
    disk = SimDisk()
    segment = new_segment(disk)
    for number in range(50):
        add(segment, 100 + number, interval=100, timestamp=NOW_MS + number)
    before = [segment.offset_index.entry_at(slot) for slot in range(len(segment.offset_index))]
    segment.forget_indexes()
    assert len(segment.offset_index) == 0
    for position, header in list(segment.headers()):
        segment.index_batch(header, position, 100)
    after = [segment.offset_index.entry_at(slot) for slot in range(len(segment.offset_index))]
    assert after == before
    assert segment.largest == (NOW_MS + 49, 149)
    assert "size=" in repr(segment)
