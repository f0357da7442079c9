"""The partitions that this broker holds, kept in step with the cluster's metadata."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.isr.partition import Partition
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigsChanged,
    LeaderEpochsRaised,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.types import ZERO_UUID, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig
    from kafkalite.log.manager import LogManager
    from kafkalite.meta.image import Change, Image, PartitionImage, TopicImage

logger = logging.getLogger("kafkalite.isr")


class ReplicaManager:
    """All replicas of one broker, by name and by topic ID.

    The only subscriber of metadata that creates and deletes logs.
    """

    def __init__(self, broker_id: int, logs: "LogManager", config: "BrokerConfig") -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._config = config
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._by_topic: dict[str, dict[int, Partition]] = {}
        self._offline: dict[tuple[str, int], KafkaError] = {}
        """Partitions placed here whose log cannot be opened, with what their clients are told."""
        self._names: dict[UUID, str] = {}

    def partition(self, topic: str, index: int) -> Partition:
        """Return the partition, which is led here.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION; KAFKA_STORAGE_ERROR if its log is offline.
        """
        partition = self._partitions.get((topic, index))
        if partition is None:
            offline = self._offline.get((topic, index))
            if offline is not None:
                # Another one each time: an exception keeps the frames of all who raised it.
                raise KafkaError(offline.code, offline.message)
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{index} is not on this broker"
            )
        if partition.log.failure is not None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{topic}-{index} is offline: {partition.log.failure}",
            )
        return partition

    def partition_by_id(self, topic_id: UUID, index: int) -> Partition:
        """Return the partition of the topic with this ID (KIP-516).

        Raises:
            KafkaError: UNKNOWN_TOPIC_ID (also that of a topic deleted and made anew, rule 25),
                UNKNOWN_TOPIC_OR_PARTITION.
        """
        name = self._names.get(topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the ID {topic_id}")
        return self.partition(name, index)

    def find(self, topic_partition: TopicPartition) -> Partition | None:
        """Return the partition, None if it is not here."""
        return self._partitions.get(topic_partition)

    def partitions(self) -> Iterable[Partition]:
        """Return all partitions of this broker."""
        return self._partitions.values()

    def partitions_of(self, topic: str) -> dict[int, Partition]:
        """Return the partitions of a topic that are here, by index."""
        return dict(self._by_topic.get(topic, {}))

    def load(self, image: "Image") -> None:
        """Take up every partition that the metadata places here, at the start of a broker.

        A log that belongs to an earlier topic of the same name is deleted; one that is missing is
        made anew, which only loses what was lost already.
        """
        for topic in image.topics.values():
            for index in range(len(topic.partitions)):
                topic_partition = TopicPartition(topic.name, index)
                log = self._logs.get(topic_partition)
                if log is not None and log.topic_id not in (topic.topic_id, ZERO_UUID):
                    logger.warning(
                        "%s is of topic ID %s, which is gone; deleting it",
                        topic_partition,
                        log.topic_id,
                    )
                    self._logs.delete(topic_partition)
            self._add(topic, range(len(topic.partitions)))

    def on_changes(self, changes: "Iterable[Change]", image: "Image") -> None:
        """Follow one commit of metadata; synchronous, so that who asked for it finds it done."""
        for change in changes:
            match change:
                case TopicCreated():
                    self._add(image.topics[change.name], range(len(change.partitions)))
                case PartitionsAdded():
                    topic = image.topics[change.name]
                    first = len(topic.partitions) - len(change.partitions)
                    self._add(topic, range(first, len(topic.partitions)))
                case TopicDeleted():
                    self._remove(change)
                case PartitionChanged():
                    self._follow(TopicPartition(change.name, change.index), change.state)
                case LeaderEpochsRaised():
                    for topic_partition in self._partitions:
                        state = image.partition(*topic_partition)
                        if state is not None:
                            self._follow(TopicPartition(*topic_partition), state)
                case ConfigsChanged() if change.resource_type == TOPIC_RESOURCE:
                    self._reconfigure(image.topics[change.resource_name])
                case ConfigsChanged() if change.resource_type == BROKER_RESOURCE:
                    for topic in image.topics.values():
                        self._reconfigure(topic)

    def _add(self, topic: "TopicImage", indexes: Iterable[int]) -> None:
        """Open or create the logs of these partitions that are placed here."""
        config = self._config.log_config(topic.configs)
        self._names[topic.topic_id] = topic.name
        for index in indexes:
            state = topic.partitions[index]
            if self._broker_id not in state.replicas:
                continue
            topic_partition = TopicPartition(topic.name, index)
            try:
                log = self._logs.get(topic_partition) or self._logs.create(
                    topic_partition, topic.topic_id, config
                )
            except KafkaError as error:
                # The partition stays without a log: its clients hear of it, the others go on.
                logger.error("%s cannot be served: %s", topic_partition, error)
                self._offline[topic_partition] = error
                continue
            log.update_config(config)
            if log.topic_id == ZERO_UUID:  # its file was torn, or is older than topic IDs
                try:
                    self._logs.set_topic_id(topic_partition, topic.topic_id)
                except KafkaError as error:
                    logger.error("%s goes without its topic ID: %s", topic_partition, error)
            partition = Partition(log, leader_epoch=state.leader_epoch)
            self._partitions[topic_partition] = partition
            self._by_topic.setdefault(topic.name, {})[index] = partition

    def _remove(self, deleted: TopicDeleted) -> None:
        self._names.pop(deleted.topic_id, None)
        indexes = [*self._by_topic.pop(deleted.name, ())]
        indexes += [index for name, index in self._offline if name == deleted.name]
        for index in indexes:
            topic_partition = TopicPartition(deleted.name, index)
            self._offline.pop(topic_partition, None)
            partition = self._partitions.pop(topic_partition, None)
            try:
                self._logs.delete(topic_partition)
            except KafkaError as error:
                # The topic is gone all the same; its directory is dealt with at the next start.
                logger.error("%s: %s", topic_partition, error)
            if partition is not None:
                partition.close()

    def _follow(self, topic_partition: TopicPartition, state: "PartitionImage") -> None:
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            partition.begin_epoch(state.leader_epoch)

    def _reconfigure(self, topic: "TopicImage") -> None:
        config = self._config.log_config(topic.configs)
        for index in range(len(topic.partitions)):
            self._logs.update_config(TopicPartition(topic.name, index), config)
