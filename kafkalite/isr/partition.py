"""This broker's replica of one partition: its log, its role, and who waits for it to move.

The only code that changes roles. A partition has one of three: the sole replica of it, whose high
watermark is its log end and which needs no object (`_role` is None, nothing else is looked at on
the way of an append); a leader with followers (`leader_role`); a follower (`follower_role`).
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from kafkalite.isr.follower_role import NO_LEADER, FollowerRole
from kafkalite.isr.leader import Leader
from kafkalite.isr.leader_role import IsrAccepted, LeaderRole, ReplicationContext
from kafkalite.isr.partition_read import IsolationLevel, PartitionRead
from kafkalite.isr.watchers import Watcher, Watchers, call_all
from kafkalite.log.region import EMPTY_REGION
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.isr.pending_acks import PendingAck
    from kafkalite.isr.state import IsrChange
    from kafkalite.log.log import Log
    from kafkalite.log.state import AppendInfo
    from kafkalite.log.validate import CheckedBatch
    from kafkalite.meta.image import PartitionImage
    from kafkalite.types import TopicPartition

ALONE = ReplicationContext()
"""Of partitions that were given nothing else."""


class Partition:
    """Log and role of one replica.

    It begins as the sole one; `begin_as_follower` makes it one that waits for its role.

    Invariant: log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset.

    Attributes:
        log: its records.
        leader_epoch: of the present leader's epoch, as far as is known here.
        partition_epoch: version of the state that was taken up last.
        traffic: what clients write and read is counted there, with the other partitions' of the
            topic.
    """

    __slots__ = (
        "_append_watchers",
        "_is_unwritable",
        "_replication",
        "_role",
        "_undecided_end",
        "_watchers",
        "leader_epoch",
        "log",
        "partition_epoch",
        "topic_partition",
        "traffic",
    )

    def __init__(
        self, log: "Log", *, leader_epoch: int, replication: ReplicationContext = ALONE
    ) -> None:
        self.log = log
        self.topic_partition: TopicPartition = log.topic_partition
        self.leader_epoch = leader_epoch
        self.partition_epoch = -1
        self.traffic = replication.traffic.of(log.topic_partition.topic)
        self._replication = replication
        self._role: LeaderRole | FollowerRole | None = None
        # Transactions that end below this were decided before the broker started, perhaps by
        # markers that are not replicated: where those began is not remembered.
        self._undecided_end = 0
        self._is_unwritable = False
        self._watchers: Watchers = {}
        self._append_watchers: Watchers = {}

    # --- What is so ------------------------------------------------------------------------------

    @property
    def topic_id(self) -> "UUID":
        """Of the topic's present incarnation."""
        return self.log.topic_id

    @property
    def is_leader(self) -> bool:
        """Whether it is led here."""
        return not isinstance(self._role, FollowerRole)

    @property
    def leader_id(self) -> int:
        """Broker that leads it, -1 if none does."""
        role = self._role
        return role.leader_id if isinstance(role, FollowerRole) else self._replication.broker_id

    @property
    def leader(self) -> Leader | None:
        """The decisions of a leader with followers; None in every other role."""
        role = self._role
        return role.core if isinstance(role, LeaderRole) else None

    @property
    def log_start_offset(self) -> int:
        """First offset that can be read."""
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Offset that the next record gets."""
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """End (exclusive) of what every in-sync replica has."""
        role = self._role
        return self.log.log_end_offset if role is None else role.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """End (exclusive) of what a read_committed consumer may see (rule 115)."""
        role = self._role
        if role is None:
            unstable = self.log.first_unstable_offset
            high_watermark = self.log.log_end_offset
            return high_watermark if unstable is None else min(unstable, high_watermark)
        high_watermark = role.high_watermark
        if high_watermark < self._undecided_end:
            return self.log.log_start_offset
        unstable = self.log.producers.first_unstable_offset_below(high_watermark)
        if unstable is None:
            return high_watermark
        return min(max(unstable, self.log.log_start_offset), high_watermark)

    @property
    def low_watermark(self) -> int:
        """Least log start of the living replicas (rule 35); -1 if one has not told its own."""
        role = self._role
        start_offset = self.log.log_start_offset
        if not isinstance(role, LeaderRole):
            return start_offset
        return role.core.low_watermark(start_offset, self._replication.is_alive)

    @property
    def has_reached_epoch_start(self) -> bool:
        """Whether it is known what was committed before this epoch (rule 95)."""
        role = self._role
        return not isinstance(role, LeaderRole) or role.has_reached_epoch_start

    @property
    def max_batch_bytes(self) -> int:
        """Largest batch that `append` takes (`max.message.bytes`)."""
        return self.log.config.max_message_bytes

    # --- Reading ---------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        min_one_batch: bool,
        isolation: IsolationLevel,
        last_fetched_epoch: int = -1,
        as_replica: bool = False,
    ) -> PartitionRead:
        """Return whole batches from the one that holds `offset`, below what the reader may see.

        That is the high watermark, or the last stable offset for committed records; for a
        follower, `as_replica`, the log end (rule 72).

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE (rule 73), KAFKA_STORAGE_ERROR.
        """
        log = self.log
        role = self._role
        committed = isolation is IsolationLevel.READ_COMMITTED and not as_replica
        stable = self.last_stable_offset
        high_watermark = log.log_end_offset if role is None else role.high_watermark
        result = PartitionRead(None, high_watermark, stable, log.log_start_offset)
        if last_fetched_epoch >= 0:
            result.diverging = self.diverging_epoch(offset, last_fetched_epoch)
            if result.diverging is not None:
                return result
        visible = stable if committed else high_watermark
        if offset == visible and not as_replica and log.failure is None:
            result.region = EMPTY_REGION  # nothing new, as for most partitions of most fetches
            if committed:
                result.aborted = []
            return result
        if as_replica or visible == log.log_end_offset:
            upper = log.log_end_position
        elif log.log_start_offset <= offset and visible <= offset <= log.log_end_offset:
            result.region = EMPTY_REGION  # where the bound lies need not be found out (rule 73)
            if committed:
                result.aborted = []
            return result
        else:
            upper = log.position_of(visible)
        region = result.region = log.read(
            offset, max_bytes=max_bytes, upper=upper, min_one_batch=min_one_batch
        )
        result.has_more = -1 < region.next_offset < upper.offset
        if committed:
            # Of what is returned, and no further: the rest is told with the rest (rule 116).
            result.aborted = (
                log.aborted_transactions(offset, region.next_offset) if len(region) else []
            )
        return result

    def diverging_epoch(self, offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        """Return (epoch, end offset) where a reader's history leaves this one (rule 77).

        None if it does not: the reader's record before `offset` is of that epoch here, too.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, that epoch is not known here.
        """
        epoch, epoch_end = self.end_offset_for(last_fetched_epoch)
        if epoch_end < 0 or offset < self.log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} after leader epoch "
                f"{last_fetched_epoch} is not known here",
            )
        is_other = epoch < last_fetched_epoch or epoch_end < offset
        return (epoch, epoch_end) if is_other else None

    def end_offset_for(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) as OffsetForLeaderEpoch answers them (rule 98)."""
        if leader_epoch == self.leader_epoch:
            return leader_epoch, self.log.log_end_offset
        return self.log.end_offset_for(leader_epoch)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader is older or newer than ours (rule 76).

        Raises:
            KafkaError: FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH; -1 is never refused.
        """
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise KafkaError(
            code,
            f"{self.topic_partition}: client at leader epoch {current_leader_epoch}, "
            f"leader at {self.leader_epoch}",
        )

    def read_batches(self, offset: int) -> Iterator[memoryview]:
        """Yield the batches from `offset` up to the high watermark, for replay by a coordinator."""
        return self.log.read_batches(offset, self.high_watermark)

    # --- Roles -----------------------------------------------------------------------------------

    def begin_as_follower(self, *, high_watermark: int) -> None:
        """Begin without a leader, and with the high watermark that was written last (rule 184).

        Until it has reached the end of what is here, no transaction counts as decided.
        """
        self._follow(NO_LEADER, high_watermark)
        if any(producer.coordinator_epoch >= 0 for producer in self.log.producers):
            self._undecided_end = self.log.log_end_offset

    def begin_epoch(self, leader_epoch: int) -> None:
        """Lead in another epoch; readers that wait may be of an older one (rule 76)."""
        self.leader_epoch = leader_epoch
        self.log.begin_epoch(leader_epoch)
        self.wake_all()

    def become_leader(self, state: "PartitionImage", *, now_ms: int) -> None:
        """Lead, or go on leading, with these replicas and this ISR.

        What is older than what is known already (an answer of the controller may be faster than
        the metadata) is ignored. The epoch's start offset is kept with the log before anything is
        appended in it (rule 99).
        """
        if self._is_stale(state):
            return
        self.partition_epoch = max(self.partition_epoch, state.partition_epoch)
        role = self._role
        if state.replicas == state.isr == (self._replication.broker_id,):
            self._lead_alone()
        elif isinstance(role, LeaderRole):
            role.on_state(state, now_ms)
        else:
            self._lead_others(state, now_ms)
        if state.leader_epoch != self.leader_epoch or isinstance(role, FollowerRole):
            self.begin_epoch(state.leader_epoch)
        if self.log.failure is not None:
            self.step_down()

    def become_follower(self, state: "PartitionImage") -> None:
        """Follow the leader that `state` names, or none; acknowledgements cannot be given now."""
        if self._is_stale(state):
            return
        self.partition_epoch = max(self.partition_epoch, state.partition_epoch)
        role = self._role
        was = (self.leader_epoch, self.leader_id, self.is_leader)
        self.leader_epoch = state.leader_epoch
        if isinstance(role, FollowerRole):
            role.leader_id = state.leader
        else:
            self._follow(state.leader, self.high_watermark)
            if self.log.failure is None:
                # Epochs in which this broker led and wrote nothing are known to nobody else.
                self.log.truncate_to(self.log.log_end_offset)
        if isinstance(role, LeaderRole):
            role.end()
        if was != (self.leader_epoch, self.leader_id, False):
            self.wake_all()

    def _is_stale(self, state: "PartitionImage") -> bool:
        return (
            state.leader_epoch < self.leader_epoch or state.partition_epoch < self.partition_epoch
        )

    def _lead_alone(self) -> None:
        role, self._role = self._role, None
        self.log.producers.awaits_replication = False
        if isinstance(role, LeaderRole):
            role.on_alone()
        if role is not None:
            self.wake_all()

    def _lead_others(self, state: "PartitionImage", now_ms: int) -> None:
        self._role = LeaderRole(
            self.log,
            state,
            self._replication,
            high_watermark=self.high_watermark,
            watchers=self._watchers,
            append_watchers=self._append_watchers,
            ask_for_isr_change=partial(self._replication.on_isr_change, self),
            now_ms=now_ms,
        )
        self.log.producers.awaits_replication = True

    def _follow(self, leader_id: int, high_watermark: int) -> None:
        self._role = FollowerRole(self.log, leader_id=leader_id, high_watermark=high_watermark)
        self.log.producers.awaits_replication = True

    # --- Leading ---------------------------------------------------------------------------------

    def append(
        self,
        records: "bytearray | memoryview | CheckedBatch",
        *,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        all_acks: bool = False,
    ) -> "AppendInfo":
        """Append client or coordinator batches; `records` is patched in place.

        Args:
            records: whole batches, in writable memory, or a client's that was checked.
            now_ms: wall clock.
            origin: who sent them.
            all_acks: refuse if there are too few in-sync replicas to acknowledge it (rule 52).

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, and what
                `Log.append_as_leader` refuses (rules 38-49, 55-59, 113-114).
        """
        role = self._role
        if role is None:
            info = self.log.append_as_leader(
                records, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
            )
            if self._watchers:
                call_all(self._watchers)
            return info
        try:
            return role.append(
                records,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                origin=origin,
                all_acks=all_acks,
            )
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self.step_down()
            raise

    def add_ack_waiter(self, waiter: "PendingAck") -> None:
        """Call `waiter.on_done` when its records are replicated, or cannot be; perhaps at once."""
        role = self._role
        if role is None:
            waiter.outcome = ErrorCode.NONE
            waiter.on_done(waiter)
        else:
            role.add_ack_waiter(waiter)

    def cancel_wait(self, waiter: "PendingAck") -> None:
        """Forget a waiter that nobody asks for any more; nothing if it is not waiting."""
        if self._role is not None:
            self._role.cancel_wait(waiter)

    def on_follower_fetch(
        self, replica_id: int, broker_epoch: int, offset: int, log_start_offset: int, now_ms: int
    ) -> None:
        """Note that a follower has all below `offset` (rule 163).

        Not to be called for an offset that `read` refuses or finds diverging.

        Args:
            replica_id: the follower.
            broker_epoch: of the follower, -1 if it did not tell (KIP-903).
            offset: that it fetches from.
            log_start_offset: of its log.
            now_ms: monotonic.

        Raises:
            KafkaError: it is no replica here, or an outdated one.
        """
        role = self._role
        if role is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"{self.topic_partition}: broker {replica_id} is no replica",
            )
        role.on_follower_fetch(replica_id, broker_epoch, offset, log_start_offset, now_ms)

    def tick(self, now_ms: int) -> None:
        """Look for followers that lag, and end who waits for too long; `now_ms` is monotonic."""
        if self._role is not None:
            self._role.tick(now_ms)

    def step_down(self) -> None:
        """Have another in-sync replica lead, since this log cannot be written (rule 185)."""
        role = self._role
        if isinstance(role, LeaderRole):
            self._is_unwritable = True
            role.step_down()

    def take_isr_change(self) -> "IsrChange | None":
        """Return the change of the ISR that is to be asked for, once; None if there is none."""
        role = self._role
        return role.core.take_isr_change() if isinstance(role, LeaderRole) else None

    def on_isr_answer(self, proposal: "IsrChange", answer: IsrAccepted | ErrorCode) -> None:
        """Take what became of a proposal (rule 176); an error may mean that it is made again."""
        role = self._role
        if isinstance(role, LeaderRole):
            moved = role.on_isr_answer(proposal, answer)
            self.partition_epoch = max(self.partition_epoch, role.core.partition_epoch)
            role.release(moved=moved)

    def on_config_changed(self) -> None:
        """Take over the settings of the topic that matter here."""
        role = self._role
        if isinstance(role, LeaderRole):
            role.on_config_changed()

    # --- Following -------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Refuse to follow while the log cannot be written that this broker resigned for.

        It may have all that there is, and be let into the ISR for it; what comes next would then
        wait until it is put out again.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        if self._is_unwritable:
            self.log.check_writable()
            self._is_unwritable = False

    def fetch_position(self) -> tuple[int, int, int, int]:
        """Return what the next fetch says: (offset, epoch of the last record, leader epoch, start).

        The epoch of the last record is -1 where the log has none (rule 171).
        """
        log = self.log
        return log.log_end_offset, log.leader_epoch, self.leader_epoch, log.log_start_offset

    def append_as_follower(
        self, records: bytearray | memoryview, *, leader_epoch: int | None = None
    ) -> "AppendInfo | None":
        """Write batches as the leader sent them; None if there was no whole one (rule 170).

        Args:
            records: of a Fetch response; one that is cut off at the end is left out.
            leader_epoch: that the fetch was made in; None means the present one.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH, the fetch is of an earlier epoch;
                NOT_LEADER_OR_FOLLOWER, it is led here by now; else as `Log.append_as_follower`.
        """
        role = self._following()
        if leader_epoch not in (None, self.leader_epoch):
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{self.topic_partition}: fetched in leader epoch {leader_epoch}, "
                f"now it is {self.leader_epoch}",
            )
        return role.append_as_follower(records, leader_epoch=self.leader_epoch)

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from `offset` on, which the leader does not have (rule 171).

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, it is led here by now; KAFKA_STORAGE_ERROR.
        """
        self._following().truncate_to(offset)
        self._undecided_end = min(self._undecided_end, self.log.log_end_offset)
        call_all(self._watchers)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Begin anew at the leader's log start, which is beyond all that is here (rule 172).

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, it is led here by now; KAFKA_STORAGE_ERROR.
        """
        self._following().truncate_fully_and_start_at(offset)
        self._undecided_end = min(self._undecided_end, self.log.log_end_offset)
        call_all(self._watchers)

    def advance_follower(self, leader_high_watermark: int, leader_log_start_offset: int) -> None:
        """Take over the leader's bounds as far as this log reaches (rules 169, 170).

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, it is led here by now; KAFKA_STORAGE_ERROR.
        """
        moved = self._following().advance(leader_high_watermark, leader_log_start_offset)
        if moved and self._watchers:
            call_all(self._watchers)

    def _following(self) -> FollowerRole:
        role = self._role
        if not isinstance(role, FollowerRole):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic_partition} is led here"
            )
        return role

    # --- Watching --------------------------------------------------------------------------------

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` after each move of the high watermark or log start, until `unwatch`."""
        self._watchers[watcher] = None

    def watch_appends(self, watcher: Watcher) -> None:
        """Call `watcher` after each append by this leader, until `unwatch`; for followers."""
        self._append_watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """Stop calling `watcher`; nothing if it was not watching."""
        self._watchers.pop(watcher, None)
        self._append_watchers.pop(watcher, None)

    def wake_all(self) -> None:
        """Call all who watch: something is different that no method here was asked for."""
        call_all(self._watchers)
        call_all(self._append_watchers)

    # --- Ending ----------------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up to `offset` (-1: to the high watermark); return the new start.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, or POLICY_VIOLATION on a compact-only topic (rule 35).
        """
        if "delete" not in self.log.config.cleanup_policy and self.log.config.cleanup_policy:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{self.topic_partition}: records of a topic whose cleanup.policy lacks 'delete' "
                "cannot be deleted",
            )
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: cannot delete before {target}, "
                f"high watermark is {self.high_watermark}",
            )
        if target > self.log.log_start_offset:
            self.log.delete_records_before(target)
            call_all(self._watchers)
        return self.log.log_start_offset

    def close(self) -> None:
        """Wake everyone who waits, because this replica is going away."""
        if self._role is not None:
            self._role.end()
        self.wake_all()
        self._watchers.clear()
        self._append_watchers.clear()
