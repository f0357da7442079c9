"""Which losses of data Kafka's protocol promises to survive: the fault envelope (see `faults`)."""

from collections.abc import Collection, Iterator

from kafkalite.meta.image import Image, PartitionImage
from kafkalite.types import TopicPartition


class Envelope:
    """Who has lost data since it joined the in-sync replicas, and who must be spared therefore.

    Invariant: in every partition at least one in-sync replica has lost nothing since it joined.
    """

    def __init__(self) -> None:
        self._tainted: dict[TopicPartition, set[int]] = {}

    def on_commit(self, image: Image) -> None:
        """Forget those whom the controller has put out of sync: they begin anew."""
        for place, tainted in list(self._tainted.items()):
            state = image.partition(*place)
            tainted &= set(state.isr if state is not None else ())
            if not tainted:
                del self._tainted[place]

    def on_power_loss(self, broker_id: int, image: Image) -> None:
        """Note that a broker lost data."""
        for place, _ in _in_sync_at(image, broker_id):
            self._tainted.setdefault(place, set()).add(broker_id)

    def allows_power_loss(self, broker_id: int, image: Image, healthy: Collection[int]) -> bool:
        """Say whether a broker may lose data now.

        Args:
            broker_id: of the broker.
            image: as the metadata store has it.
            healthy: brokers that run and reach the store.
        """
        for place, state in _in_sync_at(image, broker_id):
            tainted = self._tainted.get(place, set())
            if not any(
                other != broker_id and other in healthy and other not in tainted
                for other in state.isr
            ):
                return False
        return True

    def spared(self, image: Image) -> set[int]:
        """Return the brokers to which nothing may happen at present."""
        spared: set[int] = set()
        for place, tainted in self._tainted.items():
            state = image.partition(*place)
            if state is not None:
                spared |= set(state.isr) - tainted
        return spared


def _in_sync_at(image: Image, broker_id: int) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if broker_id in state.isr:
                yield TopicPartition(topic.name, index), state
