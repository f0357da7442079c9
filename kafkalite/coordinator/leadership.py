"""Follows the metadata: which partitions of internal topics this broker leads."""

from collections.abc import Callable, Iterable

from kafkalite.coordinator.partition import CoordinatorPartition
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.meta.changes import TopicDeleted
from kafkalite.meta.image import Change, Image, TopicImage
from kafkalite.types import TopicPartition


class CoordinatorLeadership:
    """A subscriber of metadata that hands partitions to the runtime and takes them away.

    To be subscribed after whoever makes the partitions.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        broker_id: int,
        find_partition: Callable[[TopicPartition], CoordinatorPartition | None],
    ) -> None:
        self._runtime = runtime
        self._broker_id = broker_id
        self._find_partition = find_partition
        self._seen: dict[str, TopicImage | None] = {}

    def on_changes(self, changes: Iterable[Change], image: Image) -> None:
        """Take over what has changed; an image shares with the one before what has not."""
        for topic in self._runtime.topics:
            found = image.topics.get(topic)
            if found is not self._seen.get(topic):
                self._seen[topic] = found
                self._lead(topic, found)
        deleted = [change.name for change in changes if isinstance(change, TopicDeleted)]
        if deleted:
            self._runtime.on_topics_deleted(deleted)

    def _lead(self, topic: str, found: TopicImage | None) -> None:
        if found is None:
            self._runtime.set_leaderships(topic, 0, {})
            return
        led = {}
        for index, state in enumerate(found.partitions):
            if state.leader == self._broker_id:
                partition = self._find_partition(TopicPartition(topic, index))
                if partition is not None:
                    led[index] = partition
        self._runtime.set_leaderships(topic, len(found.partitions), led)
