"""The part of a partition that leads followers: the core's decisions, and those who wait for them.

A partition with one replica needs none of this.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.isr.leader import IsEligible, Leader
from kafkalite.isr.pending_acks import PendingAck, PendingAcks
from kafkalite.isr.traffic import Traffic
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.isr.offline import OfflineReplica
    from kafkalite.isr.partition import Partition
    from kafkalite.isr.recovering import RecoveringLeader
    from kafkalite.isr.state import IsrChange


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
    """A leader with followers: its core, and who waits for acknowledgement."""

    __slots__ = ("core", "waiters")

    def __init__(self, core: Leader) -> None:
        self.core = core
        self.waiters = PendingAcks()

    @property
    def high_watermark(self) -> int:
        """End (exclusive) of what every in-sync replica has."""
        return self.core.high_watermark

    @property
    def has_reached_epoch_start(self) -> bool:
        """Whether the high watermark has reached the beginning of this epoch (rule 95)."""
        return self.core.high_watermark >= self.core.epoch_start_offset

    def add_ack_waiter(self, waiter: PendingAck) -> None:
        """Let one wait for its offset, or end it at once."""
        if self.core.high_watermark >= waiter.required_offset:
            end_all([_ended(waiter, ErrorCode.NONE)])
        elif self.core.is_under_min_isr:
            end_all([_ended(waiter, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)])
        else:
            self.waiters.add(waiter)

    def on_answer(self, proposal: "IsrChange", answer: IsrAccepted | ErrorCode) -> bool:
        """Take what became of a proposal; return whether the high watermark moved."""
        if isinstance(answer, IsrAccepted):
            return self.core.on_isr_accepted(
                leader_epoch=answer.leader_epoch,
                partition_epoch=answer.partition_epoch,
                isr=answer.isr,
            )
        return self.core.on_isr_rejected(proposal, answer)

    def release(self) -> None:
        """End those who have nothing to wait for any more."""
        waiters = self.waiters
        if not len(waiters):
            return
        end_all(waiters.on_high_watermark(self.core.high_watermark))
        if self.core.is_under_min_isr:
            end_all(waiters.on_isr_below_min())


def end_all(waiters: list[PendingAck]) -> None:
    """Tell waiters that their outcome is there."""
    for waiter in waiters:
        waiter.on_done(waiter)


def _ended(waiter: PendingAck, outcome: ErrorCode) -> PendingAck:
    waiter.outcome = outcome
    return waiter
