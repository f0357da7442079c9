"""Directories of topics that were found on a disk, and what the controller makes of them."""

from dataclasses import replace

from kafkalite.meta.changes import (
    Change,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    changed,
)
from kafkalite.meta.events import AdoptTopic
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.meta.names import CLUSTER_METADATA_TOPIC, refusal_of_name
from kafkalite.wire.errors import ErrorCode, KafkaError


def adopt_topic(event: AdoptTopic, image: Image) -> list[Change]:
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
