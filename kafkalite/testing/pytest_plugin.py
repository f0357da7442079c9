"""Fixtures for tests that need a broker; registered by the `pytest11` entry point.

    def test_orders(kafka_broker, kafka_topic):
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker.bootstrap})
        producer.produce(kafka_topic, b"hello")
        producer.flush()
        assert kafka_broker.records(kafka_topic)[0].value == b"hello"

Nothing of kafkalite is imported until a test asks for a fixture: every pytest run on this machine
loads this module.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kafkalite.testing.broker import Broker
    from kafkalite.testing.cluster import Cluster

MARKER = "kafka_topic"
CLUSTER_MARKER = "kafka_cluster"
NAME_MAX = 200
"""Kafka allows 249 characters in a topic's name."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(partitions=1, config=None): how the topic of the fixture kafka_topic is made",
    )
    config.addinivalue_line(
        "markers",
        f"{CLUSTER_MARKER}(brokers=3, config=None): what the fixture kafka_cluster is made of",
    )


@pytest.fixture(scope="session")
def kafka_config() -> Mapping[str, Any]:
    """Broker settings for the whole session, by Kafka's names; override it in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_config: Mapping[str, Any]) -> "Iterator[Broker]":
    """Run a broker for the whole session, in this process, on a free port."""
    from kafkalite.testing.broker import Broker

    with Broker(config=kafka_config) as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """Create a topic for one test, named after it; it is deleted when the test is over."""
    marker = request.node.get_closest_marker(MARKER)
    options = dict(marker.kwargs) if marker is not None else {}
    name = _NOT_IN_NAMES.sub("-", request.node.name)[:NAME_MAX].strip("-.")
    topic = f"{name}-{next(_numbers)}"
    kafka_broker.create_topic(topic, **options)
    yield topic
    if topic in kafka_broker.topics():
        kafka_broker.delete_topic(topic)


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """Run a cluster of broker processes for one test, which may break it."""
    from kafkalite.testing.cluster import Cluster

    marker = request.node.get_closest_marker(CLUSTER_MARKER)
    with Cluster(**({} if marker is None else marker.kwargs)) as cluster:
        yield cluster
