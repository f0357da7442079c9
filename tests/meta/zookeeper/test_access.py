"""Encryption, login and access control towards a real ZooKeeper."""

import pytest
import trio
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificates

from kafkalite.clock import SystemClock
from kafkalite.config import load_config
from kafkalite.meta.image import Image
from kafkalite.meta.store import MetadataStoreError, SessionLost
from kafkalite.meta.zookeeper.access import ZookeeperAccess
from kafkalite.meta.zookeeper.store import ZookeeperStore
from kafkalite.settings.config_def import SettingError
from kafkalite.testing.security import Certificates
from kafkalite.testing.zookeeper import ZooKeeper
from tests.meta.zookeeper_kit import broker, commit, topic_change

JAAS = "kafkalite.zookeeper.jaas.config"
MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"), "127.0.0.1")


@pytest.fixture(scope="module")
def secured(certificates):
    """It takes encrypted connections only, and nobody who does not log in."""
    users = {"kafka": 'se"cret', "other": "x"}
    with ZooKeeper(tick_ms=100, tls=certificates, users=users) as running:
        yield running


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    """It takes encrypted connections only, from everybody, and has the certificate of another."""
    folder = tmp_path_factory.mktemp("wrong")
    with ZooKeeper(tick_ms=100, tls=Certificates(folder, "127.0.0.1").wrong_host()) as running:
        yield running


def settings_of(server, folder="", **more):
    named = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "kafkalite.profile": "kafka",
        "node.id": "1",
        "zookeeper.connect": server.connect + folder,
        "zookeeper.session.timeout.ms": "4000",
        "zookeeper.connection.timeout.ms": "15000",
        **server.client_settings(),
        **named,
    }


def store_of(settings):
    return ZookeeperStore.of(load_config(overrides=settings), SystemClock())


def with_store(settings, work):
    """Run `work` with an open store, and return what it returns."""

    async def main():
        store = store_of(settings)
        try:
            await store.open()
            return await work(store)
        finally:
            store.close()

    return trio.run(main)


async def epoch(store):
    """Make nodes of all kinds."""
    await store.cluster_id("proposed")
    await store.register(broker(1))
    await store.campaign()
    await commit(store, Image(), topic_change("t", 1))


def acls_of(server, settings, *paths):
    """Return who may do what, by path: {(scheme, id): permissions}."""
    client = ZookeeperAccess.of(load_config(overrides=settings)).client(
        settings["zookeeper.connect"], 4.0, None
    )
    client.start()
    try:
        return [
            {(one.id.scheme, one.id.id): one.perms for one in client.get_acls(path)[0]}
            for path in paths
        ]
    finally:
        client.stop()
        client.close()


UNCHECKED_HOST = {"zookeeper.ssl.endpoint.identification.algorithm": ""}

ALL, READ = 31, 1


@pytest.mark.slow
def test_nodes_are_the_brokers_own_and_those_with_passwords_nobody_elses_to_read(secured):
    """Rules 586, 588."""
    settings = settings_of(secured, "/own")
    with_store(settings, epoch)
    owned = {("sasl", "kafka"): ALL}
    readable = {**owned, ("world", "anyone"): READ}
    open_paths = [
        "/brokers/ids",
        "/brokers/topics/t",
        "/brokers/topics/t/partitions/0/state",
        "/controller_epoch",
        "/cluster/id",
        "/config/topics/t",
        "/kafka-acl/Topic",
        "/kafkalite/brokers",
    ]
    closed_paths = ["/config/users", "/config/brokers", "/changes", "/changes/0000000001"]
    assert acls_of(secured, settings, *open_paths) == [readable] * len(open_paths)
    assert acls_of(secured, settings, *closed_paths) == [owned] * len(closed_paths)


@pytest.mark.slow
def test_client_certificate_makes_an_owner_too(encrypted, certificates):
    """Rule 587: no login is needed then, as in Apache Kafka."""
    file = str(certificates.client_file("brokers"))
    settings = settings_of(
        encrypted,
        "/x509",
        zookeeper_set_acl="true",
        zookeeper_ssl_keystore_location=file,
        **UNCHECKED_HOST,
        zookeeper_clientCnxnSocket="org.apache.zookeeper.ClientCnxnSocketNetty",
    )
    with_store(settings, epoch)
    (found,) = acls_of(encrypted, settings, "/config/users")
    assert found == {("x509", "CN=brokers"): ALL}
    with pytest.raises(MetadataStoreError, match="somebody else's"):
        with_store(settings_of(encrypted, "/x509", **UNCHECKED_HOST), lambda store: store.load())


@pytest.mark.slow
def test_another_user_is_told_whose_nodes_they_are(secured):
    """Rule 588: somebody who logs in, but as somebody else."""
    with_store(settings_of(secured, "/foreign"), epoch)
    other = f'{MODULE} required username="other" password="x";'
    with pytest.raises(MetadataStoreError, match="somebody else's"):
        with_store(settings_of(secured, "/foreign", **{JAAS: other}), lambda store: store.load())


@pytest.mark.slow
def test_start_without_a_login_ends_with_what_is_missing(secured):
    settings = settings_of(secured, zookeeper_set_acl="false", **{JAAS: ""})
    with pytest.raises(MetadataStoreError, match=f"does not log in: {JAAS}"):
        with_store(settings, epoch)


@pytest.mark.slow
def test_session_that_is_lost_logs_in_again(secured):
    settings = settings_of(secured, "/lost")

    async def lose(store):
        await epoch(store)
        assert secured.expire_sessions("/lost/brokers/ids")
        with trio.fail_after(20):
            while not isinstance(await store.next_event(), SessionLost):
                pass
        return await store.register(broker(1))

    assert with_store(settings, lose) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({JAAS: f'{MODULE} required username="kafka" password="no";'}, "user kafka is refused"),
        ({"zookeeper.ssl.truststore.location": None}, "certificate"),
        ({"zookeeper.ssl.client.enable": "false"}, ""),
    ],
    ids=["password", "authority", "plain"],
)
def test_start_ends_in_one_line_that_says_why(secured, changes, why):
    settings = settings_of(secured, zookeeper_connection_timeout_ms="700")
    for name, value in changes.items():
        settings.pop(name, None)
        if value is not None:
            settings[name] = value
    with pytest.raises(MetadataStoreError, match=rf"was not reached.*{why}"):
        with_store(settings, epoch)


@pytest.mark.slow
def test_certificate_for_another_host_is_refused(encrypted):
    settings = settings_of(encrypted, zookeeper_connection_timeout_ms="700")
    with pytest.raises(MetadataStoreError, match=r"not valid for '127\.0\.0\.1'"):
        with_store(settings, epoch)


@pytest.mark.slow
def test_login_is_tried_again_while_the_server_is_away(secured):
    """kazoo itself gives up for good if a server goes away in the midst of a login."""
    settings = settings_of(secured, "/away")

    async def go_on(store):
        await epoch(store)
        for _ in range(3):
            await trio.to_thread.run_sync(secured.restart)
            with trio.fail_after(20):
                while True:
                    try:
                        return await store.load()
                    except Exception:
                        await trio.sleep(0.05)

    assert with_store(settings, go_on) is not None


def test_nodes_cannot_be_owned_by_nobody():
    with pytest.raises(SettingError, match="needs somebody"):
        ZookeeperAccess.of(load_config(overrides={"zookeeper.set.acl": "true"}))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        (JAAS, "nonsense", f"{JAAS}: a login module"),
        ("zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNIO", "has to be"),
        ("zookeeper.ssl.keystore.location", "/nowhere", "zookeeper.ssl.keystore.location: /nowh"),
        ("zookeeper.ssl.truststore.location", "/none", "zookeeper.ssl.truststore.location: /none"),
    ],
)
def test_setting_that_cannot_be_used_is_named(name, value, why):
    settings = {"zookeeper.ssl.client.enable": "true", name: value}
    with pytest.raises(SettingError, match=why):
        ZookeeperAccess.of(load_config(overrides=settings))


def stores(folder, certificates):
    """Return settings by which a client certificate is shown, for each form that a store has."""
    pem = certificates.client_file("brokers").read_bytes()
    key = load_pem_private_key(pem, None)
    own, *others = load_pem_x509_certificates(pem)
    secret = BestAvailableEncryption(b"secret")
    (folder / "store.p12").write_bytes(
        serialize_key_and_certificates(None, key, own, others, secret)
    )
    hidden = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret)
    chain = b"".join(one.public_bytes(Encoding.PEM) for one in (own, *others))
    (folder / "store.pem").write_bytes(hidden + chain)
    name = "zookeeper.ssl.keystore"
    return {
        form: {f"{name}.location": str(folder / f"store.{form}"), f"{name}.password": "secret"}
        for form in ("p12", "pem")
    }


@pytest.mark.parametrize("form", ["p12", "pem"])
def test_one_password_is_for_a_store_or_for_the_key_in_it(tmp_path, certificates, form):
    """Rule 587: a PEM file's own password is its key's."""
    settings = stores(tmp_path, certificates)[form]
    settings["zookeeper.ssl.client.enable"] = "true"
    context = ZookeeperAccess.of(load_config(overrides=settings)).context()
    assert context.check_hostname
    settings["zookeeper.ssl.keystore.password"] = "wrong"
    with pytest.raises(SettingError, match=r"zookeeper\.ssl\.keystore\.location"):
        ZookeeperAccess.of(load_config(overrides=settings))
