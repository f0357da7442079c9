"""Compaction while a log is written, after a crash, and by threads."""

import random

import pytest
import trio

from kafkalite.log.cleaner import (
    CleaningAborted,
    clean,
)
from kafkalite.log.disk import OsDisk
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.cleaner_kit import COMPACT, SETTINGS, compact, contents, filled, plan_of, write
from tests.log.log_kit import NOW_MS, make_log
from tests.log.sim_disk import SimDisk


class ThreadedDisk(SimDisk):
    """Does something else on the event loop before or after a step in a worker thread."""

    def __init__(self):
        super().__init__()
        self.interruptions = {}

    async def run_in_thread(self, function, *arguments):
        self.interruptions.pop(f"before {function.__name__}", int)()
        result = function(*arguments)
        self.interruptions.pop(f"after {function.__name__}", int)()
        return result


class TestInterference:
    """The log goes on while a worker thread reads its files."""

    @pytest.fixture
    def disk(self):
        return ThreadedDisk()

    def leftovers(self, disk):
        return [path for path in disk.files if "cleaned" in path or "swap" in path]

    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize("step", ["build_map", "clean_group"])
    def test_appends_do_not_matter(self, disk, moment, step):
        def go_on():
            write(log, "a3")
            log.roll()
            write(log, "a4")

        log = filled(["a1"], ["a2"], disk=disk)
        disk.interruptions[f"{moment} {step}"] = go_on
        compact(log)
        assert contents(log) == ["1 a2", "2 a3", "3 a4"]

    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize("step", ["build_map", "clean_group"])
    @pytest.mark.parametrize("what", ["deletion", "truncation", "cut", "rewritten", "close"])
    def test_change_of_a_segment_that_was_read_aborts_the_pass(self, disk, moment, step, what):
        def change():
            if what == "deletion":
                log.delete_records_before(1)
                log.apply_retention(NOW_MS)
            elif what == "truncation":
                log.truncate_fully_and_start_at(0)
            elif what == "close":
                log.close()
            else:
                log.truncate_to(3)
            if what == "rewritten":
                write(log, "c9")
                log.roll()
            segments.extend(log.segments)

        segments = []
        log = filled(["a1"], ["b2 a2", "c3"], ["d4"], disk=disk)
        disk.interruptions[f"{moment} {step}"] = change
        with pytest.raises(CleaningAborted, match="t-0"):
            compact(log)
        assert list(log.segments) == segments
        assert self.leftovers(disk) == []

    @pytest.mark.parametrize("operation", ["append", "sync", "create"])
    def test_full_or_failing_disk_leaves_the_log_as_it_is(self, disk, operation):
        log = filled(["a1"], ["a2"], disk=disk)
        before = contents(log)
        disk.fail(operation, ".cleaned")
        with pytest.raises(OSError, match="simulated"):
            compact(log)
        assert contents(log) == before
        assert self.leftovers(disk) == []

    @pytest.mark.parametrize("checkpoint", [0, 3])
    def test_damaged_batch_leaves_the_log_as_it_is(self, disk, checkpoint):
        log = filled(["a1", "b1"], ["a2"], ["a3"], disk=disk)
        disk.files["/data/t-0/00000000000000000000.log"].data[-1] ^= 1
        segments = list(log.segments)
        with pytest.raises(KafkaError) as caught:
            compact(log, checkpoint=checkpoint)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        assert list(log.segments) == segments
        assert self.leftovers(disk) == []

    @pytest.mark.parametrize("length", [1 << 20, 3])
    def test_batch_that_claims_more_than_the_file_has_is_damage(self, disk, length):
        log = filled(["a1", "b1"], ["a2"], disk=disk)
        data = disk.files["/data/t-0/00000000000000000000.log"].data
        data[8:12] = length.to_bytes(4, "big")
        with pytest.raises(KafkaError) as caught:
            compact(log)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE

    def test_torn_header_at_the_end_is_damage(self, disk):
        log = filled(["a1", "b1"], ["a2"], disk=disk)
        log.segments.first.size += 10
        disk.files["/data/t-0/00000000000000000000.log"].data += bytes(10)
        with pytest.raises(KafkaError, match="no whole batch at byte"):
            compact(log)


class TestCrash:
    def test_crash_at_any_moment_leaves_old_or_new(self):
        """Rule 205, Kafka's .cleaned and .swap: the table is the same after every change."""
        disk = SimDisk()
        log = filled(["a1 b1", "a2"], ["c1", "a3 b2"], disk=disk)
        write(log, "d1")
        base = len(disk.trace)
        compact(log)
        assert len(disk.trace) - base > 10
        for count in range(base, len(disk.trace) + 1):
            crashed = SimDisk.replay(disk.trace, count)
            again = make_log(crashed, clean=False, **COMPACT)
            table = dict(line.split()[1] for line in contents(again))
            assert table == {"a": "3", "b": "2", "c": "1", "d": "1"}
            assert again.log_end_offset == log.log_end_offset
            leftovers = [path for path in crashed.files if "cleaned" in path or "swap" in path]
            assert leftovers == []

    def test_power_failure_after_the_swap_loses_nothing(self):
        """The new segment is synced before the old one goes."""
        for seed in range(20):
            disk = SimDisk()
            log = filled(["a1 b1", "a2"], ["c1", "a3 b2"], disk=disk)
            log.flush_now()
            compact(log)
            survivor = disk.after_power_failure(random.Random(seed))
            again = make_log(survivor, clean=False, recovery_point=6, **COMPACT)
            assert contents(again) == contents(log)


class TestInThreads:
    def test_whole_pass_on_a_real_disk(self, tmp_path):
        async def main():
            disk = OsDisk()
            log = filled(
                ["a1 b1", "a2"], ["c1", "a3 b2"], disk=disk, directory=str(tmp_path / "t-0")
            )
            statistics = await clean(plan_of(log), disk, settings=SETTINGS, now_ms=NOW_MS)
            assert statistics.clean_offset == 6
            assert contents(log) == ["3 c1", "4 a3", "5 b2"]
            log.close()

        trio.run(main)
