"""Import of logs that are found on disk at the start."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import Change
from kafkalite.meta.events import AdoptTopic
from kafkalite.meta.image import Image
from kafkalite.meta.kraft import KraftMetadata
from kafkalite.meta.store import MetadataStoreError
from kafkalite.meta.topic_defaults import internal_configs
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafkalite.meta")


_NOT_ADOPTED = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INCONSISTENT_TOPIC_ID)

Submit = Callable[[Iterable[AdoptTopic]], Awaitable[Sequence[Sequence[Change] | KafkaError]]]


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


async def adopt(
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
        submit: makes events happen, as `MetadataRunner.submit_all`.

    Raises:
        MetadataStoreError: it could not be stored.
    """
    unknown = [log for log in found if not _is_known(log, image)]
    if not unknown:
        return []
    to_adopt = _adoptions(unknown, kraft(), config, new_uuid=new_uuid)
    stale = []
    results = await submit([event for event, _ in to_adopt])
    for (event, logs), result in zip(to_adopt, results, strict=True):
        if isinstance(result, KafkaError):
            logger.warning("directories of %s: %s", event.name, result.message)
            if result.code is ErrorCode.UNKNOWN_TOPIC_ID:
                stale += [log.topic_partition for log in logs]
            elif result.code not in _NOT_ADOPTED:
                raise MetadataStoreError(f"directories of {event.name}: {result.message}")
        elif result:
            logger.info("directories of %s were taken over", event.name)
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


def _adoptions(
    found: Iterable[FoundLog],
    kraft: KraftMetadata,
    config: BrokerConfig,
    *,
    new_uuid: Callable[[], UUID],
) -> list[tuple[AdoptTopic, list[FoundLog]]]:
    """Return one event for each topic id, with its logs."""
    by_topic: dict[tuple[str, UUID | None], list[FoundLog]] = {}
    for log in found:
        by_topic.setdefault((log.topic_partition.topic, log.topic_id), []).append(log)
    events = []
    for (name, topic_id), logs in by_topic.items():
        event = AdoptTopic(
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
        elif index >= len(topic.partitions) or broker_id not in topic.partitions[index].replicas:
            logger.info("%s-%d was moved to other brokers", name, index)
        else:
            continue
        stale.append(log.topic_partition)
    return stale


def is_stray(topic_partition: TopicPartition, topic_id: UUID | None, image: Image) -> bool:
    """Tell whether a log is of a topic that the cluster neither has nor remembers to have deleted.

    Its metadata may be lost, or it is another cluster's: the data may be all that is left.
    """
    topic = image.topics.get(topic_partition.topic)
    if topic is not None and topic_id in (None, topic.topic_id):
        return False
    return topic_id not in image.retired_topic_ids
