"""Rules and users in a secured ensemble, as Apache Kafka 3.9's own tools read and write them."""

import json
import socket
import ssl
import subprocess

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

import kafkalite
from compat_tests.apache_kafka import KAFKA_3_9, TOOL_JVM_OPTIONS, java_command, run_tool
from kafkalite.client.acls import list_rules
from kafkalite.config import load_config
from kafkalite.meta.zookeeper.access import ZookeeperAccess
from kafkalite.security.password_encoder import CBC
from kafkalite.security.shorthand import allow, deny
from kafkalite.testing.processes import wait_until_true
from kafkalite.testing.zookeeper import MODULE, login_module

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
SECRET = "of the brokers"

DECODE = """
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.security.PasswordEncoder;

public class Decode {
    public static void main(String[] words) throws Exception {
        PasswordEncoder encoder =
            PasswordEncoder.encrypting(new Password(words[0]), null, words[2], 128, 4096);
        System.out.print(encoder.decode(words[1]).value());
    }
}
"""


@pytest.fixture(scope="module")
def cluster():
    rules = [
        allow("alice", "read,describe-configs", topic="orders"),
        deny("bob", "write", topic="bills-*", host="10.0.0.1"),
        allow("carol", "all", group="g", transactional_id="t", cluster="kafka-cluster"),
    ]
    settings = {"password.encoder.secret": SECRET}
    with kafkalite.Cluster(
        1, tls=True, users={"alice": "secret"}, acls=rules, config=settings
    ) as running:
        yield running


class Tools:
    """The tools of 3.9, which log in at ZooKeeper by a file of JAAS, and trust its certificate."""

    def __init__(self, cluster, folder):
        self._where = cluster.zookeeper.connect
        (name, password), *_ = cluster.zookeeper.users.items()
        jaas = folder / "jaas.conf"
        jaas.write_text(f"Client {{ {login_module(MODULE, username=name, password=password)} }};\n")
        self._options = (*TOOL_JVM_OPTIONS, f"-Djava.security.auth.login.config={jaas}")
        self._tls = folder / "zookeeper.properties"
        self._tls.write_text(
            "zookeeper.ssl.client.enable=true\n"
            "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty\n"
            "zookeeper.ssl.truststore.type=PEM\n"
            f"zookeeper.ssl.truststore.location={cluster.ca_file}\n"
        )

    def acls(self, *words):
        where = ["--authorizer", AUTHORIZER, "--authorizer-properties"]
        where += [f"zookeeper.connect={self._where}", "zookeeper.set.acl=true"]
        return self._run("kafka-acls", *where, *words)

    def configs(self, *words):
        return self._run("kafka-configs", "--zookeeper", self._where, *words)

    def _run(self, name, *words):
        tls = ["--zk-tls-config-file", str(self._tls)]
        done = run_tool(KAFKA_3_9, name, *words, *tls, jvm_options=self._options, timeout=120)
        return done.stdout


@pytest.fixture
def tools(cluster, tmp_path):
    return Tools(cluster, tmp_path)


@pytest.fixture
def nodes(cluster):
    """A client that sees what the brokers see."""
    settings = {"zookeeper.connect": cluster.zookeeper.connect}
    settings |= cluster.zookeeper.client_settings()
    access = ZookeeperAccess.of(load_config(overrides=settings))
    client = access.client(cluster.zookeeper.connect, 10.0, None)
    client.start()
    yield client
    client.stop()
    client.close()


def test_kafka_3_9_reads_rules_and_users_that_are_made_here(cluster, tools):
    """Rules 535, 548, 588."""
    listed = tools.acls("--list")
    for kind, name, pattern in (
        ("TOPIC", "orders", "LITERAL"),
        ("TOPIC", "bills-", "PREFIXED"),
        ("GROUP", "g", "LITERAL"),
        ("TRANSACTIONAL_ID", "t", "LITERAL"),
        ("CLUSTER", "kafka-cluster", "LITERAL"),
    ):
        assert f"resourceType={kind}, name={name}, patternType={pattern}" in listed
    for entry in (
        "principal=User:alice, host=*, operation=READ, permissionType=ALLOW",
        "principal=User:alice, host=*, operation=DESCRIBE_CONFIGS, permissionType=ALLOW",
        "principal=User:bob, host=10.0.0.1, operation=WRITE, permissionType=DENY",
        "principal=User:carol, host=*, operation=ALL, permissionType=ALLOW",
    ):
        assert entry in listed
    shown = tools.configs("--describe", "--entity-type", "users", "--entity-name", "alice")
    assert "SCRAM-SHA-512=salt=" in shown
    assert "iterations=4096" in shown


def test_what_kafka_3_9_writes_is_read_here_and_looks_the_same(cluster, tools, nodes):
    """Rules 535, 548, 588-590: the same bytes in the same nodes, taken up while brokers run."""
    rule = ("--operation", "Read", "--operation", "DescribeConfigs", "--topic")
    tools.acls("--add", "--allow-principal", "User:alice", *rule, "theirs")
    tools.acls(
        *("--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation"),
        *("Write", "--topic", "notes-", "--resource-pattern-type", "prefixed"),
    )
    for ours, theirs in (
        ("/kafka-acl/Topic/orders", "/kafka-acl/Topic/theirs"),
        ("/kafka-acl-extended/prefixed/Topic/bills-", "/kafka-acl-extended/prefixed/Topic/notes-"),
    ):
        assert entries(nodes, ours) == entries(nodes, theirs)
        assert nodes.get_acls(ours)[0] == nodes.get_acls(theirs)[0]
    config = "SCRAM-SHA-512=[iterations=8192,password=their secret]"
    tools.configs(
        *("--alter", "--add-config", config, "--entity-type", "users"), "--entity-name", "zoe"
    )
    ours, theirs = (json.loads(nodes.get(f"/config/users/{each}")[0]) for each in ("alice", "zoe"))
    assert ours["version"] == theirs["version"] == 1
    shape = {part.partition("=")[0] for part in ours["config"]["SCRAM-SHA-512"].split(",")}
    assert {
        part.partition("=")[0] for part in theirs["config"]["SCRAM-SHA-512"].split(",")
    } == shape
    assert nodes.get_acls("/config/users/alice")[0] == nodes.get_acls("/config/users/zoe")[0]
    allowed = {*allow("alice", "read,describe-configs", topic="theirs")}
    denied = {*deny("bob", "write", topic="notes-*", host="10.0.0.1")}
    with cluster.client() as client:
        assert wait_until_true(lambda: allowed | denied <= {*list_rules(client)}, 60)
    settings = cluster.client_settings(user="alice")
    settings |= {"sasl.username": "zoe", "sasl.password": "their secret", "log_level": 0}
    assert AdminClient(settings).list_topics(timeout=20).brokers
    # What is changed here goes on from what the tools wrote, and the notices are alike.
    cluster.allow([allow("alice", "write", topic="theirs")])
    assert len(entries(nodes, "/kafka-acl/Topic/theirs")["acls"]) == 3
    assert {b"TOPIC:orders", b"TOPIC:theirs"} <= notices(nodes, "/kafka-acl-changes")
    ours, theirs = map(json.loads, sorted(notices(nodes, "/kafka-acl-extended-changes")))
    assert (ours.pop("name"), theirs.pop("name")) == ("bills-", "notes-")
    assert ours == theirs
    told = [json.loads(each) for each in notices(nodes, "/config/changes")]
    for name in ("alice", "zoe"):
        assert {"version": 2, "entity_path": f"users/{name}"} in told


def test_kafka_3_9_decodes_passwords_that_are_set_here(cluster, nodes, tmp_path):
    """Rule 255: and nobody finds them in any node."""
    name, password = "listener.name.other.ssl.key.password", "open sesame, please"
    entry = ConfigEntry(name, password, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    settings = {**cluster.client_settings(user="admin"), "log_level": 0}
    admin = AdminClient(settings)
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(20)
    stored = json.loads(nodes.get("/config/brokers/1")[0])["config"][name]
    program = tmp_path / "Decode.java"
    program.write_text(DECODE)
    command = java_command(KAFKA_3_9, str(program), SECRET, stored, CBC)
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == password
    for change in nodes.get_children("/changes"):
        assert password.encode() not in nodes.get(f"/changes/{change}")[0]


def test_passwords_that_kafka_3_9_has_encoded_open_the_keys_of_a_listener(cluster, tools, tmp_path):
    """Rule 255: its tool writes them while a broker is away, as before its first start."""
    store, password = tmp_path / "locked.pem", "a locked key"
    plain = cluster.security.certificates.client_file("locked")
    store.write_bytes(locked(plain.read_bytes(), password.encode()))
    prefix = f"listener.name.{cluster.security.listener.lower()}."
    changed = {"ssl.keystore.type": "PEM", "ssl.keystore.location": store}
    changed["ssl.key.password"] = password
    words = ",".join(f"{prefix}{name}={value}" for name, value in changed.items())
    cluster.stop(1)
    tools.configs(
        *("--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config"),
        f"{words},password.encoder.secret={SECRET}",
    )
    cluster.restart(1)
    context = ssl.create_default_context(cafile=cluster.ca_file)
    context.check_hostname = False
    host, _, port = cluster.bootstrap.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=20) as plain_socket,
        context.wrap_socket(plain_socket) as connection,
    ):
        assert connection.getpeercert()["subject"] == ((("commonName", "locked"),),)


def locked(pem, password):
    """Return a certificate and its key with a password for the key."""
    key = load_pem_private_key(pem, None)
    lock = BestAvailableEncryption(password)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
    return sealed + pem[pem.index(b"-----BEGIN CERTIFICATE") :]


def notices(nodes, folder):
    """Return what the nodes of a folder hold, each once."""
    return {nodes.get(f"{folder}/{name}")[0] for name in nodes.get_children(folder)}


def entries(nodes, path):
    """Return the JSON of a node, with its rules in an order."""
    found = json.loads(nodes.get(path)[0])
    found["acls"].sort(key=str)
    return found


def shape(nodes, path):
    """Return what a node of a user has, but for values that are random."""
    found = json.loads(nodes.get(path)[0])
    credential = found["config"]["SCRAM-SHA-512"].split(",")
    return found["version"], [part.partition("=")[0] for part in credential]
