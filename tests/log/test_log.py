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

from kafkalite.log.local_log import HINTS_MAX, OPEN_SEGMENTS_MAX
from kafkalite.log.state import AppendInfo
from kafkalite.log.validate import AppendOrigin, InvalidRecord
from kafkalite.types import LogPosition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import iterate_batches, read_batch_header, set_offset_and_epoch
from tests.log.log_kit import (
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

SMALL = {"segment_bytes": 1500, "index_interval_bytes": 200, "segment_ms": 2**60}


def read(log, offset, *, max_bytes=1 << 20, upper=None, min_one_batch=True):
    region = log.read(
        offset,
        max_bytes=max_bytes,
        upper=upper or log.log_end_position,
        min_one_batch=min_one_batch,
    )
    return region.read()


def offsets_in(data):
    """Return (base offset, last offset) of each batch, having checked that all are whole."""
    spans = [(header.base_offset, header.last_offset) for _, header in iterate_batches(data)]
    assert sum(header.size for _, header in iterate_batches(data)) == len(data)
    return spans


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


# --- Following -----------------------------------------------------------------------------------


def copied(*logs, offset=0):
    return bytearray(b"".join(read(log, offset) for log in logs))


def test_a_follower_has_the_leaders_bytes():
    """Rule 170; producers' state and epochs are built from them (rule 66)."""
    leader, follower = make_log(), make_log()
    append(leader, "a", "b", epoch=2)
    append(leader, "c", epoch=4, producer_id=5, producer_epoch=0, base_sequence=0)
    info = follower.append_as_follower(copied(leader))
    assert (info.first_offset, info.last_offset) == (0, 2)
    assert copied(follower) == copied(leader)
    assert follower.epochs.entries == leader.epochs.entries
    assert follower.producers.get(5).last_sequence == 0
    assert follower.producers.has_whole_history


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_follower_that_misses_records_takes_any_producer_for_known(lost):
    """Compaction may have removed all that a producer has written, which goes on (rule 230)."""
    leader, follower = make_log(), make_log()
    for value in "abc":
        append(leader, value)
    whole = copied(leader)
    size = len(whole) // 3
    for at in range(3):
        if at != lost:
            follower.append_as_follower(whole[at * size : (at + 1) * size])
    assert not follower.producers.has_whole_history or lost == 2
    append(follower, "d", producer_id=5, base_sequence=0 if lost == 2 else 7)


def test_a_follower_leaves_out_what_is_not_whole():
    leader, follower = make_log(), make_log()
    append(leader, "a")
    append(leader, "b")
    info = follower.append_as_follower(copied(leader)[:-1])
    assert info.last_offset == 0
    assert follower.append_as_follower(bytearray(b"few bytes")) is None


def test_a_follower_does_not_run_ahead_of_the_epoch_it_fetched_in():
    """Rule 170 (KAFKA-18723)."""
    leader, follower = make_log(), make_log()
    append(leader, "a", epoch=2)
    append(leader, "b", epoch=3)
    assert follower.append_as_follower(copied(leader), leader_epoch=2).last_offset == 0
    assert follower.append_as_follower(copied(leader, offset=1), leader_epoch=2) is None
    assert follower.append_as_follower(copied(leader, offset=1), leader_epoch=3).last_offset == 1
    assert follower.epochs.entries == leader.epochs.entries


def test_a_follower_takes_gaps_but_no_steps_back():
    follower = make_log()
    data = batch("a")
    set_offset_and_epoch(data, 0, base_offset=10, leader_epoch=0)
    follower.append_as_follower(data)
    assert follower.log_end_offset == 11
    with pytest.raises(KafkaError) as error:
        follower.append_as_follower(data)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(follower, 3) == bytes(data)


def test_a_gap_beyond_int32_begins_a_new_segment_at_its_end():
    """Rule 200; the empty first segment is of no use then."""
    follower = make_log()
    for base_offset in (5, 5 + 2**31):
        data = batch("a")
        set_offset_and_epoch(data, 0, base_offset=base_offset, leader_epoch=0)
        follower.append_as_follower(data)
    assert [segment.base_offset for segment in follower.segments] == [0, 5 + 2**31]
    fresh = make_log()
    data = batch("a")
    set_offset_and_epoch(data, 0, base_offset=2**40, leader_epoch=0)
    fresh.append_as_follower(data)
    assert [segment.base_offset for segment in fresh.segments] == [2**40]
    assert contents(fresh) == [(2**40, "a")]


def test_an_empty_follower_begins_where_the_leaders_batch_does():
    """DeleteRecords left the leader's log start inside a batch."""
    leader = make_log()
    append(leader, "a", "b", "c")
    leader.delete_records_before(2)
    follower = make_log()
    follower.truncate_fully_and_start_at(2)
    follower.append_as_follower(copied(leader, offset=2))
    assert (follower.log_start_offset, follower.log_end_offset) == (2, 3)
    assert copied(follower, offset=2) == copied(leader, offset=2)


def test_markers_reach_a_followers_state():
    leader, follower = make_log(), make_log()
    append(leader, "a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    follower.append_as_follower(copied(leader))
    assert follower.first_unstable_offset == 0
    leader.append_as_leader(
        marker(5), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    follower.append_as_follower(copied(leader, offset=1))
    assert follower.first_unstable_offset is None
    assert follower.aborted_transactions(0, 2) == leader.aborted_transactions(0, 2)


# --- Reading -------------------------------------------------------------------------------------


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


# --- Listening -----------------------------------------------------------------------------------


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


# --- Batches sent again --------------------------------------------------------------------------

PRODUCER = {"producer_id": 5, "producer_epoch": 0}


def send_again(log, sequences):
    return [
        append(log, f"v{sequence}", base_sequence=sequence, **PRODUCER) for sequence in sequences
    ]


@pytest.mark.parametrize("how", ["stop", "crash", "truncation"])
def test_last_five_batches_of_a_producer_are_recognised_afterwards(how):
    """Rules 56 and 232. After an orderly stop Kafka knows the last one only."""
    disk = SimDisk()
    log = make_log(disk)
    send_again(log, range(7))
    if how == "truncation":
        log.roll()
        append(log, "to be cut off")
        log.truncate_to(7)
    else:
        if how == "stop":
            log.close()
        log = make_log(disk, clean=how == "stop")
    again = send_again(log, range(2, 7))
    assert [(info.first_offset, info.duplicate) for info in again] == [
        (offset, True) for offset in range(2, 7)
    ]
    with pytest.raises(KafkaError) as error:
        send_again(log, [1])
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not send_again(log, [7])[0].duplicate


def test_follower_that_is_promoted_recognises_the_last_five_batches():
    leader, follower = make_log(), make_log()
    send_again(leader, range(7))
    follower.append_as_follower(copied(leader))
    assert all(info.duplicate for info in send_again(follower, range(2, 7)))
