"""A replica whose log cannot be opened or made: it can do one thing, let another broker lead.

Pure but for the callback it is given.
"""

from typing import TYPE_CHECKING

from kafkalite.isr.leader import Leader
from kafkalite.isr.leader_role import IsrAccepted

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.isr.leader_role import ReplicationContext
    from kafkalite.isr.state import IsrChange
    from kafkalite.meta.image import PartitionImage
    from kafkalite.types import TopicPartition
    from kafkalite.wire.errors import ErrorCode, KafkaError


class OfflineReplica:
    """A replica without a log: it refuses its clients, and gives up its leadership.

    Rule 185.
    """

    def __init__(
        self,
        topic_partition: "TopicPartition",
        topic_id: "UUID",
        replication: "ReplicationContext",
        error: "KafkaError",
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.error = error
        self._replication = replication
        self._leader: Leader | None = None

    def on_state(self, state: "PartitionImage", error: "KafkaError", now_ms: int) -> None:
        """Take over the partition's state, and why there is no log; step_down if it is led here."""
        self.error = error
        replication = self._replication
        if state.leader != replication.broker_id:
            self._leader = None
            return
        if self._leader is None:
            self._leader = Leader(
                replication.broker_id,
                replicas=state.replicas,
                isr=state.isr,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                log_end_offset=0,
                high_watermark=0,
                min_insync_replicas=1,
                lag_ms_max=replication.lag_ms_max,
                is_eligible=replication.is_eligible,
                now_ms=now_ms,
            )
        else:
            self._leader.on_state(
                replicas=state.replicas,
                isr=state.isr,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                now_ms=now_ms,
            )
        self._leader.step_down()

    @property
    def has_proposal(self) -> bool:
        """Whether `take_isr_change` gives something."""
        return self._leader is not None and self._leader.has_proposal

    def take_isr_change(self) -> "IsrChange | None":
        """As `Partition.take_isr_change`."""
        return None if self._leader is None else self._leader.take_isr_change()

    def on_isr_answer(self, proposal: "IsrChange", answer: "IsrAccepted | ErrorCode") -> None:
        """As `Partition.on_isr_answer`; what is still to be asked is asked once more."""
        leader = self._leader
        if leader is not None and not isinstance(answer, IsrAccepted):
            leader.on_isr_rejected(proposal, answer)
            if leader.has_proposal:
                self._replication.on_isr_change(self)
