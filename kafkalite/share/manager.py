"""The share partitions that this broker leads: which there are, and what keeps them going.

A share partition is made by the first ShareFetch that names it, and begins with what its
coordinator has stored (rule 395). It is dropped where this broker no longer leads the partition, a
later leader has fenced it, or its group has no sessions here any more; what was acquired is then
forgotten, as after a failover.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import trio

from kafkalite.coordinator.shard import Timers
from kafkalite.isr.offset_lookup import list_offset
from kafkalite.isr.partition import Partition
from kafkalite.isr.partition_read import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, IsolationLevel
from kafkalite.share.acknowledgement import Acknowledgement, Write
from kafkalite.share.batches import NO_OFFSET, SharePartitionKey
from kafkalite.share.events import ReadState, ShareState, WriteState
from kafkalite.share.partition import SharePartition
from kafkalite.share.reset import LATEST, ResetStrategy, parse_reset
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.meta.group_configs import GroupConfigs
    from kafkalite.share.persister import Persister
    from kafkalite.types import TopicPartition

logger = logging.getLogger("kafkalite.share")

_UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
_NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
CLIENT_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.NOT_COORDINATOR: _UNAVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: _UNAVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: _UNAVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: _NOT_LEADER,
    ErrorCode.FENCED_STATE_EPOCH: _NOT_LEADER,
}
"""What members are told of a refusal of the share coordinator (rule 403); of others
UNKNOWN_SERVER_ERROR."""

DROPPING = frozenset(
    {_NOT_LEADER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
"""Refusals after which a share partition is not worth keeping."""

FindPartition = Callable[["TopicPartition"], Partition | None]


class Outcome:
    """Outcome of acknowledgements: there once it is written.

    Attributes:
        error: why they failed; None if they did not.
        on_done: called when it is there, if it was not at once.
    """

    __slots__ = ("error", "is_done", "on_done")

    def __init__(self, error: KafkaError | None = None, *, is_done: bool = True) -> None:
        self.error = error
        self.is_done = is_done
        self.on_done: Callable[[], object] | None = None

    def give(self, error: KafkaError | None) -> None:
        """Say what became of them."""
        self.error = error
        self.is_done = True
        if self.on_done is not None:
            self.on_done()


@dataclass(slots=True, eq=False)
class HeldPartition:
    """A share partition in service.

    Attributes:
        partition: led by this broker, as of `leader_epoch`.
        is_loaded: what was stored is there; it may be acquired from.
        failure: why it is no longer in service.
        watchers: called when there may be more to fetch, or it has failed.
    """

    key: SharePartitionKey
    partition: Partition
    core: SharePartition
    leader_epoch: int
    is_loaded: bool = False
    failure: KafkaError | None = None
    watchers: dict[Callable[[], object], None] = field(default_factory=dict)
    unwatch: Callable[[], object] | None = None

    @property
    def is_active(self) -> bool:
        """Whether it may be acquired from."""
        return self.is_loaded and self.failure is None

    def wake(self) -> None:
        """Call the watchers."""
        for watcher in [*self.watchers]:
            watcher()


class SharePartitionManager:
    """All share partitions of a broker."""

    def __init__(
        self,
        persister: "Persister",
        clock: "Clock",
        group_configs: "GroupConfigs",
        *,
        find_partition: FindPartition,
    ) -> None:
        """Make a manager of none.

        Args:
            persister: the way to share coordinators.
            clock: for the ends of locks.
            group_configs: settings of groups, asked at each use.
            find_partition: returns a partition that this broker leads, None for others.
        """
        self._persister = persister
        self._clock = clock
        self._group_configs = group_configs
        self._find_partition = find_partition
        self._held: dict[SharePartitionKey, HeldPartition] = {}
        self._timers: Timers[SharePartitionKey] = Timers()
        self._alarm = trio.Event()
        self._alarm_ms: float = 0

    def __len__(self) -> int:
        return len(self._held)

    def find(self, key: SharePartitionKey) -> HeldPartition | None:
        """Return a share partition that is in service, loaded or not."""
        held = self._held.get(key)
        if held is not None and not self._is_led(held):
            self._drop(held, _lost(held.key))
            return None
        return held

    def open(self, key: SharePartitionKey, partition: Partition) -> HeldPartition:
        """Return a share partition; one that is new is loaded, perhaps before this returns."""
        held = self.find(key)
        if held is not None:
            return held
        core = SharePartition(partial(self._group_configs, key.group_id))
        held = HeldPartition(key, partition, core, partition.leader_epoch)
        self._held[key] = held
        watcher = partial(self._on_partition, held)
        partition.watch(watcher)
        held.unwatch = partial(partition.unwatch, watcher)
        self._persister.ask(ReadState(key, held.leader_epoch), partial(self._on_read, held))
        return held

    # --- Members --------------------------------------------------------------------------------

    def acknowledge(
        self,
        key: SharePartitionKey,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
    ) -> Outcome:
        """Do what a member says of records; it counts when the outcome is there."""
        held = self.find(key)
        if held is None:
            return Outcome(
                KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"nobody fetches {key.coordinator_key} here",
                )
            )
        now_ms = self._clock.monotonic_ms()
        try:
            write = held.core.acknowledge(member_id, acknowledgements, now_ms)
        except KafkaError as error:
            return Outcome(error)
        self.keep_time(held)
        if write is None:
            return Outcome()
        return self._write(held, write)

    def release(self, member_id: str, keys: Iterable[SharePartitionKey]) -> None:
        """Take back what a member has of these share partitions (rule 404)."""
        for key in keys:
            held = self.find(key)
            if held is None or not held.is_loaded:
                continue
            write = held.core.release(member_id)
            if write is not None:
                self._write(held, write)

    def drop_group(self, group_id: str) -> None:
        """Forget a group's share partitions: it has no sessions here any more (rule 407)."""
        for held in [held for held in self._held.values() if held.key.group_id == group_id]:
            self._drop(held, _lost(held.key))

    # --- Writing --------------------------------------------------------------------------------

    def _write(self, held: HeldPartition, write: Write) -> Outcome:
        outcome = Outcome(is_done=False)
        event = WriteState(
            held.key,
            write.state_epoch,
            held.leader_epoch,
            write.start_offset,
            write.delivery_complete_count,
            write.batches,
        )
        self._persister.ask(event, partial(self._on_written, held, write, outcome))
        return outcome

    def _on_written(
        self, held: HeldPartition, write: Write, outcome: Outcome, answer: object
    ) -> None:
        error = _client_error(answer) if isinstance(answer, KafkaError) else None
        now_ms = self._clock.monotonic_ms()
        is_more = held.core.on_written(write, is_written=error is None, now_ms=now_ms)
        if error is not None:
            logger.warning("%s: could not write: %s", held.key.coordinator_key, answer)
            if error.code in DROPPING:
                self._drop(held, error)
        outcome.give(error)
        if is_more:
            held.wake()

    # --- Loading --------------------------------------------------------------------------------

    def _on_read(self, held: HeldPartition, answer: object) -> None:
        if held.failure is not None:
            return
        if not isinstance(answer, ShareState):
            assert isinstance(answer, KafkaError)
            logger.warning("%s: could not load: %s", held.key.coordinator_key, answer)
            self._drop(held, _client_error(answer))
            return
        try:
            start_offset = answer.start_offset
            if start_offset == NO_OFFSET:
                start_offset = self._reset_offset(held)
            held.core.load(answer.state_epoch, start_offset, answer.batches)
        except KafkaError as error:
            logger.warning("%s: could not load: %s", held.key.coordinator_key, error)
            self._drop(held, error)
            return
        held.is_loaded = True
        held.wake()

    def _reset_offset(self, held: HeldPartition) -> int:
        """Return where a share partition begins that nothing is stored of.

        Raises:
            KafkaError: OFFSET_NOT_AVAILABLE.
        """
        strategy = parse_reset(self._group_configs(held.key.group_id).share_auto_offset_reset)
        timestamp = _timestamp(strategy, self._clock.wall_ms())
        offset, _, _ = list_offset(held.partition, timestamp, IsolationLevel.READ_UNCOMMITTED)
        if offset < 0:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"{held.partition.topic_partition}: no record for share.auto.offset.reset",
            )
        return offset

    def _on_partition(self, held: HeldPartition) -> None:
        if held.failure is None and not self._is_led(held):
            self._drop(held, _lost(held.key))

    def _is_led(self, held: HeldPartition) -> bool:
        partition = held.partition
        return partition.is_leader and self._find_partition(partition.topic_partition) is partition

    def _drop(self, held: HeldPartition, error: KafkaError) -> None:
        if held.failure is not None:
            return
        held.failure = error
        if self._held.get(held.key) is held:
            del self._held[held.key]
            self._timers.cancel(held.key)
        if held.unwatch is not None:
            held.unwatch()
        held.wake()

    # --- Time -----------------------------------------------------------------------------------

    def keep_time(self, held: HeldPartition) -> None:
        """Take note that locks began."""
        deadline_ms = held.core.next_deadline_ms()
        if deadline_ms is None or held.failure is not None:
            return
        self._timers.schedule(held.key, deadline_ms)
        if deadline_ms < self._alarm_ms:
            self._alarm_ms = deadline_ms
            self._alarm.set()

    def tick(self) -> int | None:
        """End the locks that are due; return when the next one ends, None without locks."""
        now_ms = self._clock.monotonic_ms()
        while (key := self._timers.pop_due(now_ms)) is not None:
            held = self.find(key)
            if held is None:
                continue
            write = held.core.on_time(now_ms)
            self.keep_time(held)
            if write is not None:
                self._write(held, write)
                held.wake()
        return self._timers.next_deadline_ms()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """End locks in time, and ask share coordinators, until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._persister.run)
            task_status.started()
            while True:
                next_ms = self.tick()
                self._alarm = trio.Event()
                self._alarm_ms = float("inf") if next_ms is None else next_ms
                delay_s = (self._alarm_ms - self._clock.monotonic_ms()) / 1000
                with trio.move_on_after(max(delay_s, 0)):
                    await self._alarm.wait()


def _timestamp(strategy: ResetStrategy, now_ms: int) -> int:
    if strategy.duration_ms is not None:
        return max(now_ms - strategy.duration_ms, 0)
    return LATEST_TIMESTAMP if strategy.name == LATEST else EARLIEST_TIMESTAMP


def _client_error(error: KafkaError) -> KafkaError:
    code = CLIENT_ERRORS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR)
    return KafkaError(code, error.message)


def _lost(key: SharePartitionKey) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"{key.coordinator_key}: this broker no longer serves it",
    )
