"""What tests of metadata share: images, rules, and random events."""

from dataclasses import replace
from uuid import UUID

from hypothesis import strategies as st

from kafkalite.config import load_config
from kafkalite.meta.changes import BrokerRegistered, TopicCreated
from kafkalite.meta.controller import decide
from kafkalite.meta.events import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartition,
    ControlledShutdown,
    ControllerConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectLeader,
    FinishReassignments,
    ImportTopic,
    IncrementalAlterConfigs,
    Reassign,
    RebalanceLeaders,
    RegisterBroker,
    UnregisterBroker,
    UpdateFeatures,
)
from kafkalite.meta.features import FeatureUpdate
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.wire.errors import KafkaError

ENDPOINTS = {"PLAINTEXT": ("", 9092)}
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32


def topic_id(number):
    return UUID(int=number)


def rules(**settings):
    """Return the rules of broker 1 with these settings (underscores for dots)."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    config = load_config(overrides={"kafkalite.profile": "kafka", **named})
    return ControllerConfig(
        broker_id=1,
        listener_names=["PLAINTEXT"],
        broker_values=config.values,
        topic_defaults=config.log_config(),
    )


def image(*topics, brokers=(1,), epochs=(), **attributes):
    """Return an image with brokers and topics; a topic is a name or a TopicCreated.

    `epochs` are broker epochs, of the brokers in their order.
    """
    changes = [
        BrokerRegistered(broker_id=each, endpoints=ENDPOINTS, broker_epoch=epoch)
        for each, epoch in zip(brokers, epochs or (-1,) * len(brokers), strict=True)
    ]
    for number, topic in enumerate(topics, 1):
        if isinstance(topic, str):
            replica = PartitionImage((brokers[0],), (brokers[0],), brokers[0])
            topic = TopicCreated(name=topic, topic_id=topic_id(number), partitions=(replica,))
        changes.append(topic)
    return Image(cluster_id="cluster", controller_id=1, **attributes).apply(changes)


def with_partitions(*states, brokers=(1, 2, 3), epochs=None, **configs):
    """Return an image with one topic, `a`, that has these partitions; brokers have epochs."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    topic = TopicCreated(name="a", topic_id=topic_id(1), partitions=states, configs=named)
    return image(topic, brokers=brokers, epochs=epochs or tuple(10 + each for each in brokers))


def shutting_down(before, *broker_ids):
    """Return the image with some of its brokers about to stop."""
    return before.apply(
        [
            BrokerRegistered.of(replace(before.brokers[each], shutting_down=True))
            for each in broker_ids
        ]
    )


def after(event, before, with_rules=None):
    """Return the image after an event, which has to be accepted."""
    return before.apply(decide(event, before, with_rules or rules()))


def refusal(event, before, with_rules=None):
    """Return the error with which an event is refused."""
    try:
        changes = decide(event, before, with_rules or rules())
    except KafkaError as error:
        return error
    raise AssertionError(f"accepted: {changes}")


names = st.sampled_from(["a", "b", "a.b", "a_b", "c", "", "bad name", "__consumer_offsets"])
brokers = st.integers(1, 4)
ids = st.integers(1, 6).map(topic_id)
configs = st.dictionaries(
    st.sampled_from(["retention.ms", "cleanup.policy", "segment.bytes", "nope"]),
    st.sampled_from(["1", "compact", "2000000", "x", None]),
    max_size=3,
)
resources = st.sampled_from(
    [
        (TOPIC, "a"),
        (TOPIC, "b"),
        (BROKER, "1"),
        (BROKER, ""),
        (GROUP, "g"),
        (METRICS, "m"),
        (99, ""),
    ]
)
settings = st.sampled_from(
    [
        ("retention.ms", "5"),
        ("cleanup.policy", "compact"),
        ("log.retention.ms", "6"),
        ("consumer.session.timeout.ms", "50000"),
        ("interval.ms", "1000"),
        ("metrics", "x,y"),
        ("nope", "1"),
    ]
)


@st.composite
def _alterations(draw):
    kind, name = draw(resources)
    chosen = draw(st.lists(settings, max_size=3))
    if draw(st.booleans()):
        return AlterConfigs(resource_type=kind, resource_name=name, configs=chosen)
    return IncrementalAlterConfigs(
        resource_type=kind,
        resource_name=name,
        operations=[(key, draw(st.integers(0, 4)), value) for key, value in chosen],
    )


broker_epochs = st.sampled_from([-1, -1, 1, 2, 3])
isrs = st.lists(st.tuples(brokers, broker_epochs), max_size=3)
replica_lists = st.one_of(
    st.none(),
    st.permutations([1, 2, 3, 4]).flatmap(
        lambda all_: st.builds(lambda count: all_[:count], st.integers(0, 4))
    ),
)
topics = st.sampled_from(["a", "b", "c"])

partition_events = st.one_of(
    st.builds(
        RegisterBroker,
        broker_id=brokers,
        endpoints=st.just(ENDPOINTS),
        broker_epoch=st.integers(0, 40),
    ),
    st.builds(UnregisterBroker, broker_id=brokers),
    st.builds(ControlledShutdown, broker_id=brokers, broker_epoch=st.just(-1)),
    st.builds(ElectLeader, topic=topics, index=st.integers(0, 2), unclean=st.booleans()),
    st.builds(RebalanceLeaders, imbalance_percentage=st.integers(0, 50)),
    st.builds(Reassign, topic=topics, index=st.integers(0, 2), replicas=replica_lists),
    st.builds(FinishReassignments),
)
"""Events that concern brokers and partitions, without those that a leader sends."""


def proposal(before, topic, index, new_isr, *, unchecked=False):
    """Return what the leader of a partition asks for when it wants other in-sync replicas."""
    state = before.topics[topic].partitions[index]
    brokers_ = before.brokers
    return AlterPartition(
        broker_id=state.leader,
        broker_epoch=-1,
        topic_id=before.topics[topic].topic_id,
        index=index,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr=[
            (each, brokers_[each].broker_epoch if each in brokers_ and not unchecked else -1)
            for each in new_isr
        ],
    )


events = st.one_of(
    partition_events,
    st.builds(
        AlterPartition,
        broker_id=brokers,
        broker_epoch=st.just(-1),
        topic_id=ids,
        index=st.integers(0, 2),
        leader_epoch=st.integers(0, 2),
        partition_epoch=st.integers(0, 3),
        new_isr=isrs,
    ),
    st.builds(
        CreateTopic,
        name=names,
        topic_id=st.uuids(version=4),
        num_partitions=st.integers(-1, 4),
        replication_factor=st.integers(-1, 4),
        configs=configs,
    ),
    st.builds(
        CreateTopic,
        name=names,
        topic_id=st.uuids(version=4),
        assignments=st.lists(
            st.tuples(st.integers(0, 2), st.lists(brokers, max_size=3)), min_size=1, max_size=3
        ),
    ),
    st.builds(DeleteTopic, name=names),
    st.builds(CreatePartitions, name=names, count=st.integers(0, 6)),
    st.builds(
        RegisterBroker,
        broker_id=brokers,
        endpoints=st.just(ENDPOINTS),
        rack=st.sampled_from([None, "r1", "r2"]),
        restarted=st.booleans(),
    ),
    st.builds(UnregisterBroker, broker_id=brokers),
    st.builds(AllocateProducerIds, broker_id=brokers),
    st.builds(
        UpdateFeatures,
        updates=st.lists(
            st.builds(
                FeatureUpdate,
                st.sampled_from(["transaction.version", "metadata.version", "nope"]),
                st.sampled_from([0, 1, 2, 30]),
                st.integers(0, 3),
            ),
            max_size=2,
        ),
    ),
    st.builds(
        ImportTopic,
        name=names,
        topic_id=st.one_of(st.none(), ids),
        new_topic_id=st.uuids(version=4),
        leader_epochs=st.dictionaries(
            st.integers(0, 3), st.integers(-1, 5), min_size=1, max_size=3
        ),
        broker_id=brokers,
        next_producer_id=st.integers(0, 5_000),
    ),
    _alterations(),
)
