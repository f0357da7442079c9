"""One shard with its partition, and what waits for the partition's high watermark."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkalite.coordinator.partition import CoordinatorPartition
from kafkalite.coordinator.shard import Event, Shard, ShardKind, Ticket
from kafkalite.deferred import Promise
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import trio

Replies = Sequence[tuple[Ticket, object]]

LOAD_BACKOFF_MS = 1_000
LOAD_BACKOFF_MS_MAX = 60_000
"""Pause before a log that could not be loaded is tried again, doubled each time up to a minute."""

MISSED_MAX = 10_000
"""Events kept for one shard; without the oldest, offsets of a deleted topic stay until they expire.
Chosen by hand: more topics than are deleted while a log cannot be read or written."""


class SlotState(Enum):
    """Whether a shard can be asked."""

    LOADING = "loading"
    """Its log is being replayed: COORDINATOR_LOAD_IN_PROGRESS."""

    ACTIVE = "active"
    """It answers."""

    GONE = "gone"
    """NOT_COORDINATOR: this broker no longer leads the partition, or could not load its log and
    tries again after a pause."""


@dataclass(slots=True)
class DeferredReplies:
    """Replies that leave when the high watermark has reached `required_offset`."""

    required_offset: int
    deadline_ms: int
    replies: Replies


class CoordinatorContext:
    """A shard, its partition, the replies behind the high watermark and the tickets parked.

    Invariant: `behind` is ordered by offset and by deadline, `effects` by offset.
    """

    __slots__ = (
        "_behind",
        "_effects",
        "_perform",
        "core",
        "kind",
        "leader_epoch",
        "load_failures",
        "loading",
        "missed",
        "partition",
        "refusals",
        "state",
        "tell_again_ms",
        "topic_partition",
        "waiting",
        "written_end",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        kind: ShardKind,
        partition: CoordinatorPartition,
        core: Shard,
        perform: Callable[[object], None],
    ) -> None:
        self.topic_partition = topic_partition
        self.kind = kind
        self.partition = partition
        self.core = core
        self.leader_epoch = partition.leader_epoch
        self.state = SlotState.LOADING
        self.loading: trio.CancelScope | None = None
        """Around the replay, which may wait for the high watermark."""
        self.written_end = 0
        """End (exclusive) of what was written or loaded; answers wait for the watermark there."""
        self.waiting: dict[Ticket, Promise[Any]] = {}
        self.load_failures = 0
        """How often in a row its log could not be loaded."""
        self.missed: dict[Event[object], None] = {}
        """Events that must not be lost, and came while the shard was not there or could not write;
        each once, in their order. Invariant: at most MISSED_MAX."""
        self.tell_again_ms = 0
        """When the shard is told of them again."""
        self.refusals = 0
        """How many appends were refused since the last one that was not, also before the shard was
        loaded again; the first is told to the operator."""
        self._behind: deque[DeferredReplies] = deque()
        self._effects: deque[tuple[int, object]] = deque()
        self._perform = perform

    def miss(self, event: Event[object]) -> None:
        """Keep an event to be told later."""
        self.missed[event] = None
        if len(self.missed) > MISSED_MAX:
            del self.missed[next(iter(self.missed))]

    def park(self, ticket: Ticket) -> Promise[Any]:
        """Return what the requester waits for."""
        parked = self.waiting[ticket] = Promise(partial(self.waiting.pop, ticket, None))
        return parked

    def deliver(self, ticket: Ticket, message: object) -> None:
        """Answer a parked request, if its client is still there."""
        parked = self.waiting.pop(ticket, None)
        if parked is not None:
            if isinstance(message, KafkaError):
                parked.set_error(message)
            else:
                parked.set_result(message)

    def defer(self, replies: Replies, deadline_ms: int) -> None:
        """Keep replies until everything written so far is below the high watermark."""
        self._behind.append(DeferredReplies(self.written_end, deadline_ms, replies))

    def perform(self, effects: Sequence[object]) -> None:
        """Have effects performed when everything written so far is below the high watermark.

        Unlike replies they have no deadline: what the log holds has to be done.
        """
        if self.written_end > self.partition.high_watermark:
            self._effects.extend((self.written_end, effect) for effect in effects)
            return
        for effect in effects:
            self._perform(effect)

    def on_progress(self) -> None:
        """Release what the high watermark has reached."""
        if not self._behind and not self._effects:
            return
        high_watermark = self.partition.high_watermark
        while self._behind and self._behind[0].required_offset <= high_watermark:
            for ticket, message in self._behind.popleft().replies:
                self.deliver(ticket, message)
        while self._effects and self._effects[0][0] <= high_watermark:
            self._perform(self._effects.popleft()[1])

    def next_deadline_ms(self) -> int | None:
        """Return when the first replies have been held back for too long, or events are told."""
        late_ms = self._behind[0].deadline_ms if self._behind else None
        if self.state is not SlotState.ACTIVE or not self.missed:
            return late_ms
        return self.tell_again_ms if late_ms is None else min(late_ms, self.tell_again_ms)

    def is_current_for(self, partition: CoordinatorPartition | None) -> bool:
        """Whether the loaded state is still valid, perhaps in another leader epoch.

        It is if the replica is the same and nothing was appended or truncated since: this broker
        leads in the next epoch, too, or lost the leadership and got it back before anybody wrote.
        """
        if partition is not self.partition or self.state is SlotState.GONE:
            return False
        if partition.leader_epoch == self.leader_epoch:
            return True
        return self.state is SlotState.ACTIVE and self.written_end == self.partition.log_end_offset

    def on_time(self, now_ms: int) -> None:
        """Refuse those whose records were not replicated in time; they may still be later."""
        while self._behind and self._behind[0].deadline_ms <= now_ms:
            late = KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"{self.topic_partition}: not replicated in time (offsets.commit.timeout.ms)",
            )
            for ticket, _ in self._behind.popleft().replies:
                self.deliver(ticket, late)

    def close(self) -> None:
        """Turn everybody away: the shard is led elsewhere, or loaded anew."""
        self.state = SlotState.GONE
        if self.loading is not None:
            self.loading.cancel()
        self.partition.unwatch(self.on_progress)
        gone = KafkaError(
            ErrorCode.NOT_COORDINATOR, f"{self.topic_partition} is no longer led by this broker"
        )
        self._behind.clear()
        self._effects.clear()
        for ticket in [*self.waiting]:
            self.deliver(ticket, gone)


def load_pause_s(failures: int) -> float:
    """Return the pause before a shard is loaded once more, after so many failures in a row."""
    return min(LOAD_BACKOFF_MS << min(failures - 1, 16), LOAD_BACKOFF_MS_MAX) / 1000
