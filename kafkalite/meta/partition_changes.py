"""The controller's decisions about leaders and in-sync replicas of single partitions."""

from collections.abc import Mapping
from dataclasses import replace

from kafkalite.meta.brokers import UNCLEAN_ELECTION, check_epoch
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    Change,
    ConfigsChanged,
    changed,
)
from kafkalite.meta.election import (
    elect_for_shutdown,
    elect_offline,
    elect_preferred,
    written,
)
from kafkalite.meta.events import AlterPartition, ElectLeader, RebalanceLeaders
from kafkalite.meta.image import (
    NO_LEADER,
    BrokerImage,
    ConfigResource,
    Image,
    PartitionImage,
    TopicImage,
)
from kafkalite.meta.reassign import complete
from kafkalite.wire.errors import ErrorCode, KafkaError


def alter_partition(
    event: AlterPartition, image: Image, live: Mapping[int, BrokerImage] | None = None
) -> list[Change]:
    """Take over the in-sync replicas that a leader proposes (KIP-497, rule 176).

    They may be the last that a reassignment waited for; it is then completed by a second change,
    in a new epoch. A leader that leaves itself out cannot write any more: another one is elected
    of those that remain (rule 185).

    Args:
        event: what is asked.
        image: on which it is decided.
        live: see `ControllerConfig.live`: a replica that failed and came back since it was in sync
            is not let in by what its leader knew before (rule 249).

    Raises:
        KafkaError: STALE_BROKER_EPOCH, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
            FENCED_LEADER_EPOCH (of an earlier epoch), INVALID_UPDATE_VERSION (the state changed
            meanwhile), NOT_CONTROLLER (the leader knows more than this controller),
            INVALID_REQUEST, INELIGIBLE_REPLICA.
    """
    check_epoch(image, event.broker_id, event.broker_epoch, if_unknown=ErrorCode.STALE_BROKER_EPOCH)
    name = image.topic_names.get(event.topic_id)
    if name is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {event.topic_id}"
        )
    topic = image.topics[name]
    state = image.partition(name, event.index)
    if state is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{event.index}"
        )
    isr = tuple(broker_id for broker_id, _ in event.new_isr)
    _check_epochs(event, state, isr, f"{name}-{event.index}")
    if set(isr) == set(state.isr):
        return []
    if len(isr) == 1 and state.isr == (state.leader,):
        after = _handed_over(event, state, isr[0], image, live)
    elif isr and set(isr) == set(state.isr) - {state.leader}:
        after = _resigned(state, image, f"{name}-{event.index}")
    else:
        _check_isr(event, state, isr, image, live)
        ordered = tuple(broker for broker in state.replicas if broker in isr)
        after = replace(state, isr=ordered, partition_epoch=state.partition_epoch + 1)
    changes = changed(topic, event.index, after)
    done = complete(after, image.eligible_brokers())
    if done is not after:
        changes += changed(topic, event.index, done)
    return changes


def elect_leader(event: ElectLeader, image: Image) -> list[Change]:
    """Have the preferred replica lead, or (unclean) any where nobody does (rule 181, KIP-460).

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
            ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """
    state = image.partition(event.topic, event.index)
    if state is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"There is no partition {event.topic}-{event.index} on this cluster",
        )
    eligible = image.eligible_brokers()
    if event.unclean:
        needed = state.leader not in image.brokers
    else:
        needed = state.leader != state.replicas[0]
    if not needed:
        raise KafkaError(
            ErrorCode.ELECTION_NOT_NEEDED,
            f"{event.topic}-{event.index} is led by broker {state.leader} already",
        )
    if event.unclean:
        after = elect_offline(state, eligible, unclean=True)
        failed = after.leader == NO_LEADER
        code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    else:
        after = elect_preferred(state, eligible)
        failed = after is state
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    if failed:
        raise KafkaError(
            code,
            f"{event.topic}-{event.index} has the replicas {list(state.replicas)}, in sync "
            f"{list(state.isr)}; live brokers are {list(eligible)}",
        )
    return changed(image.topics[event.topic], event.index, after)


def elect_if_unclean(change: ConfigsChanged, image: Image) -> list[Change]:
    """Elect leaders where none is, if changed settings allow replicas that lack records.

    Somebody sets `unclean.leader.election.enable`, of a topic or of all that have no such setting
    of their own, to have the partitions back, and would wait for the next broker that comes
    otherwise.
    """
    if change.values.get(UNCLEAN_ELECTION, "").strip().lower() != "true":
        return []
    if change.resource_type == TOPIC_RESOURCE:
        topics = [image.topics[change.resource_name]]
    elif change.resource == ConfigResource(BROKER_RESOURCE, ""):
        topics = [each for each in image.topics.values() if UNCLEAN_ELECTION not in each.configs]
    else:
        return []
    eligible = image.eligible_brokers()
    changes: list[Change] = []
    for topic in topics:
        for index, state in enumerate(topic.partitions):
            if state.leader == NO_LEADER:
                changes += changed(topic, index, elect_offline(state, eligible, unclean=True))
    return changes


def rebalance_leaders(event: RebalanceLeaders, image: Image) -> list[Change]:
    """Give leaderships back to brokers that too many of theirs were taken from (rule 181)."""
    preferring: dict[int, list[tuple[TopicImage, int]]] = {}
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            preferring.setdefault(state.replicas[0], []).append((topic, index))
    changes: list[Change] = []
    eligible = image.eligible_brokers()
    for broker_id in eligible:
        preferred = preferring.get(broker_id, [])
        away = [
            (topic, index)
            for topic, index in preferred
            if topic.partitions[index].leader != broker_id
        ]
        if len(away) * 100 <= event.imbalance_percentage * len(preferred):
            continue
        for topic, index in away:
            state = topic.partitions[index]
            if not state.is_reassigned:
                changes += changed(topic, index, elect_preferred(state, eligible))
    return changes


def _check_epochs(
    event: AlterPartition, state: PartitionImage, isr: tuple[int, ...], partition: str
) -> None:
    """In the order in which Kafka's controllers check."""
    if event.leader_epoch > state.leader_epoch or event.partition_epoch > state.partition_epoch:
        raise KafkaError(
            ErrorCode.NOT_CONTROLLER, f"The leader of {partition} knows a later state of it"
        )
    if event.leader_epoch < state.leader_epoch:
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"The leader epoch of {partition} is {state.leader_epoch}, not {event.leader_epoch}",
        )
    if event.broker_id != state.leader:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{partition} is led by broker {state.leader}, not {event.broker_id}",
        )
    # A leader that missed the answer asks once more for what is.
    if event.partition_epoch < state.partition_epoch and set(isr) != set(state.isr):
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"The partition epoch of {partition} is {state.partition_epoch}, "
            f"not {event.partition_epoch}",
        )


def _resigned(state: PartitionImage, image: Image, partition: str) -> PartitionImage:
    """Return the partition led by another in-sync replica.

    Raises:
        KafkaError: INELIGIBLE_REPLICA, none of them can lead.
    """
    after = elect_for_shutdown(state, state.leader, image.eligible_brokers())
    if after is state:
        raise KafkaError(
            ErrorCode.INELIGIBLE_REPLICA,
            f"{partition} has nobody else to lead it: in sync are {list(state.isr)}, live brokers "
            f"are {list(image.eligible_brokers())}",
        )
    return after


def _handed_over(
    event: AlterPartition,
    state: PartitionImage,
    broker_id: int,
    image: Image,
    live: Mapping[int, BrokerImage] | None,
) -> PartitionImage:
    """Return the partition led by a replica that has more than its leader (rule 234).

    That one was alone in sync, and has lost records since; nobody but it can know.

    Raises:
        KafkaError: INVALID_REQUEST, INELIGIBLE_REPLICA.
    """
    _check_isr(event, state, (broker_id,), image, live, keeps_leader=False)
    return written(state, leader=broker_id, isr=(broker_id,))


def _check_isr(
    event: AlterPartition,
    state: PartitionImage,
    isr: tuple[int, ...],
    image: Image,
    live: Mapping[int, BrokerImage] | None,
    *,
    keeps_leader: bool = True,
) -> None:
    if (
        len(set(isr)) < len(isr)
        or not set(isr) <= set(state.replicas)
        or (keeps_leader and event.broker_id not in isr)
    ):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"In-sync replicas {list(isr)} cannot be: the replicas are {list(state.replicas)}, "
            f"the leader is {event.broker_id}",
        )
    for broker_id, broker_epoch in event.new_isr:
        broker = image.brokers.get(broker_id)
        refusal = ""
        if broker is None:
            refusal = "is not registered"
        elif broker_epoch not in (-1, broker.broker_epoch):
            refusal = f"is registered under the epoch {broker.broker_epoch}, not {broker_epoch}"
        elif broker.shutting_down and broker_id not in state.isr:
            refusal = "is shutting down"
        elif live is not None and _epoch_in(live, broker_id) != broker.broker_epoch:
            refusal = f"was registered again, or ended, since its epoch {broker.broker_epoch}"
        if refusal:
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA, f"Broker {broker_id} {refusal}")


def _epoch_in(live: Mapping[int, BrokerImage], broker_id: int) -> int | None:
    broker = live.get(broker_id)
    return None if broker is None else broker.broker_epoch
