"""Import of logs that are found on disk at the start: unknown, stale and stray ones.

A lone broker makes topics of logs that its metadata do not know. In a cluster the metadata say what
its brokers have, not the other way round.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import (
    Change,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    changed,
)
from kafkalite.meta.events import ImportTopic
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.meta.kraft import KraftMetadata
from kafkalite.meta.names import CLUSTER_METADATA_TOPIC, refusal_of_name
from kafkalite.meta.store import MetadataStoreError
from kafkalite.meta.topic_defaults import internal_configs
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafkalite.meta")


_NOT_IMPORTED = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INCONSISTENT_TOPIC_ID)

Submit = Callable[[Iterable[ImportTopic]], Awaitable[Sequence[Sequence[Change] | KafkaError]]]


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


async def import_logs(
    found: Iterable[FoundLog],
    image: Image,
    config: BrokerConfig,
    kraft: Callable[[], KraftMetadata],
    *,
    new_uuid: Callable[[], UUID],
    submit: Submit,
) -> list[TopicPartition]:
    """Make known to a lone broker which logs it has; return those of topics that were deleted.

    Args:
        found: the logs.
        image: what is known.
        config: of the broker.
        kraft: reads what Apache Kafka knew of the logs; called only if there are unknown ones.
        new_uuid: makes topic ids.
        submit: makes events happen, as `MetadataCommitter.submit_all`.

    Raises:
        MetadataStoreError: it could not be stored.
    """
    unknown = [log for log in found if not _is_known(log, image)]
    if not unknown:
        return []
    to_import = _imports(unknown, kraft(), config, new_uuid=new_uuid)
    stale = []
    results = await submit([event for event, _ in to_import])
    for (event, logs), result in zip(to_import, results, strict=True):
        if isinstance(result, KafkaError):
            logger.warning("directories of %s: %s", event.name, result.message)
            if result.code is ErrorCode.UNKNOWN_TOPIC_ID:
                stale += [log.topic_partition for log in logs]
            elif result.code not in _NOT_IMPORTED:
                raise MetadataStoreError(f"directories of {event.name}: {result.message}")
        elif result:
            logger.info("the logs of %s were imported", event.name)
    return stale


def _is_known(log: FoundLog, image: Image) -> bool:
    """Tell whether a lone broker's metadata say all that this log does."""
    name, index = log.topic_partition
    topic = image.topics.get(name)
    return (
        topic is not None
        and log.topic_id in (None, topic.topic_id)
        and index < len(topic.partitions)
        and log.leader_epoch <= topic.partitions[index].leader_epoch
        and log.next_producer_id <= image.next_producer_id
    )


def _imports(
    found: Iterable[FoundLog],
    kraft: KraftMetadata,
    config: BrokerConfig,
    *,
    new_uuid: Callable[[], UUID],
) -> list[tuple[ImportTopic, list[FoundLog]]]:
    """Return one event for each topic id, with its logs."""
    by_topic: dict[tuple[str, UUID | None], list[FoundLog]] = {}
    for log in found:
        by_topic.setdefault((log.topic_partition.topic, log.topic_id), []).append(log)
    events = []
    for (name, topic_id), logs in by_topic.items():
        event = ImportTopic(
            name=name,
            topic_id=topic_id,
            new_topic_id=new_uuid(),
            leader_epochs={log.topic_partition.partition: log.leader_epoch for log in logs},
            broker_id=config.node_id,
            configs=kraft.topic_configs.get(name) or internal_configs(name, config, replicas=1),
            next_producer_id=max(kraft.next_producer_id, *(log.next_producer_id for log in logs)),
        )
        events.append((event, logs))
    return events


def stale_logs(found: Sequence[FoundLog], image: Image, *, broker_id: int) -> list[TopicPartition]:
    """Return the logs that a broker of a cluster has and should not have any more.

    Their topic was deleted, or the partition moved to other brokers, while this one was away.
    Stray ones are not among them, see `is_stray`.

    Raises:
        MetadataStoreError: the cluster has never had a topic, so the logs are another's.
    """
    if found and not image.version:
        name, index = found[0].topic_partition
        raise MetadataStoreError(
            f"the cluster in the metadata store is new, and the log directories hold "
            f"{len(found)} logs ({name}-{index}, ...); start with empty log.dirs, or with the "
            "zookeeper.connect of the cluster they belong to"
        )
    stale = []
    for log in found:
        name, index = log.topic_partition
        if is_stray(log.topic_partition, log.topic_id, image):
            continue
        topic = image.topics.get(name)
        if topic is None or log.topic_id not in (None, topic.topic_id):
            logger.info("%s-%d is of a topic that was deleted", name, index)
        elif broker_id not in topic.partitions[index].replicas:
            logger.info("%s-%d was moved to other brokers", name, index)
        else:
            continue
        stale.append(log.topic_partition)
    return stale


def is_stray(topic_partition: TopicPartition, topic_id: UUID | None, image: Image) -> bool:
    """Tell whether a log is of a topic that the cluster neither has nor remembers to have deleted.

    Its metadata may be lost, or it is another cluster's: the data may be all that is left. So they
    may where a topic has not so many partitions: it never loses any, but their state may be lost.
    """
    topic = image.topics.get(topic_partition.topic)
    if topic is not None and topic_id in (None, topic.topic_id):
        return topic_partition.partition >= len(topic.partitions)
    return topic_id not in image.retired_topic_ids


def stray_logs(found: Iterable[FoundLog], image: Image) -> list[TopicPartition]:
    """Return logs of unknown topics; after the import those whose topic id contradicts others."""
    return [
        log.topic_partition
        for log in found
        if is_stray(log.topic_partition, log.topic_id, image)
        and refusal_of_name(log.topic_partition.topic) is None
    ]


def import_topic(event: ImportTopic, image: Image) -> list[Change]:
    """Give directories that were found a topic, or find theirs.

    Raises:
        KafkaError: UNKNOWN_TOPIC_ID if they are what is left of a deleted topic,
            INCONSISTENT_TOPIC_ID if the topic of that name is another one. Both mean that the
            directories are to be removed. INVALID_TOPIC_EXCEPTION if they are no topic's.
    """
    assert event.leader_epochs
    refusal = refusal_of_name(event.name)
    if refusal is not None or event.name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, refusal or f"{event.name} is no topic")
    if event.topic_id in image.retired_topic_ids:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"{event.name} with the id {event.topic_id} was deleted"
        )
    changes: list[Change] = []
    topic = image.topics.get(event.name)
    known = () if topic is None else topic.partitions
    if topic is not None and event.topic_id not in (None, topic.topic_id):
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"{event.name} has the id {topic.topic_id}, its directories say {event.topic_id}",
        )
    owner = None if event.topic_id is None else image.topic_names.get(event.topic_id)
    if owner not in (None, event.name):
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"The id {event.topic_id} is that of topic {owner}"
        )
    wanted = max(event.leader_epochs) + 1
    # A log may have seen epochs of its leader that no metadata here know of.
    added = tuple(
        _sole_replica(event.broker_id, leader_epoch=event.leader_epochs.get(index, -1) + 1)
        for index in range(len(known), wanted)
    )
    if topic is None:
        changes.append(
            TopicCreated(
                name=event.name,
                topic_id=event.topic_id or event.new_topic_id,
                partitions=added,
                configs=event.configs,
            )
        )
    else:
        if added:
            changes.append(
                PartitionsAdded(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=added,
                    first_index=len(known),
                )
            )
        for index, state in enumerate(known):
            epoch = event.leader_epochs.get(index, -1)
            if epoch > state.leader_epoch:
                ahead = replace(
                    state, leader_epoch=epoch + 1, partition_epoch=state.partition_epoch + 1
                )
                changes += changed(topic, index, ahead)
    if event.next_producer_id > image.next_producer_id:
        changes.append(
            ProducerIdsAllocated(broker_id=event.broker_id, next_producer_id=event.next_producer_id)
        )
    return changes


def _sole_replica(broker_id: int, *, leader_epoch: int) -> PartitionImage:
    return PartitionImage((broker_id,), (broker_id,), broker_id, leader_epoch)
