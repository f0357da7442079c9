"""The share partitions of one `__share_group_state` partition (rules 416-422).

All state is hard: it changes in `replay` alone.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from uuid import UUID

from kafkalite.coordinator.shard import (
    NOTHING,
    Event,
    Now,
    Result,
    StoredRecord,
    Ticket,
    Timers,
)
from kafkalite.share.batches import NO_OFFSET, RecordState, SharePartitionKey, combine
from kafkalite.share.effects import PruneLog
from kafkalite.share.events import (
    NO_COUNT,
    NO_EPOCH,
    DeleteState,
    ForgetTopics,
    InitializeState,
    ReadState,
    ReadSummary,
    ShareState,
    StateUpdate,
    Summary,
    WriteState,
)
from kafkalite.share.settings import ShareCoordinatorSettings
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError

PartitionExists = Callable[[UUID, int], bool]
"""Whether the cluster has a partition of the topic with an id."""


class TimerKind(IntEnum):
    """Purpose of a share coordinator shard's timer."""

    PRUNE = 0
    """Time to have the log cut off below the oldest snapshot that counts."""
    COLD_SNAPSHOTS = 1
    """Time to write share partitions again that nothing happens to: they would hold up PRUNE."""


class ShareStateShard:
    """Core of the share coordinator for one partition; a `coordinator.shard.Shard`."""

    def __init__(
        self, settings: ShareCoordinatorSettings, partition: int, exists: PartitionExists
    ) -> None:
        self.settings = settings
        self.partition = partition
        self.timers: Timers[TimerKind] = Timers()
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.leader_epochs: dict[SharePartitionKey, int] = {}
        """The highest of each share partition; lower ones are fenced."""
        self.state_epochs: dict[SharePartitionKey, int] = {}
        """As `leader_epochs`."""
        self.update_counts: dict[SharePartitionKey, int] = {}
        """Updates since the snapshot that was written because there were enough of them."""
        self.snapshot_offsets: dict[SharePartitionKey, int] = {}
        """Where the last snapshot of each lies."""
        self.pruned_offset = 0
        """Below it nothing is needed, when there is no snapshot at all."""
        self._exists = exists
        self._handlers: dict[type, Callable[..., Result]] = {
            WriteState: self._write,
            ReadState: self._read,
            InitializeState: self._initialize,
            ReadSummary: self._summarize,
            DeleteState: self._delete,
            ForgetTopics: self._forget_topics,
        }

    # --- What the runtime calls -----------------------------------------------------------------

    def handle(self, event: Event[object], ticket: Ticket, now: Now) -> Result:
        """Decide about an event."""
        return self._handlers[type(event)](event, ticket, now)

    def on_loaded(self, now: Now) -> Result:
        """Start the timers."""
        self._schedule(TimerKind.PRUNE, now)
        self._schedule(TimerKind.COLD_SNAPSHOTS, now)
        return NOTHING

    def next_deadline_ms(self) -> int | None:
        """Return the monotonic time before which no timer is due."""
        return self.timers.next_deadline_ms()

    def on_time(self, now: Now) -> Result:
        """Fire one due timer."""
        kind = self.timers.pop_due(now.monotonic_ms)
        if kind is None:
            return NOTHING
        self._schedule(kind, now)
        return self._prune() if kind is TimerKind.PRUNE else self._snapshot_cold(now)

    def replay(self, record: StoredRecord) -> None:
        """Make a record part of the state."""
        key, value = record.key, record.value
        assert isinstance(key, SharePartitionKey)
        if isinstance(value, StateUpdate):
            self._raise(self.leader_epochs, key, value.leader_epoch)
            self.states[key] = _merged(self.states.get(key), value)
            self.update_counts[key] = self.update_counts.get(key, 0) + 1
            return
        if value is None:
            for of_key in (
                self.states,
                self.leader_epochs,
                self.state_epochs,
                self.update_counts,
                self.snapshot_offsets,
            ):
                of_key.pop(key, None)
            self.pruned_offset = record.offset
            return
        assert isinstance(value, ShareState)
        self._raise(self.leader_epochs, key, value.leader_epoch)
        self._raise(self.state_epochs, key, value.state_epoch)
        self.states[key] = value
        self.snapshot_offsets[key] = record.offset
        if self.update_counts.get(key, 0) >= self.settings.update_records_per_snapshot:
            self.update_counts.pop(key, None)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Do nothing: no transaction has records in this topic."""

    def finished_end(self, key: SharePartitionKey) -> int:
        """Return the offset (exclusive) up to which everything is finished with; -1 if unknown."""
        state = self.states.get(key)
        if state is None:
            return NO_OFFSET
        end_offset = state.start_offset
        for batch in state.batches:
            is_next = batch.first_offset <= end_offset
            if not is_next or not RecordState(batch.delivery_state).is_terminal:
                break
            end_offset = batch.last_offset + 1
        return end_offset

    # --- Share partitions' leaders --------------------------------------------------------------

    def _write(self, event: WriteState, ticket: Ticket, now: Now) -> Result:
        key = event.key
        state = self._known(key, "Write")
        self._check_leader_epoch(key, event.leader_epoch)
        self._check_state_epoch(key, event.state_epoch)
        self._check_exists(key)
        record = self._next_record(key, state, event, state.leader_epoch, now)
        return Result((record,), ((ticket, None),))

    def _read(self, event: ReadState, ticket: Ticket, now: Now) -> Result:
        key = event.key
        state = self._known(key, "Read")
        self._check_leader_epoch(key, event.leader_epoch)
        self._check_exists(key)
        if event.leader_epoch in (NO_EPOCH, self.leader_epochs.get(key)):
            return Result(replies=((ticket, state),))
        fence = WriteState(
            key,
            state.state_epoch,
            event.leader_epoch,
            state.start_offset,
            state.delivery_complete_count,
            (),
        )
        record = self._next_record(key, state, fence, event.leader_epoch, now)
        return Result((record,), ((ticket, state),))

    def _next_record(
        self,
        key: SharePartitionKey,
        state: ShareState,
        event: WriteState,
        leader_epoch: int,
        now: Now,
    ) -> StoredRecord:
        """Return an update, or a snapshot if there were enough updates (rule 418)."""
        limit = self.settings.update_records_per_snapshot
        if self.update_counts.get(key, 0) < limit:
            batches = combine((), event.batches, event.start_offset)
            return StoredRecord(
                key,
                StateUpdate(
                    state.snapshot_epoch,
                    leader_epoch,
                    event.start_offset,
                    event.delivery_complete_count,
                    tuple(batches),
                ),
            )
        has_start = event.start_offset != NO_OFFSET
        start_offset = event.start_offset if has_start else state.start_offset
        snapshot = ShareState(
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=event.delivery_complete_count,
            batches=tuple(combine(state.batches, event.batches, start_offset)),
            create_timestamp=now.wall_ms,
            write_timestamp=now.wall_ms,
        )
        return StoredRecord(key, snapshot)

    # --- Group coordinators ---------------------------------------------------------------------

    def _initialize(self, event: InitializeState, ticket: Ticket, now: Now) -> Result:
        key = event.key
        _check_key(key)
        self._check_state_epoch(key, event.state_epoch)
        self._check_exists(key)
        known = self.states.get(key)
        snapshot = ShareState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=event.state_epoch,
            leader_epoch=0,
            start_offset=event.start_offset,
            delivery_complete_count=NO_COUNT if event.start_offset == NO_OFFSET else 0,
            create_timestamp=now.wall_ms,
            write_timestamp=now.wall_ms,
        )
        return Result((StoredRecord(key, snapshot),), ((ticket, None),))

    def _summarize(self, event: ReadSummary, ticket: Ticket, now: Now) -> Result:
        del now
        _check_key(event.key)
        self._check_exists(event.key)
        state = self.states.get(event.key)
        if state is None:
            return Result(replies=((ticket, Summary()),))
        summary = Summary(
            state.state_epoch,
            state.leader_epoch,
            state.start_offset,
            state.delivery_complete_count,
        )
        return Result(replies=((ticket, summary),))

    def _delete(self, event: DeleteState, ticket: Ticket, now: Now) -> Result:
        del now
        _check_key(event.key)
        self._check_exists(event.key)
        replies = ((ticket, None),)
        if event.key not in self.states:
            return Result(replies=replies)
        return Result((StoredRecord(event.key, None),), replies)

    def _forget_topics(self, event: ForgetTopics, ticket: Ticket, now: Now) -> Result:
        """Write tombstones; a topic that has the name again has another id."""
        del event, now
        gone = [
            StoredRecord(key, None)
            for key in self.states
            if not self._exists(key.topic_id, key.partition)
        ]
        return Result(gone, ((ticket, None),), atomic=False)

    # --- Time -----------------------------------------------------------------------------------

    def _prune(self) -> Result:
        """Have the log cut off below the oldest snapshot that counts (rule 421)."""
        before_offset = min(self.snapshot_offsets.values(), default=self.pruned_offset)
        if before_offset <= 0:
            return NOTHING
        return Result(effects=(PruneLog(self.partition, before_offset),))

    def _snapshot_cold(self, now: Now) -> Result:
        """Write share partitions again whose last snapshot is old (rule 420)."""
        states = self.states.items()
        if all(state.create_timestamp != state.write_timestamp for _, state in states):
            return NOTHING  # only copies of copies would be written, for ever
        interval_ms = self.settings.cold_snapshot_interval_ms
        cold = [
            StoredRecord(
                key,
                replace(
                    state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now.wall_ms
                ),
            )
            for key, state in states
            if now.wall_ms - state.write_timestamp >= interval_ms
        ]
        return Result(cold, atomic=False)

    def _schedule(self, kind: TimerKind, now: Now) -> None:
        settings = self.settings
        interval_ms = (
            settings.prune_interval_ms
            if kind is TimerKind.PRUNE
            else settings.cold_snapshot_interval_ms
        )
        self.timers.schedule(kind, now.monotonic_ms + interval_ms)

    # --- Checks (rule 416) ----------------------------------------------------------------------

    def _known(self, key: SharePartitionKey, operation: str) -> ShareState:
        _check_key(key)
        state = self.states.get(key)
        if state is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{operation} operation on uninitialized share partition not allowed.",
            )
        return state

    def _check_leader_epoch(self, key: SharePartitionKey, leader_epoch: int) -> None:
        known = self.leader_epochs.get(key, NO_EPOCH)
        if leader_epoch != NO_EPOCH and leader_epoch < known:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{key.coordinator_key}: leader epoch {leader_epoch} is older than {known}",
            )

    def _check_state_epoch(self, key: SharePartitionKey, state_epoch: int) -> None:
        known = self.state_epochs.get(key, NO_EPOCH)
        if state_epoch != NO_EPOCH and state_epoch < known:
            raise KafkaError(
                ErrorCode.FENCED_STATE_EPOCH,
                f"{key.coordinator_key}: state epoch {state_epoch} is older than {known}",
            )

    def _check_exists(self, key: SharePartitionKey) -> None:
        if not self._exists(key.topic_id, key.partition):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{key.coordinator_key}: there is no such partition",
            )

    @staticmethod
    def _raise(epochs: dict[SharePartitionKey, int], key: SharePartitionKey, epoch: int) -> None:
        epochs[key] = max(epochs.get(key, epoch), epoch)


def _check_key(key: SharePartitionKey) -> None:
    if key.topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic id cannot be null.")
    if key.partition < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _merged(state: ShareState | None, update: StateUpdate) -> ShareState:
    """Return a state after an update; one without a snapshot before it stands alone."""
    if state is None:
        return ShareState(
            snapshot_epoch=update.snapshot_epoch,
            state_epoch=0,
            leader_epoch=update.leader_epoch,
            start_offset=update.start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=update.batches,
        )
    has_start = update.start_offset != NO_OFFSET
    start_offset = update.start_offset if has_start else state.start_offset
    has_epoch = update.leader_epoch != NO_EPOCH
    return replace(
        state,
        leader_epoch=update.leader_epoch if has_epoch else state.leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=update.delivery_complete_count,
        batches=tuple(combine(state.batches, update.batches, start_offset)),
    )
