"""Brokers for users' tests: one inside of the test process, or a cluster beside it.

    with kafkalite.testing.Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})

The names below are imported when they are used: the pytest plugin, which every pytest run loads,
is in this package.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkalite.testing.broker import Broker as Broker
    from kafkalite.testing.cluster import Cluster as Cluster
    from kafkalite.testing.container import KafkaContainer as KafkaContainer
    from kafkalite.testing.journal import SeenRequest as SeenRequest
    from kafkalite.testing.zookeeper import ZooKeeper as ZooKeeper

_HOMES = {
    "Broker": "kafkalite.testing.broker",
    "Cluster": "kafkalite.testing.cluster",
    "KafkaContainer": "kafkalite.testing.container",
    "SeenRequest": "kafkalite.testing.journal",
    "ZooKeeper": "kafkalite.testing.zookeeper",
}

__all__ = ["Broker", "Cluster", "KafkaContainer", "SeenRequest", "ZooKeeper"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
