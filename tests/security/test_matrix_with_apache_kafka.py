"""The same matrix asked of Apache Kafka: its refusals are ours, in place and code."""

import pytest

from compat_tests.apache_kafka import ApacheBroker
from kafkalite.testing.broker import Broker
from tests.security.admin_matrix import ADMIN_ROWS, OPEN_ROWS
from tests.security.data_matrix import ROWS
from tests.security.group_matrix import GROUP_ROWS
from tests.security.group_scenes import SCENES, played
from tests.security.matrix import JAAS, ORDERS, SETTINGS, Asker, outcome

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]


@pytest.fixture(scope="module")
def apache():
    config = {
        **SETTINGS,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
        "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    with (
        ApacheBroker(config=config) as running,
        Asker(running.bootstrap, "admin", "admin-secret") as admin,
    ):
        yield running.bootstrap, admin.topic_id(ORDERS)


@pytest.fixture(scope="module")
def ours():
    config = {**SETTINGS, "listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.jaas.config": JAAS}
    with (
        Broker(config=config) as running,
        Asker(running.bootstrap, "admin", "admin-secret") as admin,
    ):
        yield running.bootstrap, admin.topic_id(ORDERS)


@pytest.mark.parametrize(
    "row", [*ROWS, *GROUP_ROWS, *ADMIN_ROWS, *OPEN_ROWS], ids=lambda row: row.name
)
def test_refusals_are_those_of_apache_kafka(apache, ours, row):
    assert outcome(*ours, row) == outcome(*apache, row)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_groups_are_seen_as_far_as_by_apache_kafka(apache, scene):
    assert played(scene, *apache) == SCENES[scene]
