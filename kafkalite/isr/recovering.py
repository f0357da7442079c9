"""Leaders that may have lost records: alone in sync, and their machine has lost power since.

Such a broker leads again only after it has heard of the partition's other replicas how far they
have come, or has waited for replica.lag.time.max.ms. If one of them has more, that one leads
(rule 234): the unclean recovery of KIP-966, where nothing is to be given up.
"""

import logging
from typing import TYPE_CHECKING, NamedTuple

from kafkalite.isr.leader_role import IsrAccepted
from kafkalite.isr.state import IsrChange, IsrMember

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from kafkalite.isr.leader_role import ReplicationContext
    from kafkalite.isr.partition import Partition
    from kafkalite.meta.image import PartitionImage
    from kafkalite.types import TopicPartition
    from kafkalite.wire.errors import ErrorCode

logger = logging.getLogger("kafkalite.isr")


class LogEnd(NamedTuple):
    """How far a replica has come. The greater one has the records of the later leader, or more."""

    leader_epoch: int
    """Of the last record, -1 if there is none."""
    offset: int
    """Exclusive."""


class RecoveringLeader:
    """One partition that this broker is to lead and does not, until others were heard.

    Attributes:
        leader_epoch: of the epoch that waits.
    """

    def __init__(
        self,
        partition: "Partition",
        state: "PartitionImage",
        replication: "ReplicationContext",
        *,
        deadline_ms: int,
    ) -> None:
        self.topic_partition: TopicPartition = partition.topic_partition
        self.topic_id: UUID = partition.topic_id
        self.leader_epoch = state.leader_epoch
        self._partition_epoch = state.partition_epoch
        self._own = LogEnd(partition.log.leader_epoch, partition.log_end_offset)
        self._awaited = {each for each in state.replicas if each != replication.broker_id}
        self._ahead: dict[IsrMember, LogEnd] = {}
        self._replication = replication
        self._deadline_ms = deadline_ms
        self._proposal: IsrChange | None = None

    def on_follower(self, member: IsrMember, end: LogEnd) -> None:
        """Take note of how far a replica has come."""
        self._awaited.discard(member.broker_id)
        for known in [each for each in self._ahead if each.broker_id == member.broker_id]:
            del self._ahead[known]
        if end > self._own:
            self._ahead[member] = end

    def may_lead(self, now_ms: int) -> bool:
        """Tell whether this broker has the most; hand over where another one has."""
        if self._awaited and now_ms < self._deadline_ms:
            return False
        if not self._ahead:
            return True
        if self._proposal is None:
            best = max(self._ahead, key=lambda each: (self._ahead[each], -each.broker_id))
            logger.warning(
                "%s ends at %s here since the machine lost power, and at %s on broker %d, which "
                "is to lead it",
                self.topic_partition,
                self._own,
                self._ahead[best],
                best.broker_id,
            )
            self._proposal = IsrChange(
                leader_epoch=self.leader_epoch,
                partition_epoch=self._partition_epoch,
                isr=(best,),
            )
            self._replication.on_isr_change(self)
        return False

    def take_isr_change(self) -> IsrChange | None:
        """As `Partition.take_isr_change`."""
        return self._proposal

    def on_isr_answer(self, proposal: IsrChange, answer: "IsrAccepted | ErrorCode") -> None:
        """As `Partition.on_isr_answer`. Who was refused may be gone; it is heard of again."""
        if proposal is self._proposal and not isinstance(answer, IsrAccepted):
            self._proposal = None
            self._ahead.pop(proposal.isr[0], None)


class Recoveries:
    """Those of one broker.

    Args:
        doubtful: partitions whose logs may lack records; who is in sync again is taken out.
        replication: of the broker.
    """

    def __init__(
        self, doubtful: "Collection[TopicPartition]", replication: "ReplicationContext"
    ) -> None:
        self._doubtful = set(doubtful)
        self._replication = replication
        self._waiting: dict[TopicPartition, RecoveringLeader] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def holds(self, partition: "Partition", state: "PartitionImage", now_ms: int) -> bool:
        """Tell whether this broker has to wait before it leads; to be told of each state."""
        name, own_id = partition.topic_partition, self._replication.broker_id
        if name not in self._doubtful:
            return False
        if state.leader != own_id or state.isr != (own_id,) or len(state.replicas) == 1:
            self._waiting.pop(name, None)
            if own_id in state.isr:
                self._doubtful.discard(name)  # it has all that the leader has
            return False
        waiting = self._waiting.get(name)
        if waiting is None or waiting.leader_epoch != state.leader_epoch:
            deadline_ms = now_ms + self._replication.lag_ms_max
            waiting = RecoveringLeader(partition, state, self._replication, deadline_ms=deadline_ms)
            self._waiting[name] = waiting
        return True

    def forget(self, name: "TopicPartition") -> None:
        """Forget a partition that is not here any more."""
        self._waiting.pop(name, None)
        self._doubtful.discard(name)

    def on_follower(
        self, name: "TopicPartition", leader_epoch: int, member: IsrMember, end: LogEnd
    ) -> None:
        """Take note of how far a replica has come, if that is waited for."""
        waiting = self._waiting.get(name)
        if waiting is not None and waiting.leader_epoch == leader_epoch:
            waiting.on_follower(member, end)

    def take_decided(self, now_ms: int) -> "list[TopicPartition]":
        """Return the partitions that this broker may lead now, each once."""
        decided = [name for name, each in self._waiting.items() if each.may_lead(now_ms)]
        for name in decided:
            self.forget(name)
        return decided
