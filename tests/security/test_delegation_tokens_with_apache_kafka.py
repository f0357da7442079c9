"""The same questions about delegation tokens asked of Apache Kafka: it answers alike."""

import pytest

from compat_tests.apache_kafka import ApacheBroker
from kafkalite.testing.broker import Broker
from tests.security.tokens import JAAS, SCENARIOS, SETTINGS

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@pytest.fixture(scope="module")
def apache():
    config = {
        **SETTINGS,
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
    }
    for name in ("plaintext", "controller"):
        config[f"listener.name.{name}.plain.sasl.jaas.config"] = JAAS
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            config[f"listener.name.{name}.{mechanism}.sasl.jaas.config"] = SCRAM
    with ApacheBroker(config=config) as running:
        yield running.bootstrap


@pytest.fixture(scope="module")
def ours():
    config = {**SETTINGS, "listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.jaas.config": JAAS}
    with Broker(config=config) as running:
        yield running.bootstrap


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_answers_are_those_of_apache_kafka(apache, ours, scenario):
    assert list(scenario(ours)) == list(scenario(apache))
