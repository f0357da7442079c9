"""Who decides: a function from an event and the image to the changes that follow from it.

It has no state, and nothing happens here but the decision; `meta/runner.py` does the rest.
"""

from collections.abc import Sequence
from typing import assert_never

from kafkalite.meta.alter_configs import alter_configs, check_topic_configs, replace_configs
from kafkalite.meta.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    LeaderEpochsRaised,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.election import elect
from kafkalite.meta.events import (
    AdoptTopic,
    AllocateProducerIds,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Event,
    IncrementalAlterConfigs,
    RegisterBroker,
    Rules,
    UnregisterBroker,
)
from kafkalite.meta.image import NO_LEADER, Image, PartitionImage, TopicImage
from kafkalite.meta.names import (
    CLUSTER_METADATA_TOPIC,
    can_collide,
    collision_key,
    refusal_of_name,
)
from kafkalite.meta.placement import place_replicas
from kafkalite.wire.errors import ErrorCode, KafkaError

PARTITIONS_AT_ONCE_MAX = 10_000
"""Partitions that one event may create, as in Kafka's QuorumController."""


def decide(event: Event, image: Image, rules: Rules) -> list[Change]:
    """Return what changes; nothing if the event asks for what already is.

    Raises:
        KafkaError: the event is refused, and nothing changes.
    """
    match event:
        case CreateTopic():
            return _create_topic(event, image, rules)
        case DeleteTopic():
            return _delete_topic(event, image, rules)
        case CreatePartitions():
            return _create_partitions(event, image)
        case AlterConfigs():
            return replace_configs(event, image, rules)
        case IncrementalAlterConfigs():
            return alter_configs(event, image, rules)
        case AllocateProducerIds():
            return [
                ProducerIdsAllocated(
                    broker_id=event.broker_id,
                    next_producer_id=image.next_producer_id + event.count,
                )
            ]
        case RegisterBroker():
            return _register_broker(event, image)
        case UnregisterBroker():
            return _unregister_broker(event, image, rules)
        case AdoptTopic():
            return _adopt_topic(event, image)
        case _:  # pragma: no cover - mypy proves that there is none
            assert_never(event)


def _create_topic(event: CreateTopic, image: Image, rules: Rules) -> list[Change]:
    """Rules B22, B28."""
    if event.name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{event.name} is a name that Kafka keeps to itself"
        )
    refusal = refusal_of_name(event.name)
    if refusal is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, refusal)
    if event.name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{event.name}' already exists.")
    _check_collision(event.name, image)
    configs = check_topic_configs(event.configs, rules)
    if event.assignments:
        partitions = _assigned_partitions(event, image)
    else:
        partitions = _placed_partitions(event, image)
    created = TopicCreated(
        name=event.name, topic_id=event.topic_id, partitions=tuple(partitions), configs=configs
    )
    return [created]


def _check_collision(name: str, image: Image) -> None:
    """Refuse a name that differs from another only by '.' and '_' (rule B22)."""
    if not can_collide(name):
        return
    other = image.colliding.get(collision_key(name))
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic '{other}': names may not differ only "
            "by '.' and '_'",
        )


def _placed_partitions(event: CreateTopic, image: Image) -> list[PartitionImage]:
    if event.replication_factor < 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor has to be at least 1, or -1 for the broker's "
            "default.replication.factor",
        )
    if event.num_partitions < 1:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "The number of partitions has to be at least 1, or -1 for the broker's num.partitions",
        )
    _check_partition_count(event.num_partitions)
    return _place(
        image,
        count=event.num_partitions,
        replication_factor=event.replication_factor,
        start=event.topic_id.int,
    )


def _assigned_partitions(event: CreateTopic, image: Image) -> list[PartitionImage]:
    if event.replication_factor != -1 or event.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Replicas are assigned by hand: the number of partitions and the replication factor "
            "have to be -1",
        )
    _check_partition_count(len(event.assignments))
    by_index: dict[int, Sequence[int]] = {}
    for index, replicas in event.assignments:
        if index in by_index:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {index} is assigned twice"
            )
        by_index[index] = replicas
    if sorted(by_index) != list(range(len(by_index))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assigned partitions have to be numbered from 0 without gaps",
        )
    replication_factor = len(by_index[0])
    return [
        _assigned(by_index[index], image, replication_factor=replication_factor)
        for index in range(len(by_index))
    ]


def _delete_topic(event: DeleteTopic, image: Image, rules: Rules) -> list[Change]:
    """Rule B30."""
    if not rules.broker_values["delete.topic.enable"]:
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED, "The broker's delete.topic.enable is false"
        )
    topic = _existing(event.name, image)
    if event.topic_id not in (None, topic.topic_id):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {event.topic_id}"
        )
    return [TopicDeleted(name=topic.name, topic_id=topic.topic_id)]


def _create_partitions(event: CreatePartitions, image: Image) -> list[Change]:
    """Rule B31."""
    topic = _existing(event.name, image)
    current = len(topic.partitions)
    additional = event.count - current
    if additional <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {event.name} has {current} partition(s), {event.count} would not be more",
        )
    _check_partition_count(additional)
    replication_factor = len(topic.partitions[0].replicas)
    if event.assignments is None:
        partitions = _place(
            image,
            count=additional,
            replication_factor=replication_factor,
            start=topic.topic_id.int + current,
        )
    else:
        if len(event.assignments) != additional:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{additional} partition(s) are to be added, replicas are assigned to "
                f"{len(event.assignments)}",
            )
        partitions = [
            _assigned(replicas, image, replication_factor=replication_factor)
            for replicas in event.assignments
        ]
    return [PartitionsAdded(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))]


def _register_broker(event: RegisterBroker, image: Image) -> list[Change]:
    """A broker that comes back begins a new reign of what it leads (rule I180)."""
    registered = BrokerRegistered(
        broker_id=event.broker_id, endpoints=event.endpoints, rack=event.rack
    )
    if not event.restarted:
        return [registered]
    changes: list[Change] = [registered]
    if any(
        state.leader == event.broker_id
        for topic in image.topics.values()
        for state in topic.partitions
    ):
        changes.append(LeaderEpochsRaised(broker_id=event.broker_id))
    live = {*image.brokers, event.broker_id}
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if state.leader == NO_LEADER:
                changes += _elected(topic, index, elect(state, live, unclean=False))
    return changes


def _unregister_broker(event: UnregisterBroker, image: Image, rules: Rules) -> list[Change]:
    """Rules I178 and I179."""
    if event.broker_id not in image.brokers:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {event.broker_id} is not registered"
        )
    changes: list[Change] = [BrokerUnregistered(broker_id=event.broker_id)]
    live = set(image.brokers) - {event.broker_id}
    default = rules.topic_defaults.unclean_leader_election_enable
    for topic in image.topics.values():
        own = topic.configs.get("unclean.leader.election.enable")
        unclean = default if own is None else own.strip().lower() == "true"
        for index, state in enumerate(topic.partitions):
            if event.broker_id in state.isr:
                changes += _elected(topic, index, elect(state, live, unclean=unclean))
    return changes


def _elected(topic: TopicImage, index: int, state: PartitionImage) -> list[Change]:
    if state is topic.partitions[index]:
        return []
    return [PartitionChanged(name=topic.name, topic_id=topic.topic_id, index=index, state=state)]


def _adopt_topic(event: AdoptTopic, image: Image) -> list[Change]:
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
    # A log may have seen reigns of its leader that no metadata here know of.
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
                PartitionsAdded(name=topic.name, topic_id=topic.topic_id, partitions=added)
            )
        for index, state in enumerate(known):
            epoch = event.leader_epochs.get(index, -1)
            if epoch > state.leader_epoch:
                ahead = PartitionImage(
                    state.replicas, state.isr, state.leader, epoch + 1, state.partition_epoch + 1
                )
                changes += _elected(topic, index, ahead)
    if event.next_producer_id > image.next_producer_id:
        changes.append(
            ProducerIdsAllocated(broker_id=event.broker_id, next_producer_id=event.next_producer_id)
        )
    return changes


def _existing(name: str, image: Image) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}' on this cluster"
        )
    return topic


def _check_partition_count(count: int) -> None:
    if count > PARTITIONS_AT_ONCE_MAX:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"{count} partitions are more than the {PARTITIONS_AT_ONCE_MAX} that can be created "
            "at once",
        )


def _place(
    image: Image, *, count: int, replication_factor: int, start: int
) -> list[PartitionImage]:
    if replication_factor > len(image.brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A replication factor of {replication_factor} needs as many brokers, and "
            f"{len(image.brokers)} are registered",
        )
    racks = {broker_id: broker.rack for broker_id, broker in image.brokers.items()}
    placed = place_replicas(
        racks, count=count, replication_factor=replication_factor, start=start % len(racks)
    )
    return [PartitionImage(replicas, replicas, replicas[0]) for replicas in placed]


def _assigned(replicas: Sequence[int], image: Image, *, replication_factor: int) -> PartitionImage:
    """Return a partition assigned by hand (as Kafka's validateManualPartitionAssignment)."""
    refusal = ""
    if not replicas:
        refusal = "no brokers"
    elif len(set(replicas)) < len(replicas):
        refusal = f"a broker more than once: {list(replicas)}"
    elif len(replicas) != replication_factor:
        refusal = f"{len(replicas)} broker(s), and other partitions have {replication_factor}"
    unknown = sorted(set(replicas).difference(image.brokers))
    if unknown:
        refusal = f"broker {unknown[0]}, which is not registered"
    if refusal:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"A partition is assigned to {refusal}"
        )
    return PartitionImage(tuple(replicas), tuple(replicas), replicas[0])


def _sole_replica(broker_id: int, *, leader_epoch: int) -> PartitionImage:
    return PartitionImage((broker_id,), (broker_id,), broker_id, leader_epoch)
