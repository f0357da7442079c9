"""Recovery of logs whose files somebody has damaged, or that a compaction left half done."""

import errno
import struct
import zlib
from random import Random

import pytest

from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import iterate_batches
from tests.log.log_kit import (
    DIRECTORY,
    NOW_MS,
    append,
    contents,
    make_log,
    marker,
)
from tests.log.recovery_kit import SMALL, Remover, everything
from tests.log.sim_disk import SimDisk


@pytest.mark.parametrize("kind", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["missing", "odd"])
def test_a_lost_or_odd_index_is_rebuilt(kind, clean, damage):
    disk = SimDisk()
    log = make_log(disk, **SMALL)
    append(log, "t", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_as_leader(marker(9), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    for number in range(20):
        append(log, "x" * 100, number, timestamp=NOW_MS + number)
    wanted = everything(log), log.aborted_transactions(0, 50)
    log.close()
    path = f"{DIRECTORY}/{0:020d}{kind}"
    before = disk.read(path)
    if damage == "missing":
        if kind == ".txnindex":
            return  # absent means empty
        disk.remove(path)
    else:
        disk.files[path].data += b"odd"
    again = make_log(disk, clean=clean, recovery_point=log.log_end_offset, **SMALL)
    assert disk.read(path) == before
    assert (everything(again), again.aborted_transactions(0, 50)) == wanted


def test_a_segment_that_is_safe_but_damaged_is_not_cut():
    """Its index is gone and a batch is bad: no crash does that, so nothing is thrown away."""
    disk = SimDisk()
    log = make_log(disk, **SMALL)
    for number in range(20):
        append(log, "x" * 100, number)
    log.close()
    disk.remove(f"{DIRECTORY}/{0:020d}.index")
    disk.files[f"{DIRECTORY}/{0:020d}.log"].data[200] ^= 1
    size = len(disk.files[f"{DIRECTORY}/{0:020d}.log"].data)
    with pytest.raises(KafkaError) as error:
        make_log(disk, **SMALL)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    assert "CRC" in error.value.message
    assert len(disk.files[f"{DIRECTORY}/{0:020d}.log"].data) == size


@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_old_formats_are_refused_and_not_cut_off(magic):
    """Kafka 4 still reads them from disk; we do not, and must not take them for damage."""
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", NOW_MS) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", 3) + b"old"
    record = struct.pack(">qiI", 0, 4 + len(body), zlib.crc32(body)) + body
    disk.replace(f"{DIRECTORY}/{0:020d}.log", record * 3)
    with pytest.raises(KafkaError) as error:
        make_log(disk, clean=False)
    assert f"format v{magic}" in error.value.message
    assert disk.read(f"{DIRECTORY}/{0:020d}.log") == record * 3


def test_a_log_that_ends_before_its_start_is_emptied():
    """As Kafka: someone has removed segments."""
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a", epoch=3)
    log.close()
    again = make_log(disk, log_start_offset=50)
    assert (again.log_start_offset, again.log_end_offset) == (50, 50)
    assert again.epochs.entries == []
    assert [entry.name for entry in disk.list(DIRECTORY) if "log" in entry.name] == [
        f"{50:020d}.log"
    ]


def test_an_unreadable_epoch_file_is_rebuilt_from_the_batches():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a", epoch=3)
    append(log, "b", epoch=5)
    disk.replace(f"{DIRECTORY}/leader-epoch-checkpoint", b"7\nrubbish\n")
    again = make_log(disk, clean=False)
    assert again.epochs.entries == [(3, 0), (5, 1)]
    assert disk.read(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n2\n3 0\n5 1\n"


def test_a_torn_epoch_file_loses_no_epoch_below_the_recovery_point():
    for content in (b"", b"0\n2\n3 0", b"\0" * 12):
        disk = SimDisk()
        log = make_log(disk, segment_bytes=100)
        for epoch in (3, 3, 5, 8):
            append(log, "x", epoch=epoch)
        log.delete_records_before(1)
        disk.replace(f"{DIRECTORY}/leader-epoch-checkpoint", content)
        again = make_log(disk, clean=False, recovery_point=3, log_start_offset=1, segment_bytes=100)
        assert again.epochs.entries == [(3, 1), (5, 2), (8, 3)]


def test_stray_files_are_cleared_away_and_foreign_ones_left():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    log.close()
    for name in (
        f"{7:020d}.index",
        f"{7:020d}.txnindex",
        f"{3:020d}.log.deleted",
        f"{3:020d}.snapshot.deleted",
        f"{3:020d}.log.cleaned",
        f"{9:020d}.snapshot",
        f"{0:020d}.snapshot.tmp",
        "leader-epoch-checkpoint.tmp",
    ):
        disk.replace(f"{DIRECTORY}/{name}", b"")
    disk.replace(f"{DIRECTORY}/notes.txt", b"mine")
    make_log(disk, clean=False, recovery_point=1)
    assert [entry.name for entry in disk.list(DIRECTORY)] == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        f"{1:020d}.snapshot",
        "leader-epoch-checkpoint",
        "notes.txt",
    ]


def test_a_clean_log_without_snapshots_is_not_replayed():
    """As Kafka: it never had producers."""
    disk = SimDisk()
    log = make_log(disk)
    for number in range(300):
        append(log, "x" * 100, number)
    log.close()
    disk.remove(f"{DIRECTORY}/{600:020d}.snapshot")
    disk.bytes_read = 0
    make_log(disk)
    assert disk.bytes_read < 20_000 < log.size_bytes


def cleaned_history():
    """Return a disk on which three of five segments have been replaced, with its trace."""
    disk = SimDisk()
    log = make_log(disk, listener=Remover(), segment_bytes=100)
    for number in range(5):
        append(log, number)
    log.local_log.write_epochs()
    start = len(disk.trace)
    old = log.segments.closed[:3]
    cleaned = log.local_log.new_cleaned_segment(0)
    for segment in old[1:]:
        data = segment.file.pread(segment.size, 0)
        cleaned.append(data, list(iterate_batches(data)), index_interval_bytes=4096)
    cleaned.finish()
    log.replace_segments([cleaned], old)
    return disk, start


def test_a_compaction_killed_anywhere_leaves_the_old_or_the_new():
    """Rule 205: a `.swap` file is the point of no return."""
    disk, start = cleaned_history()
    trace = disk.trace
    old = [(number, str(number)) for number in range(5)]
    seen = set()
    for changes in range(start, len(trace) + 1):
        crashed = SimDisk.replay(trace, changes)
        log = make_log(crashed, clean=False, segment_bytes=100)
        found = contents(log)
        assert found in (old, old[1:]), trace[changes - 1]
        seen.add(len(found))
        log.close()
        assert contents(make_log(crashed, segment_bytes=100)) == found
        assert not [
            entry.name
            for entry in crashed.list(DIRECTORY)
            if entry.name.endswith((".swap", ".cleaned", ".deleted"))
        ]
    assert seen == {4, 5}


def test_a_swap_file_beside_an_earlier_cleaned_one_was_not_ready():
    """Kafka's rule for the split of a segment in two (KAFKA-6264)."""
    disk = SimDisk()
    log = make_log(disk, segment_bytes=100)
    for number in range(3):
        append(log, number)
    log.close()
    for name in (f"{1:020d}.log.swap", f"{0:020d}.log.cleaned"):
        disk.replace(f"{DIRECTORY}/{name}", b"half")
    assert contents(make_log(disk, segment_bytes=100)) == [(0, "0"), (1, "1"), (2, "2")]


def test_a_disk_that_fails_is_an_oserror():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    disk.fail("pread", error=errno.EIO)
    with pytest.raises(OSError) as failure:
        make_log(disk, clean=False)
    assert failure.value.errno == errno.EIO


def indexed_log(disk):
    """A log whose first segment and second one have several index entries, closed in order."""
    log = make_log(disk, index_interval_bytes=100)
    for number in range(60):
        if number == 30:
            log.roll()
        append(log, f"{number:03d}" + "x" * 60, timestamp=NOW_MS + number)
    log.close()


def values(log):
    return [value[:3] for _, value in contents(log)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("base_offset", [0, 30])
@pytest.mark.parametrize("damage", ["each bit", "garbage", "zeros", "longer"])
def test_index_that_does_not_fit_its_log_hides_nothing(suffix, base_offset, damage, caplog):
    """Rule 233: neither is anything hidden, nor is an offset given twice, nor a log offline."""
    disk = SimDisk()
    indexed_log(disk)
    path = f"{DIRECTORY}/{base_offset:020d}{suffix}"
    good = disk.read(path)
    size = 8 if suffix == ".index" else 12
    assert len(good) > 5 * size
    if damage == "each bit":
        damaged = []
        for bit in range(size * 8):
            data = bytearray(good)
            data[len(data) - size + bit // 8] ^= 1 << bit % 8
            damaged.append(bytes(data))
    elif damage == "garbage":
        damaged = [Random(7).randbytes(len(good)), b"\xff" * len(good)]
    elif damage == "zeros":
        damaged = [bytes(len(good))]
    else:
        damaged = [good + b"\x7f" * size]
    for data in damaged:
        copy = SimDisk()
        indexed_log(copy)
        copy.replace(path, data)
        log = make_log(copy, index_interval_bytes=100)
        assert log.log_end_offset == 60
        assert append(log, "060").first_offset == 60
        assert values(log) == [f"{number:03d}" for number in range(61)]
        for offset in range(61):
            (first, *_) = contents(log, offset)
            assert first[0] == offset
        assert [each.largest.timestamp for each in log.segments] == [NOW_MS + 29, NOW_MS + 59]


def test_rebuilt_index_is_told_of_and_written(caplog):
    disk = SimDisk()
    indexed_log(disk)
    path = f"{DIRECTORY}/{30:020d}.index"
    good = disk.read(path)
    disk.replace(path, b"\xff" * len(good))
    log = make_log(disk)
    assert "is rebuilt" in caplog.text
    assert contents(log)[-1][0] == 59
    log.close()
    assert b"\xff" not in disk.read(path)


@pytest.mark.parametrize(
    ("damage", "clean", "told"),
    [
        ("first .log gone", True, f"{0:020d}.log is missing, while its indexes are there"),
        ("first .log empty", True, f"{0:020d}.log is empty, and the log goes on"),
        ("first .log empty", False, f"{0:020d}.log is empty, and the log goes on"),
        ("last .log gone", True, f"{30:020d}.log is missing, while its indexes are there"),
        ("last .log empty", True, "ends at offset 30 and not at 60, where the log was closed"),
        ("last segment gone", True, "ends at offset 30 and not at 60, where the log was closed"),
    ],
)
def test_segment_that_is_gone_takes_the_log_offline_with_one_line(damage, clean, told):
    """Offsets that were acknowledged are not given again, and nothing is read over a hole."""
    disk = SimDisk()
    indexed_log(disk)
    which, what, how = damage.split()
    stem = f"{DIRECTORY}/{0 if which == 'first' else 30:020d}"
    if how == "empty":
        disk.replace(f"{stem}.log", b"")
    elif what == ".log":
        disk.remove(f"{stem}.log")
    else:
        for suffix in (".log", ".index", ".timeindex"):
            disk.remove(stem + suffix)
    with pytest.raises(KafkaError) as error:
        make_log(disk, clean=clean, recovery_point=60)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    assert told in error.value.message
    assert "move the directory away" in error.value.message


def test_segment_whose_deletion_had_begun_is_not_missed():
    disk = SimDisk()
    indexed_log(disk)
    stem = f"{DIRECTORY}/{0:020d}"
    disk.rename(f"{stem}.log", f"{stem}.log.deleted")
    log = make_log(disk)
    assert (log.log_start_offset, log.log_end_offset) == (30, 60)
