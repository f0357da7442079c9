"""Settings of the brokers of a cluster under test, beside what the test wants."""

from collections.abc import Mapping
from typing import Final

TEST_SETTINGS: Final[Mapping[str, str]] = {
    "kafkalite.profile": "test",
    "zookeeper.session.timeout.ms": "2000",
    "zookeeper.connection.timeout.ms": "18000",
    "replica.lag.time.max.ms": "2000",
}
"""How soon a dead or slow broker is missed; Kafka's own 18 s and 30 s are for real networks. For a
connection it has as long as in Kafka, where its default is the session's."""


def replication_settings(brokers: int) -> dict[str, str]:
    """Return settings by which everything is replicated, on up to three of the brokers."""
    factor = str(min(3, brokers))
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": str(min(2, brokers)),
    }
