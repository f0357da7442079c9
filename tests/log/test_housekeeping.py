"""What happens to logs by itself, on trio's mock clock; and that nothing happens when idle."""

import errno
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from kafkalite.log.cleaner import CleanerSettings
from kafkalite.log.housekeeping import HousekeepingSettings, Schedule
from kafkalite.log.manager import LogManager
from kafkalite.log_config import LogConfig
from kafkalite.types import TopicPartition
from tests.log.log_kit import NOW_MS, append, contents
from tests.log.sim_disk import SimDisk

TP = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)


class TrioClock:
    """The clock of the trio run, so that sleeping and looking agree."""

    def monotonic_ms(self):
        return round(trio.current_time() * 1000)

    def real_monotonic_ms(self):
        return self.monotonic_ms()

    def wall_ms(self):
        return NOW_MS + self.monotonic_ms()


def keep_house(scenario, *, disk=None, settings=None, **config):
    """Run `scenario(manager, log, disk)` beside housekeeping; time passes when all wait."""
    disk = disk or SimDisk()

    async def main():
        manager = LogManager(["/data"], disk, TrioClock(), settings=settings)
        manager.claim(node_id=1)
        manager.load(lambda _: LogConfig(**config))
        log = manager.get(TP) or manager.create(TP, TOPIC_ID, LogConfig(**config))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(manager.housekeeping)
            await scenario(manager, log, disk)
            nursery.cancel_scope.cancel()
        manager.close()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return disk


def names(disk, suffix=""):
    return [entry.name for entry in disk.list("/data/t-0") if entry.name.endswith(suffix)]


def test_agenda_keeps_the_earliest_time_of_each_thing():
    agenda = Schedule()
    assert agenda.next_due_ms == 2**63 - 1
    assert agenda.add("a", 50)
    assert not agenda.add("a", 60)
    assert not agenda.add("b", 70)
    assert agenda.add("b", 40)
    assert agenda.take(39) == []
    assert agenda.take(50) == ["a", "b"]
    assert agenda.next_due_ms == 2**63 - 1


def test_a_rolled_segment_is_flushed_in_the_background():
    async def scenario(manager, log, disk):
        append(log, "a")
        log.roll()
        assert log.local_log.recovery_point == 0
        await trio.sleep(0.01)
        assert log.local_log.recovery_point == 1

    keep_house(scenario)


def test_recovery_points_reach_the_disk_a_minute_after_a_flush():
    async def scenario(manager, log, disk):
        append(log, "a")
        log.roll()
        await trio.sleep(59)
        with pytest.raises(FileNotFoundError):
            disk.read("/data/recovery-point-offset-checkpoint")
        await trio.sleep(2)
        assert disk.read("/data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 1\n"

    keep_house(scenario)


def test_flush_ms_and_flush_messages_are_kept():
    async def scenario(manager, log, disk):
        append(log, "a", now_ms=TrioClock().wall_ms())
        await trio.sleep(0.4)
        assert log.local_log.recovery_point == 0
        await trio.sleep(0.2)
        assert log.local_log.recovery_point == 1
        append(log, "b", "c", "d", now_ms=TrioClock().wall_ms())
        await trio.sleep(0.01)
        assert log.local_log.recovery_point == 4

    keep_house(scenario, flush_ms=500, flush_messages=3)


def test_a_shorter_flush_ms_takes_effect_at_once():
    async def scenario(manager, log, disk):
        append(log, "a", now_ms=TrioClock().wall_ms())
        await trio.sleep(10)
        assert log.local_log.recovery_point == 0
        manager.update_config(TP, LogConfig(flush_ms=100))
        manager.update_config(TopicPartition("other", 0), LogConfig())
        await trio.sleep(0.1)
        assert log.local_log.recovery_point == 1

    keep_house(scenario)


def test_a_failing_flush_takes_one_log_offline_and_housekeeping_goes_on(caplog):
    async def scenario(manager, log, disk):
        append(log, "a")
        disk.fail("sync", "t-0/")
        log.roll()
        await trio.sleep(0.1)
        assert "flush" in log.failure
        other = manager.create(TopicPartition("u", 0), TOPIC_ID, LogConfig())
        append(other, "b")
        other.roll()
        await trio.sleep(0.1)
        assert other.local_log.recovery_point == 1

    disk = keep_house(scenario)
    assert "flush failed" in caplog.text
    with pytest.raises(FileNotFoundError):
        disk.read("/data/.kafka_cleanshutdown")


def test_a_flush_that_cannot_begin_is_told(caplog):
    async def scenario(manager, log, disk):
        for number in range(3):
            append(log, number)
        heal = disk.fail("append", ".index")
        log.roll()
        await trio.sleep(0.1)
        assert log.local_log.recovery_point == 0
        assert log.failure is None
        heal()

    keep_house(scenario, index_interval_bytes=0)
    assert "flush failed" in caplog.text


def test_retention_comes_every_five_minutes():
    """Rule 201."""

    async def scenario(manager, log, disk):
        for number in range(5):
            append(log, number, now_ms=TrioClock().wall_ms(), timestamp=NOW_MS)
        await trio.sleep(31)
        assert len(log.segments) == 5
        manager.update_config(TP, LogConfig(retention_ms=200_000, segment_bytes=100))
        await trio.sleep(298)
        assert len(log.segments) == 5
        await trio.sleep(2)
        assert (len(log.segments), log.log_start_offset) == (1, 5)

    keep_house(scenario, segment_bytes=100)


def test_retention_respects_the_high_watermark():
    """Rule 202."""

    async def scenario(manager, log, disk):
        manager.bounds = lambda log: (2, 2)
        for number in range(5):
            append(log, number, timestamp=NOW_MS)
        await trio.sleep(600)
        assert log.log_start_offset == 2
        assert manager.apply_retention(TP, NOW_MS + 10_000) == 0

    keep_house(scenario, segment_bytes=100, retention_ms=1000)


def test_deleted_segments_go_after_file_delete_delay_ms():
    """Rule 203."""

    async def scenario(manager, log, disk):
        for number in range(5):
            append(log, number)
        log.delete_records_before(3)
        manager.apply_retention(TP, NOW_MS)
        assert len(names(disk, ".deleted")) == 9
        await trio.sleep(59)
        append(log, "later")
        log.delete_records_before(4)
        manager.apply_retention(TP, NOW_MS)
        await trio.sleep(2)
        assert len(names(disk, ".deleted")) == 3
        await trio.sleep(60)
        assert names(disk, ".deleted") == []

    keep_house(scenario, segment_bytes=100)


def test_a_file_that_cannot_be_removed_stops_nothing(caplog):
    async def scenario(manager, log, disk):
        for number in range(3):
            append(log, number)
        disk.fail("remove", f"{0:020d}.log")
        log.delete_records_before(2)
        manager.apply_retention(TP, NOW_MS)
        await trio.sleep(61)
        assert names(disk, ".log.deleted") == [f"{0:020d}.log.deleted"]

    keep_house(scenario, segment_bytes=100)
    assert "simulated failure" in caplog.text


def test_the_log_start_reaches_the_disk_a_minute_later():
    async def scenario(manager, log, disk):
        append(log, "a", "b")
        log.delete_records_before(1)
        await trio.sleep(61)
        assert disk.read("/data/log-start-offset-checkpoint") == b"0\n1\nt 0 1\n"

    keep_house(scenario)


def test_a_failing_checkpoint_is_tried_again_with_the_next_change(caplog):
    async def scenario(manager, log, disk):
        append(log, "a", "b")
        heal = disk.fail("replace", "log-start-offset-checkpoint", error=errno.ENOSPC)
        log.delete_records_before(1)
        await trio.sleep(61)
        heal()
        log.delete_records_before(2)
        await trio.sleep(61)
        assert disk.read("/data/log-start-offset-checkpoint") == b"0\n1\nt 0 2\n"

    keep_house(scenario)
    assert "log starts" in caplog.text


def test_a_truncation_takes_the_checkpoint_back_at_once():
    """Else data written since would be below a recovery point that they never reached."""

    async def scenario(manager, log, disk):
        for number in range(5):
            append(log, number)
            log.roll()
        await trio.sleep(61)
        assert disk.read("/data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 5\n"
        manager.set_cleaner_offset(log, 5)
        log.truncate_to(2)
        assert disk.read("/data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 2\n"
        assert manager.cleaner_offset(log) == 2

    keep_house(scenario)


def test_silent_producers_are_forgotten():
    """Rule 62."""

    async def scenario(manager, log, disk):
        append(log, "a", producer_id=5, producer_epoch=0, base_sequence=0)
        await trio.sleep(86_000)
        assert log.producers.get(5) is not None
        await trio.sleep(1200)
        assert log.producers.get(5) is None

    keep_house(scenario)


def test_an_idle_broker_sleeps():
    """Retention and producers' expiry are all that wakes it."""
    looks = []

    class Counting(TrioClock):
        def wall_ms(self):
            looks.append(1)
            return super().wall_ms()

    async def main():
        disk = SimDisk()
        manager = LogManager(["/data"], disk, Counting())
        manager.claim(node_id=1)
        for partition in range(3):
            manager.create(TopicPartition("t", partition), TOPIC_ID, LogConfig())
        looks.clear()
        changes = len(disk.trace)
        with trio.move_on_after(3600):
            await manager.housekeeping()
        assert len(disk.trace) == changes
        assert len(looks) <= 12 * 3 + 6

    trio.run(main, clock=MockClock(autojump_threshold=0))


# --- Compaction ----------------------------------------------------------------------------------

COMPACT = {"cleanup_policy": frozenset({"compact"}), "segment_bytes": 400}


def fill(log, rounds=10, keys=("a", "b")):
    for number in range(rounds):
        append(
            log,
            *[f"{key}{number}" for key in keys],
            keys=[key.encode() for key in keys],
            timestamp=NOW_MS,
        )


def test_a_dirty_log_is_compacted_in_the_background():
    """Rules 205; `log.cleaner.backoff.ms` after the roll that made it dirty."""

    async def scenario(manager, log, disk):
        fill(log)
        before = log.size_bytes
        await trio.sleep(14)
        assert log.size_bytes == before
        await trio.sleep(2)
        assert log.size_bytes < before
        values = [value for _, value in contents(log)]
        assert values[-2:] == ["a9", "b9"]
        assert "a0" not in values
        assert manager.cleaner_offset(log) == log.segments.active.base_offset
        assert b"t 0" in disk.read("/data/cleaner-offset-checkpoint")

    keep_house(scenario, **COMPACT)


def test_the_cleaner_can_be_turned_off():
    async def scenario(manager, log, disk):
        assert manager.settings.cleaner_enable is False
        fill(log)
        before = contents(log)
        await trio.sleep(1000)
        assert contents(log) == before
        manager.settings = HousekeepingSettings()
        await trio.sleep(1000)
        assert contents(log) != before

    keep_house(scenario, settings=HousekeepingSettings(cleaner_enable=False), **COMPACT)


def test_a_log_that_is_not_dirty_enough_is_looked_at_again():
    """max.compaction.lag.ms makes it due in time."""

    async def scenario(manager, log, disk):
        fill(log)
        await trio.sleep(16)
        fill(log, 6)
        before = contents(log)
        await trio.sleep(100)
        assert contents(log) == before
        await trio.sleep(1000)
        assert contents(log) != before

    keep_house(scenario, min_cleanable_dirty_ratio=0.99, max_compaction_lag_ms=500_000, **COMPACT)


def test_compaction_on_demand_includes_the_newest_records():
    async def scenario(manager, log, disk):
        fill(log, 3)
        statistics = await manager.compact(TP)
        assert contents(log) == [(4, "a2"), (5, "b2")]
        assert statistics.records_after == 2
        assert await manager.compact(TP) is None or contents(log) == [(4, "a2"), (5, "b2")]

    keep_house(scenario, **COMPACT)


def test_nothing_to_compact_is_none():
    async def scenario(manager, log, disk):
        assert await manager.compact(TP) is None

    keep_house(scenario, **COMPACT)


def test_a_damaged_log_is_left_alone(caplog):
    async def scenario(manager, log, disk):
        fill(log)
        disk.files[log.segments.first.path(".log")].data[30] ^= 1
        before = len(log.segments)
        await trio.sleep(1000)
        assert len(log.segments) == before
        assert log.failure is None
        fill(log)
        await trio.sleep(1000)
        assert len(log.segments) > before

    keep_house(scenario, **COMPACT)
    assert caplog.text.count("not compacted any more") == 1


def test_a_disk_that_is_full_for_a_while_delays_compaction(caplog):
    async def scenario(manager, log, disk):
        fill(log)
        before = log.size_bytes
        heal = disk.fail("create", ".cleaned", error=errno.ENOSPC)
        await trio.sleep(20)
        assert log.size_bytes == before
        heal()
        await trio.sleep(400)
        assert log.size_bytes < before

    keep_house(scenario, **COMPACT)
    assert "could not be compacted" in caplog.text


def test_a_log_that_cannot_be_looked_at_waits_for_its_next_roll(caplog):
    async def scenario(manager, log, disk):
        fill(log)
        log.segments.first._first_timestamp = None
        log.segments.first.close()
        heal = disk.fail("open", ".log")
        before = log.size_bytes
        await trio.sleep(20)
        assert log.size_bytes == before
        heal()
        fill(log)
        await trio.sleep(20)
        assert log.size_bytes < before

    keep_house(scenario, max_compaction_lag_ms=10**6, segment_ms=10**6, **COMPACT)
    assert "could not be compacted" in caplog.text


def test_records_that_are_not_stable_are_not_compacted():
    async def scenario(manager, log, disk):
        manager.bounds = lambda log: (20, 4)
        fill(log)
        await trio.sleep(100)
        assert [value for offset, value in contents(log) if offset >= 4] == [
            f"{key}{number}" for number in range(2, 10) for key in "ab"
        ]

    keep_house(scenario, settings=HousekeepingSettings(cleaner=CleanerSettings()), **COMPACT)


def test_logs_found_at_start_are_compacted_too():
    disk = SimDisk()

    async def write(manager, log, disk):
        fill(log)

    async def wait(manager, log, disk):
        before = log.size_bytes
        await trio.sleep(20)
        assert log.size_bytes < before

    keep_house(write, disk=disk, **COMPACT)
    keep_house(wait, disk=disk, **COMPACT)
