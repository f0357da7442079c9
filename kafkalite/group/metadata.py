"""Cluster metadata that group shards read: one view for all shards of a broker.

It is told each image before the shards hear of the change, so whatever a shard decides, it decides
by the newest. Topics are `meta.image.TopicImage`s, in their order.
"""

from collections.abc import Iterable
from uuid import UUID

from kafkalite.config import BrokerConfig
from kafkalite.group.topic_hash import combined_hash, topic_hash
from kafkalite.meta.group_configs import GroupConfig, GroupConfigs
from kafkalite.meta.image import Image, TopicImage


class GroupMetadata:
    """Topics by name and id, their racks and hashes, settings of groups, levels of features.

    Args:
        image: the metadata to begin with.
        config: the broker's settings, which groups have that set nothing themselves.

    Attributes:
        image: the metadata as it is. Nothing may be changed in it.
        newest_topic_version: version of the image in which the last topic was created, for those
            who look for topics by pattern; it grows, also over a restart.
    """

    __slots__ = ("_configs", "_hashes", "image", "newest_topic_version")

    def __init__(self, image: Image | None = None, config: BrokerConfig | None = None) -> None:
        self.image = Image() if image is None else image
        self._configs = GroupConfigs(config or BrokerConfig(), lambda: self.image)
        self.newest_topic_version = self.image.version
        self._hashes: dict[str, int] = {}
        self._configs = GroupConfigs(config or BrokerConfig(), lambda: self.image)

    @property
    def version(self) -> int:
        """Return the image's version."""
        return self.image.version

    def update(self, image: Image, names: Iterable[str] | None = None) -> frozenset[str]:
        """Take over an image; return which topics were created, changed or deleted.

        A topic has changed if its id, its number of partitions or its replicas have: all that an
        assignment depends on.

        Args:
            image: the new one.
            names: of the topics that may have changed; None for all.
        """
        before, self.image = self.image, image
        if names is None:
            names = {**before.topics, **image.topics}
        touched = frozenset(
            name
            for name in names
            if before.topics.get(name) is not image.topics.get(name)
            and _shape(before.topics.get(name)) != _shape(image.topics.get(name))
        )
        for name in touched:
            self._hashes.pop(name, None)
        if any(name not in before.topics for name in touched):
            self.newest_topic_version = image.version
        return touched

    def topic(self, name: str) -> TopicImage | None:
        """Return the topic of this name, None if there is none."""
        return self.image.topics.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        """Return the topic with this id, None if there is none."""
        return self.image.topic_by_id(topic_id)

    def racks(self, topic: TopicImage, partition: int) -> list[str]:
        """Return the racks of a partition's replicas, sorted, as far as the brokers have any."""
        brokers = self.image.brokers
        replicas = topic.partitions[partition].replicas
        found = (brokers[replica].rack for replica in replicas if replica in brokers)
        return sorted({rack for rack in found if rack is not None})

    def hash_of(self, names: Iterable[str]) -> int:
        """Return the hash of these topics, int64; unknown ones count nothing, 0 without any.

        It changes when one is made anew, gets partitions or moves to other racks (KIP-1101).
        """
        hashes = self._hashes
        found = []
        for name in sorted(names):
            topic = self.image.topics.get(name)
            if topic is None:
                continue
            known = hashes.get(name)
            if known is None:
                racks = [self.racks(topic, index) for index in range(len(topic.partitions))]
                known = hashes[name] = topic_hash(topic.topic_id, name, racks)
            found.append(known)
        return combined_hash(found)

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the settings in force for a group, whether it exists or not."""
        return self._configs(group_id)


def _shape(topic: TopicImage | None) -> object:
    if topic is None:
        return None
    return topic.topic_id, [partition.replicas for partition in topic.partitions]
