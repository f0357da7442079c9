"""Rolling, cutting, deleting, replacing, flushing and closing a log's segments."""

import errno

import pytest
import trio

from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import iterate_batches
from tests.log.log_kit import (
    DIRECTORY,
    NOW_MS,
    FakeClock,
    NotingListener,
    append,
    batch,
    contents,
    make_log,
    marker,
)
from tests.log.sim_disk import SimDisk

TINY = {"segment_bytes": 100}  # a segment per batch


def filled(count=6, *, disk=None, listener=None, **config):
    """Return a log with one record per segment: offsets 0..count-1."""
    log = make_log(disk, listener=listener, **TINY | config)
    for number in range(count):
        append(log, number)
    return log


def bases(log):
    return [segment.base_offset for segment in log.segments]


def names(disk, suffix=""):
    return [entry.name for entry in disk.list(DIRECTORY) if entry.name.endswith(suffix)]


# --- Rolling -------------------------------------------------------------------------------------


def test_an_empty_active_segment_is_not_rolled():
    listener = NotingListener()
    log = make_log(listener=listener)
    log.roll()
    append(log, "a")
    log.roll()
    log.roll()
    assert bases(log) == [0, 1]
    assert log.log_end_position == (1, 1, 0)
    assert listener.notes == ["flush"]


def test_a_roll_leaves_a_snapshot_under_the_new_segments_name():
    """Rule 63."""
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    log.roll()
    assert names(disk, ".snapshot") == ["00000000000000000001.snapshot"]


def test_a_refused_roll_changes_nothing():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    before = names(disk)
    for operation, part in (("replace", ".snapshot"), ("create", ".index"), ("create", ".log")):
        heal = disk.fail(operation, part, error=errno.ENOSPC)
        with pytest.raises(KafkaError) as error:
            log.roll()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert bases(log) == [0]
        heal()
    assert [name for name in names(disk) if "snapshot" not in name] == before
    append(log, "b")
    log.roll()
    assert contents(log) == [(0, "a"), (1, "b")]


def test_an_index_that_could_not_be_finished_is_finished_by_the_flush():
    disk = SimDisk()
    log = make_log(disk, index_interval_bytes=0)
    for number in range(5):
        append(log, number)
    heal = disk.fail("append", "index")
    log.roll()
    heal()
    log.flush_now()
    assert len(disk.read(f"{DIRECTORY}/00000000000000000000.index")) == 4 * 8


# --- Cutting -------------------------------------------------------------------------------------


def test_truncation_cuts_whole_segments_and_then_the_last_one():
    disk = SimDisk()
    listener = NotingListener(disk)
    log = make_log(disk, listener=listener, segment_bytes=200)
    for number in range(9):
        append(log, number, epoch=number // 3)
    listener.notes.clear()
    log.local_log.recovery_point = 8
    log.truncate_to(3)
    assert contents(log) == [(0, "0"), (1, "1"), (2, "2")]
    assert log.epochs.entries == [(0, 0)]
    assert log.local_log.recovery_point == 3
    assert listener.notes == ["removed", "truncated"]
    assert disk.read(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    assert names(disk, ".snapshot") == ["00000000000000000002.snapshot"]
    append(log, "new", epoch=7)
    assert contents(log)[-1] == (3, "new")


def test_the_newest_segments_are_removed_first():
    """A crash on the way never leaves a hole."""
    listener = NotingListener()
    log = filled(6, listener=listener)
    log.truncate_to(1)
    assert [segment.base_offset for segment in listener.removed] == [5, 4, 3, 2]


def test_truncation_to_the_end_only_forgets_an_epoch_without_records():
    log = make_log()
    append(log, "a", epoch=1)
    log.begin_epoch(5)
    log.truncate_to(7)
    assert log.epochs.entries == [(1, 0)]
    assert contents(log) == [(0, "a")]
    log.truncate_to(7)


def test_truncation_inside_a_batch_takes_the_whole_batch():
    log = make_log()
    append(log, "a", "b", "c")
    append(log, "d", "e", "f")
    log.truncate_to(4)
    assert log.log_end_offset == 3


def test_truncation_in_a_compacted_gap_keeps_the_offset():
    log = make_log()
    data = batch("a")
    log.append_as_follower(data)
    from kafkalite.wire.records import set_offset_and_epoch

    data = batch("b")
    set_offset_and_epoch(data, 0, base_offset=10, leader_epoch=0)
    log.append_as_follower(data)
    log.truncate_to(6)
    assert log.log_end_offset == 6
    assert contents(log) == [(0, "a")]


def test_truncation_before_the_first_segment_begins_anew():
    listener = NotingListener()
    log = filled(6, listener=listener)
    log.delete_records_before(4)
    log.apply_retention(NOW_MS)
    assert bases(log) == [4, 5]
    log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (2, 2, [2])
    assert listener.notes[-2:] == ["truncated", "start"]


def test_truncation_below_the_log_start_takes_the_start_along():
    log = filled(3, segment_bytes=1000)
    log.delete_records_before(2)
    log.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)


def test_truncation_takes_the_producers_back():
    """Rule 63."""
    log = make_log()
    options = {"producer_id": 5, "producer_epoch": 0}
    append(log, "a", base_sequence=0, transactional=True, **options)
    log.append_as_leader(
        marker(5, commit=True), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.roll()
    append(log, "b", base_sequence=1, **options)
    append(log, "c", base_sequence=2, **options)
    log.truncate_to(3)
    assert log.producers.get(5).last_sequence == 1
    log.truncate_to(1)
    assert log.producers.get(5).last_sequence == 0
    assert log.first_unstable_offset == 0


def test_full_truncation_begins_at_any_offset():
    disk = SimDisk()
    log = filled(4, disk=disk)
    append(log, "x", epoch=3)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.leader_epoch) == (100, 100, -1)
    assert len(log.producers) == 0
    append(log, "y", epoch=4)
    assert contents(log) == [(100, "y")]
    assert disk.read(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n1\n4 100\n"


@pytest.mark.parametrize(
    ("cut", "operation"),
    [
        (lambda log: log.truncate_to(2), "rename"),
        (lambda log: log.truncate_to(3), "truncate"),
        (lambda log: log.truncate_fully_and_start_at(9), "rename"),
        (lambda log: log.truncate_fully_and_start_at(9), "create"),
    ],
)
def test_a_failed_truncation_takes_the_log_offline(cut, operation):
    disk = SimDisk()
    log = make_log(disk, segment_bytes=150)
    for number in range(6):
        append(log, number)
    disk.fail(operation)
    with pytest.raises(KafkaError) as error:
        cut(log)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "truncation" in log.failure
    with pytest.raises(KafkaError):
        append(log, "x")


# --- Deleting ------------------------------------------------------------------------------------


def test_deleted_records_are_out_of_range_at_once_and_gone_with_the_next_retention():
    disk = SimDisk()
    listener = NotingListener()
    log = filled(6, disk=disk, listener=listener)
    listener.notes.clear()
    log.delete_records_before(3)
    log.delete_records_before(2)
    assert log.log_start_offset == 3
    assert listener.notes == ["start"]
    assert len(log.segments) == 6
    assert log.apply_retention(NOW_MS) == 3
    assert bases(log) == [3, 4, 5]
    assert len(names(disk, ".log.deleted")) == 3
    assert listener.notes == ["start", "removed"]
    for segment in listener.removed:
        segment.remove()
    assert names(disk, ".deleted") == []
    with pytest.raises(KafkaError) as error:
        log.delete_records_before(7)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_retention_moves_the_log_start_to_the_next_segment():
    """Rules 201, 202."""
    log = filled(6, retention_bytes=250)
    size = log.segments.first.size
    assert log.apply_retention(NOW_MS) == 6 - 250 // size - 1
    assert log.log_start_offset == bases(log)[0]
    assert log.apply_retention(NOW_MS) == 0
    assert log.epochs.epoch_at(log.log_start_offset) == 0


def test_nothing_at_or_above_the_high_watermark_goes():
    """Rule 202."""
    log = filled(6, retention_bytes=0)
    assert log.apply_retention(NOW_MS, high_watermark=4) == 4
    assert bases(log) == [4, 5]


def test_old_records_all_go_and_an_empty_segment_takes_over():
    """Rules 201, 202."""
    log = filled(3, retention_ms=1000)
    assert log.apply_retention(NOW_MS + 1000) == 0
    assert log.apply_retention(NOW_MS + 1001) == 3
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (3, 3, [3])
    assert log.apply_retention(NOW_MS + 5000) == 0
    append(log, "x")
    assert contents(log) == [(3, "x")]


def test_deleted_segments_take_their_snapshots_along():
    disk = SimDisk()
    log = filled(4, disk=disk, retention_bytes=0)
    log.apply_retention(NOW_MS)
    assert names(disk, ".snapshot") == ["00000000000000000004.snapshot"]


def test_failed_retention_is_a_storage_error():
    disk = SimDisk()
    log = filled(4, disk=disk, retention_bytes=0)
    disk.fail("rename")
    with pytest.raises(KafkaError) as error:
        log.apply_retention(NOW_MS)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


# --- Replacing -----------------------------------------------------------------------------------


def rewritten(log, old):
    """Return a cleaned segment with every second batch of some segments."""
    cleaned = log.local_log.new_cleaned_segment(old[0].base_offset)
    for segment in old:
        for position, header in segment.headers():
            if header.base_offset % 2:
                data = segment.file.pread(header.size, position)
                cleaned.append(data, list(iterate_batches(data)), index_interval_bytes=4096)
    cleaned.finish()
    return cleaned


def test_a_cleaned_segment_takes_the_place_of_several():
    """Rule 205."""
    disk = SimDisk()
    listener = NotingListener()
    log = filled(8, disk=disk, listener=listener)
    assert contents(log, 2)[0] == (2, "2")
    old = log.segments.closed[:4]
    cleaned = rewritten(log, old)
    assert names(disk, ".cleaned")
    log.replace_segments([cleaned], old)
    assert bases(log) == [0, 4, 5, 6, 7]
    assert contents(log) == [(1, "1"), (3, "3")] + [(n, str(n)) for n in range(4, 8)]
    assert contents(log, 2)[0] == (3, "3")
    assert listener.notes[-1] == "removed"
    assert not names(disk, ".swap")
    assert not names(disk, ".cleaned")
    assert len(names(disk, ".log.deleted")) == 4
    assert "00000000000000000002.snapshot" not in names(disk)
    for segment in listener.removed:
        segment.remove()
    log.close()
    assert contents(make_log(disk, **TINY))[0] == (1, "1")


def test_a_bound_in_a_replaced_segment_still_holds():
    log = filled(6)
    upper = log.position_of(3)
    in_the_middle = log.position_of(2)
    old = log.segments.closed[:4]
    log.replace_segments([rewritten(log, old)], old)
    for bound, wanted in ((upper, [1]), (in_the_middle, [1]), (log.log_end_position, [1, 3])):
        region = log.read(0, max_bytes=10_000, upper=bound, min_one_batch=True)
        assert [header.base_offset for _, header in iterate_batches(region.read())] == wanted


def test_reading_in_a_gap_goes_on_behind_it():
    log = filled(6)
    old = log.segments.closed[:3]
    log.replace_segments([rewritten(log, old)], old)
    region = log.read(2, max_bytes=10_000, upper=log.log_end_position, min_one_batch=True)
    assert [header.base_offset for _, header in iterate_batches(region.read())] == [3]
    assert log.position_of(2).segment_base_offset == 3


def test_a_log_that_ends_in_a_gap_is_empty_there():
    log = filled(3)
    log.roll()
    old = log.segments.closed[2:3]
    cleaned = log.local_log.new_cleaned_segment(2)
    log.replace_segments([cleaned], old)
    assert not log.read(2, max_bytes=100, upper=log.log_end_position, min_one_batch=True)
    assert log.position_of(2) == (2, 3, 0)


def test_a_failed_replacement_takes_the_log_offline():
    disk = SimDisk()
    log = filled(6, disk=disk)
    old = log.segments.closed[:3]
    cleaned = rewritten(log, old)
    disk.fail("rename", ".swap")
    with pytest.raises(KafkaError) as error:
        log.replace_segments([cleaned], old)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "replacing" in log.failure


# --- Flushing ------------------------------------------------------------------------------------


def unsynced(disk):
    return [
        path.rpartition("/")[2]
        for path, content in disk.files.items()
        if content.synced != bytes(content.data)
    ]


def test_a_flush_makes_all_safe_up_to_the_end():
    disk = SimDisk()
    log = filled(4, disk=disk)
    assert log.local_log.recovery_point == 0
    trio.run(log.flush)
    assert log.local_log.recovery_point == 4
    # Recovery after a crash begins with the segment of the recovery point: its indexes are rebuilt.
    active = log.segments.active
    assert set(unsynced(disk)) <= {
        f"{active.base_offset:020d}{kind}" for kind in (".index", ".timeindex")
    }
    syncs = disk.syncs
    trio.run(log.flush)
    assert disk.syncs == syncs


def test_a_flush_after_a_roll_makes_the_indexes_safe_too():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    log.flush_now()
    log.roll()
    log.flush_now()
    assert unsynced(disk) == []


def test_the_checkpoint_stays_within_the_segment_whose_indexes_are_not_safe():
    log = make_log()
    assert log.recovery_point_to_write == 0
    append(log, "a", "b")
    log.flush_now()
    assert (log.local_log.recovery_point, log.recovery_point_to_write) == (2, 1)
    log.roll()
    assert log.recovery_point_to_write == 1
    append(log, "c")
    log.roll()
    flush = log.begin_flush()
    assert log.recovery_point_to_write == 1
    flush.run()
    log.local_log.end_flush(flush)
    assert (log.local_log.recovery_point, log.recovery_point_to_write) == (3, 3)


def test_what_is_appended_during_a_flush_waits_for_the_next():
    log = make_log()
    append(log, "a")
    flush = log.begin_flush()
    append(log, "b")
    flush.run()
    log.local_log.end_flush(flush)
    assert log.local_log.recovery_point == 1
    assert log.local_log.unflushed_since_ms == NOW_MS


def test_a_truncation_during_a_flush_takes_its_promise_away():
    log = make_log()
    for number in range(3):
        append(log, number)
    flush = log.begin_flush()
    log.truncate_to(1)
    append(log, "other")
    append(log, "other")
    flush.run()
    log.local_log.end_flush(flush)
    assert log.local_log.recovery_point == 0


@pytest.mark.parametrize("flush", [lambda log: trio.run(log.flush), lambda log: log.flush_now()])
def test_a_failed_flush_takes_the_log_offline(flush):
    """The kernel may have dropped what it could not write."""
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    disk.fail("sync")
    with pytest.raises(KafkaError) as error:
        flush(log)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.local_log.recovery_point == 0
    assert "flush" in log.failure
    log.flush_now()


def test_a_flush_that_cannot_write_its_indexes_is_tried_again():
    disk = SimDisk()
    log = make_log(disk, index_interval_bytes=0)
    append(log, "a")
    append(log, "b")
    heal = disk.fail("append", "index")
    log.roll()
    with pytest.raises(KafkaError):
        log.flush_now()
    assert (log.local_log.recovery_point, log.failure) == (0, None)
    heal()
    log.flush_now()
    assert log.local_log.recovery_point == 2


# --- Closing -------------------------------------------------------------------------------------


def test_a_closed_log_opens_without_scanning_or_replaying():
    disk = SimDisk()
    log = make_log(disk, segment_bytes=100_000)
    for number in range(500):
        append(log, "x" * 100, producer_id=5, producer_epoch=0, base_sequence=number)
    log.close()
    assert disk.open_count == 0
    disk.bytes_read = disk.reads = 0
    again = make_log(disk)
    assert again.producers.get(5).last_sequence == 499
    assert again.log_end_offset == 500
    assert again.local_log.recovery_point == 500
    assert disk.bytes_read < 16_000 < log.size_bytes
    assert disk.open_count == 0


def test_a_closed_log_is_safe_with_its_indexes():
    disk = SimDisk()
    log = make_log(disk, index_interval_bytes=0)
    for number in range(5):
        append(log, number)
    log.flush_now()
    log.close()
    assert unsynced(disk) == []
    syncs = disk.syncs
    make_log(disk).close()
    assert disk.syncs == syncs


def test_a_closed_log_refuses_everything():
    log = make_log()
    append(log, "a")
    log.close()
    with pytest.raises(KafkaError) as error:
        append(log, "b")
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        log.close()


def test_an_empty_log_needs_no_snapshot():
    disk = SimDisk()
    make_log(disk).close()
    assert names(disk) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
    ]


def test_a_close_that_fails_says_so():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    disk.fail("replace", ".snapshot")
    with pytest.raises(KafkaError) as error:
        log.close()
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.open_count == 0


def test_an_epoch_without_records_is_written_at_the_close():
    disk = SimDisk()
    log = make_log(disk)
    log.begin_epoch(4)
    log.close()
    assert disk.read(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n1\n4 0\n"


def test_settings_can_change():
    log = make_log()
    from kafkalite.log_config import LogConfig

    log.update_config(LogConfig(segment_bytes=100))
    for number in range(3):
        append(log, number)
    assert len(log.segments) == 3
    assert "t-0" in repr(log)
    assert FakeClock().monotonic_ms() == 0
