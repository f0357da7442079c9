"""Whether a transaction may have ended on a partition while its coordinator was being asked."""

from collections.abc import Callable, Iterable
from weakref import WeakSet

from kafkalite.isr.partition import Partition
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

FindPartition = Callable[[TopicPartition], Partition | None]


class VerificationGuard:
    """One question to a coordinator, of which the answer takes time."""

    __slots__ = ("__weakref__", "ended", "epochs", "producer_id")

    def __init__(self, producer_id: int, epochs: dict[TopicPartition, int]) -> None:
        self.producer_id = producer_id
        self.epochs = epochs
        """Leader epochs of the partitions when it was asked."""
        self.ended: set[TopicPartition] = set()


class VerificationGuards:
    """All questions under way.

    A record that is appended after the marker of its transaction belongs to none, and holds up
    readers for ever. The coordinator may have vouched for it before it ended the transaction, so a
    marker that was written meanwhile devalues the answer: it has to be asked again. After Kafka's
    VerificationGuard (KIP-890).
    """

    def __init__(self, find_partition: FindPartition) -> None:
        self._find_partition = find_partition
        self._guards: WeakSet[VerificationGuard] = WeakSet()

    def __len__(self) -> int:
        return len(self._guards)

    def acquire(self, producer_id: int, partitions: Iterable[TopicPartition]) -> VerificationGuard:
        """Return a guard, which lasts as long as it is held."""
        epochs = {}
        for topic_partition in partitions:
            partition = self._find_partition(topic_partition)
            if partition is not None:
                epochs[topic_partition] = partition.leader_epoch
        guard = VerificationGuard(producer_id, epochs)
        self._guards.add(guard)
        return guard

    def on_marker(self, topic_partition: TopicPartition, producer_id: int) -> None:
        """Take note of a marker that is being written."""
        if not self._guards:
            return
        for guard in self._guards:
            if guard.producer_id == producer_id:
                guard.ended.add(topic_partition)

    def broken(self, guard: VerificationGuard) -> dict[TopicPartition, KafkaError]:
        """Return the partitions for which nothing may be concluded from the answer, and why.

        Both refusals make producers try again.
        """
        errors = {}
        for topic_partition, leader_epoch in guard.epochs.items():
            partition = self._find_partition(topic_partition)
            if topic_partition in guard.ended:
                errors[topic_partition] = KafkaError(
                    ErrorCode.NOT_ENOUGH_REPLICAS,
                    f"{topic_partition}: a transaction ended while it was being verified",
                )
            elif partition is not None and partition.leader_epoch != leader_epoch:
                errors[topic_partition] = KafkaError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"{topic_partition}: another epoch began while a transaction was verified",
                )
        return errors
