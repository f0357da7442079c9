"""This broker's replica of one partition: its log, its role, and who waits for it to move.

The only code that moves log, role and watchers together. A partition has one of three roles: the
sole replica of it, whose high watermark is its log end (`_role` is None, nothing else is looked
at on the way of an append); a leader with followers (`leading`); a follower (`following`).
"""

from typing import TYPE_CHECKING

from kafkalite.isr.follower_role import NO_LEADER, FollowerRole, not_leader
from kafkalite.isr.leader import Leader
from kafkalite.isr.leader_role import IsrAccepted, LeaderRole, end_all
from kafkalite.isr.partition_read import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    IsolationLevel,
    PartitionRead,
)
from kafkalite.isr.pending_acks import PendingAck
from kafkalite.isr.replica import Replica, Watcher, call_all
from kafkalite.log.state import AppendInfo
from kafkalite.log.validate import AppendOrigin, CheckedBatch
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.isr.state import IsrChange
    from kafkalite.meta.image import PartitionImage

__all__ = [
    "EARLIEST_LOCAL_TIMESTAMP",
    "EARLIEST_PENDING_UPLOAD_TIMESTAMP",
    "EARLIEST_TIMESTAMP",
    "LATEST_TIERED_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "MAX_TIMESTAMP",
    "IsolationLevel",
    "Partition",
    "PartitionRead",
    "Watcher",
]


class Partition(Replica):
    """One replica, in any of its roles.

    It begins as the sole one; `begin_as_follower` makes it one that waits for its role.
    """

    __slots__ = ()

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
        self._wake_all()

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
            role.core.on_state(
                replicas=state.replicas,
                isr=state.isr,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                now_ms=now_ms,
            )
            self._publish(role, moved=True)
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
            end_all(role.waiters.on_leadership_lost())
        if was != (self.leader_epoch, self.leader_id, False):
            self._wake_all()

    def _is_stale(self, state: "PartitionImage") -> bool:
        return (
            state.leader_epoch < self.leader_epoch or state.partition_epoch < self.partition_epoch
        )

    def _lead_alone(self) -> None:
        role, self._role = self._role, None
        self.log.producers.awaits_replication = False
        if isinstance(role, LeaderRole):
            end_all(role.waiters.on_high_watermark(self.log.log_end_offset))
        if role is not None:
            self._wake_all()

    def _lead_others(self, state: "PartitionImage", now_ms: int) -> None:
        core = Leader(
            self._replication.broker_id,
            replicas=state.replicas,
            isr=state.isr,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            log_end_offset=self.log.log_end_offset,
            high_watermark=self.high_watermark,
            min_insync_replicas=self.log.config.min_insync_replicas,
            lag_ms_max=self._replication.lag_ms_max,
            is_eligible=self._replication.is_eligible,
            now_ms=now_ms,
        )
        self._role = LeaderRole(core)
        self.log.producers.awaits_replication = True

    def _follow(self, leader_id: int, high_watermark: int) -> None:
        self._role = FollowerRole(self.log, leader_id=leader_id, high_watermark=high_watermark)
        self.log.producers.awaits_replication = True

    # --- Leading ---------------------------------------------------------------------------------

    def append(
        self,
        records: bytearray | memoryview | CheckedBatch,
        *,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        all_acks: bool = False,
    ) -> AppendInfo:
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
        if role is not None:
            return self._append_to_all(role, records, now_ms, origin, all_acks=all_acks)
        info = self.log.append_as_leader(
            records, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
        )
        if self._watchers:
            self._wake()
        return info

    def _append_to_all(
        self,
        role: LeaderRole | FollowerRole,
        records: bytearray | memoryview | CheckedBatch,
        now_ms: int,
        origin: AppendOrigin,
        *,
        all_acks: bool,
    ) -> AppendInfo:
        if isinstance(role, FollowerRole):
            raise not_leader(self.topic_partition, role.leader_id)
        if all_acks and role.core.is_under_min_isr:
            role.core.check_enough_replicas()
        try:
            info = self.log.append_as_leader(
                records, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
            )
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self.step_down()
            raise
        if not info.duplicate:
            moved = role.core.on_append(self.log.log_end_offset)
            if self._append_watchers:
                call_all(self._append_watchers)
            if moved:
                self._publish(role, moved=True)
        return info

    def add_ack_waiter(self, waiter: PendingAck) -> None:
        """Call `waiter.on_done` when its records are replicated, or cannot be; perhaps at once."""
        role = self._role
        if isinstance(role, LeaderRole):
            role.add_ack_waiter(waiter)
            return
        is_leader = role is None
        waiter.outcome = ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
        waiter.on_done(waiter)

    def cancel_wait(self, waiter: PendingAck) -> None:
        """Forget a waiter that nobody asks for any more; nothing if it is not waiting."""
        role = self._role
        if waiter.outcome is None and isinstance(role, LeaderRole):
            role.waiters.cancel(waiter)

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
        if not isinstance(role, LeaderRole):
            if role is not None:
                raise not_leader(self.topic_partition, role.leader_id)
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"{self.topic_partition}: broker {replica_id} is no replica",
            )
        core = role.core
        follower = core.followers.get(replica_id)
        start_offset = -1 if follower is None else follower.log_start_offset
        moved = core.on_follower_fetch(
            replica_id,
            offset=offset,
            log_start_offset=log_start_offset,
            broker_epoch=broker_epoch,
            now_ms=now_ms,
        )
        moved = moved or log_start_offset != start_offset
        if moved or core.has_proposal:
            self._publish(role, moved=moved)

    def tick(self, now_ms: int) -> None:
        """Look for followers that lag, and end who waits for too long; `now_ms` is monotonic."""
        role = self._role
        if isinstance(role, LeaderRole):
            if self.log.failure is not None:
                role.core.step_down()
            moved = role.core.on_tick(now_ms)
            end_all(role.waiters.on_time(now_ms))
            self._publish(role, moved=moved)

    def step_down(self) -> None:
        """Have another in-sync replica lead, since this log cannot be written (rule 185)."""
        role = self._role
        if isinstance(role, LeaderRole):
            self._is_unwritable = True
            role.core.step_down(is_lost=self.log.failure is not None)
            self._publish(role, moved=False)

    def take_isr_change(self) -> "IsrChange | None":
        """Return the change of the ISR that is to be asked for, once; None if there is none."""
        role = self._role
        return role.core.take_isr_change() if isinstance(role, LeaderRole) else None

    def on_isr_answer(self, proposal: "IsrChange", answer: IsrAccepted | ErrorCode) -> None:
        """Take what became of a proposal (rule 176); an error may mean that it is made again."""
        role = self._role
        if isinstance(role, LeaderRole):
            moved = role.on_answer(proposal, answer)
            self.partition_epoch = max(self.partition_epoch, role.core.partition_epoch)
            self._publish(role, moved=moved)

    def on_config_changed(self) -> None:
        """Take over the settings of the topic that matter here."""
        role = self._role
        if isinstance(role, LeaderRole):
            role.core.min_insync_replicas = self.log.config.min_insync_replicas
            self._publish(role, moved=False)

    def _publish(self, role: LeaderRole, *, moved: bool) -> None:
        """Pass on what the core has decided."""
        role.release()
        if moved and self._watchers:
            self._wake()
        if role.core.has_proposal:
            self._replication.on_isr_change(self)

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
    ) -> AppendInfo | None:
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
        return role.append(records, leader_epoch=self.leader_epoch)

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from `offset` on, which the leader does not have (rule 171).

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, it is led here by now; KAFKA_STORAGE_ERROR.
        """
        self._following().truncate_to(offset)
        self._undecided_end = min(self._undecided_end, self.log.log_end_offset)
        self._wake()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Begin anew at the leader's log start, which is beyond all that is here (rule 172).

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, it is led here by now; KAFKA_STORAGE_ERROR.
        """
        self._following().truncate_fully_and_start_at(offset)
        self._undecided_end = min(self._undecided_end, self.log.log_end_offset)
        self._wake()

    def advance_follower(self, leader_high_watermark: int, leader_log_start_offset: int) -> None:
        """Take over the leader's bounds as far as this log reaches (rules 169, 170).

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, it is led here by now; KAFKA_STORAGE_ERROR.
        """
        moved = self._following().advance(leader_high_watermark, leader_log_start_offset)
        if moved and self._watchers:
            self._wake()

    def _following(self) -> FollowerRole:
        role = self._role
        if not isinstance(role, FollowerRole):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic_partition} is led here"
            )
        return role

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
            self._wake()
        return self.log.log_start_offset

    def close(self) -> None:
        """Wake everyone who waits, because this replica is going away."""
        role = self._role
        if isinstance(role, LeaderRole):
            end_all(role.waiters.on_leadership_lost())
        elif isinstance(role, FollowerRole):
            role.leader_id = NO_LEADER
        self._wake_all()
        self._watchers.clear()
        self._append_watchers.clear()
