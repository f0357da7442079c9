"""Background work on logs: flushes, checkpoints, retention, compaction, removals.

One trio task (with a second one inside for compaction, which may take minutes) that sleeps until
something is due. Nothing is due in a broker that nobody writes to, but for the retention check.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import trio

from kafkalite.log.cleaner import (
    CleanerSettings,
    CleaningAborted,
    CleaningPlan,
    CleaningStatistics,
    clean,
    filthiest,
    plan_cleaning,
)
from kafkalite.log.local_log import NEVER
from kafkalite.log.segment import LOG_SUFFIX
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.log.disk import Disk
    from kafkalite.log.log import Log
    from kafkalite.log.manager import LogManager
    from kafkalite.log.segment import Segment

logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True, kw_only=True)
class HousekeepingSettings:
    """Broker settings under Kafka's names, `log.` left out; defaults are Kafka's."""

    initial_task_delay_ms: int = 30_000
    retention_check_interval_ms: int = 300_000
    flush_offset_checkpoint_interval_ms: int = 60_000
    flush_start_offset_checkpoint_interval_ms: int = 60_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    cleaner_enable: bool = True
    cleaner_backoff_ms: int = 15_000
    cleaner: CleanerSettings = field(default_factory=CleanerSettings)


PRESENCE_CHECK_MS = 1_000
"""How often it is looked whether the files that are written to still have a name."""


class Schedule:
    """Schedule of things to do. Each stands in it once, at the earliest time it was asked for."""

    __slots__ = ("_due_ms",)

    def __init__(self) -> None:
        self._due_ms: dict[str, int] = {}

    def add(self, thing: str, due_ms: int) -> bool:
        """Plan a thing; return whether it is now the first."""
        due = self._due_ms
        if due.get(thing, NEVER) <= due_ms:
            return False
        due[thing] = due_ms
        return due_ms == min(due.values())

    def take(self, now_ms: int) -> list[str]:
        """Return what is due, and strike it out."""
        due = [thing for thing, due_ms in self._due_ms.items() if due_ms <= now_ms]
        for thing in due:
            del self._due_ms[thing]
        return due

    @property
    def next_due_ms(self) -> int:
        """When the first thing is due; NEVER if none is."""
        return min(self._due_ms.values(), default=NEVER)


def _single_replica_bounds(log: "Log") -> tuple[int, int]:
    """Without followers all that is written is committed."""
    unstable = log.first_unstable_offset
    return log.log_end_offset, log.log_end_offset if unstable is None else unstable


def _note_nothing(log: "Log") -> None:
    del log


@dataclass(slots=True)
class CleanerFacts:
    """Facts about compaction.

    Attributes:
        last_pass_s: how long the last pass took.
        recopied_percent: how much of what it read it kept.
        dirtiest_percent: dirty part of the dirtiest log, when it was looked for last.
        uncleanable: logs that are not compacted any more, for a damage.
    """

    last_pass_s: float = 0.0
    recopied_percent: float = 0.0
    dirtiest_percent: float = 0.0
    uncleanable: "set[Log]" = field(default_factory=set)


class Housekeeping:
    """Listens to the logs of a manager, and does later what they note.

    Attributes:
        settings: may be replaced while it runs.
        bounds: gives (high watermark, last stable offset) of a log.
        failed: called with a log that went offline.
        shortened: called with a log whose start retention has moved.
        cleaner: facts about compaction.
    """

    def __init__(
        self, manager: "LogManager", disk: "Disk", clock: "Clock", settings: HousekeepingSettings
    ) -> None:
        self.settings = settings
        self.bounds: Callable[[Log], tuple[int, int]] = _single_replica_bounds
        self.failed: Callable[[Log], object] = _note_nothing
        self.shortened: Callable[[Log], object] = _note_nothing
        self._manager = manager
        self._disk = disk
        self._clock = clock
        self._agenda = Schedule()
        self._wake = trio.Event()
        self._to_flush: dict[Log, None] = {}
        # (due, sequence number, paths or segments to remove)
        self._removals: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._dirty: dict[Log, None] = {}
        self._dirty_event = trio.Event()
        self._cleaning = trio.Lock()
        self.cleaner = CleanerFacts()
        self._looked_at: dict[Log, int] = {}
        """Log end offsets when it was last looked whether the files are there."""

    # --- What logs note --------------------------------------------------------------------------

    def on_opened(self, log: "Log") -> None:
        """A log was loaded or made."""
        if len(log.segments) > 1:
            self._note_dirt(log)

    def on_closed(self, log: "Log") -> None:
        """A log is gone; its entries in the checkpoints too, the next time they are written."""
        self._to_flush.pop(log, None)
        self._dirty.pop(log, None)
        self._looked_at.pop(log, None)
        self.cleaner.uncleanable.discard(log)
        self._plan("recovery points", self.settings.flush_offset_checkpoint_interval_ms)

    def on_config_changed(self, log: "Log") -> None:
        """A topic's settings changed: it may have to be flushed, cut or compacted sooner."""
        self.cleaner.uncleanable.discard(log)
        if log.local_log.unflushed_since_ms is not None and log.config.flush_ms < NEVER:
            self.on_flush_due(log)
        if len(log.segments) > 1:
            self._note_dirt(log)

    def on_flush_due(self, log: "Log") -> None:
        """Put a log on the list of those to be flushed, at once or when flush.ms is over."""
        due_ms = log.local_log.flush_due_ms
        if due_ms is not None:
            self._to_flush[log] = None
            self._plan("flush", max(due_ms - self._clock.wall_ms(), 0))
        if len(log.segments) > 1:
            self._note_dirt(log)

    def on_start_moved(self, log: "Log") -> None:
        """Put the checkpoint of log starts on the agenda."""
        del log
        self._plan("log starts", self.settings.flush_start_offset_checkpoint_interval_ms)

    def on_truncated(self, log: "Log") -> None:
        """Take the checkpoint back at once if it promises more than is there. Raises OSError."""
        known = self._manager.get(log.topic_partition)
        recovery_point = log.local_log.recovery_point
        if known is log and self._manager.written_recovery_point(known) > recovery_point:
            self._manager.write_checkpoints_of(known)
        offset = None if known is not log else self._manager.cleaner_offset(known)
        if known is log and offset is not None and offset > log.segments.active.base_offset:
            self._manager.set_cleaner_offset(known, log.segments.active.base_offset)

    def on_segments_removed(self, log: "Log", segments: "Sequence[Segment]") -> None:
        """Remove the files in a while; who still sends them holds them open."""
        for segment in segments:
            self._remove_later(segment.remove, log.config.file_delete_delay_ms)

    def on_failed(self, log: "Log") -> None:
        """Tell who serves the log, at once."""
        self.failed(log)

    def remove_later(self, paths: Sequence[str], *, delay_ms: int) -> None:
        """Remove files or directories in a while."""
        for path in paths:
            self._remove_later(partial(self._disk.remove, path), delay_ms)

    def _remove_later(self, remove: Callable[[], None], delay_ms: int) -> None:
        self._sequence += 1
        heappush(self._removals, (self._clock.monotonic_ms() + delay_ms, self._sequence, remove))
        self._plan("removals", delay_ms)

    def _note_dirt(self, log: "Log") -> None:
        if "compact" in log.config.cleanup_policy:
            known = self._manager.get(log.topic_partition)
            if known is log and known not in self.cleaner.uncleanable:
                self._dirty[known] = None
                self._dirty_event.set()

    def _plan(self, thing: str, delay_ms: int) -> None:
        if self._agenda.add(thing, self._clock.monotonic_ms() + delay_ms):
            self._wake.set()

    # --- The task --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep house until cancelled."""
        self._plan("retention", self.settings.initial_task_delay_ms)
        self._plan("producers", self.settings.producer_id_expiration_check_interval_ms)
        self._plan("presence", PRESENCE_CHECK_MS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._clean_forever)
            while True:
                for thing in self._agenda.take(self._clock.monotonic_ms()):
                    try:
                        await self._do(thing)
                    except (KafkaError, OSError) as error:
                        logger.warning("%s: %s", thing, error)
                delay_ms = self._agenda.next_due_ms - self._clock.monotonic_ms()
                if delay_ms > 0:
                    with trio.move_on_after(delay_ms / 1000):
                        await self._wake.wait()
                self._wake = trio.Event()

    async def _do(self, thing: str) -> None:
        settings = self.settings
        if thing == "flush":
            await self._flush()
        elif thing == "removals":
            await self._remove()
        elif thing == "retention":
            self._plan("retention", settings.retention_check_interval_ms)
            for log in self._manager.logs():
                self._apply_retention(log)
        elif thing == "presence":
            self._plan("presence", PRESENCE_CHECK_MS)
            self._look_for_files()
        elif thing == "producers":
            self._plan("producers", settings.producer_id_expiration_check_interval_ms)
            now_ms = self._clock.wall_ms()
            for log in self._manager.logs():
                log.producers.remove_expired(
                    now_ms, expiration_ms=settings.producer_id_expiration_ms
                )
        else:
            # Written here, where nobody else writes them at the same time; only the waiting for
            # the disk is left to the thread. What a power failure tears meanwhile is recovered
            # from more of the log.
            unsynced = self._manager.write_all_checkpoints()
            if unsynced:
                steps = [partial(self._disk.sync, path) for path in unsynced]
                await self._disk.run_in_thread(_call_all, steps)

    def _look_for_files(self) -> None:
        """Take logs offline whose files somebody removed: appends go to what has no name any more.

        Only those that were written since; one line for a directory that is gone as a whole.
        """
        gone: set[str] = set()
        for log in self._manager.logs():
            if self._looked_at.get(log) == log.log_end_offset or log.failure is not None:
                continue
            self._looked_at[log] = log.log_end_offset
            if self._disk.exists(log.segments.active.path(LOG_SUFFIX)):
                continue
            home = self._manager.path_of(log.topic_partition) or ""
            if self._disk.exists(home):
                home = log.directory
            if home not in gone:
                gone.add(home)
                logger.error("%s is not there any more; what it holds is offline", home)
            log.fail(f"{home} is not there any more")

    def _apply_retention(self, log: "Log") -> None:
        if log.failure is None:
            try:
                now_ms, high_watermark = self._clock.wall_ms(), self.bounds(log)[0]
                if log.apply_retention(now_ms, high_watermark=high_watermark):
                    self.shortened(log)
            except KafkaError as error:
                logger.warning("%s", error)

    async def _flush(self) -> None:
        for log in list(self._to_flush):
            due_ms = log.local_log.flush_due_ms
            if due_ms is None:
                self._to_flush.pop(log, None)
                continue
            delay_ms = due_ms - self._clock.wall_ms()
            if delay_ms > 0:
                self._plan("flush", delay_ms)
                continue
            self._to_flush.pop(log, None)
            before = log.local_log.recovery_point
            try:
                await log.flush()
            except KafkaError as error:
                logger.warning("%s", error)
            if log.local_log.recovery_point != before:
                self._plan("recovery points", self.settings.flush_offset_checkpoint_interval_ms)

    async def _remove(self) -> None:
        now_ms = self._clock.monotonic_ms()
        due = []
        while self._removals and self._removals[0][0] <= now_ms:
            due.append(heappop(self._removals)[2])
        if self._removals:
            self._plan("removals", self._removals[0][0] - now_ms)
        if due:
            await self._disk.run_in_thread(_call_all, due)

    # --- Compaction ------------------------------------------------------------------------------

    async def _clean_forever(self) -> None:
        """Compact the dirtiest log that is due, again and again; wait where none is."""
        while True:
            await self._dirty_event.wait()
            self._dirty_event = trio.Event()
            await trio.sleep(self.settings.cleaner_backoff_ms / 1000)
            while self.settings.cleaner_enable and await self._clean_one():
                pass
            if self._dirty:
                # Not dirty enough yet. Time may change that (max.compaction.lag.ms), and each roll
                # of a segment asks again.
                with trio.move_on_after(self.settings.retention_check_interval_ms / 1000):
                    await self._dirty_event.wait()
                self._dirty_event.set()

    async def _clean_one(self) -> bool:
        """Compact the dirtiest log, if one is due; return whether to look for another at once."""
        plans = []
        for log in list(self._dirty):
            plan = self._plan_cleaning(log)
            if plan is None:
                self._dirty.pop(log, None)
            else:
                plans.append(plan)
        ratios = (each.dirty_ratio for each in plans)
        self.cleaner.dirtiest_percent = 100 * max(ratios, default=0.0)
        plan = filthiest(plans)
        if plan is None:
            return False
        log = plan.log
        try:
            await self._clean(plan)
        except CleaningAborted:
            return False  # it stays on the list
        except OSError as error:
            logger.warning("%s could not be compacted: %s", log.topic_partition, error)
            return False  # the disk may be full, and will not be for ever
        except KafkaError as error:
            logger.warning("%s is not compacted any more: %s", log.topic_partition, error)
            self.cleaner.uncleanable.add(log)
            self._dirty.pop(log, None)
        return True

    def _plan_cleaning(self, log: "Log") -> CleaningPlan | None:
        if log.failure is not None or "compact" not in log.config.cleanup_policy:
            return None
        try:
            return plan_cleaning(
                log,
                checkpoint=self._manager.cleaner_offset(log),
                stable_offset=min(self.bounds(log)),
                now_ms=self._clock.wall_ms(),
            )
        except (KafkaError, OSError) as error:
            logger.warning("%s could not be compacted: %s", log.topic_partition, error)
            return None

    async def _clean(self, plan: CleaningPlan) -> CleaningStatistics:
        async with self._cleaning:
            began_s = trio.current_time()
            statistics = await clean(
                plan,
                self._disk,
                settings=self.settings.cleaner,
                now_ms=self._clock.wall_ms(),
            )
            self.cleaner.last_pass_s = trio.current_time() - began_s
            if statistics.bytes_before:
                kept = 100 * statistics.bytes_after / statistics.bytes_before
                self.cleaner.recopied_percent = kept
            if plan.log.failure is None:
                self._manager.set_cleaner_offset(plan.log, statistics.clean_offset)
            return statistics

    async def compact(self, log: "Log") -> CleaningStatistics | None:
        """Compact a log now, its newest records included. Raises KafkaError."""
        log.roll()
        for _ in range(10):
            plan = self._plan_cleaning(log)
            if plan is None:
                return None
            with suppress(CleaningAborted):
                try:
                    return await self._clean(plan)
                except OSError as error:
                    raise KafkaError(
                        ErrorCode.KAFKA_STORAGE_ERROR,
                        f"{log.topic_partition} cannot be compacted: {error}",
                    ) from error
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{log.topic_partition} changed ten times while it was compacted",
        )


def _call_all(steps: Sequence[Callable[[], None]]) -> None:
    """Take all steps, in a worker thread; one that fails does not keep the others from it."""
    for step in steps:
        try:
            step()
        except OSError as error:
            logger.warning("%s", error)
