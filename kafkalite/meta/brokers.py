"""The controller's decisions when brokers come, go, and announce that they will go."""

from collections.abc import Collection
from dataclasses import replace

from kafkalite.meta.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    LeaderEpochsRaised,
    changed,
)
from kafkalite.meta.election import elect_for_shutdown, elect_offline, written
from kafkalite.meta.events import (
    ControlledShutdown,
    ControllerConfig,
    RegisterBroker,
    UnregisterBroker,
)
from kafkalite.meta.image import NO_LEADER, BrokerImage, Image, PartitionImage, TopicImage
from kafkalite.wire.errors import ErrorCode, KafkaError

NO_EPOCH = -1

UNCLEAN_ELECTION = "unclean.leader.election.enable"


def register_broker(event: RegisterBroker, image: Image, rules: ControllerConfig) -> list[Change]:
    """A broker that comes back begins a new epoch of what it leads (rules 180, 197).

    Raises:
        KafkaError: STALE_BROKER_EPOCH if the broker has registered again meanwhile.
    """
    known = image.brokers.get(event.broker_id)
    if known is not None and event.broker_epoch < known.broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {event.broker_id} has registered since under the epoch {known.broker_epoch}",
        )
    has_epoch = event.broker_epoch != NO_EPOCH
    same = known is not None and has_epoch and event.broker_epoch == known.broker_epoch
    restarted = event.restarted and not same
    broker = BrokerImage(
        broker_id=event.broker_id,
        endpoints=event.endpoints,
        rack=event.rack,
        broker_epoch=event.broker_epoch,
        shutting_down=known is not None and known.shutting_down and not restarted,
    )
    if same and broker == known:
        return []
    changes: list[Change] = [BrokerRegistered.of(broker)]
    if not restarted:
        return changes
    raised = not has_epoch and _leads_any(event.broker_id, image)
    if raised:
        # A lone broker: one change for all partitions keeps its start short.
        changes.append(LeaderEpochsRaised(broker_id=event.broker_id))
    live = {*image.brokers, event.broker_id}
    shutting_down = _shutting_down(image) - {event.broker_id}
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            after = state
            if has_epoch and (event.broker_id in state.isr or state.leader == event.broker_id):
                after = _failed(state, event.broker_id, live, shutting_down)
            if after.leader == NO_LEADER:
                unclean = is_unclean(topic, rules)
                after = elect_offline(after, live, unclean=unclean, shutting_down=shutting_down)
            changes += changed(topic, index, _one_write(state, after))
    return changes


def unregister_broker(
    event: UnregisterBroker, image: Image, rules: ControllerConfig
) -> list[Change]:
    """Fence a broker and elect other leaders for its partitions (rules 178 and 179)."""
    known = image.brokers.get(event.broker_id)
    if known is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {event.broker_id} is not registered"
        )
    changes: list[Change] = [
        BrokerUnregistered(broker_id=event.broker_id, broker_epoch=known.broker_epoch)
    ]
    live = set(image.brokers) - {event.broker_id}
    shutting_down = _shutting_down(image)
    for topic in image.topics.values():
        unclean = is_unclean(topic, rules)
        for index, state in enumerate(topic.partitions):
            if event.broker_id in state.isr:
                elected = elect_offline(state, live, unclean=unclean, shutting_down=shutting_down)
                changes += changed(topic, index, elected)
    return changes


def shut_down(event: ControlledShutdown, image: Image) -> list[Change]:
    """A broker that is about to stop gives its leaderships away (rules 182, 183).

    It asks again for those that nobody could take; `still_led` says which these are.

    Raises:
        KafkaError: BROKER_NOT_AVAILABLE (it is not registered), STALE_BROKER_EPOCH.
    """
    broker = check_epoch(
        image,
        event.broker_id,
        event.broker_epoch,
        if_unknown=ErrorCode.BROKER_NOT_AVAILABLE,
    )
    changes: list[Change] = []
    if not broker.shutting_down:
        changes.append(BrokerRegistered.of(replace(broker, shutting_down=True)))
    eligible = [each for each in image.eligible_brokers() if each != event.broker_id]
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            after = elect_for_shutdown(state, event.broker_id, eligible)
            changes += changed(topic, index, after)
    return changes


def still_led(image: Image, broker_id: int) -> list[tuple[str, int]]:
    """Return topic and index of what a broker leads and others could lead (rule 183)."""
    return [
        (topic.name, index)
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if state.leader == broker_id and len(state.replicas) > 1
    ]


def check_epoch(
    image: Image,
    broker_id: int,
    broker_epoch: int,
    *,
    if_unknown: ErrorCode = ErrorCode.BROKER_ID_NOT_REGISTERED,
) -> BrokerImage:
    """Return a broker that asks under this epoch of its registration; -1 is not checked.

    Raises:
        KafkaError: `if_unknown`, STALE_BROKER_EPOCH (KIP-380).
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(if_unknown, f"Broker {broker_id} is not registered")
    if broker_epoch not in (NO_EPOCH, broker.broker_epoch):
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} asks under the epoch {broker_epoch} and is registered under "
            f"{broker.broker_epoch}",
        )
    return broker


def is_unclean(topic: TopicImage, rules: ControllerConfig) -> bool:
    """Say whether a replica that lacks records may lead where no other can (rule 178)."""
    own = topic.configs.get(UNCLEAN_ELECTION)
    if own is None:
        return rules.topic_defaults.unclean_leader_election_enable
    return own.strip().lower() == "true"


def _failed(
    state: PartitionImage, broker_id: int, live: Collection[int], shutting_down: Collection[int]
) -> PartitionImage:
    """Return a partition after the failure of a broker that is back already (rule 197).

    It may lack what it had acknowledged, so it is in sync no more and somebody else leads; but
    where nobody else was in sync, it is the one to wait for, and here it is: it leads again.
    Records are not given up for a broker that was away for a moment, so nothing unclean here.
    """
    others = [each for each in live if each != broker_id]
    after = elect_offline(state, others, unclean=False, shutting_down=shutting_down)
    if after.leader != NO_LEADER:
        return after
    return elect_offline(after, live, unclean=False, shutting_down=shutting_down)


def _one_write(before: PartitionImage, after: PartitionImage) -> PartitionImage:
    """Return the outcome of several elections as one write of it, that begins one new epoch."""
    if after is before:
        return before
    again = written(before, leader=after.leader, isr=after.isr)
    if again is not before:
        return again
    return replace(
        before, leader_epoch=before.leader_epoch + 1, partition_epoch=before.partition_epoch + 1
    )


def _leads_any(broker_id: int, image: Image) -> bool:
    return any(
        state.leader == broker_id for topic in image.topics.values() for state in topic.partitions
    )


def _shutting_down(image: Image) -> set[int]:
    return {each for each, broker in image.brokers.items() if broker.shutting_down}
