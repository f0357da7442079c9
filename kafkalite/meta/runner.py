"""The one way in which metadata change: decide, commit, apply, tell the subscribers.

Also on a lone broker, and one event after another, so that there is one path to test.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import trio

from kafkalite.config import BrokerConfig
from kafkalite.log_config import LogConfig
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    BrokerRegistered,
    Change,
    ConfigsChanged,
)
from kafkalite.meta.controller import decide
from kafkalite.meta.events import (
    PRODUCER_ID_BLOCK_SIZE,
    AdoptTopic,
    AllocateProducerIds,
    CreateTopic,
    Event,
    RegisterBroker,
    Rules,
)
from kafkalite.meta.image import ConfigResource, Image, ImageBuilder, TopicImage
from kafkalite.meta.kraft import KraftMetadata
from kafkalite.meta.store import MetadataStore
from kafkalite.types import (
    CONSUMER_OFFSETS_TOPIC,
    INTERNAL_TOPICS,
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafkalite.meta")

Subscriber = Callable[[Sequence[Change], Image], None]

_SEGMENT_BYTES_MIN = 1 << 20
"""Least segment.bytes of a topic; below it only internal.segment.bytes goes."""


@dataclass(slots=True, frozen=True, kw_only=True)
class FoundLog:
    """A log that the disk has.

    Attributes:
        topic_id: as `partition.metadata` says; None if it does not.
        leader_epoch: the latest in the log, -1 if there is none.
        next_producer_id: one more than the largest producer id in the log.
    """

    topic_partition: TopicPartition
    topic_id: UUID | None
    leader_epoch: int = -1
    next_producer_id: int = 0


class MetadataRunner:
    """Holds the image, and changes it.

    Args:
        config: the broker's settings, which take up what is changed of them.
        store: where commits go.
        cluster_id: of this cluster.
        new_uuid: makes topic ids.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        *,
        cluster_id: str,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self._config = config
        self._store = store
        self._new_uuid = new_uuid
        self._broker_id = config.node_id
        self._image = Image(cluster_id=cluster_id, controller_id=self._broker_id)
        self._subscribers: list[Subscriber] = []
        self._bound_ports: Mapping[str, int] = {}
        self._changing = trio.Lock()
        self._allocating = trio.Lock()
        # Producer ids of this broker's block that are left: from, to (exclusive).
        self._producer_id = 0
        self._producer_ids_end = 0

    @property
    def image(self) -> Image:
        """Metadata as they are now."""
        return self._image

    def load(self) -> Image:
        """Take up what was committed before the last stop; return the image.

        Raises:
            MetadataStoreError: it cannot be read.
        """
        stored = self._store.load()
        builder = ImageBuilder(self._image)
        for change in stored.changes:
            change.apply_to(builder)
        self._image = builder.build(stored.version)
        self._take_up_configs()
        return self._image

    def new_topic_id(self) -> UUID:
        """Return an id that no topic has had."""
        return self._new_uuid()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(changes, image)` after each commit, before who asked for it goes on.

        Returns a function that ends this.
        """
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    async def submit(self, event: Event) -> list[Change]:
        """Make happen what an event asks for; return what changed.

        Raises:
            KafkaError: it was refused, or could not be stored. Nothing changed.
        """
        (result,) = await self.submit_all([event])
        if isinstance(result, KafkaError):
            raise result
        return result

    async def submit_all(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        """Make several events happen, in order, with one commit.

        Returns, for each, what changed or why it was refused; a refusal does not touch the others.
        """
        async with self._changing:
            results, changes, image = self._decide(events)
            if not changes:
                return results
            try:
                await self._store.commit(image.version, changes)
            except KafkaError as error:
                logger.warning("metadata could not be stored: %s", error.message)
                # Refusals stand, and so does the finding that there is nothing to do.
                return [
                    result if isinstance(result, KafkaError) or not result else error
                    for result in results
                ]
            # From here to the end of the subscribers nothing waits.
            self._image = image
            self._take_up_configs_of(changes)
            for subscriber in tuple(self._subscribers):
                subscriber(changes, image)
            await self._store.sum_up(image)
        return results

    def preview(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        """Return what `submit_all` would, and change nothing (validate_only)."""
        results, _, _ = self._decide(events)
        return results

    async def register(self, bound_ports: Mapping[str, int]) -> None:
        """Tell the cluster that this broker is there, listening on these ports by listener."""
        self._bound_ports = bound_ports
        await self.submit(
            RegisterBroker(
                broker_id=self._broker_id,
                endpoints=self._config.endpoints(bound_ports),
                rack=self._config.optional_str("broker.rack"),
            )
        )

    async def ensure_topic(self, name: str) -> TopicImage:
        """Return a topic, which is created with the broker's defaults if it is not there.

        Internal topics get the settings that the broker has for them (rule B21).

        Raises:
            KafkaError: as for any creation.
        """
        refused = await self.ensure_topics([name])
        if name in refused:
            raise refused[name]
        topic = self._image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted again")
        return topic

    async def ensure_topics(self, names: Iterable[str]) -> dict[str, KafkaError]:
        """Create those topics that are not there, with one commit; return what was refused."""
        missing = [name for name in dict.fromkeys(names) if name not in self._image.topics]
        results = await self.submit_all([self._default_topic(name) for name in missing])
        return {
            name: result
            for name, result in zip(missing, results, strict=True)
            # Somebody else was first.
            if isinstance(result, KafkaError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS
        }

    def producer_id_nowait(self) -> int | None:
        """Return a producer id that was never given before, None if a new block is needed."""
        if self._producer_id == self._producer_ids_end:
            return None
        self._producer_id += 1
        return self._producer_id - 1

    async def allocate_producer_id(self) -> int:
        """Return a producer id that was never given before, also not before a crash (rule D64).

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        while (producer_id := self.producer_id_nowait()) is None:
            async with self._allocating:
                if self._producer_id < self._producer_ids_end:
                    continue
                await self.submit(AllocateProducerIds(broker_id=self._broker_id))
                self._producer_ids_end = self._image.next_producer_id
                self._producer_id = self._producer_ids_end - PRODUCER_ID_BLOCK_SIZE
        return producer_id

    async def adopt(
        self, found: Iterable[FoundLog], kraft: Callable[[], KraftMetadata] = KraftMetadata
    ) -> list[TopicPartition]:
        """Make known which logs the disk has; return those that belong to no topic any more.

        What is returned is to be removed: it is left of topics that were deleted.

        Args:
            found: the logs.
            kraft: reads what Apache Kafka knew of them; called only if there are unknown ones.
        """
        unknown = [log for log in found if not self._is_known(log)]
        if not unknown:
            return []
        adoptions = self._adoptions(unknown, kraft())
        stale = []
        results = await self.submit_all([event for event, _ in adoptions])
        for (event, logs), result in zip(adoptions, results, strict=True):
            if isinstance(result, KafkaError):
                logger.warning("directories of %s: %s", event.name, result.message)
                if result.code is not ErrorCode.INVALID_TOPIC_EXCEPTION:
                    stale += [log.topic_partition for log in logs]
            elif result:
                logger.info("directories of %s were taken over", event.name)
        return stale

    def log_config(self, topic: str) -> LogConfig:
        """Return the settings of a topic's logs; the broker's defaults for an unknown topic."""
        known = self._image.topics.get(topic)
        return self._config.log_config(None if known is None else known.configs)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _decide(
        self, events: Iterable[Event]
    ) -> tuple[list[list[Change] | KafkaError], list[Change], Image]:
        rules = Rules(
            broker_id=self._broker_id,
            listener_names=[listener.name for listener in self._config.listeners],
            broker_values=self._config.values,
            topic_defaults=self._config.log_config(),
        )
        builder = ImageBuilder(self._image)
        results: list[list[Change] | KafkaError] = []
        changes: list[Change] = []
        for event in events:
            try:
                decided = decide(event, builder.image, rules)
            except KafkaError as error:
                results.append(error)
                continue
            for change in decided:
                change.apply_to(builder)
            results.append(decided)
            changes += decided
        for change in self._new_addresses(changes, builder.image):
            change.apply_to(builder)
            changes.append(change)
        return results, changes, builder.build(self._image.version + 1)

    def _new_addresses(self, changes: Sequence[Change], image: Image) -> list[Change]:
        """Return what a changed `advertised.listeners` of this broker means; the same commit."""
        own = ConfigResource(BROKER_RESOURCE, str(self._broker_id))
        broker = image.brokers.get(self._broker_id)
        touched = any(isinstance(each, ConfigsChanged) and each.resource == own for each in changes)
        if broker is None or not touched:
            return []
        advertised = image.configs_of(own).get("advertised.listeners")
        endpoints = self._config.endpoints_with(advertised, self._bound_ports)
        if endpoints == broker.endpoints:
            return []
        return [BrokerRegistered(broker_id=self._broker_id, endpoints=endpoints, rack=broker.rack)]

    def _take_up_configs_of(self, changes: Sequence[Change]) -> None:
        if any(
            isinstance(change, ConfigsChanged) and change.resource_type == BROKER_RESOURCE
            for change in changes
        ):
            self._take_up_configs()

    def _take_up_configs(self) -> None:
        own = ConfigResource(BROKER_RESOURCE, str(self._broker_id))
        common = ConfigResource(BROKER_RESOURCE, "")
        self._config.apply_dynamic(self._image.configs_of(own), self._image.configs_of(common))

    def _default_topic(self, name: str) -> CreateTopic:
        partitions, replication_factor = {
            CONSUMER_OFFSETS_TOPIC: (
                "offsets.topic.num.partitions",
                "offsets.topic.replication.factor",
            ),
            TRANSACTION_STATE_TOPIC: (
                "transaction.state.log.num.partitions",
                "transaction.state.log.replication.factor",
            ),
        }.get(name, ("num.partitions", "default.replication.factor"))
        replicas = self._config.int(replication_factor)
        if name in INTERNAL_TOPICS and self._fits_brokers():
            replicas = min(replicas, max(len(self._image.brokers), 1))
        return CreateTopic(
            name=name,
            topic_id=self._new_uuid(),
            num_partitions=self._config.int(partitions),
            replication_factor=replicas,
            configs=self._internal_configs(name, replicas),
        )

    def _fits_brokers(self) -> bool:
        return self._config.bool("kafkalite.internal.topics.fit.brokers")

    def _internal_configs(self, name: str, replicas: int) -> dict[str, str]:
        """Return the settings of an internal topic, none for another (rule B21)."""
        if name == CONSUMER_OFFSETS_TOPIC:
            segment_bytes = self._config.int("offsets.topic.segment.bytes")
            configs = {"cleanup.policy": "compact", "compression.type": "producer"}
        elif name == TRANSACTION_STATE_TOPIC:
            segment_bytes = self._config.int("transaction.state.log.segment.bytes")
            min_insync = self._config.int("transaction.state.log.min.isr")
            if self._fits_brokers():
                min_insync = min(min_insync, replicas)
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(min_insync),
                "unclean.leader.election.enable": "false",
            }
        else:
            return {}
        small = segment_bytes < _SEGMENT_BYTES_MIN
        configs["internal.segment.bytes" if small else "segment.bytes"] = str(segment_bytes)
        return configs

    def _adoptions(
        self, found: Iterable[FoundLog], kraft: KraftMetadata
    ) -> list[tuple[AdoptTopic, list[FoundLog]]]:
        """Return one event for each topic id, with its logs."""
        by_topic: dict[tuple[str, UUID | None], list[FoundLog]] = {}
        for log in found:
            by_topic.setdefault((log.topic_partition.topic, log.topic_id), []).append(log)
        adoptions = []
        for (name, topic_id), logs in by_topic.items():
            event = AdoptTopic(
                name=name,
                topic_id=topic_id,
                new_topic_id=self._new_uuid(),
                leader_epochs={log.topic_partition.partition: log.leader_epoch for log in logs},
                broker_id=self._broker_id,
                configs=kraft.topic_configs.get(name) or self._internal_configs(name, 1),
                next_producer_id=max(
                    kraft.next_producer_id, *(log.next_producer_id for log in logs)
                ),
            )
            adoptions.append((event, logs))
        return adoptions

    def _is_known(self, log: FoundLog) -> bool:
        name, index = log.topic_partition
        topic = self._image.topics.get(name)
        return (
            topic is not None
            and log.topic_id in (None, topic.topic_id)
            and index < len(topic.partitions)
            and log.leader_epoch <= topic.partitions[index].leader_epoch
            and log.next_producer_id <= self._image.next_producer_id
        )


def topics_with_changed_settings(changes: Iterable[Change], image: Image) -> Iterable[str]:
    """Return the topics whose logs have other settings after these changes.

    A changed setting of a broker may be the default of any topic.
    """
    names: dict[str, None] = {}
    for change in changes:
        if not isinstance(change, ConfigsChanged):
            continue
        if change.resource_type == BROKER_RESOURCE:
            return image.topics
        if change.resource_type == TOPIC_RESOURCE and change.resource_name in image.topics:
            names[change.resource_name] = None
    return names
