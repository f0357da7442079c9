"""Metrics that a real client pushes (KIP-714)."""

import time

import pytest
from confluent_kafka import Producer

from kafkalite.client.admin import ConfigChange, ConfigOperation, ResourceType, alter_configs
from kafkalite.client.cluster import Client
from kafkalite.testing import Broker


@pytest.mark.slow
def test_librdkafka_pushes_what_a_subscription_asks_for():
    wanted = {"metrics": "*", "interval.ms": "100", "match": "client_id=seen"}
    changes = [
        ConfigChange(name=name, operation=ConfigOperation.SET, value=value)
        for name, value in wanted.items()
    ]
    with Broker() as broker:
        with Client(broker.bootstrap) as client:
            alter_configs(client, ResourceType.CLIENT_METRICS, "all", changes)
        producers = [
            Producer({"bootstrap.servers": broker.bootstrap, "client.id": client_id})
            for client_id in ("seen", "unseen")
        ]
        for producer in producers:
            producer.produce("t", b"v")
            producer.flush()
        deadline = time.monotonic() + 60
        while not any(each.metrics for each in broker.client_metrics()):
            assert time.monotonic() < deadline, "nothing was pushed"
            time.sleep(0.05)
        (pushed,) = broker.client_metrics()
        del producer, producers
    assert pushed.client.client_id == "seen"
    assert pushed.client.client_software_name == "confluent-kafka-python"
    names = {name.partition("{")[0] for name in pushed.metrics}
    assert "org.apache.kafka.producer.connection.creation.total" in names
