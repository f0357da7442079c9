"""What tests of metadata share: images, rules, and random events."""

from uuid import UUID

from hypothesis import strategies as st

from kafkalite.config import load_config
from kafkalite.meta.changes import BrokerRegistered, TopicCreated
from kafkalite.meta.controller import decide
from kafkalite.meta.events import (
    AdoptTopic,
    AllocateProducerIds,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    IncrementalAlterConfigs,
    RegisterBroker,
    Rules,
    UnregisterBroker,
)
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
    return Rules(
        broker_id=1,
        listener_names=["PLAINTEXT"],
        broker_values=config.values,
        topic_defaults=config.log_config(),
    )


def image(*topics, brokers=(1,), **attributes):
    """Return an image with brokers and topics; a topic is a name or a TopicCreated."""
    changes = [BrokerRegistered(broker_id=each, endpoints=ENDPOINTS) for each in brokers]
    for number, topic in enumerate(topics, 1):
        if isinstance(topic, str):
            replica = PartitionImage((brokers[0],), (brokers[0],), brokers[0])
            topic = TopicCreated(name=topic, topic_id=topic_id(number), partitions=(replica,))
        changes.append(topic)
    return Image(cluster_id="cluster", controller_id=1, **attributes).apply(changes)


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


events = st.one_of(
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
        AdoptTopic,
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
