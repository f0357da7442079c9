"""Admin calls that only the Java driver makes; every scenario of several clients is elsewhere."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from compat_tests.java.client import CLIENTS
from compat_tests.scenarios.records import check_sent
from compat_tests.stored_batches import stored_batches

if TYPE_CHECKING:
    from compat_tests.clients import Client
    from compat_tests.conftest import Drivers
    from compat_tests.driver import Driver

pytestmark = [pytest.mark.compat, pytest.mark.slow]


@pytest.fixture(params=CLIENTS, ids=lambda client: client.id)
def java(request: pytest.FixtureRequest, drivers: Drivers) -> Driver:
    """The driver of one version of the Java client."""
    client: Client = request.param
    return drivers.of(client)


def test_producers_and_log_directories_are_described(java: Driver, compat_bootstrap: str) -> None:
    topic = f"producers-{uuid.uuid4().hex[:10]}"
    java.call("create_topic", topic=topic)
    check_sent(java.produce(topic, [{"partition": 0, "value": b"v"}] * 7, idempotence=True))
    batches = stored_batches(compat_bootstrap, topic)
    (producer,) = java.call("describe_producers", topic=topic, partition=0)["producers"]
    assert producer["producer_id"] == batches[0].producer_id
    assert producer["last_sequence"] == 6
    sizes = java.call("describe_log_dirs", topic=topic, broker=_broker(java))["sizes"]
    assert sizes == {"0": sum(batch.size for batch in batches)}


def _broker(java: Driver) -> int:
    return int(java.call("describe_cluster")["brokers"][0]["id"])
