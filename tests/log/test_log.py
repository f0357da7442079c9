"""The log of one partition against a list of records, and the rules of appending and reading."""

import errno

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from kafkalite.log.local_log import HINTS_MAX
from kafkalite.log.state import AppendInfo
from kafkalite.log.validate import AppendOrigin, InvalidRecord
from kafkalite.types import LogPosition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import read_batch_header
from tests.log.log_kit import (
    NOW_MS,
    FakeClock,
    append,
    batch,
    contents,
    make_log,
    marker,
)
from tests.log.log_reading_kit import read
from tests.log.sim_disk import SimDisk
from tests.log.test_log_reading import offsets_in

SMALL = {"segment_bytes": 1500, "index_interval_bytes": 200, "segment_ms": 2**60}


class LogAgainstList(RuleBasedStateMachine):
    """Append, read, roll, truncate, delete, restart; after each step the list and the log agree."""

    @initialize()
    def begin(self):
        self.disk = SimDisk()
        self.clock = FakeClock()
        self.log = make_log(self.disk, **SMALL)
        self.start = 0
        self.records = []  # (offset, value)
        self.batches = []  # (base offset, last offset, epoch)
        self.epoch = 0
        self.reader = 0

    @property
    def end(self):
        return self.batches[-1][1] + 1 if self.batches else self.base

    base = 0

    @rule(count=st.integers(1, 4), size=st.integers(0, 300))
    def append(self, count, size):
        first = self.log.log_end_offset
        values = [f"{first + index}" + "." * size for index in range(count)]
        info = append(self.log, *values, epoch=self.epoch)
        assert info.first_offset == first
        assert info.last_offset == first + count - 1
        self.records += [(first + index, value) for index, value in enumerate(values)]
        self.batches.append((first, first + count - 1, self.epoch))

    @rule()
    def next_leader(self):
        self.epoch += 1

    @rule()
    def roll(self):
        self.log.roll()

    @rule(back=st.integers(0, 12))
    def truncate(self, back):
        offset = max(self.log.log_end_offset - back, 0)
        is_before_all = offset < self.log.segments.first.base_offset
        self.log.truncate_to(offset)
        if is_before_all:
            self.base = self.start = offset
            self.records, self.batches = [], []
            return
        kept = [each for each in self.batches if each[1] < offset]
        if len(kept) != len(self.batches):
            end = min(offset, self.batches[len(kept)][0])
            self.batches = kept
            self.records = [record for record in self.records if record[0] < end]
            if not kept:
                self.base = end
        self.start = min(self.start, self.log.log_end_offset)

    @rule(ahead=st.integers(0, 12))
    def delete_records(self, ahead):
        self.start = min(self.log.log_start_offset + ahead, self.log.log_end_offset)
        self.log.delete_records_before(self.start)
        self.log.apply_retention(NOW_MS)

    @precondition(lambda self: self.log.log_end_offset > 5)
    @rule()
    def truncate_fully(self):
        self.base = self.start = self.log.log_end_offset + 3
        self.log.truncate_fully_and_start_at(self.base)
        self.records, self.batches = [], []

    @rule(clean=st.booleans())
    def restart(self, clean):
        log = self.log
        epochs = log.epochs.entries
        if clean:
            log.close()
        else:
            log.discard()
        disk = self.disk.copy() if not clean else self.disk
        self.disk = disk
        self.log = make_log(
            disk,
            clean=clean,
            log_start_offset=self.start,
            recovery_point=log.local_log.recovery_point,
            **SMALL,
        )
        found = self.log.epochs.entries
        assert [e for e in found if e[1] < self.end] == [e for e in epochs if e[1] < self.end]
        assert disk.open_count == 0

    @rule(max_bytes=st.integers(0, 3000), min_one_batch=st.booleans())
    def read_on(self, max_bytes, min_one_batch):
        """A reader that goes on where it stopped, if that is still there."""
        if not self.start <= self.reader <= self.log.log_end_offset:
            self.reader = self.start
        data = read(self.log, self.reader, max_bytes=max_bytes, min_one_batch=min_one_batch)
        self.check_read(self.reader, data, max_bytes, min_one_batch)
        if data:
            self.reader = offsets_in(data)[-1][1] + 1

    @rule(at=st.integers(0, 100), max_bytes=st.integers(0, 3000), min_one_batch=st.booleans())
    def read_anywhere(self, at, max_bytes, min_one_batch):
        offset = self.start + at
        if offset > self.log.log_end_offset:
            with pytest.raises(KafkaError) as error:
                read(self.log, offset)
            assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            data = read(self.log, offset, max_bytes=max_bytes, min_one_batch=min_one_batch)
            self.check_read(offset, data, max_bytes, min_one_batch)

    @rule(at=st.integers(0, 100), upper_at=st.integers(0, 100))
    def read_below_a_bound(self, at, upper_at):
        batches = [each for each in self.batches if each[1] >= self.start]
        bounds = [each[0] for each in batches if each[0] >= self.start] + [self.end]
        upper = self.log.position_of(bounds[upper_at % len(bounds)])
        offset = min(self.start + at, self.log.log_end_offset)
        data = read(self.log, offset, upper=upper)
        found = offsets_in(data)
        wanted = [each[:2] for each in batches if each[1] >= offset and each[0] < upper.offset]
        assert found == wanted[: len(found)]
        assert bool(found) == bool(wanted)

    def check_read(self, offset, data, max_bytes, min_one_batch):
        found = offsets_in(data)
        wanted = [each[:2] for each in self.batches if each[1] >= offset]
        assert found == wanted[: len(found)]
        assert len(data) <= max_bytes or (min_one_batch and len(found) == 1)
        if wanted and min_one_batch:
            assert found

    @invariant()
    def same_records(self):
        log = self.log
        assert log.log_end_offset == self.end
        assert log.log_start_offset == self.start
        wanted = [record for record in self.records if record[0] >= self.start]
        found = [record for record in contents(log) if record[0] >= self.start]
        assert found == wanted
        assert log.size_bytes == sum(segment.size for segment in log.segments)
        assert len(log.local_log._hints) <= HINTS_MAX

    @invariant()
    def same_epochs(self):
        for base, _, epoch in self.batches:
            if base >= self.start:
                assert self.log.epochs.epoch_at(base) == epoch


LogAgainstList.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLogAgainstList = LogAgainstList.TestCase


# --- Appending -----------------------------------------------------------------------------------


def test_offsets_and_epoch_are_written_into_the_bytes_given():
    """Rule 42."""
    log = make_log()
    append(log, "a", "b")
    data = batch("c", "d", "e")
    info = log.append_as_leader(data, leader_epoch=7, now_ms=NOW_MS)
    header = read_batch_header(data)
    assert (header.base_offset, header.partition_leader_epoch) == (2, 7)
    assert info == AppendInfo(2, 4, -1, 0, False, len(data))
    assert read(log, 2) == bytes(data)


def test_a_memoryview_is_as_good_as_a_bytearray():
    log = make_log()
    frame = bytearray(b"frame") + batch("a")
    log.append_as_leader(memoryview(frame)[5:], leader_epoch=0, now_ms=NOW_MS)
    assert contents(log) == [(0, "a")]


def test_append_time_topics_answer_the_time():
    """Rules 43, 44."""
    log = make_log(message_timestamp_type="LogAppendTime")
    assert append(log, "a", now_ms=NOW_MS + 5).log_append_time_ms == NOW_MS + 5


def test_a_refused_batch_leaves_no_trace():
    log = make_log(cleanup_policy=frozenset({"compact"}))
    with pytest.raises(InvalidRecord):
        append(log, "no key", epoch=9)
    assert log.log_end_offset == 0
    assert log.leader_epoch == -1
    assert log.size_bytes == 0


def test_compression_type_of_the_topic_is_applied():
    """Rule 48: what is appended is not always what was given."""
    log = make_log(compression_type="zstd")
    info = append(log, "x" * 1000)
    assert info.size_bytes == log.size_bytes < 200
    assert contents(log) == [(0, "x" * 1000)]
    assert read_batch_header(read(log, 0)).base_offset == 0


def test_a_duplicate_is_answered_with_the_original_offsets():
    """Rule 56."""
    log = make_log()
    options = {"producer_id": 5, "producer_epoch": 0, "timestamp": NOW_MS - 7}
    first = append(log, "a", "b", base_sequence=0, **options)
    append(log, "c", base_sequence=2, **options)
    again = append(log, "a", "b", base_sequence=0, **options)
    assert again == AppendInfo(0, 1, NOW_MS - 7, 0, True, 0)
    assert (first.first_offset, log.log_end_offset) == (0, 3)


def test_a_sequence_gap_is_refused():
    """Rule 57."""
    log = make_log()
    append(log, "a", producer_id=5, producer_epoch=0, base_sequence=0)
    with pytest.raises(KafkaError) as error:
        append(log, "b", producer_id=5, producer_epoch=0, base_sequence=2)
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_open_transactions_hold_the_stable_offset():
    """Rule 115; aborted ones are told to readers (rule 116)."""
    log = make_log()
    append(log, "plain")
    append(log, "a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    append(log, "b", producer_id=6, producer_epoch=0, base_sequence=0, transactional=True)
    assert log.first_unstable_offset == 1
    coordinator = AppendOrigin.COORDINATOR
    log.append_as_leader(marker(5), leader_epoch=0, now_ms=NOW_MS, origin=coordinator)
    assert log.first_unstable_offset == 2
    assert log.aborted_transactions(0, 4) == [(5, 1, 3, 2)]
    log.append_as_leader(marker(6, commit=True), leader_epoch=0, now_ms=NOW_MS, origin=coordinator)
    assert log.first_unstable_offset is None
    assert log.aborted_transactions(0, 5) == [(5, 1, 3, 2)]
    assert log.aborted_transactions(4, 5) == []
    log.delete_records_before(1)
    append(log, "c", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.delete_records_before(6)
    assert log.first_unstable_offset == 6


def test_aborted_transactions_are_found_in_later_segments_and_sorted():
    log = make_log()
    for producer_id in (5, 6, 7):
        append(
            log, "x", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )
    for producer_id in (7, 6, 5):
        log.roll()
        log.append_as_leader(
            marker(producer_id), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )
    found = log.aborted_transactions(0, 6)
    assert [(each.producer_id, each.first_offset) for each in found] == [(5, 0), (6, 1), (7, 2)]
    assert log.aborted_transactions(2, 3) == found


def test_segments_roll_by_size_and_get_their_first_offset_as_name():
    log = make_log(segment_bytes=400)
    for number in range(10):
        append(log, "x" * 100, number)
    names = [segment.base_offset for segment in log.segments]
    assert names == list(range(0, 20, 4))
    assert all(segment.size <= 400 for segment in log.segments)


def test_jitter_rolls_segments_earlier_but_never_later():
    """Rule 200: segment.ms less a jitter that differs from segment to segment."""
    log = make_log(segment_ms=1000, segment_jitter_ms=500)
    jitters = []
    for number in range(20):
        append(log, number, timestamp=number * 10_000)
        jitters.append(1000 - log.local_log.roll_after_ms(log.segments.active))
    assert len(set(jitters)) > 10
    assert all(0 <= jitter <= 500 for jitter in jitters)
    assert len(log.segments) == 20
    assert make_log(segment_ms=1000).local_log.roll_after_ms(log.segments.active) == 1000


def test_a_compacted_log_rolls_within_its_compaction_lag():
    """Compaction spares the active segment."""
    config = {"segment_ms": 1000, "max_compaction_lag_ms": 300}
    for policy, limit_ms in (("compact", 300), ("delete", 1000)):
        log = make_log(cleanup_policy=frozenset({policy}), **config)
        assert log.local_log.roll_after_ms(log.segments.active) == limit_ms


def test_an_epoch_is_on_disk_before_its_first_record():
    """Rule 99."""
    disk = SimDisk()
    log = make_log(disk)
    log.begin_epoch(3)
    assert log.leader_epoch == 3
    append(log, "a", epoch=3)
    kinds = [(each[0], each[1].rpartition("/")[2]) for each in disk.trace]
    assert kinds.index(("replace", "leader-epoch-checkpoint")) < kinds.index(
        ("append", "00000000000000000000.log")
    )
    append(log, "b", epoch=5)
    assert disk.read(f"{log.directory}/leader-epoch-checkpoint") == b"0\n2\n3 0\n5 1\n"
    assert log.end_offset_for(3) == (3, 1)
    assert log.end_offset_for(5) == (5, 2)
    assert log.end_offset_for(4) == (3, 1)


def test_an_older_epoch_is_never_begun():
    log = make_log()
    append(log, "a", epoch=3)
    log.begin_epoch(2)
    assert log.leader_epoch == 3


# --- A failing disk ------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_refused_write_is_a_storage_error_and_loses_nothing(code):
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a", producer_id=5, producer_epoch=0, base_sequence=0)
    disk.fail("append", ".log", error=code, times=1)
    with pytest.raises(KafkaError) as error:
        append(log, "b", producer_id=5, producer_epoch=0, base_sequence=1)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 1
    append(log, "b", producer_id=5, producer_epoch=0, base_sequence=1)
    assert contents(log) == [(0, "a"), (1, "b")]


def test_a_full_disk_tears_nothing_off():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a" * 50)
    disk.capacity = sum(len(content.data) for content in disk.files.values()) + 30
    with pytest.raises(KafkaError) as error:
        append(log, "b" * 50)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "no space left" in error.value.message
    disk.capacity = None
    append(log, "c")
    assert contents(log) == [(0, "a" * 50), (1, "c")]
    assert contents(make_log(disk.copy(), clean=False)) == contents(log)


def test_a_torn_write_takes_the_log_offline_until_a_restart():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    disk.capacity = sum(len(content.data) for content in disk.files.values()) + 30
    heal = disk.fail("cut_off", ".log")
    with pytest.raises(KafkaError):
        append(log, "b")
    heal()
    disk.capacity = None
    for attempt in (
        lambda: append(log, "c"),
        lambda: log.append_as_follower(batch("c")),
        lambda: log.truncate_to(0),
        lambda: log.apply_retention(NOW_MS),
    ):
        with pytest.raises(KafkaError) as error:
            attempt()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert "offline" in error.value.message
    again = make_log(disk, clean=False)
    assert contents(again) == [(0, "a")]
    append(again, "c")


def test_a_deleted_log_is_not_mistaken_for_a_new_one_of_its_name():
    """A fetch may still hold the old one when it is woken."""
    disk = SimDisk()
    log = make_log(disk)
    append(log, "old", "old")
    position = log.log_end_position
    log.discard()
    disk.rename(log.directory, log.directory + ".gone")
    append(make_log(disk), "new")
    for ask in (
        lambda: log.read(0, max_bytes=100, upper=position, min_one_batch=True),
        lambda: log.position_of(0),
        lambda: log.offset_for_timestamp(0, upper_offset=5),
        lambda: log.offset_of_max_timestamp(),
        lambda: log.aborted_transactions(0, 5),
    ):
        with pytest.raises(KafkaError) as error:
            ask()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_refused_transaction_index_is_made_good_later():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    heal = disk.fail("append", ".txnindex")
    log.append_as_leader(marker(5), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert log.aborted_transactions(0, 2) == [(5, 0, 1, 2)]
    heal()
    log.close()
    assert make_log(disk).aborted_transactions(0, 2) == [(5, 0, 1, 2)]


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.read(0, max_bytes=100, upper=LogPosition(2, 0, 10), min_one_batch=True),
        lambda log: list(log.read_batches(0)),
        lambda log: log.position_of(0),
        lambda log: log.offset_for_timestamp(0, upper_offset=5),
        lambda log: log.offset_of_max_timestamp(),
        lambda log: log.aborted_transactions(0, 5),
    ],
)
def test_unreadable_files_are_storage_errors(ask):
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_as_leader(marker(5), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    log.close()
    log = make_log(disk)
    for operation in ("open", "pread", "read"):
        disk.fail(operation)
    with pytest.raises(KafkaError) as error:
        ask(log)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_region_that_cannot_be_read_is_a_storage_error():
    disk = SimDisk()
    log = make_log(disk)
    for number in range(3):
        append(log, number)
    batches = log.read_batches(0)
    disk.fail("pread")
    log.local_log._hints[0] = (log.segments.active, 0)
    with pytest.raises(KafkaError) as error:
        next(batches)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
