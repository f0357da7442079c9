"""What to do about logs that are found on disk at the start."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from kafkalite.config import BrokerConfig
from kafkalite.meta.events import AdoptTopic
from kafkalite.meta.image import Image
from kafkalite.meta.kraft import KraftMetadata
from kafkalite.meta.topic_defaults import internal_configs
from kafkalite.types import TopicPartition

logger = logging.getLogger("kafkalite.meta")


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


def is_known(log: FoundLog, image: Image) -> bool:
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


def adoptions(
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


def stale_logs(found: Iterable[FoundLog], image: Image, *, broker_id: int) -> list[TopicPartition]:
    """Return the logs that a broker of a cluster has and should not have any more.

    Their topic was deleted, or the partition moved to other brokers, while this one was away.
    """
    stale = []
    for log in found:
        name, index = log.topic_partition
        topic = image.topics.get(name)
        if topic is None or log.topic_id not in (None, topic.topic_id):
            logger.info("%s-%d is of a topic that was deleted", name, index)
        elif index >= len(topic.partitions) or broker_id not in topic.partitions[index].replicas:
            logger.info("%s-%d was moved to other brokers", name, index)
        else:
            continue
        stale.append(log.topic_partition)
    return stale
