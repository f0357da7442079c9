"""The same questions about quotas asked of Apache Kafka: it answers as kafkalite does."""

import pytest

from compat_tests.apache_kafka import ApacheBroker
from kafkalite.testing.broker import Broker
from tests.quota.scenarios import REFUSED, SCENARIOS, TIMED, Asker, Server, described

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]


@pytest.fixture(scope="module")
def apache():
    with ApacheBroker(config={"auto.create.topics.enable": "false"}) as running:
        server = Server(running.bootstrap)
        with Asker(server, "admin") as admin:
            admin.settles_s = 0.3
            yield server, admin


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_clients_are_told_to_wait(apache, scenario):
    scenario(*apache)


@pytest.mark.parametrize("scenario", TIMED, ids=lambda one: one.__name__)
def test_clients_wait(apache, scenario):
    scenario(*apache)


@pytest.mark.parametrize(("entity", "quotas"), REFUSED)
def test_nonsense_is_refused(apache, entity, quotas):
    assert apache[1].set_quota(entity, **quotas) == 42


def test_descriptions_are_the_same(apache):
    with Broker() as broker, Asker(broker, "admin") as admin:
        ours = described(admin)
    for entity in ({"client-id": "producer"}, {"client-id": "reader"}):
        apache[1].set_quota(entity, producer_byte_rate=None, consumer_byte_rate=None)
    for name in ("maker", "old maker"):
        apache[1].set_quota({"client-id": name}, controller_mutation_rate=None)
    assert described(apache[1]) == ours
