"""A broker in a test with TLS, users and rules, and failures on purpose."""

import time

import pytest

from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.client.login import Credentials
from kafkalite.security.shorthand import allow, deny
from kafkalite.testing.broker import Broker
from kafkalite.wire.errors import ErrorCode, KafkaError


@pytest.fixture(scope="module")
def broker():
    with Broker(
        tls=True,
        users={"alice": "secret", "bob": 'sec"ret'},
        acls=[allow("alice", "read,write", topic="orders"), allow("alice", "read", group="g")],
    ) as running:
        running.create_topic("orders")
        running.create_topic("hidden")
        yield running


def client(broker, form="confluent", **options):
    settings = broker.client_settings(form, **options)
    bootstrap = settings.pop("bootstrap.servers")
    return Client(bootstrap, credentials=Credentials(settings), timeout_ms=20_000)


def topics(broker, **options):
    with client(broker, **options) as one:
        return sorted(topic.name for topic in one.fetch_metadata(None).topics)


@pytest.mark.parametrize("form", ["confluent", "java"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_see_what_they_may(broker, form, mechanism):
    assert topics(broker, form=form, user="alice", mechanism=mechanism) == ["orders"]
    assert topics(broker, form=form, user="bob", mechanism=mechanism) == []


def test_listener_without_tls_lets_everybody_do_everything(broker):
    with Client(broker.bootstrap) as one:
        assert {topic.name for topic in one.fetch_metadata(None).topics} >= {"orders", "hidden"}


def test_rules_come_and_go(broker):
    rules = [allow("bob", "describe", topic="*"), deny("bob", "describe", topic="hid*")]
    broker.allow(rules)
    assert topics(broker, user="bob") == ["orders"]
    broker.remove_rules(rules)
    assert topics(broker, user="bob") == []


def test_revoked_user_gets_in_no_more(broker):
    broker.add_user("carol", "secret")
    broker.security.users["carol"] = "secret"
    with client(broker, user="carol") as one:
        connection = one.any_broker()
        broker.revoke("carol")
        with pytest.raises(ClientError, match="no answer"):
            one.fetch_metadata(None)
        assert connection.closed
    with pytest.raises(KafkaError) as refused:
        client(broker, user="carol").any_broker()
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def connect_again_and_again(broker):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        topics(broker)
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "message"),
    [
        ("expire", "certificate has expired"),
        ("wrong_host", "IP address mismatch|Hostname mismatch"),
        ("stranger", "unable to get local issuer|self-signed"),
    ],
)
def test_bad_certificates_are_shown_on_purpose(broker, make, message):
    getattr(broker.certs, make)()
    try:
        with pytest.raises(ClientError, match=message):
            connect_again_and_again(broker)
    finally:
        broker.certs.renew()
    end = time.monotonic() + 20
    while True:
        try:
            topics(broker)
        except ClientError:
            assert time.monotonic() < end
        else:
            break


def test_certificate_stands_for_a_user_where_there_are_none():
    seen = []
    with Broker(tls=True, acls=[allow("CN=alice", "describe", topic="*")]) as broker:
        broker.create_topic("orders")
        broker.server.dispatcher.observer = lambda _, __, context: seen.append(context.principal)
        assert topics(broker, user="alice") == ["orders"]
    assert set(seen) == {"User:CN=alice"}


def test_users_without_tls_log_in_openly():
    with Broker(users={"alice": "secret"}) as broker:
        assert broker.client_settings()["security.protocol"] == "SASL_PLAINTEXT"
        assert topics(broker) == []
        with pytest.raises(RuntimeError, match="tls=True"):
            assert broker.ca_file


def test_broker_without_all_that_has_plain_settings():
    with Broker() as broker:
        assert broker.client_settings() == {"bootstrap.servers": broker.bootstrap}


@pytest.mark.kafka_secure(mechanism="PLAIN", users={"zoe": "secret"})
def test_fixture_is_made_of_the_marker(kafka_secure):
    assert kafka_secure.client_settings()["sasl.mechanism"] == "PLAIN"
    assert kafka_secure.client_settings()["sasl.username"] == "zoe"
    assert topics(kafka_secure) == []
