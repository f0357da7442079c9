from pathlib import Path

import pytest

from kafkalite.config import (
    BrokerConfig,
    KafkaliteConfigError,
    load_config,
    settings_of_environment,
)
from kafkalite.log_config import LogConfig
from kafkalite.settings.config_def import SettingError


def test_a_lone_broker_needs_no_setting_at_all() -> None:
    """USERS 22: no id, no quorum, no listener has to be given."""
    config = load_config()
    assert config.profile == "dev"
    assert config.node_id == 1
    assert config.log_dirs == ("kafkalite-data",)
    assert [(x.name, x.host, x.port) for x in config.listeners] == [
        ("PLAINTEXT", "127.0.0.1", 9092)
    ]
    assert config.warnings == ()


def test_sources_override_each_other_in_order(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=2\nlog.retention.hours=1\ndefault.replication.factor=1\n")
    environment = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_LOG_RETENTION_HOURS": "2"}
    config = load_config(path, environment=environment, overrides={"num.partitions": "4"})
    assert config.int("num.partitions") == 4
    assert config.int("log.retention.hours") == 2
    assert config.int("default.replication.factor") == 1
    assert config.int("message.max.bytes") == 1_048_588


def test_one_variable_set_does_not_drop_the_other_defaults() -> None:
    """USERS 22."""
    config = load_config(environment={"KAFKA_NUM_PARTITIONS": "3"})
    assert config.listeners == load_config().listeners


def test_environment_follows_the_rule_of_kafkas_image() -> None:
    """`_` means a dot, `__` an underscore, `___` a dash."""
    assert settings_of_environment(
        {
            "KAFKA_LOG_RETENTION_MS": "1",
            "KAFKA_SOME__NAME": "2",
            "KAFKA_SOME___NAME": "3",
            "KAFKA_KAFKALITE_PROFILE": "test",
            "KAFKA_KAFKA_METRICS_REPORTERS": "x",
            "KAFKA_HEAP_OPTS": "-Xmx1g",
            "KAFKA_HOME": "/opt/kafka",
            "KAFKA_": "x",
            "HOME": "/root",
            "CLUSTER_ID": "abc",
        }
    ) == {
        "log.retention.ms": "1",
        "some_name": "2",
        "some-name": "3",
        "kafkalite.profile": "test",
        "kafka.metrics.reporters": "x",
        "kafkalite.cluster.id": "abc",
    }


def test_profiles_change_defaults_and_explicit_settings_win() -> None:
    """USERS 4 and 8: no rebalance delay in dev, Kafka's own in profile kafka."""
    dev, kafka = load_config(), load_config(overrides={"kafkalite.profile": "kafka"})
    assert dev.int("group.initial.rebalance.delay.ms") == 0
    assert dev.bool("kafkalite.internal.topics.fit.brokers")
    assert kafka.int("group.initial.rebalance.delay.ms") == 3000
    assert not kafka.bool("kafkalite.internal.topics.fit.brokers")
    assert kafka.listeners[0].host == ""
    test = load_config(
        environment={"KAFKA_KAFKALITE_PROFILE": "test"},
        overrides={"group.initial.rebalance.delay.ms": "7"},
    )
    assert test.int("group.initial.rebalance.delay.ms") == 7
    assert test.log_dirs == ()
    assert test.listeners[0].port == 0
    assert not test.bool("kafkalite.metadata.flush")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"log.retention.hours": "x"},
            "log.retention.hours: 'x' is not allowed, it has to be a whole",
        ),
        ({"kafkalite.profile": "prod"}, "kafkalite.profile: 'prod' is not allowed"),
        ({"listeners": "PLAINTEXT"}, "listeners: 'PLAINTEXT' is not allowed"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "advertised.listeners: "),
        ({"group.min.session.timeout.ms": "1800001"}, "group.min.session.timeout.ms: has to be"),
        ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes: has to be at least"),
        ({"log.dirs": "/a,/b,/a"}, "log.dirs: names a directory twice"),
        ({"node.id": "-1"}, "node.id: '-1' is not allowed"),
        ({"log.segment.bytes": "100"}, "log.segment.bytes: '100' is not allowed"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line_that_names_it(
    settings: dict[str, str], message: str
) -> None:
    with pytest.raises(KafkaliteConfigError) as caught:
        load_config(overrides=settings)
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("(from the command line)")
    assert "\n" not in str(caught.value)


def test_the_line_says_where_the_setting_came_from(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=many\n")
    with pytest.raises(KafkaliteConfigError, match=rf"\(from {path}\)$"):
        load_config(path)
    with pytest.raises(KafkaliteConfigError, match=r"\(from the environment\)$"):
        load_config(environment={"KAFKA_NUM_PARTITIONS": "many"})


def test_a_file_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(KafkaliteConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "missing")


def test_a_file_in_latin_1_is_read_as_java_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes("broker.rack=é".encode("latin-1"))
    assert load_config(path).str("broker.rack") == "é"


def test_unknown_names_warn_and_do_not_stop() -> None:
    config = load_config(overrides={"no.such.setting": "1", "num.partitions": "2"})
    assert config.warnings == ("unknown settings, which are ignored: no.such.setting",)
    assert config.unknown == ("no.such.setting",)


def test_settings_that_only_kafka_acts_on_warn_once_together() -> None:
    """A configuration made for a combined Kafka node starts (USERS 22)."""
    config = load_config(
        environment={
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
            "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "KAFKA_LISTENER_NAME_X_SASL_JAAS_CONFIG": "secret",
            "KAFKA_NODE_ID": "7",
        }
    )
    opened, inert = config.warnings
    assert opened == "listeners of a KRaft controller, which are not opened: CONTROLLER"
    assert inert.startswith("settings that have no effect in kafkalite: controller.quorum.voters")
    assert "secret" not in inert
    assert config.node_id == 7


SHIPPED_WITH_4_3 = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\
  SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
"""What the files of Apache Kafka's distributions set."""

SHIPPED_WITH_3_9_KRAFT = SHIPPED_WITH_4_3.replace(
    "controller.quorum.bootstrap.servers=localhost:9093",
    "controller.quorum.voters=1@localhost:9093",
)

SHIPPED_WITH_3_9 = """
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""

BROKER_OF_4_3 = """
process.roles=broker
node.id=2
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://localhost:9092
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
log.dirs=/tmp/kraft-broker-logs
"""


@pytest.mark.parametrize(
    ("text", "names", "ignored"),
    [
        (SHIPPED_WITH_4_3, {"PLAINTEXT": ("localhost", 9092)}, ["controller.quorum.bootstrap"]),
        (SHIPPED_WITH_3_9_KRAFT, {"PLAINTEXT": ("localhost", 9092)}, ["controller.quorum.voters"]),
        (SHIPPED_WITH_3_9, {"PLAINTEXT": ("", 9092)}, []),
        (BROKER_OF_4_3, {"PLAINTEXT": ("localhost", 9092)}, ["controller.quorum.bootstrap"]),
    ],
    ids=["4.3", "3.9 kraft", "3.9", "4.3 broker"],
)
def test_the_files_of_kafkas_distributions_start_a_broker(
    tmp_path: Path, text: str, names: dict[str, tuple[str, int]], ignored: list[str]
) -> None:
    path = tmp_path / "server.properties"
    path.write_text(text)
    config = load_config(path)
    assert config.endpoints({"PLAINTEXT": 9092}) == names
    assert config.unknown == ()
    said = " ".join(config.warnings)
    assert all(name in said for name in ignored)
    assert ("CONTROLLER" in said) == ("CONTROLLER://" in text)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("authorizer.class.name", "org.example.Mine", "is not supported"),
        ("create.topic.policy.class.name", "com.example.Policy", "no class of Java"),
        ("alter.config.policy.class.name", "com.example.Policy", "no class of Java"),
        ("process.roles", "controller", "there are no separate controllers"),
    ],
)
def test_what_would_protect_and_is_not_there_stops_the_start(
    name: str, value: str, message: str
) -> None:
    with pytest.raises(KafkaliteConfigError, match=rf"^{name}: .*{message}.*command line\)$"):
        load_config(overrides={name: value})
    load_config(overrides={"authorizer.class.name": "", "process.roles": "broker,controller"})


@pytest.mark.parametrize("name", ["node.id", "broker.id"])
def test_node_id_and_broker_id_are_one(name: str) -> None:
    config = load_config(overrides={name: "5"})
    assert config.int("node.id") == config.int("broker.id") == 5


def test_node_id_goes_before_broker_id() -> None:
    config = load_config(overrides={"broker.id": "5", "node.id": "6"})
    assert config.int("node.id") == config.int("broker.id") == 6


def test_log_dirs_go_before_log_dir() -> None:
    assert load_config(overrides={"log.dir": "/a"}).log_dirs == ("/a",)
    assert load_config(overrides={"log.dir": "/a", "log.dirs": "/b,/c"}).log_dirs == ("/b", "/c")


def test_getters_by_type() -> None:
    config = load_config(overrides={"broker.rack": "r1"})
    assert config.float("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.list("log.cleanup.policy") == ("delete",)
    assert config.list("log.dirs") == ()
    assert config.optional_int("log.retention.ms") is None
    assert config.optional_int("num.partitions") == 1
    assert config.optional_str("broker.rack") == "r1"
    assert config.optional_str("inter.broker.listener.name") is None
    assert config.value("auto.create.topics.enable") is True
    with pytest.raises(AssertionError):
        config.int("log.retention.ms")


def test_endpoints_to_register() -> None:
    assert load_config().endpoints({"PLAINTEXT": 4711}) == {"PLAINTEXT": ("", 4711)}
    config = load_config(overrides={"advertised.listeners": "PLAINTEXT://outside:0"})
    assert config.endpoints({"PLAINTEXT": 4711}) == {"PLAINTEXT": ("outside", 4711)}


def test_logs_have_kafkas_defaults() -> None:
    """Rule 224."""
    assert load_config(overrides={"kafkalite.profile": "kafka"}).log_config() == LogConfig()
    assert load_config().log_config() == LogConfig(validate_records=True)
    assert load_config().log_config({}) is not None


def test_a_topics_own_settings_go_before_the_brokers() -> None:
    """Rule 225."""
    config = load_config(
        overrides={"log.segment.bytes": "2000000", "log.cleanup.policy": "compact"}
    )
    assert config.log_config().segment_bytes == 2_000_000
    assert config.log_config().cleanup_policy == {"compact"}
    own = config.log_config({"segment.bytes": "3000000", "cleanup.policy": "compact,delete"})
    assert own.segment_bytes == 3_000_000
    assert own.cleanup_policy == {"compact", "delete"}
    assert config.log_config({"cleanup.policy": ""}).cleanup_policy == frozenset()


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-5"}, -1),
        ({"log.retention.ms": "-2"}, -1),
    ],
)
def test_retention_takes_the_most_exact_unit_that_is_set(
    settings: dict[str, str], retention_ms: int
) -> None:
    """Rule 225: log.retention.ms before .minutes before .hours; negative is no limit."""
    assert load_config(overrides=settings).log_config().retention_ms == retention_ms


def test_roll_and_flush_have_families_too() -> None:
    config = load_config(overrides={"log.roll.hours": "2", "log.roll.jitter.hours": "1"})
    assert config.log_config().segment_ms == 7_200_000
    assert config.log_config().segment_jitter_ms == 3_600_000
    config = load_config(overrides={"log.flush.scheduler.interval.ms": "9", "log.roll.ms": "5"})
    assert config.log_config().flush_ms == 9
    assert config.log_config().segment_ms == 5
    config = load_config(overrides={"log.flush.interval.ms": "8"})
    assert config.log_config().flush_ms == 8


def test_segments_below_the_limit_are_for_tests_only() -> None:
    assert load_config().log_config({"internal.segment.bytes": "100"}).segment_bytes == 100
    with pytest.raises(SettingError):
        load_config().log_config({"segment.bytes": "100"})


def test_changes_at_run_time_take_effect_and_can_be_taken_back() -> None:
    """KIP-226: this broker's before all brokers' before the file's."""
    config = load_config(overrides={"log.retention.ms": "1"})
    assert config.apply_dynamic({}, {"log.retention.ms": "2"}) == {"log.retention.ms"}
    assert config.log_config().retention_ms == 2
    assert config.apply_dynamic({"log.retention.ms": "3"}, {"log.retention.ms": "2"}) == {
        "log.retention.ms"
    }
    assert config.int("log.retention.ms") == 3
    assert config.apply_dynamic({"log.retention.ms": "3"}, {}) == frozenset()
    assert config.apply_dynamic({}, {}) == {"log.retention.ms"}
    assert config.log_config().retention_ms == 1


def test_a_stored_change_that_cannot_be_read_is_left_out() -> None:
    config = load_config()
    assert config.apply_dynamic({"num.io.threads": "many", "no.such": "1"}, {}) == frozenset()


def test_direct_construction_needs_no_sources() -> None:
    assert BrokerConfig({"num.partitions": "3"}).int("num.partitions") == 3
    with pytest.raises(KafkaliteConfigError, match=r"^num\.partitions: .*whole number of 32 bits$"):
        BrokerConfig({"num.partitions": "x"})
