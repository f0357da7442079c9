"""Runs the shards of internal topics: loads them by replay, appends, answers, keeps their time.

It knows nothing of groups or transactions: it is handed a `ShardKind` for each internal topic.
Everything but loading and waiting is synchronous. On a single node the high watermark passes with
the append, so an event is decided, written, replayed and answered without a task switch.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import trio

from kafkalite.clock import Clock
from kafkalite.coordinator.partition import CoordinatorPartition, replay_log
from kafkalite.coordinator.records import encode_batches
from kafkalite.coordinator.shard import Event, Now, Result, ShardKind, Ticket, partition_for
from kafkalite.coordinator.slot import CoordinatorContext, SlotState, load_pause_s
from kafkalite.deferred import Promise
from kafkalite.log.validate import AppendOrigin
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import control_batch

logger = logging.getLogger("kafkalite.coordinator")
Answer = TypeVar("Answer")

DEFAULT_WRITE_TIMEOUT_MS = 5_000
"""Default of offsets.commit.timeout.ms."""
TELL_AGAIN_MS = 1_000
"""After this time a shard that could not write is told again of what happened; nobody waits."""

_UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
CLIENT_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _UNAVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: _UNAVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _UNAVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: _UNAVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""What clients are told where the internal topic cannot be written (rule 148); other codes as they
are. Clients act on the codes of coordinators, not on those of a partition they never asked for."""


def _ignore(effect: object) -> None:
    """Perform nothing."""
    del effect


class ShardLocation(NamedTuple):
    """Partition that holds the shard of a key, and whether it is led here."""

    topic_partition: TopicPartition
    is_here: bool
    """Whether this broker has it, ready or not."""


@dataclass(slots=True, eq=False)
class _Condition:
    """Somebody who waits for a shard to get into some state."""

    topic: str
    key: str
    predicate: Callable[[Any], bool]
    event: trio.Event


class CoordinatorRuntime:
    """All shards that this broker leads."""

    def __init__(
        self,
        kinds: Iterable[ShardKind],
        clock: Clock,
        *,
        write_timeout_ms: int = DEFAULT_WRITE_TIMEOUT_MS,
        perform: Callable[[object], None] = _ignore,
        on_disconnect: Callable[[int], None] = _ignore,
    ) -> None:
        """Make a runtime without shards.

        Args:
            kinds: of shards.
            clock: the time that shards are told.
            write_timeout_ms: how long answers wait for the high watermark.
            perform: called with every effect of a shard. It may take note of the effect, and must
                not ask the runtime: it is called in the midst of things.
            on_disconnect: called with the id of each connection that ended, after the shards.
        """
        self._perform = perform
        self._on_disconnect = on_disconnect
        self._kinds = {kind.topic: kind for kind in kinds}
        self._clock = clock
        self._write_timeout_ms = write_timeout_ms
        self._slots: dict[str, dict[int, CoordinatorContext]] = {topic: {} for topic in self._kinds}
        self._partition_counts = dict.fromkeys(self._kinds, 0)
        self._next_ticket = 0
        self._alarm = trio.Event()
        self._alarm_ms: float = 0
        self._to_load: deque[CoordinatorContext] = deque()
        self._load_wanted = trio.Event()
        self._watches: list[_Condition] = []

    # --- Requests -------------------------------------------------------------------------------

    @property
    def topics(self) -> Iterable[str]:
        """The topics whose shards are run here, where this broker leads them."""
        return self._kinds.keys()

    def coordinates(self, topic: str) -> bool:
        """Whether there is a coordinator for this internal topic at all."""
        return topic in self._kinds

    def handle(self, topic: str, key: str, event: Event[Answer]) -> Answer | Promise[Answer]:
        """Have the shard of `key` decide about an event; return its answer, or `Promise`.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS (rule 124), or what the shard
                or its log answers.
        """
        return self._handle(self._slot(topic, key), event)

    def check(self, topic: str, key: str) -> None:
        """Refuse what the shard of `key` could not be asked here and now.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._slot(topic, key)

    def location_of(self, topic: str, key: str) -> ShardLocation | None:
        """Return where the shard of `key` is; None while there is no such topic."""
        count = self._partition_counts[topic]
        if not count:
            return None
        index = partition_for(key, count)
        return ShardLocation(TopicPartition(topic, index), index in self._slots[topic])

    def handle_all(self, topic: str, event: Event[Answer]) -> list[Answer | Promise[Answer]]:
        """Have each shard of a topic that is led here decide about an event.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS if one of them is not ready.
        """
        slots = [slot for slot in self._slots[topic].values() if slot.state is not SlotState.GONE]
        return [self._handle(self._ready(slot), event) for slot in slots]

    def end_transaction(
        self,
        topic_partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
    ) -> int:
        """Write a transaction marker to a shard's partition and replay it (rules 110, 119).

        Returns:
            The offset (exclusive) that the high watermark must reach before it counts.

        Raises:
            KafkaError: as `handle`.
        """
        slot = self._slots[topic_partition.topic].get(topic_partition.partition)
        if slot is None:
            raise _gone(topic_partition)
        self._ready(slot)
        now = self._now()
        marker = control_batch(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            is_commit=committed,
            timestamp_ms=now.wall_ms,
        )
        try:
            info = slot.partition.append(
                marker, now_ms=now.wall_ms, origin=AppendOrigin.COORDINATOR, all_acks=True
            )
        except KafkaError as error:
            raise self._refused(slot, error) from error
        slot.written_end = info.last_offset + 1
        slot.core.replay_marker(producer_id, committed=committed)
        self._check_conditions()
        return slot.written_end

    def on_disconnect(self, connection_id: int, *, by_client: bool = True) -> None:
        """Tell the shards of a client's end, but not of one that a fault rule made."""
        for topic, kind in self._kinds.items():
            heard = by_client and self._slots[topic]
            event = kind.event_for_disconnect(connection_id) if heard else None
            if event is not None:
                self._broadcast(topic, event)
        self._on_disconnect(connection_id)

    def on_topics_deleted(self, names: Iterable[str]) -> None:
        """Tell the shards that topics are gone."""
        deleted = [*names]
        for topic, kind in self._kinds.items():
            event = kind.event_for_deleted_topics(deleted) if self._slots[topic] else None
            if event is not None:
                self._broadcast(topic, event)

    def on_topics_changed(self, names: Iterable[str]) -> None:
        """Tell the shards that are ready of topics that were created, changed or deleted."""
        changed = [*names]
        for topic, kind in self._kinds.items():
            event = kind.event_for_changed_topics(changed) if self._slots[topic] else None
            if event is None:
                continue
            for slot in [*self._slots[topic].values()]:
                if slot.state is SlotState.ACTIVE:
                    self._handle(slot, event)

    # --- Leadership -----------------------------------------------------------------------------

    def set_leaderships(
        self, topic: str, partition_count: int, led: Mapping[int, CoordinatorPartition]
    ) -> None:
        """Make the shards those of the partitions led here; the rest answer NOT_COORDINATOR.

        To be told whenever that may have changed, before anything else happens. A shard whose
        partition was led here all the time stays as it is, also in another epoch. One whose log is
        empty is ready at once, others are loaded by `run`. A topic that is not there has 0
        partitions.
        """
        self._partition_counts[topic] = partition_count
        slots = self._slots[topic]
        missed = {}
        for index, slot in [*slots.items()]:
            if slot.is_current_for(led.get(index)):
                slot.leader_epoch = slot.partition.leader_epoch
            else:
                missed[index] = slots.pop(index).missed
                slot.close()
        for index, partition in led.items():
            if index not in slots:
                slots[index] = self._open(
                    TopicPartition(topic, index), partition, missed.get(index, ())
                )

    def is_loading(self) -> bool:
        """Whether some shard is not ready yet."""
        return any(
            slot.state is SlotState.LOADING
            for slots in self._slots.values()
            for slot in slots.values()
        )

    # --- Time -----------------------------------------------------------------------------------

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the shards' time and load them, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._load_shards)
            nursery.start_soon(self._keep_time)
            task_status.started()

    def tick(self) -> int | None:
        """Fire what is due; return the monotonic time of the next deadline, None without any."""
        now = self._now()
        deadlines = []
        for slot in [slot for slots in self._slots.values() for slot in slots.values()]:
            try:
                self._fire(slot, now)
            except AssertionError:
                raise
            except Exception:
                # Nobody asked, so nobody can be refused; what it was to be told may be the cause.
                logger.exception("%s: fails in time, and is loaded anew", slot.topic_partition)
                slot.missed.clear()
                slot.refusals += 1
                if slot.state is SlotState.ACTIVE:
                    self._reload(slot)
            deadlines.append(slot.next_deadline_ms())
            if slot.state is SlotState.ACTIVE:
                deadlines.append(slot.core.next_deadline_ms())
        return min((at for at in deadlines if at is not None), default=None)

    def _fire(self, slot: CoordinatorContext, now: Now) -> None:
        while slot.state is SlotState.ACTIVE:
            deadline_ms = slot.core.next_deadline_ms()
            if deadline_ms is None or deadline_ms > now.monotonic_ms:
                break
            self._process(slot, slot.core.on_time(now), now)
        slot.on_time(now.monotonic_ms)
        if slot.state is SlotState.ACTIVE and slot.missed:
            self._redeliver(slot, now.monotonic_ms)

    async def wait_until(self, topic: str, key: str, predicate: Callable[[Any], bool]) -> None:
        """Return when the shard of `key` is there and `predicate(shard)` holds.

        Looked at after every event, so nothing is polled. Waits for ever if it never holds: the
        caller sets the deadline.
        """
        if self._holds(topic, key, predicate):
            return
        watch = _Condition(topic, key, predicate, trio.Event())
        self._watches.append(watch)
        try:
            await watch.event.wait()
        finally:
            self._watches.remove(watch)

    def reload(self, topic: str, key: str) -> None:
        """Load the shard of `key` anew, as if it had come from another broker; for tests.

        Who waits is answered NOT_COORDINATOR, and what is not in the log is forgotten. Nothing
        happens where the shard is not ready.
        """
        count = self._partition_counts.get(topic)
        slot = self._slots[topic].get(partition_for(key, count)) if count else None
        if slot is not None and slot.state is SlotState.ACTIVE:
            self._reload(slot)

    def shards(self, topic: str) -> list[Any]:
        """Return the shards of a topic that are ready here; only to be looked at."""
        slots = self._slots[topic].values()
        return [slot.core for slot in slots if slot.state is SlotState.ACTIVE]

    def shard_of(self, topic: str, key: str) -> Any | None:
        """Return the shard of `key` if it is ready here, None otherwise; only to be looked at."""
        count = self._partition_counts.get(topic)
        slot = self._slots[topic].get(partition_for(key, count)) if count else None
        return slot.core if slot is not None and slot.state is SlotState.ACTIVE else None

    # --- Deciding -------------------------------------------------------------------------------

    def _handle(self, slot: CoordinatorContext, event: Event[Answer]) -> Answer | Promise[Answer]:
        now = self._now()
        self._next_ticket = ticket = Ticket(self._next_ticket + 1)
        result = slot.core.handle(event, ticket, now)
        answer: Answer | Promise[Answer] = self._process(slot, result, now, ticket)
        self._wake_by(slot.core.next_deadline_ms())
        return answer

    def _process(
        self, slot: CoordinatorContext, result: Result, now: Now, own_ticket: Ticket | None = None
    ) -> Any:
        """Write a result's records, then answer; return the answer to `own_ticket`, or `Promise`.

        Raises:
            KafkaError: the refusal of `own_ticket`.
        """
        replies, effects, at_once = result.replies, result.effects, result.at_once
        if result.records:
            try:
                self._write(slot, result, now)
            except KafkaError as error:
                refusal = self._refused(slot, error)
                replies, effects = [(ticket, refusal) for ticket, _ in replies], ()
                at_once = True
        answer: Any = None
        is_answered = own_ticket is None
        if (
            not at_once
            and slot.written_end > slot.partition.high_watermark
            and slot.state is SlotState.ACTIVE
        ):
            deadline_ms = now.monotonic_ms + self._write_timeout_ms
            slot.defer(replies, deadline_ms)
            self._wake_by(deadline_ms)
        else:
            for ticket, message in replies:
                if ticket == own_ticket:
                    answer = message
                    is_answered = True
                else:
                    slot.deliver(ticket, message)
        if effects:
            slot.perform(effects)
        if self._watches:
            self._check_conditions()
        if not is_answered:
            assert own_ticket is not None
            if slot.state is SlotState.GONE:
                raise _gone(slot.topic_partition)
            answer = slot.park(own_ticket)
        elif isinstance(answer, KafkaError):
            raise answer
        return answer

    def _write(self, slot: CoordinatorContext, result: Result, now: Now) -> None:
        """Append a result's records and replay them, batch by batch."""
        partition, core = slot.partition, slot.core
        for batch in encode_batches(
            result,
            slot.kind.codec,
            timestamp_ms=now.wall_ms,
            max_batch_bytes=partition.max_batch_bytes,
        ):
            info = partition.append(
                batch.data, now_ms=now.wall_ms, origin=AppendOrigin.COORDINATOR, all_acks=True
            )
            slot.written_end = info.last_offset + 1
            slot.refusals = 0
            for offset, record in enumerate(batch.records, info.first_offset):
                record.offset = offset
                record.producer_id = result.producer_id
                core.replay(record)

    def _refused(self, slot: CoordinatorContext, error: KafkaError) -> KafkaError:
        """Return what clients are told of a failed append; without a log, begin anew."""
        code = CLIENT_ERRORS.get(error.code, error.code)
        if not slot.refusals:
            logger.warning("%s: could not write: %s", slot.topic_partition, error)
        slot.refusals += 1
        if code is ErrorCode.NOT_COORDINATOR and slot.state is SlotState.ACTIVE:
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                # Whoever leads loads it; should it be this broker again, it will be told.
                slot.close()
                topic, index = slot.topic_partition
                del self._slots[topic][index]
            else:
                self._reload(slot)
        return KafkaError(code, f"{slot.topic_partition}: {error.message or error.code.name}")

    def _reload(self, slot: CoordinatorContext) -> None:
        """Drop a shard's state and load it from its log, after a pause if it cannot write."""
        slot.close()
        reopened = self._open(slot.topic_partition, slot.partition, slot.missed)
        reopened.load_failures, reopened.refusals = slot.load_failures, slot.refusals
        topic, index = slot.topic_partition
        self._slots[topic][index] = reopened

    def _broadcast(self, topic: str, event: Event[object]) -> None:
        for slot in [*self._slots[topic].values()]:
            if slot.state is SlotState.ACTIVE:
                self._handle_quietly(slot, event)
            else:
                slot.miss(event)

    def _handle_quietly(self, slot: CoordinatorContext, event: Event[object]) -> None:
        try:
            answer = self._handle(slot, event)
            if isinstance(answer, Promise):
                answer.close()
        except KafkaError:  # logged where it happened; nobody asked
            self._retry_later(slot.topic_partition, event)

    def _retry_later(self, topic_partition: TopicPartition, event: Event[object]) -> None:
        """Tell the shard of an event after TELL_AGAIN_MS: its records could not be written now."""
        topic, index = topic_partition
        slot = self._slots[topic].get(index)
        if slot is None:
            return  # whoever leads now is told as well
        slot.miss(event)
        # Not sooner though it be loaded: a log that fails would be loaded in a circle.
        slot.tell_again_ms = self._clock.monotonic_ms() + TELL_AGAIN_MS
        self._wake_by(slot.tell_again_ms)

    def _redeliver(self, slot: CoordinatorContext, now_ms: int) -> None:
        if slot.tell_again_ms > now_ms:
            return
        events, slot.missed = slot.missed, {}
        for event in events:
            if slot.state is SlotState.ACTIVE:
                self._handle_quietly(slot, event)
            else:
                self._retry_later(slot.topic_partition, event)

    # --- Looking up -----------------------------------------------------------------------------

    def _slot(self, topic: str, key: str) -> CoordinatorContext:
        count = self._partition_counts[topic]
        slot = self._slots[topic].get(partition_for(key, count)) if count else None
        if slot is None:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR,
                f"the partition of {topic} that {key!r} belongs to is not led by this broker",
            )
        return self._ready(slot)

    def _ready(self, slot: CoordinatorContext) -> CoordinatorContext:
        if slot.state is SlotState.LOADING:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{slot.topic_partition} is being loaded"
            )
        if slot.state is SlotState.GONE:
            raise _gone(slot.topic_partition)
        return slot

    def _now(self) -> Now:
        return Now(self._clock.monotonic_ms(), self._clock.wall_ms())

    # --- Loading --------------------------------------------------------------------------------

    def _open(
        self,
        topic_partition: TopicPartition,
        partition: CoordinatorPartition,
        missed: Iterable[Event[object]] = (),
    ) -> CoordinatorContext:
        kind = self._kinds[topic_partition.topic]
        core = kind.new_shard(topic_partition.partition)
        slot = CoordinatorContext(topic_partition, kind, partition, core, self._perform)
        slot.missed.update(dict.fromkeys(missed))
        partition.watch(slot.on_progress)
        if partition.log_start_offset == partition.log_end_offset:
            self._activate(slot)
        else:
            self._to_load.append(slot)
            self._load_wanted.set()
        return slot

    def _activate(self, slot: CoordinatorContext) -> None:
        slot.state = SlotState.ACTIVE
        slot.written_end = slot.partition.log_end_offset
        now = self._now()
        self._process(slot, slot.core.on_loaded(now), now)
        self._wake_by(slot.core.next_deadline_ms())
        self._redeliver(slot, now.monotonic_ms)
        self._wake_by(slot.next_deadline_ms())
        self._check_conditions()

    async def _load_shards(self) -> None:
        """Load each shard that wants to be, in a task of its own: one may have to wait."""
        async with trio.open_nursery() as nursery:
            while True:
                while self._to_load:
                    nursery.start_soon(self._load, self._to_load.popleft())
                self._load_wanted = trio.Event()
                await self._load_wanted.wait()

    async def _load(self, slot: CoordinatorContext) -> None:
        count = 0
        try:
            with trio.CancelScope() as slot.loading:
                if slot.refusals > 1:
                    await trio.sleep(load_pause_s(1))
                count = await replay_log(
                    slot.partition,
                    slot.kind.codec,
                    slot.core,
                    is_wanted=lambda: slot.state is SlotState.LOADING,
                )
        except (KafkaError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # Without its state a coordinator would say what is not so; others go on.
            logger.exception("%s: could not be loaded", slot.topic_partition)
            slot.close()
            slot.load_failures += 1
        except trio.Cancelled:
            self._to_load.append(slot)  # for the next `run`
            raise
        finally:
            slot.loading = None
        if slot.load_failures and slot.state is SlotState.GONE:
            await self._load_later(slot)
        if slot.state is SlotState.LOADING:
            logger.info("%s: loaded %d records", slot.topic_partition, count)
            slot.load_failures = 0
            self._activate(slot)

    async def _load_later(self, slot: CoordinatorContext) -> None:
        """Load a shard anew after a pause, unless that was done meanwhile or it is led elsewhere.

        Clients are still sent to this broker, so nobody else would load it.
        """
        await trio.sleep(load_pause_s(slot.load_failures))
        topic, index = slot.topic_partition
        if self._slots[topic].get(index) is slot:
            self._reload(slot)

    async def _keep_time(self) -> None:
        while True:
            next_ms = self.tick()
            self._alarm = trio.Event()
            self._alarm_ms = math.inf if next_ms is None else next_ms
            delay_ms = self._alarm_ms - self._clock.monotonic_ms()
            with trio.move_on_after(max(delay_ms, 0) / 1000):
                await self._alarm.wait()

    def _wake_by(self, deadline_ms: int | None) -> None:
        if deadline_ms is not None and deadline_ms < self._alarm_ms:
            self._alarm_ms = deadline_ms
            self._alarm.set()

    # --- Watching -------------------------------------------------------------------------------

    def _check_conditions(self) -> None:
        for watch in self._watches:
            if self._holds(watch.topic, watch.key, watch.predicate):
                watch.event.set()

    def _holds(self, topic: str, key: str, predicate: Callable[[Any], bool]) -> bool:
        shard = self.shard_of(topic, key)
        return shard is not None and predicate(shard)


def _gone(topic_partition: TopicPartition) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_COORDINATOR, f"{topic_partition} is not coordinated by this broker"
    )
