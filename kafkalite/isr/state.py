"""Which replicas are in sync, as agreed and as proposed, and how far each follower has come.

Pure values. After Kafka's PartitionState and Replica: while a change of the ISR is under way nobody
knows whether the controller has made it, so each question is answered by the safer of both sets.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

UNKNOWN_OFFSET: Final = -1
UNKNOWN_BROKER_EPOCH: Final = -1


class IsrMember(NamedTuple):
    """A replica that is to be in the ISR, and the broker epoch it was seen in (KIP-903)."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True, frozen=True, kw_only=True)
class IsrChange:
    """A change of the ISR that the leader asks of the controller (AlterPartition, rule 176)."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]


@dataclass(slots=True, frozen=True)
class CommittedIsr:
    """The ISR as the controller has it; nothing is under way."""

    isr: tuple[int, ...]

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Replicas that the high watermark waits for."""
        return self.isr


@dataclass(slots=True, frozen=True)
class PendingExpand:
    """The leader has asked to take one replica in.

    It may be in the ISR already, and be elected: the high watermark waits for it (rule 168).
    """

    committed: CommittedIsr
    added: int

    @property
    def isr(self) -> tuple[int, ...]:
        """Replicas that count for min.insync.replicas: only those that are surely in sync."""
        return self.committed.isr

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Replicas that the high watermark waits for."""
        return (*self.committed.isr, self.added)

    @property
    def proposed_isr(self) -> tuple[int, ...]:
        """ISR that was proposed."""
        return (*self.committed.isr, self.added)


@dataclass(slots=True, frozen=True)
class PendingShrink:
    """The leader has asked to put replicas out.

    They may still be in the ISR, and be elected: the high watermark waits for them (rule 168).
    """

    committed: CommittedIsr
    removed: tuple[int, ...]

    @property
    def isr(self) -> tuple[int, ...]:
        """Replicas that count for min.insync.replicas, as long as nothing else is known."""
        return self.committed.isr

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Replicas that the high watermark waits for."""
        return self.committed.isr

    @property
    def proposed_isr(self) -> tuple[int, ...]:
        """ISR that was proposed."""
        return tuple(member for member in self.committed.isr if member not in self.removed)


IsrState = CommittedIsr | PendingExpand | PendingShrink


@dataclass(slots=True)
class FollowerProgress:
    """Progress of one follower, as its fetches show it to the leader.

    Attributes:
        log_end_offset: offset of its last fetch; UNKNOWN_OFFSET before the first one.
        log_start_offset: as it told last.
        broker_epoch: in which it fetched (KIP-903); UNKNOWN_BROKER_EPOCH from those too old to say.
        has_fetched: whether it did since this broker leads.
        caught_up_ms: when it last had all that the leader had (rule 164).
        fetch_ms, leader_end_offset: time of its last fetch, and the leader's log end then.
    """

    replica_id: int
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    has_fetched: bool = False
    caught_up_ms: int | None = None
    fetch_ms: int | None = None
    leader_end_offset: int = UNKNOWN_OFFSET

    def on_fetch(self, *, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note a fetch from `offset`, and when it shows the follower was caught up (rule 164)."""
        if offset >= leader_end_offset:
            self.caught_up_ms = now_ms
        elif self.fetch_ms is not None and offset >= self.leader_end_offset:
            # It has by now what was there at its fetch before, so it was caught up then.
            self.caught_up_ms = max(self.caught_up_ms or self.fetch_ms, self.fetch_ms)
        self.log_end_offset = offset
        self.leader_end_offset = max(self.leader_end_offset, leader_end_offset)
        self.fetch_ms = now_ms
        self.has_fetched = True

    def is_caught_up(self, *, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """Tell whether it has everything, or had it not long ago (rule 165)."""
        if self.log_end_offset == leader_end_offset:
            return True
        return self.caught_up_ms is not None and now_ms - self.caught_up_ms <= lag_ms_max

    def begin_reign(self, *, leader_end_offset: int, in_sync: bool, now_ms: int) -> None:
        """Give the follower the benefit of the doubt, or none, at the start of a leader epoch."""
        self.caught_up_ms = now_ms if in_sync else None
        self.fetch_ms = now_ms if in_sync else None
        self.leader_end_offset = leader_end_offset
