"""The role of a leader with followers: it appends, and lets those wait who want acknowledgement.

What it decides is in the core `leader`. A partition with one replica needs none of this.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.isr.leader import IsEligible, Leader
from kafkalite.isr.pending_acks import PendingAck, PendingAcks
from kafkalite.isr.traffic import Traffic
from kafkalite.isr.watchers import Watchers, call_all
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.isr.offline import OfflineReplica
    from kafkalite.isr.partition import Partition
    from kafkalite.isr.recovering import RecoveringLeader
    from kafkalite.isr.state import IsrChange
    from kafkalite.log.log import Log
    from kafkalite.log.state import AppendInfo
    from kafkalite.log.validate import AppendOrigin, CheckedBatch
    from kafkalite.meta.image import PartitionImage


def _all_are_eligible(broker_id: int, broker_epoch: int) -> bool:
    del broker_id, broker_epoch
    return True


def _all_are_alive(broker_id: int) -> bool:
    del broker_id
    return True


def _nobody_asks(partition: "Partition | OfflineReplica | RecoveringLeader") -> None:
    del partition


@dataclass(slots=True, kw_only=True)
class ReplicationContext:
    """State shared by the partitions of a broker: its identity, and what it knows of other brokers.

    Attributes:
        broker_id: of this broker.
        lag_ms_max: `replica.lag.time.max.ms`.
        is_eligible: whether a broker may be in an ISR, see `leader.IsEligible`.
        is_alive: whether a broker is registered.
        on_isr_change: told of a partition that has a change of its ISR to ask for.
        traffic: where what clients write and read is counted.
    """

    broker_id: int = 0
    lag_ms_max: int = 30_000
    is_eligible: IsEligible = _all_are_eligible
    is_alive: Callable[[int], bool] = _all_are_alive
    on_isr_change: "Callable[[Partition | OfflineReplica | RecoveringLeader], object]" = (
        _nobody_asks
    )
    traffic: Traffic = field(default_factory=Traffic)


@dataclass(slots=True, frozen=True, kw_only=True)
class IsrAccepted:
    """The controller's answer to a proposal: the partition's state as it is now."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class LeaderRole:
    """A leader with followers: its core, and who waits for acknowledgement.

    Attributes:
        core: what decides.
        waiters: those whose records are not replicated yet.
    """

    __slots__ = ("_append_watchers", "_ask_for_isr_change", "_log", "_watchers", "core", "waiters")

    def __init__(
        self,
        log: "Log",
        state: "PartitionImage",
        replication: ReplicationContext,
        *,
        high_watermark: int,
        watchers: Watchers,
        append_watchers: Watchers,
        ask_for_isr_change: Callable[[], object],
        now_ms: int,
    ) -> None:
        self.core = Leader(
            replication.broker_id,
            replicas=state.replicas,
            isr=state.isr,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            log_end_offset=log.log_end_offset,
            high_watermark=high_watermark,
            min_insync_replicas=log.config.min_insync_replicas,
            lag_ms_max=replication.lag_ms_max,
            is_eligible=replication.is_eligible,
            now_ms=now_ms,
        )
        self.waiters = PendingAcks()
        self._log = log
        self._watchers = watchers
        self._append_watchers = append_watchers
        self._ask_for_isr_change = ask_for_isr_change

    @property
    def high_watermark(self) -> int:
        """End (exclusive) of what every in-sync replica has."""
        return self.core.high_watermark

    @property
    def has_reached_epoch_start(self) -> bool:
        """Whether the high watermark has reached the beginning of this epoch (rule 95)."""
        return self.core.high_watermark >= self.core.epoch_start_offset

    # --- Appending and waiting -------------------------------------------------------------------

    def append(
        self,
        records: "bytearray | memoryview | CheckedBatch",
        *,
        leader_epoch: int,
        now_ms: int,
        origin: "AppendOrigin",
        all_acks: bool,
    ) -> "AppendInfo":
        """As `Partition.append`."""
        core = self.core
        if all_acks and core.is_under_min_isr:
            core.check_enough_replicas()
        info = self._log.append_as_leader(
            records, leader_epoch=leader_epoch, now_ms=now_ms, origin=origin
        )
        if not info.duplicate:
            moved = core.on_append(self._log.log_end_offset)
            if self._append_watchers:
                call_all(self._append_watchers)
            if moved:
                self.release(moved=True)
        return info

    def add_ack_waiter(self, waiter: PendingAck) -> None:
        """Let one wait for its offset, or end it at once."""
        if self.core.high_watermark >= waiter.required_offset:
            end_all([_ended(waiter, ErrorCode.NONE)])
        elif self.core.is_under_min_isr:
            end_all([_ended(waiter, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)])
        else:
            self.waiters.add(waiter)

    def cancel_wait(self, waiter: PendingAck) -> None:
        """Forget a waiter that nobody asks for any more; nothing if it is not waiting."""
        if waiter.outcome is None:
            self.waiters.cancel(waiter)

    def on_follower_fetch(
        self, replica_id: int, broker_epoch: int, offset: int, log_start_offset: int, now_ms: int
    ) -> None:
        """As `Partition.on_follower_fetch`."""
        core = self.core
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
            self.release(moved=moved)

    def tick(self, now_ms: int) -> None:
        """Look for followers that lag, and end who waits for too long; `now_ms` is monotonic."""
        if self._log.failure is not None:
            self.core.step_down()
        moved = self.core.on_tick(now_ms)
        end_all(self.waiters.on_time(now_ms))
        self.release(moved=moved)

    def release(self, *, moved: bool) -> None:
        """Pass on what the core has decided: end waiters, wake readers, ask for another ISR."""
        waiters = self.waiters
        if len(waiters):
            end_all(waiters.on_high_watermark(self.core.high_watermark))
            if self.core.is_under_min_isr:
                end_all(waiters.on_isr_below_min())
        if moved and self._watchers:
            call_all(self._watchers)
        if self.core.has_proposal:
            self._ask_for_isr_change()

    # --- State -----------------------------------------------------------------------------------

    def on_state(self, state: "PartitionImage", now_ms: int) -> None:
        """Go on leading, with these replicas and this ISR."""
        self.core.on_state(
            replicas=state.replicas,
            isr=state.isr,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            now_ms=now_ms,
        )
        self.release(moved=True)

    def on_isr_answer(self, proposal: "IsrChange", answer: IsrAccepted | ErrorCode) -> bool:
        """Take what became of a proposal; return whether the high watermark moved.

        `release` is to follow.
        """
        if isinstance(answer, IsrAccepted):
            return self.core.on_isr_accepted(
                leader_epoch=answer.leader_epoch,
                partition_epoch=answer.partition_epoch,
                isr=answer.isr,
            )
        return self.core.on_isr_rejected(proposal, answer)

    def on_config_changed(self) -> None:
        """Take over the settings of the topic that matter here."""
        self.core.min_insync_replicas = self._log.config.min_insync_replicas
        self.release(moved=False)

    def step_down(self) -> None:
        """Have another in-sync replica lead (rule 185)."""
        self.core.step_down(is_lost=self._log.failure is not None)
        self.release(moved=False)

    def on_alone(self) -> None:
        """End all who wait: this is the only replica now, and has their records."""
        end_all(self.waiters.on_high_watermark(self._log.log_end_offset))

    def end(self) -> None:
        """End all who wait: it is not led here any more."""
        end_all(self.waiters.on_leadership_lost())


def end_all(waiters: list[PendingAck]) -> None:
    """Tell waiters that their outcome is there."""
    for waiter in waiters:
        waiter.on_done(waiter)


def _ended(waiter: PendingAck, outcome: ErrorCode) -> PendingAck:
    waiter.outcome = outcome
    return waiter
