"""Exchange of replicas (KIP-455).

New replicas are added to the old ones and catch up. When all that are to stay are in sync, the
partition is led by one of them, and the others are dropped.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from kafkalite.meta.changes import Change, changed
from kafkalite.meta.election import elect_for_reassignment
from kafkalite.meta.events import Reassign
from kafkalite.meta.image import NO_LEADER, Image, PartitionImage
from kafkalite.wire.errors import ErrorCode, KafkaError


def reassign(event: Reassign, image: Image) -> list[Change]:
    """Begin, replace or cancel the reassignment of a partition.

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, NO_REASSIGNMENT_IN_PROGRESS (nothing to cancel),
            INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR (a forbidden change of it).
    """
    state = image.partition(event.topic, event.index)
    if state is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"There is no partition {event.topic}-{event.index} on this cluster",
        )
    if event.replicas is None:
        if not state.is_reassigned:
            raise KafkaError(
                ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                f"No reassignment of {event.topic}-{event.index} is in progress",
            )
        target = state.origin
    else:
        target = tuple(event.replicas)
        _check(event, state, target, image)
    eligible = image.eligible_brokers()
    begun = _begun(state, target, eligible)
    after = complete(begun, eligible)
    if after is not begun and begun is not state:  # one write
        after = replace(
            after, leader_epoch=begun.leader_epoch, partition_epoch=begun.partition_epoch
        )
    return changed(image.topics[event.topic], event.index, after)


def finish_reassignments(image: Image) -> list[Change]:
    """Complete whatever can be."""
    eligible = image.eligible_brokers()
    changes: list[Change] = []
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if state.is_reassigned:
                changes += changed(topic, index, complete(state, eligible))
    return changes


def complete(state: PartitionImage, eligible: Collection[int]) -> PartitionImage:
    """Return the partition with its new replicas alone, if all of them are in sync.

    It stays as it is too while none of them could lead it.
    """
    target = state.target
    if not state.is_reassigned or not set(target) <= set(state.isr):
        return state
    leader = elect_for_reassignment(state, eligible)
    if leader == NO_LEADER:
        return state
    return PartitionImage(
        target,
        tuple(broker for broker in state.isr if broker in target),
        leader,
        state.leader_epoch + 1,
        state.partition_epoch + 1,
    )


def _check(event: Reassign, state: PartitionImage, target: Sequence[int], image: Image) -> None:
    refusal = ""
    new = set(target).difference(state.origin)
    dead = sorted(new.difference(image.brokers))
    if not target:
        refusal = "no brokers"
    elif len(set(target)) < len(target):
        refusal = f"a broker more than once: {list(target)}"
    elif dead:
        refusal = f"broker {dead[0]}, which is not registered"
    if refusal:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The partition {event.topic}-{event.index} is assigned to {refusal}",
        )
    before = len(state.origin)
    if not event.allow_replication_factor_change and len(target) != before:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor of {event.topic}-{event.index} is {before}, may not change, "
            f"and would be {len(target)}",
        )


def _begun(
    state: PartitionImage, target: tuple[int, ...], eligible: Collection[int]
) -> PartitionImage:
    """Return the partition on its way to `target` (as Kafka's ReplicaAssignment.reassignTo).

    What a former reassignment had added and this one does not want is dropped at once.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT if that would leave no replica in sync.
    """
    origin = state.origin
    removing = tuple(broker for broker in origin if broker not in target)
    replicas = (*target, *removing)
    adding = tuple(broker for broker in target if broker not in origin)
    if (replicas, adding, removing) == (state.replicas, state.adding, state.removing):
        return state
    isr = tuple(broker for broker in state.isr if broker in replicas)
    if not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"None of the in-sync replicas {list(state.isr)} would be left; "
            "the reassignment that they belong to has to go on until another one is in sync",
        )
    leader = state.leader
    if leader != NO_LEADER and leader not in isr:
        candidates = [broker for broker in replicas if broker in isr and broker in eligible]
        leader = candidates[0] if candidates else NO_LEADER
    return replace(
        state,
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
        adding=adding,
        removing=removing,
    )
