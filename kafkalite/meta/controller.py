"""The controller's decisions: a function from an event and the image to changes.

It has no state, and nothing happens here but the decision; `meta/runner.py` does the rest.
"""

from collections.abc import Collection, Sequence
from typing import assert_never
from uuid import UUID

from kafkalite.meta.acls import create_acl, delete_acl
from kafkalite.meta.alter_configs import alter_configs, check_topic_configs, replace_configs
from kafkalite.meta.brokers import check_epoch, register_broker, shut_down, unregister_broker
from kafkalite.meta.changes import (
    Change,
    ConfigsChanged,
    FeaturesUpdated,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.client_quotas import alter_client_quota
from kafkalite.meta.delegation_tokens import (
    change_delegation_token,
    create_delegation_token,
    sweep_delegation_tokens,
)
from kafkalite.meta.entities import alter_scram_credential
from kafkalite.meta.events import (
    AllocateProducerIds,
    AlterClientQuota,
    AlterConfigs,
    AlterPartition,
    AlterScramCredential,
    ChangeDelegationToken,
    ControlledShutdown,
    ControllerConfig,
    CreateAcl,
    CreateDelegationToken,
    CreatePartitions,
    CreateTopic,
    DeleteAcl,
    DeleteTopic,
    ElectLeader,
    Event,
    FinishReassignments,
    ImportTopic,
    IncrementalAlterConfigs,
    Reassign,
    RebalanceLeaders,
    RegisterBroker,
    SweepDelegationTokens,
    UnregisterBroker,
    UpdateFeatures,
)
from kafkalite.meta.features import check_updates
from kafkalite.meta.image import Image, PartitionImage, TopicImage
from kafkalite.meta.log_import import import_topic
from kafkalite.meta.names import (
    CLUSTER_METADATA_TOPIC,
    can_collide,
    collision_key,
    refusal_of_name,
)
from kafkalite.meta.partition_changes import (
    alter_partition,
    elect_if_unclean,
    elect_leader,
    rebalance_leaders,
)
from kafkalite.meta.placement import place_replicas
from kafkalite.meta.reassign import finish_reassignments, reassign
from kafkalite.wire.errors import ErrorCode, KafkaError

PARTITIONS_AT_ONCE_MAX = 10_000
"""Partitions that one request may create, as in Kafka's ReplicationControlManager."""


def decide(event: Event, image: Image, rules: ControllerConfig) -> list[Change]:
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
            return _with_elections(replace_configs(event, image, rules), image)
        case IncrementalAlterConfigs():
            return _with_elections(alter_configs(event, image, rules), image)
        case UpdateFeatures():
            return _update_features(event, image, rules)
        case AlterScramCredential():
            return alter_scram_credential(event, image)
        case AlterClientQuota():
            return alter_client_quota(event, image)
        case CreateDelegationToken():
            return create_delegation_token(event, image)
        case ChangeDelegationToken():
            return change_delegation_token(event, image)
        case SweepDelegationTokens():
            return sweep_delegation_tokens(event, image)
        case CreateAcl():
            return create_acl(event, image)
        case DeleteAcl():
            return delete_acl(event, image)
        case AllocateProducerIds():
            return _allocate_producer_ids(event, image)
        case ImportTopic():
            return import_topic(event, image)
        case RegisterBroker():
            return register_broker(event, image, rules)
        case UnregisterBroker():
            return unregister_broker(event, image, rules)
        case ControlledShutdown():
            return shut_down(event, image)
        case AlterPartition():
            return alter_partition(event, image, rules.live)
        case ElectLeader():
            return elect_leader(event, image)
        case RebalanceLeaders():
            return rebalance_leaders(event, image)
        case Reassign():
            return reassign(event, image)
        case FinishReassignments():
            return finish_reassignments(image)
        case _:  # pragma: no cover - mypy proves that there is none
            assert_never(event)


def _with_elections(changes: list[Change], image: Image) -> list[Change]:
    """Add elections of leaderless partitions where unclean election was just enabled (rule 178)."""
    for change in tuple(changes):
        if isinstance(change, ConfigsChanged):
            changes += elect_if_unclean(change, image)
    return changes


def _create_topic(event: CreateTopic, image: Image, rules: ControllerConfig) -> list[Change]:
    """Create a topic: check name, settings and counts; place its replicas (rules 22, 28)."""
    if event.name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {event.name} is prohibited."
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
    """Refuse a name that differs from another only by '.' and '_' (rule 22)."""
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
    check_partition_count(event.num_partitions)
    return _place(
        image,
        event.topic_id,
        first=0,
        count=event.num_partitions,
        replication_factor=event.replication_factor,
    )


def _assigned_partitions(event: CreateTopic, image: Image) -> list[PartitionImage]:
    if event.replication_factor != -1 or event.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Replicas are assigned by hand: the number of partitions and the replication factor "
            "have to be -1",
        )
    check_partition_count(len(event.assignments))
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
    eligible = image.eligible_brokers()
    return [
        _assigned(by_index[index], image, replication_factor=replication_factor, eligible=eligible)
        for index in range(len(by_index))
    ]


def _delete_topic(event: DeleteTopic, image: Image, rules: ControllerConfig) -> list[Change]:
    """Delete a topic, by name or by id (rule 30)."""
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
    """Add partitions to a topic (rule 31)."""
    topic = _existing(event.name, image)
    current = len(topic.partitions)
    additional = event.count - current
    if additional <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {event.name} has {current} partition(s), {event.count} would not be more",
        )
    if any(state.is_reassigned for state in topic.partitions):
        raise KafkaError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A reassignment of {event.name} is in progress: partitions can be added after it",
        )
    if additional > PARTITIONS_AT_ONCE_MAX:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"{additional} partitions are more than the {PARTITIONS_AT_ONCE_MAX} that can be added "
            "at once",
        )
    replication_factor = len(topic.partitions[0].replicas)
    if event.assignments is None:
        partitions = _place(
            image,
            topic.topic_id,
            first=current,
            count=additional,
            replication_factor=replication_factor,
        )
    else:
        if len(event.assignments) != additional:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{additional} partition(s) are to be added, replicas are assigned to "
                f"{len(event.assignments)}",
            )
        eligible = image.eligible_brokers()
        partitions = [
            _assigned(replicas, image, replication_factor=replication_factor, eligible=eligible)
            for replicas in event.assignments
        ]
    added = PartitionsAdded(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(partitions),
        first_index=current,
    )
    return [added]


def _update_features(event: UpdateFeatures, image: Image, rules: ControllerConfig) -> list[Change]:
    levels = check_updates(event.updates, image.feature_levels, controller_id=rules.broker_id)
    levels = {
        name: level for name, level in levels.items() if image.feature_levels.get(name) != level
    }
    return [FeaturesUpdated(levels=levels)] if levels else []


def _allocate_producer_ids(event: AllocateProducerIds, image: Image) -> list[Change]:
    """Give the next block of producer ids to a broker (rule 64)."""
    if event.broker_epoch >= 0:
        check_epoch(image, event.broker_id, event.broker_epoch)
    next_producer_id = image.next_producer_id + event.count
    return [ProducerIdsAllocated(broker_id=event.broker_id, next_producer_id=next_producer_id)]


def _existing(name: str, image: Image) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}' on this cluster"
        )
    return topic


def check_partition_count(count: int) -> None:
    """Refuse a request to create so many partitions in all (rule 250).

    Raises:
        KafkaError: POLICY_VIOLATION.
    """
    if count > PARTITIONS_AT_ONCE_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {count}, and "
            f"{PARTITIONS_AT_ONCE_MAX} can be created at once",
        )


def _place(
    image: Image, topic_id: UUID, *, first: int, count: int, replication_factor: int
) -> list[PartitionImage]:
    if replication_factor > len(image.brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A replication factor of {replication_factor} needs as many brokers, and "
            f"{len(image.brokers)} are registered",
        )
    eligible = image.eligible_brokers()
    # Who is about to stop gets a replica only where there are no others.
    hosts = eligible if replication_factor <= len(eligible) else tuple(image.brokers)
    racks = {broker_id: image.brokers[broker_id].rack for broker_id in hosts}
    placed = place_replicas(
        racks, first=first, count=count, replication_factor=replication_factor, start=topic_id.int
    )
    made = {replicas: _new_partition(replicas, eligible) for replicas in set(placed)}
    return [made[replicas] for replicas in placed]


def _assigned(
    replicas: Sequence[int],
    image: Image,
    *,
    replication_factor: int,
    eligible: Collection[int],
) -> PartitionImage:
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
    return _new_partition(tuple(replicas), eligible)


def _new_partition(replicas: tuple[int, ...], eligible: Collection[int]) -> PartitionImage:
    """Return a partition that begins: all live replicas are in sync, and the first leads."""
    isr = tuple(broker for broker in replicas if broker in eligible) or replicas
    return PartitionImage(replicas, isr, isr[0])
