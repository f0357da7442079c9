"""A cluster with TLS, users and rules everywhere, and what it refuses."""

import socket
import ssl
import urllib.error
import urllib.request

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from kazoo.exceptions import SessionClosedRequireSaslError

import kafkalite
from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.config import load_config
from kafkalite.faults.remote import call
from kafkalite.meta.zookeeper.access import ZookeeperAccess
from kafkalite.registry.client import SchemaRegistryClient
from kafkalite.security.shorthand import allow
from tests.registry.harness import avro

pytestmark = [pytest.mark.slow]
QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def cluster():
    with kafkalite.Cluster(
        3,
        tls=True,
        users={"alice": "wonder land", "bob": "builder"},
        acls=[allow("alice", "all", topic="*", group="*")],
        schema_registry=True,
    ) as running:
        running.create_topic("t")
        yield running


def produce(cluster, user, topic="t", **more):
    """Return the name of the error, None if there is none."""
    access = cluster.client_settings(user=user)
    producer = Producer({**access, **QUIET, "message.timeout.ms": 20_000, **more})
    errors = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    return errors[0] and errors[0].name()


def test_users_get_in_by_every_mechanism_and_do_what_rules_allow(cluster):
    assert produce(cluster, "alice") is None
    assert produce(cluster, "bob") == "TOPIC_AUTHORIZATION_FAILED"
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        settings = cluster.client_settings(user="alice", mechanism=mechanism)
        assert "t" in AdminClient({**settings, **QUIET}).list_topics(timeout=20).topics


def test_every_listener_speaks_tls_and_wants_a_login(cluster):
    ports = [port for each in cluster.brokers.values() for port in (each.port, each.peer_port)]
    context = ssl.create_default_context(cafile=cluster.ca_file)
    for port in ports:
        with pytest.raises(ClientError), Client(f"127.0.0.1:{port}", timeout_ms=3_000) as client:
            client.fetch_metadata([])
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted,
        ):
            encrypted.sendall(b"\0\0\0\x0a\0\x03\0\0\0\0\0\x07\xff\xff")  # Metadata
            assert encrypted.recv(1) == b""


def test_brokers_see_each_other_as_users_by_links_that_can_be_cut(cluster):
    """The links cannot read what passes, and know whose connections these are all the same."""
    found = set(cluster.links.connections())
    numbers = {*map(str, cluster.brokers)}
    assert all(source in numbers for source, _ in found)
    assert {(one, "zookeeper") for one in numbers} <= found


def test_zookeeper_serves_nobody_who_is_not_encrypted_and_logged_in(cluster):
    plain = KazooClient(hosts=cluster.zookeeper.connect, timeout=2)
    with pytest.raises(plain.handler.timeout_exception):
        plain.start(timeout=1)
    plain.stop()
    plain.close()
    settings = {**cluster.zookeeper.client_settings(), "zookeeper.set.acl": "false"}
    del settings["kafkalite.zookeeper.jaas.config"]
    access = ZookeeperAccess.of(load_config(overrides=settings))
    nobody = access.client(cluster.zookeeper.connect, 4.0, None)
    nobody.start(timeout=10)
    try:
        with pytest.raises(SessionClosedRequireSaslError):
            nobody.get("/config/users/alice")
    finally:
        nobody.stop()
        nobody.close()


def test_leader_that_is_cut_off_is_replaced_and_comes_back(cluster):
    leader = cluster.leader_of("t", 0)
    cluster.isolate(leader)
    try:
        # Who asks the one that is cut off is told, for a while, that it leads still.
        new = cluster.brokers[cluster.wait_leader("t", 0, other_than=leader)]
        assert produce(cluster, "alice", **{"bootstrap.servers": new.bootstrap}) is None
    finally:
        cluster.heal()
    cluster.wait_in_sync("t")


def test_user_who_is_added_gets_in_until_revoked(cluster):
    cluster.add_user("carol", "c")
    cluster.allow([allow("carol", "all", topic="*")])
    assert produce(cluster, "carol") is None
    cluster.remove_rules([allow("carol", "all", topic="*")])
    cluster.revoke("carol")
    settings = {**cluster.client_settings(user="carol"), **QUIET, "group.id": "g"}
    told = []
    consumer = Consumer({**settings, "error_cb": told.append})
    with pytest.raises(KafkaException):
        consumer.list_topics(timeout=2)
    consumer.poll(0)
    consumer.close()
    assert "_AUTHENTICATION" in {error.name() for error in told}


def test_the_http_port_asks_for_a_token_and_tests_show_it(cluster):
    """Rules, the clock and the registry are the operator's."""
    url = cluster.http_urls()[1].partition("?")[0]
    for path in ("schema-registry/subjects", "api/v1/control/faults"):
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(url + path, timeout=30)
        assert error.value.code == 401
        error.value.close()
    rule = cluster.faults.on("Produce", topic="nothing").disconnect().once()
    assert rule.hits == 0
    cluster.faults.remove(rule)
    said = {"api": "Produce", "topic": "t", "disconnect": True, "broker": "all"}
    added = call(cluster.http_urls()[2], "POST", "/faults", said)
    assert len(added["brokers"]) == 3
    call(cluster.http_urls()[3], "DELETE", f"/faults/{added['id']}")


def test_registry_clients_get_in_by_its_url(cluster):
    ids = set()
    for number, url in cluster.schema_registry_urls.items():
        schema_id, _ = SchemaRegistryClient(url).register(f"s{number}", avro('"int"'))
        ids.add(schema_id)
    assert len(ids) == 1
    for url in cluster.schema_registry_urls.values():
        assert SchemaRegistryClient(url).schema(max(ids)).schema.text == '"int"'
        assert SchemaRegistryClient(url).latest("s3")[0] in ids
