"""Compaction of a log's files: when, what is swapped, and what crashes and changes leave behind."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.log.cleaner import (
    PAUSE_BYTES,
    PAUSE_RECORDS,
    PAUSE_S,
    READ_BYTES,
    WRITE_BYTES,
    CleanerSettings,
    CleaningPass,
    Throttle,
    filthiest,
    group_sources,
)
from kafkalite.log.compaction import ENTRY_BYTES
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.compression import Codec
from kafkalite.wire.records import iterate_records, read_batch_header
from tests.log.cleaner_kit import (
    COMPACT,
    SETTINGS,
    clean_plan,
    compact,
    contents,
    filled,
    plan_of,
    write,
)
from tests.log.log_kit import NOW_MS, NotingListener, append, make_log, marker
from tests.log.sim_disk import SimDisk


class TestPlan:
    def test_active_segment_is_never_cleaned(self):
        """Rule 205."""
        log = make_log(**COMPACT)
        write(log, "a1")
        write(log, "a2")
        assert plan_of(log) is None
        log.roll()
        plan = plan_of(log)
        assert (plan.first_dirty_offset, plan.upper_offset) == (0, 2)
        assert plan.topic_partition == log.topic_partition

    def test_segment_with_undecided_records_is_not_cleaned(self):
        """Rule 205: nothing at or above the last stable offset."""
        log = filled(["a1"], ["a2", "b2"], ["a3"])
        assert plan_of(log, stable=3).upper_offset == 3
        assert plan_of(log, stable=2).upper_offset == 1
        assert plan_of(log, stable=0) is None

    def test_young_records_wait_for_min_compaction_lag(self):
        log = make_log(**COMPACT, min_compaction_lag_ms=1000)
        for timestamp in (NOW_MS - 5000, NOW_MS - 1000, NOW_MS - 999, NOW_MS - 9999):
            write(log, "a1", timestamp=timestamp)
            log.roll()
        assert plan_of(log).upper_offset == 2
        assert plan_of(log, now_ms=NOW_MS + 1).upper_offset == 4
        # What is clean already may be read again whatever its age.
        assert plan_of(log, checkpoint=3).upper_offset == 4

    def test_dirty_ratio_is_that_of_bytes_not_yet_cleaned(self):
        log = filled(["a1"], ["a2"], ["a3"], ["a4"])
        plan = plan_of(log, checkpoint=3)
        assert (plan.clean_bytes, plan.dirty_bytes) == (
            sum(segment.size for segment in list(log.segments)[:3]),
            list(log.segments)[3].size,
        )
        assert plan.dirty_ratio == pytest.approx(0.25)
        assert not plan.is_due
        assert plan_of(log, checkpoint=1).is_due
        assert not plan_of(log, checkpoint=4).is_due
        assert plan_of(log, checkpoint=4).dirty_ratio == 0

    def test_empty_log_has_no_ratio(self):
        log = filled(["a1"])
        plan = plan_of(log)
        compact(log)
        log.segments.first.size = 0
        assert plan.is_due
        assert plan_of(log).dirty_ratio == 0

    def test_segment_that_is_partly_clean_counts_as_dirty(self):
        """Where the offset map became full within it."""
        log = filled(["a1", "a2"], ["a3"])
        assert plan_of(log, checkpoint=1).clean_bytes == 0

    @pytest.mark.parametrize("checkpoint", [-1, 99])
    def test_checkpoint_outside_of_the_log_counts_for_nothing(self, checkpoint):
        log = filled(["a1"], ["a2"])
        assert plan_of(log, checkpoint=checkpoint).first_dirty_offset == 0

    def test_max_compaction_lag_makes_a_log_due_whatever_its_ratio(self):
        log = make_log(
            **{**COMPACT, "min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": 1000}
        )
        write(log, "a1", timestamp=NOW_MS - 500)
        log.roll()
        assert not plan_of(log).is_due
        assert not plan_of(log, now_ms=NOW_MS + 500).is_due
        assert plan_of(log, now_ms=NOW_MS + 501).is_due
        assert not plan_of(log, now_ms=NOW_MS + 501, checkpoint=1).is_due

    def test_filthiest_of_those_due(self):
        clean_one = plan_of(filled(["a1"]), checkpoint=1)
        dirty = plan_of(filled(["a1"], ["a2"], ["a3"]), checkpoint=1)
        dirtier = plan_of(filled(["a1"]))
        assert filthiest([None, dirty, clean_one, dirtier]) is dirtier
        assert filthiest([None, dirty, clean_one]) is dirty
        assert filthiest([None, clean_one]) is None


class TestPass:
    def test_segments_are_replaced_and_offsets_stay(self):
        """Rule 205."""
        listener = NotingListener()
        log = make_log(**COMPACT, listener=listener)
        for batches in (["a1 b1", "a2"], ["c1 a3", "d1"]):
            for text in batches:
                write(log, text)
            log.roll()
        write(log, "b9")
        before = log.size_bytes
        end = log.log_end_offset
        statistics = compact(log)
        assert contents(log) == ["1 b1", "3 c1", "4 a3", "5 d1", "6 b9"]
        assert log.log_end_offset == end
        assert statistics.clean_offset == 6
        assert (statistics.records_before, statistics.records_after) == (6, 4)
        assert (statistics.segments_before, statistics.segments_after) == (2, 1)
        assert statistics.bytes_before - statistics.bytes_after == before - log.size_bytes
        assert statistics.map_entries == 4
        assert [segment.base_offset for segment in listener.removed] == [0, 3]
        assert [segment.base_offset for segment in log.segments] == [0, 6]

    def test_every_offset_can_still_be_read_from(self):
        """Rule 73 and gap-tolerant look-up: the first record at or after any offset."""
        log = filled(["a1 b1 c1", "a2 b2"], ["a3", "a4 d1"], ["a5 b3"])
        compact(log)
        left = [int(line.split()[0]) for line in contents(log)]
        for offset in range(log.log_end_offset):
            first = next(iter(log.read_batches(offset)))
            offsets = [record.offset for record in iterate_records(first)]
            expected = next(at for at in left if at >= offset)
            assert expected in offsets

    def test_second_pass_reads_on_from_the_checkpoint(self):
        log = filled(["a1 b1"], ["a2"])
        assert compact(log).clean_offset == 3
        write(log, "b2")
        log.roll()
        statistics = compact(log, checkpoint=3)
        assert (statistics.clean_offset, statistics.map_entries) == (4, 1)
        assert contents(log) == ["2 a2", "3 b2"]

    def test_full_map_ends_the_clean_part_early(self):
        log = filled(["a1 b1", "c1 d1"], ["a2 b2", "e1"])
        small = CleanerSettings(dedupe_buffer_size=2 * ENTRY_BYTES, io_buffer_load_factor=1.0)
        checkpoint = None
        rounds = []
        for _ in range(4):
            checkpoint = compact(log, checkpoint=checkpoint, settings=small).clean_offset
            rounds.append(checkpoint)
        assert rounds == [2, 4, 6, 7]
        assert contents(log) == ["2 c1", "3 d1", "4 a2", "5 b2", "6 e1"]

    def test_io_is_throttled(self):
        """log.cleaner.io.max.bytes.per.second counts what is read and what is written."""
        slept = []
        throttle = Throttle(1000.0, slept.append)
        throttle.count(PAUSE_BYTES - 1)
        assert slept == []
        throttle.count(1)
        throttle.count(500)
        throttle.pause()
        assert slept == [PAUSE_BYTES / 1000, 0.5]

    def test_pauses_go_by_records_too(self):
        """Else a compressed batch of a thousand records would count as a few hundred bytes."""
        slept = []
        throttle = Throttle(inf, slept.append)
        throttle.count(10, PAUSE_RECORDS - 1)
        throttle.count(10, 1)
        throttle.count(10, PAUSE_RECORDS)
        assert slept == [PAUSE_S, PAUSE_S]

    def test_a_pass_pauses(self):
        log = make_log(**COMPACT)
        for _ in range(3):
            append(log, *"x" * PAUSE_RECORDS, keys=[b"%d" % n for n in range(PAUSE_RECORDS)])
        log.roll()
        slept = []
        work = CleaningPass(plan_of(log), SETTINGS, now_ms=NOW_MS, sleep=slept.append)
        (group,) = work.build_map()
        assert len(slept) == 3
        work.clean_group(group)
        assert len(slept) == 6

    def test_segments_behind_a_full_map_are_not_touched(self):
        log = filled(["a1 b1"], ["c1"], ["d1"])
        small = CleanerSettings(dedupe_buffer_size=ENTRY_BYTES, io_buffer_load_factor=1.0)
        untouched = list(log.segments)[1:]
        compact(log, settings=small)
        assert list(log.segments)[1:] == untouched

    def test_batches_larger_than_a_chunk(self):
        log = make_log(**COMPACT, max_message_bytes=1 << 30)
        large = b"x" * (READ_BYTES + 1000)
        append(log, large, b"small", keys=[b"a", b"b"])
        append(log, b"y" * (WRITE_BYTES + 1), keys=[b"c"])
        append(log, b"y" * (WRITE_BYTES + 1), keys=[b"e"])
        append(log, large, b"more", keys=[b"a", b"d"])
        append(log, b"z", keys=[b"c"])
        log.roll()
        statistics = compact(log)
        assert statistics.records_after == 5
        assert [line[:3] for line in contents(log)] == ["1 b", "3 e", "4 a", "5 d", "6 c"]

    @pytest.mark.parametrize("codec", Codec)
    def test_codecs(self, codec):
        log = make_log(**COMPACT)
        for text in ("a1 b1 c1", "a2", "b2 d1"):
            write(log, text, codec=codec)
        log.roll()
        compact(log)
        assert contents(log) == ["2 c1", "3 a2", "4 b2", "5 d1"]

    def test_indexes_of_the_new_segment_find_everything(self):
        log = make_log(**COMPACT, index_interval_bytes=0)
        for number in range(50):
            append(log, "x" * 20, keys=[b"%d" % (number % 30)], timestamp=NOW_MS - 100 + number)
        log.roll()
        compact(log)
        segment = log.segments.first
        assert len(segment.offset_index) > 10
        assert segment.largest.timestamp == NOW_MS - 51
        offset, timestamp, _ = log.offset_for_timestamp(NOW_MS - 75, upper_offset=50)
        assert (offset, timestamp) == (25, NOW_MS - 75)
        for offset in range(50):
            assert read_batch_header(next(iter(log.read_batches(offset)))).base_offset >= offset

    def test_modification_time_is_handed_on(self):
        log = filled(["a1"], ["a2"])
        list(log.segments)[1].modified_ms = 1234
        compact(log)
        assert log.segments.first.modified_ms == 1234

    def test_nothing_but_the_last_header_may_be_left(self):
        log = make_log(**{**COMPACT, "cleanup_policy": frozenset({"delete"})})
        append(log, "x")
        append(log, "y")
        log.roll()
        write(log, "a1")
        log.roll()
        compact(log)
        assert contents(log) == ["2 a1"]


class TestTransactions:
    def produce(self, log, text, producer_id, sequence, **options):
        write(
            log,
            text,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
            **options,
        )

    def end(self, log, producer_id, *, commit):
        log.append_as_leader(
            marker(producer_id, commit=commit),
            leader_epoch=0,
            now_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR,
        )

    def test_aborted_data_go_and_the_index_follows(self):
        """Rule 208."""
        log = make_log(**COMPACT, delete_retention_ms=1000)
        self.produce(log, "a1", 1, 0)
        self.produce(log, "a2 b2", 2, 0)
        log.roll()
        self.end(log, 2, commit=False)
        self.end(log, 1, commit=True)
        log.roll()
        compact(log)
        assert contents(log) == ["0 a1"]
        assert len(log.aborted_transactions(0, 9)) == 1
        log.producers.remove_expired(NOW_MS + 1, expiration_ms=1)  # else their last batches stay
        compact(log, checkpoint=5)
        assert len(log.aborted_transactions(0, 9)) == 1
        compact(log, checkpoint=5)
        assert log.aborted_transactions(0, 9) == []
        assert contents(log) == ["0 a1"]

    def test_producers_are_known_as_before_after_a_crash(self):
        """Rule 207."""
        log = make_log(**COMPACT)
        self.produce(log, "a1", 1, 0)
        self.produce(log, "a2 b2", 2, 0)
        self.end(log, 2, commit=False)
        self.end(log, 1, commit=True)
        write(log, "a3")
        log.roll()
        compact(log)
        assert contents(log) == ["5 a3"]
        for path in [path for path in log.local_log._disk.files if path.endswith(".snapshot")]:
            del log.local_log._disk.files[path]
        again = make_log(log.local_log._disk, clean=False, **COMPACT)
        assert [state.last_sequence for state in again.producers] == [0, 1]

    def test_transaction_that_is_open_at_the_end_stays(self):
        log = make_log(**COMPACT)
        self.produce(log, "a1", 1, 0)
        log.roll()
        self.produce(log, "a2", 1, 1)
        log.roll()
        assert plan_of(log, stable=log.first_unstable_offset) is None


class TestNothingLeft:
    """A segment of which nothing is left stays, empty: the log begins where it began."""

    def emptied(self):
        log = filled(["a1", "a2"], ["a3"], segment_bytes=200)
        compact(log)
        assert log.segments.first.size == 0
        assert contents(log) == ["2 a3"]
        return log

    @pytest.mark.parametrize("policy", ["compact", "delete"])
    def test_after_an_orderly_stop(self, policy):
        log = self.emptied()
        log.close()
        again = make_log(log.local_log._disk, cleanup_policy=frozenset({policy}))
        assert (again.log_start_offset, contents(again)) == (0, ["2 a3"])

    @pytest.mark.parametrize("recovery_point", [0, 3])
    @pytest.mark.parametrize("policy", ["compact", "delete"])
    def test_after_a_crash(self, policy, recovery_point):
        log = self.emptied()
        policies = frozenset({policy})
        disk = log.local_log._disk
        again = make_log(disk, clean=False, recovery_point=recovery_point, cleanup_policy=policies)
        assert (again.log_start_offset, contents(again)) == (0, ["2 a3"])
        assert again.end_offset_for(0) == (0, 3)
        again.close()
        third = make_log(disk, cleanup_policy=policies)
        assert (third.log_start_offset, contents(third)) == (0, ["2 a3"])


class TestGroups:
    """Small neighbours become one segment."""

    def groups(self, *segments, **config):
        log = filled(*segments, **config)
        groups = CleaningPass(plan_of(log), SETTINGS, now_ms=NOW_MS).build_map()
        return [[source.base_offset for source in group] for group in groups]

    def test_by_size(self):
        size = filled(["a1"]).size_bytes
        assert self.groups(["a1"], ["a2"], ["a3"]) == [[0, 1, 2]]
        assert self.groups(["a1"], ["a2"], ["a3"], segment_bytes=2 * size) == [[0, 1], [2]]
        assert self.groups(["a1"], ["a2"], ["a3"], segment_bytes=size) == [[0], [1], [2]]

    def test_by_size_of_indexes(self):
        batches = ["a1", "a2", "a3", "a4"]
        config = {"index_interval_bytes": 0}
        assert self.groups(batches, batches, **config) == [[0, 4]]
        assert self.groups(batches, batches, **config, segment_index_bytes=40) == [[0], [4]]

    def test_by_relative_offset(self):
        log = filled(["a1"], ["a2"])
        ((first, second),) = CleaningPass(plan_of(log), SETTINGS, now_ms=NOW_MS).build_map()
        reaching = replace(second, next_base_offset=2**31)
        assert len(group_sources([first, reaching], log.config)) == 1
        reaching = replace(second, next_base_offset=2**31 + 1)
        assert len(group_sources([first, reaching], log.config)) == 2


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_compacted_log_means_the_same(data):
    """Random logs, rounds and restarts: last value of each key, records at their offsets."""
    letters = st.sampled_from("abcde")
    disk = SimDisk()
    config = {**COMPACT, "segment_bytes": data.draw(st.sampled_from([200, 400, 10_000]))}
    log = make_log(disk, **config)
    table = {}
    written = {}
    checkpoint = None
    for _ in range(data.draw(st.integers(1, 5), label="rounds")):
        for _ in range(data.draw(st.integers(0, 12), label="batches")):
            keys = data.draw(st.lists(letters, min_size=1, max_size=4))
            offset = log.log_end_offset
            text = " ".join(f"{key}{offset + at}" for at, key in enumerate(keys))
            write(log, text, codec=data.draw(st.sampled_from([Codec.NONE, Codec.SNAPPY])))
            for at, key in enumerate(keys):
                table[key] = str(offset + at)
                written[offset + at] = key
        if data.draw(st.booleans(), label="roll"):
            log.roll()
        plan = plan_of(log, checkpoint=checkpoint)
        if plan is not None:
            memory = data.draw(st.sampled_from([0, 3 * ENTRY_BYTES, 1 << 20]), label="memory")
            small = CleanerSettings(dedupe_buffer_size=memory, io_buffer_load_factor=1.0)
            checkpoint = clean_plan(plan, settings=small, now_ms=NOW_MS).clean_offset
        if data.draw(st.booleans(), label="restart"):
            clean_stop = data.draw(st.booleans())
            if clean_stop:
                log.close()
            log = make_log(disk, clean=clean_stop, **config)
        found = {}
        for line in contents(log):
            offset, record = line.split()
            assert record == f"{written[int(offset)]}{offset}"
            found[record[0]] = record[1:]
        assert found == table
        for offset in range(log.log_end_offset):
            assert next(iter(log.read_batches(offset)), None) is not None
