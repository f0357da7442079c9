"""Every client by every way to come in: TLS, mutual TLS, logins, tokens; and what it tells if not.

With the mark `long` the same is done with Apache Kafka, by the same settings.
"""

from __future__ import annotations

import contextlib
import itertools
import time

import pytest

from compat_tests.clients import all_clients
from compat_tests.conftest import skip_or_fail
from compat_tests.driver import encode_bytes
from compat_tests.secured import REAUTH_MS, WAYS, apache_server, kafkalite_server
from compat_tests.toolchains import MissingToolchain
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client as OwnClient

pytestmark = [pytest.mark.compat, pytest.mark.slow]

CLIENTS = [client for client in all_clients() if client.is_current]
WITH_TOKENS = [c for c in CLIENTS if c.name in ("Java", "confluent-kafka", "franz-go")]
SERVERS = {"kafkalite": kafkalite_server, "Apache-Kafka": apache_server}
_NUMBERS = itertools.count()


@pytest.fixture(
    scope="module", params=["kafkalite", pytest.param("Apache-Kafka", marks=pytest.mark.long)]
)
def server(request, tmp_path_factory):
    """A broker with a listener for each way."""
    try:
        with SERVERS[request.param](tmp_path_factory.mktemp("secured")) as running:
            yield running
    except MissingToolchain as missing:
        skip_or_fail(str(missing))


@contextlib.contextmanager
def driver_of(client, server, way, **options):
    address = server.addresses[WAYS[way].listener]
    try:
        driver = client.start(address, server.security(way, **options))
    except MissingToolchain as missing:
        skip_or_fail(str(missing))
    with contextlib.closing(driver):
        yield driver


def new_topic(server, driver, client):
    """Create a topic, by the client itself if it can."""
    name = f"topic-{next(_NUMBERS)}"
    if client.reason_against(["admin:topics"]) is None:
        driver.call("create_topic", topic=name, partitions=1, replication_factor=1)
        assert name in driver.call("list_topics")["topics"]
    else:
        with OwnClient(server.addresses["PLAINTEXT"]) as own:
            create_topic(own, name, partitions=1)
    return name


@pytest.mark.parametrize(
    ("client", "way"),
    [
        pytest.param(client, way, id=f"{client.id}-{way}")
        for client in CLIENTS
        for way in ("TLS", "mutual TLS", "PLAIN", "SCRAM-SHA-512")
        if client.reason_against([f"security:{way}"]) is None
    ],
)
def test_client_comes_in_writes_reads_and_asks(server, client, way):
    with driver_of(client, server, way) as driver:
        topic = new_topic(server, driver, client)
        values = [b"one", b"two", b"three"]
        results = driver.produce(topic, [{"partition": 0, "value": value} for value in values])
        assert [result.error for result in results] == [None] * 3
        records = driver.consume(topic, {0: "earliest"}, 3)
        assert [record.value for record in records] == values


def test_sessions_by_tokens_go_on_under_load_when_they_are_renewed(server):
    """Rules 533, 534, 539 (KIP-368): each client renews its session several times on the way."""
    seen = renewals(server)
    with contextlib.ExitStack() as stack:
        loads = {}
        for client in WITH_TOKENS:
            for way in ("OAUTHBEARER", "OAUTHBEARER signed"):
                driver = stack.enter_context(driver_of(client, server, way))
                topic = new_topic(server, driver, client)
                driver.call("txn_open", producer="p", transactional_id=topic, timeout_ms=60_000)
                loads[topic] = driver
        deadline = time.monotonic() + 2.5 * REAUTH_MS / 1_000
        count = 0
        while time.monotonic() < deadline:
            for topic, driver in loads.items():
                driver.call("txn_begin", producer="p")
                record = {"partition": 0, "key": None, "value": encode_bytes(b"%d" % count)}
                (result,) = driver.call("txn_send", producer="p", topic=topic, records=[record])[
                    "results"
                ]
                assert "error" not in result
                driver.call("txn_commit", producer="p")
            count += 1
        values = [b"%d" % number for number in range(count)]
        for topic, driver in loads.items():
            found = driver.consume(topic, {0: "earliest"}, count)
            assert [record.value for record in found] == values
    if server.broker is not None:
        # Two connections of each producer at least (coordinator, leader), twice each.
        assert renewals(server) - seen >= 2 * len(loads)


def renewals(server):
    """Return how many logins were begun on connections that had logged in already."""
    if server.broker is None:
        return 0
    known, count = set(), 0
    for one in server.broker.requests("SaslHandshake"):
        count += one.connection_id in known
        known.add(one.connection_id)
    return count
