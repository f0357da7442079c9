"""Apache Kafka's own tools with `--command-config`: TLS, every login, rules and users."""

import pytest

from compat_tests.apache_kafka import KAFKA_4, run_tool
from kafkalite.security.shorthand import allow
from kafkalite.testing.broker import Broker

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]

TIMEOUT_S = 120


@pytest.fixture(scope="module")
def broker():
    with Broker(
        tls=True,
        users={"admin": "secret", "alice": 'pass"word'},
        acls=[
            allow("alice", "read,write,describe-configs", topic="orders"),
            allow("alice", "read", group="*"),
        ],
        config={"connections.max.reauth.ms": 5_000, "delegation.token.secret.key": "x"},
    ) as running:
        running.create_topic("orders")
        yield running


def tool(broker, tmp_path, name, *arguments, user="admin", mechanism="SCRAM-SHA-512", **options):
    settings = broker.client_settings("java", user=user, mechanism=mechanism)
    where = settings.pop("bootstrap.servers")
    file = tmp_path / "client.properties"
    escaped = ((n, v.replace("\\", "\\\\")) for n, v in settings.items())
    file.write_text("".join(f"{n}={v}\n" for n, v in escaped))
    option = {
        "kafka-console-producer": "--command-config",
        "kafka-console-consumer": "--command-config",
    }.get(name, "--command-config")
    return run_tool(
        KAFKA_4,
        name,
        "--bootstrap-server",
        where,
        option,
        str(file),
        *arguments,
        timeout=TIMEOUT_S,
        **options,
    ).stdout


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_sees_the_topics_that_the_rules_allow(broker, tmp_path, mechanism):
    broker.create_topic(f"hidden-{mechanism.lower()}")
    options = {"user": "alice", "mechanism": mechanism}
    assert tool(broker, tmp_path, "kafka-topics", "--list", **options).split() == ["orders"]


def test_topic_is_described_to_who_may_see_it(broker, tmp_path):
    broker.create_topic("unseen")
    shown = tool(broker, tmp_path, "kafka-topics", "--describe", user="alice")
    assert "Topic: orders" in shown
    assert "PartitionCount: 1" in shown
    assert "unseen" not in shown


def test_records_go_in_and_out(broker, tmp_path):
    tool(
        broker,
        tmp_path,
        "kafka-console-producer",
        "--topic",
        "orders",
        user="alice",
        stdin="one\ntwo\n",
    )
    assert [record.value for record in broker.records("orders")] == [b"one", b"two"]
    words = ("--topic", "orders", "--from-beginning", "--max-messages", "2")
    out = tool(broker, tmp_path, "kafka-console-consumer", *words, user="alice")
    assert out.split() == ["one", "two"]


def test_rules_are_made_listed_and_removed(broker, tmp_path):
    rule = ("--allow-principal", "User:bob", "--operation", "Read", "--topic", "bills")
    prefix = ("--resource-pattern-type", "prefixed")
    tool(broker, tmp_path, "kafka-acls", "--add", *rule, *prefix)
    listed = tool(
        broker,
        tmp_path,
        "kafka-acls",
        "--list",
        "--topic",
        "bills-eu",
        "--resource-pattern-type",
        "match",
    )
    assert "principal=User:bob, host=*, operation=READ, permissionType=ALLOW" in listed
    tool(broker, tmp_path, "kafka-acls", "--remove", "--force", *rule, *prefix)
    assert "User:bob" not in tool(broker, tmp_path, "kafka-acls", "--list")


def test_users_are_made_shown_and_removed(broker, tmp_path):
    entity = ("--entity-type", "users", "--entity-name", "zoe")
    config = "SCRAM-SHA-512=[iterations=8192,password=zoe-secret]"
    tool(broker, tmp_path, "kafka-configs", "--alter", "--add-config", config, *entity)
    broker.security.users["zoe"] = "zoe-secret"
    assert tool(broker, tmp_path, "kafka-topics", "--list", user="zoe").split() == []
    delete = ("--alter", "--delete-config", "SCRAM-SHA-512")
    tool(broker, tmp_path, "kafka-configs", *delete, *entity)
    with pytest.raises(RuntimeError, match="SaslAuthenticationException"):
        tool(broker, tmp_path, "kafka-topics", "--list", user="zoe")


QUOTAS = [
    (("users", "zoe", "clients", "app"), "producer_byte_rate=1024"),
    (("users", "zoe"), "consumer_byte_rate=2048,request_percentage=12.5"),
    (("clients", "app"), "producer_byte_rate=4096"),
    (("ips", None), "connection_creation_rate=1000"),
]


@pytest.mark.parametrize(("entity", "config"), QUOTAS, ids=lambda one: str(one))
def test_quotas_are_set_shown_and_removed(broker, tmp_path, entity, config):
    words = []
    for kind, name in zip(entity[::2], entity[1::2], strict=True):
        words += ["--entity-type", kind]
        words += ["--entity-default"] if name is None else ["--entity-name", name]
    tool(broker, tmp_path, "kafka-configs", "--alter", "--add-config", config, *words)
    shown = tool(broker, tmp_path, "kafka-configs", "--describe", *words)
    for pair in config.split(","):
        name, _, value = pair.partition("=")
        assert f"{name}={float(value)}" in shown
    names = ",".join(pair.partition("=")[0] for pair in config.split(","))
    tool(broker, tmp_path, "kafka-configs", "--alter", "--delete-config", names, *words)
    assert config.partition("=")[0] not in tool(
        broker, tmp_path, "kafka-configs", "--describe", *words
    )


def test_tokens_are_made_shown_used_renewed_and_ended(broker, tmp_path):
    def tokens(*words, user="alice"):
        return tool(broker, tmp_path, "kafka-delegation-tokens", *words, user=user)

    made = tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:admin")
    token_id, hmac = made.strip().splitlines()[-1].split()[:2]
    shown = tokens("--describe", "--owner-principal", "User:alice", user="admin")
    assert token_id in shown
    assert "User:admin" in shown
    renewed = tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac, user="admin")
    assert "Completed renew" in renewed
    broker.security.users[token_id] = hmac
    settings = broker.client_settings("java", user=token_id, mechanism="SCRAM-SHA-256")
    line = settings["sasl.jaas.config"].rstrip(";") + ' tokenauth="true";'
    file = tmp_path / "token.properties"
    settings["sasl.jaas.config"] = line
    where = settings.pop("bootstrap.servers")
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    words = ("--bootstrap-server", where, "--command-config", str(file), "--list")
    assert run_tool(KAFKA_4, "kafka-topics", *words, timeout=TIMEOUT_S).stdout.split() == ["orders"]
    assert "Completed expire" in tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert token_id not in tokens("--describe")
