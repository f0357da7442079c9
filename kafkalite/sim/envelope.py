"""Which losses of data Kafka's protocol promises to survive: the fault envelope (see `faults`)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kafkalite.isr.state import PendingShrink
from kafkalite.meta.image import BrokerImage, Image, PartitionImage
from kafkalite.types import TopicPartition

if TYPE_CHECKING:
    from kafkalite.isr.partition import Partition

Brokers = Mapping[int, BrokerImage]


class Envelope:
    """Limits of the faults: replicas that lost data, and brokers that must be spared therefore.

    Invariant: in every partition at least one in-sync replica has lost nothing since it joined.
    """

    def __init__(self) -> None:
        self._tainted: dict[TopicPartition, dict[int, int]] = {}
        """Brokers, and the broker epoch in which they were registered when they lost data. One that
        is out of sync may be about to join by what it told before."""

    def on_commit(self, image: Image, live: Brokers) -> None:
        """Forget those who are out of sync and known to have failed: they begin anew.

        Args:
            image: as the metadata store has it.
            live: brokers that are registered there; the controller takes that up a moment later.
        """
        for place, tainted in list(self._tainted.items()):
            state = image.partition(*place)
            isr = () if state is None else state.isr
            for broker_id, broker_epoch in list(tainted.items()):
                epochs = (_epoch(image.brokers, broker_id), _epoch(live, broker_id))
                if broker_id not in isr and broker_epoch not in epochs:
                    del tainted[broker_id]
            if not tainted:
                del self._tainted[place]

    def on_power_loss(self, broker_id: int, image: Image, live: Brokers) -> None:
        """Note that a broker lost data; the arguments are those of `on_commit`."""
        brokers = live if broker_id in live else image.brokers
        for place, _ in _hosted_at(image, broker_id):
            self._tainted.setdefault(place, {})[broker_id] = _epoch(brokers, broker_id)
        self.on_commit(image, live)

    def allows_power_loss(
        self,
        broker_id: int,
        image: Image,
        healthy: Collection[int],
        *,
        shrinking: Collection[TopicPartition] = (),
    ) -> bool:
        """Say whether a broker may lose data now.

        Args:
            broker_id: of the broker.
            image: as the metadata store has it.
            healthy: brokers that run, reach the store, and are registered in their present epoch.
            shrinking: partitions whose leader has asked to put replicas out of sync: whom it keeps
                may soon be all who are in sync.
        """
        return all(
            place not in shrinking
            and any(
                other != broker_id
                and other in healthy
                and other not in self._tainted.get(place, ())
                for other in state.isr
            )
            for place, state in _hosted_at(image, broker_id)
        )

    def spared(self, image: Image) -> set[int]:
        """Return the brokers to which nothing may happen at present."""
        spared: set[int] = set()
        for place, tainted in self._tainted.items():
            state = image.partition(*place)
            if state is not None:
                spared |= set(state.isr) - set(tainted)
        return spared


def shrinking_places(partitions: "Iterable[Partition]") -> set[TopicPartition]:
    """Return those partitions of which some leader has asked for a smaller ISR."""
    return {
        partition.topic_partition
        for partition in partitions
        if partition.leader is not None and isinstance(partition.leader.state, PendingShrink)
    }


def _epoch(brokers: Brokers, broker_id: int) -> int:
    broker = brokers.get(broker_id)
    return -1 if broker is None else broker.broker_epoch


def _hosted_at(image: Image, broker_id: int) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if broker_id in state.replicas:
                yield TopicPartition(topic.name, index), state
