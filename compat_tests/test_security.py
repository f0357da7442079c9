"""Every client by every way to come in: TLS, mutual TLS, logins, tokens; and what it tells if not.

With the mark `long` the same is done with Apache Kafka, by the same settings.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from compat_tests import matrix
from compat_tests.clients import all_clients
from compat_tests.driver import ClientError, encode_bytes
from compat_tests.secured import (
    PASSWORD,
    REAUTH_MS,
    USER,
    WAYS,
    apache_server,
    kafkalite_server,
)
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client as OwnClient

pytestmark = [pytest.mark.compat, pytest.mark.slow]

CLIENTS = [client for client in all_clients() if client.is_current]
WITH_TOKENS = [c for c in CLIENTS if c.name in matrix.TOKEN_CLIENTS]
BY_SCRAM = [c for c in CLIENTS if c.reason_against(["security:SCRAM-SHA-512"]) is None]
SERVERS = {"kafkalite": kafkalite_server, "Apache-Kafka": apache_server}
LESS_OFTEN = dict.fromkeys(("TLS", "PLAIN"), pytest.mark.long)
"""What mutual TLS and SCRAM have too is left to the long runs."""
_NUMBERS = itertools.count()


@pytest.fixture(
    scope="module", params=["kafkalite", pytest.param("Apache-Kafka", marks=pytest.mark.long)]
)
def server(request, tmp_path_factory):
    """A broker with a listener for each way."""
    with SERVERS[request.param](tmp_path_factory.mktemp("secured")) as running:
        yield running


@contextlib.contextmanager
def driver_of(client, server, way, **options):
    address = server.addresses[WAYS[way].listener]
    driver = client.start(address, server.security(way, **options))
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
        pytest.param(client, way, id=f"{client.id}-{way}", marks=LESS_OFTEN.get(way, ()))
        for client in CLIENTS
        for way in matrix.WAYS
        if client.reason_against([f"security:{way}"]) is None
    ],
)
def test_client_comes_in_writes_reads_and_asks(server, client, way):
    with driver_of(client, server, way) as driver:
        topic = new_topic(server, driver, client)
        values = [b"one", b"two", b"three"]
        results = driver.produce(topic, [{"partition": 0, "value": value} for value in values])
        assert {(result.error, result.message) for result in results} == {(None, "")}
        records = driver.consume(topic, {0: "earliest"}, 3)
        assert [record.value for record in records] == values


def test_sessions_by_tokens_go_on_under_load_when_they_are_renewed(server):
    """Rules 533, 534, 539 (KIP-368): each client renews its session several times on the way."""
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
        # Each producer has a connection to its coordinator and one to the leader, at least.
        assert renewals(server) is None or renewals(server) >= 2 * len(loads)
        values = [b"%d" % number for number in range(count)]
        for topic, driver in loads.items():
            found = driver.consume(topic, {0: "earliest"}, count)
            assert [record.value for record in found] == values


def renewals(server):
    """Return how often sessions were renewed on connections that are open; None if unknown."""
    if server.broker is None:
        return None
    logins = server.broker.call_in_broker(server.broker.server.connections.logins)
    return sum(login.renewals for login in logins)


def broken(server, kind):
    """Return what a test breaks: options for the driver, and what to do before and after."""
    certificates = server.certificates
    return {
        "expired certificate": ("TLS", {}, certificates.expire),
        "certificate for another host": ("TLS", {}, certificates.wrong_host),
        "certificate of a stranger": ("TLS", {}, certificates.stranger),
        "wrong password, PLAIN": ("PLAIN", {"password": "wrong"}, None),
        "wrong password, SCRAM-SHA-512": ("SCRAM-SHA-512", {"password": "wrong"}, None),
        "expired token": ("OAUTHBEARER signed", {"lifetime_s": -60}, None),
    }[kind]


#: Words of which each client's message has one; it must not be a mere time-out.
WORDS = re.compile(
    r"(?i)certificate|ssl|tls|x509|hostname|host name|altname|authenticat|sasl|credential|token"
)
FAILURES = (
    "expired certificate",
    "certificate for another host",
    "certificate of a stranger",
    "wrong password, PLAIN",
    "wrong password, SCRAM-SHA-512",
    "expired token",
)


def told(client, server, way, options):
    """Return what a client says that does not get in, after at most so many seconds."""
    with driver_of(client, server, way, **options) as driver:
        try:
            results = driver.produce("topic", [{"partition": 0, "value": b"x"}])
        except ClientError as error:
            return f"{error}\n{driver.log_tail()}"
        assert results[0].error is not None, "it got in"
        return f"{results[0].error}: {results[0].message}\n{driver.log_tail()}"


def refusals(server, kind, clients):
    """Return what each client says, all of them at a time: most of it is waiting."""
    way, options, break_ = broken(server, kind)
    if break_ is not None:
        break_()
        time.sleep(1.2)  # a broker looks at its files once a second
    chosen = [
        client
        for client in clients
        if not way.startswith("OAUTHBEARER") or client in WITH_TOKENS
        if client.reason_against([f"security:{way}"]) is None
    ]
    try:
        with ThreadPoolExecutor(len(chosen)) as pool:
            found = pool.map(lambda client: told(client, server, way, options), chosen)
            return {client.name: text for client, text in zip(chosen, found, strict=True)}
    finally:
        server.certificates.renew()


@pytest.mark.long
@pytest.mark.parametrize(
    ("server", "kind"),
    [("kafkalite", kind) for kind in FAILURES]
    # The other looks at its certificate again only when it is told to.
    + [("Apache-Kafka", kind) for kind in FAILURES if "certificate" not in kind],
    indirect=["server"],
)
def test_clients_that_are_kept_out_say_why(server, kind):
    for name, text in refusals(server, kind, CLIENTS).items():
        assert WORDS.search(text), f"{name}: {text}"


@pytest.mark.parametrize(
    ("server", "kind"),
    [
        ("kafkalite", "expired certificate"),
        ("kafkalite", "wrong password, PLAIN"),
        ("Apache-Kafka", "wrong password, PLAIN"),
    ],
    indirect=["server"],
)
def test_clients_that_give_up_at_once_say_why(server, kind):
    """The part of it that fits into every run: those that do not try again for half a minute."""
    quick = [client for client in CLIENTS if client.name in ("sarama", "kafka-go", "kcat")]
    for name, text in refusals(server, kind, quick).items():
        assert WORDS.search(text), f"{name}: {text}"


@pytest.mark.long
@pytest.mark.parametrize("server", ["kafkalite"], indirect=True)  # the other's users stay
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_member_goes_on_when_its_session_is_ended(server, client):
    """Who cannot log in again on a connection is disconnected by its next request, and is back."""
    way = "SCRAM-SHA-512" if client.reason_against(["security:SCRAM-SHA-512"]) is None else "PLAIN"
    with driver_of(client, server, way) as driver:
        topic = new_topic(server, driver, client)
        member = driver.open_member("m", f"group-of-{topic}", [topic], reset="earliest")
        member.wait_assignment({(topic, 0)}, timeout=60)
        server.broker.produce(topic, b"before")
        assert [record.value for record in member.wait_records(1)] == [b"before"]
        server.broker.expire_sessions()
        server.broker.produce(topic, b"after")
        found = [record.value for record in member.wait_records(2, timeout=60)]
        assert set(found) == {b"before", b"after"}


@pytest.mark.long
@pytest.mark.parametrize("server", ["kafkalite"], indirect=True)
@pytest.mark.parametrize("client", BY_SCRAM, ids=lambda client: client.id)
def test_user_who_is_revoked_does_not_get_in_again(server, client):
    """Rule 531: what she has open is closed, and she is told why."""
    try:
        server.broker.revoke(USER)
        text = told(client, server, "SCRAM-SHA-512", {})
    finally:
        server.broker.add_user(USER, PASSWORD)
    assert WORDS.search(text), text
