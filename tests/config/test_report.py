import json
from pathlib import Path

from kafkalite.config import BrokerConfig, load_config
from kafkalite.config.report import (
    ConfigEntry,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
    select,
)
from kafkalite.settings.config_def import ConfigSource

KAFKA = json.loads((Path(__file__).parent.parent / "settings/apache_kafka_4_3.json").read_text())


def kafka(**settings: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return load_config(overrides={"kafkalite.profile": "kafka", **named})


def one(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (entry,) = select(entries, [name])
    return entry


def synonyms(entry: ConfigEntry) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, int(synonym.source)) for synonym in entry.synonyms]


def test_a_topic_reports_every_setting_even_at_its_default() -> None:
    """Rules 33 and 223."""
    entries = describe_topic(kafka(), {})
    assert {entry.name for entry in entries} == set(KAFKA["topic"])
    for entry in entries:
        number, default, read_only, sensitive = KAFKA["topic"][entry.name]
        assert (entry.type, entry.value) == (number, default)
        assert (entry.read_only, entry.is_sensitive) == (read_only, sensitive)
        assert entry.source is ConfigSource.DEFAULT
        assert entry.documentation


def test_defaults_of_a_topic_name_the_broker_setting_they_come_from() -> None:
    """Rule 33, as a running Kafka 4.3 answers: families without a first member have no synonym."""
    entries = describe_topic(kafka(), {})
    assert synonyms(one(entries, "segment.bytes")) == [("log.segment.bytes", "1073741824", 5)]
    assert synonyms(one(entries, "retention.ms")) == []
    assert synonyms(one(entries, "segment.ms")) == []
    assert synonyms(one(entries, "flush.ms")) == []
    assert synonyms(one(entries, "remote.storage.enable")) == []


def test_synonyms_go_from_most_to_least_specific() -> None:
    """Rule 33."""
    config = kafka(message_max_bytes="1")
    config.apply_dynamic({"message.max.bytes": "2"}, {"message.max.bytes": "3"})
    entry = one(describe_topic(config, {"max.message.bytes": " 4 "}), "max.message.bytes")
    assert (entry.value, entry.source) == ("4", ConfigSource.TOPIC)
    assert synonyms(entry) == [
        ("max.message.bytes", "4", 1),
        ("message.max.bytes", "2", 2),
        ("message.max.bytes", "3", 3),
        ("message.max.bytes", "1", 4),
        ("message.max.bytes", "1048588", 5),
    ]


def test_a_family_of_units_is_reported_behind_its_first_member() -> None:
    """As a running Kafka 4.3: log.retention.ms changed at run time, the hours at their default."""
    config = kafka()
    config.apply_dynamic({"log.retention.ms": "123456"}, {"log.retention.ms": "654321"})
    expected = [
        ("log.retention.ms", "123456", 2),
        ("log.retention.ms", "654321", 3),
        ("log.retention.hours", "168", 5),
    ]
    topic = one(describe_topic(config, {}), "retention.ms")
    assert (topic.value, topic.source) == ("123456", ConfigSource.DYNAMIC_BROKER)
    assert synonyms(topic) == expected
    assert synonyms(one(describe_broker(config), "log.retention.ms")) == expected


def test_hours_alone_change_the_value_and_not_the_source() -> None:
    entry = one(describe_topic(kafka(log_retention_hours="1"), {}), "retention.ms")
    assert (entry.value, entry.source, entry.synonyms) == ("3600000", ConfigSource.DEFAULT, ())


def test_a_broker_reports_what_kafka_reports() -> None:
    config = kafka()
    entries = {entry.name: entry for entry in describe_broker(config)}
    assert set(KAFKA["broker"]) <= set(entries)
    assert "unstable.api.versions.enable" not in entries
    entry = entries["num.partitions"]
    assert (entry.value, entry.source, entry.read_only) == ("1", ConfigSource.DEFAULT, True)
    assert not entries["num.io.threads"].read_only
    assert entries["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"
    assert entries["log.retention.ms"].value is None


def test_static_settings_of_a_broker_have_their_source() -> None:
    entry = one(describe_broker(kafka(num_partitions=" 3")), "num.partitions")
    assert (entry.value, entry.source) == ("3", ConfigSource.STATIC_BROKER)
    assert synonyms(entry) == [("num.partitions", " 3", 4), ("num.partitions", "1", 5)]


def test_defaults_of_a_profile_are_reported_as_defaults() -> None:
    entry = one(describe_broker(load_config()), "group.initial.rebalance.delay.ms")
    assert (entry.value, entry.source) == ("0", ConfigSource.DEFAULT)
    assert synonyms(entry) == [("group.initial.rebalance.delay.ms", "0", 5)]


def test_secrets_are_never_told() -> None:
    """Rule 32."""
    entry = one(describe_broker(kafka(ssl_key_password="hunter2")), "ssl.key.password")
    assert entry.is_sensitive
    assert entry.value is None
    assert synonyms(entry) == [("ssl.key.password", None, 4)]


def test_unknown_settings_are_reported_as_secrets() -> None:
    """As Kafka does: a plug-in's password may be among them."""
    entry = one(describe_broker(kafka(my_plugin_password="hunter2")), "my.plugin.password")
    assert (entry.value, entry.type, entry.is_sensitive, entry.documentation) == (
        None,
        0,
        True,
        None,
    )
    assert synonyms(entry) == [("my.plugin.password", None, 4)]


def test_internal_settings_are_reported_once_they_are_set() -> None:
    name = "leader.replication.throttled.rate"
    config = kafka()
    assert select(describe_broker(config), [name]) == []
    config.apply_dynamic({name: "1000"}, {})
    assert one(describe_broker(config), name).value == "1000"


def test_the_cluster_default_holds_only_what_was_changed() -> None:
    """Rule 32: an empty broker name."""
    config = kafka(log_retention_ms="1")
    assert describe_cluster_default(config) == []
    config.apply_dynamic({"log.retention.ms": "2"}, {"log.retention.ms": "3"})
    (entry,) = describe_cluster_default(config)
    assert (entry.name, entry.value, entry.read_only) == ("log.retention.ms", "3", False)
    assert synonyms(entry) == [("log.retention.ms", "3", 3)]


def test_group_settings_stand_over_the_brokers() -> None:
    config = kafka()
    entries = describe_group(config, {"consumer.session.timeout.ms": "50000"})
    assert {entry.name for entry in entries} == set(KAFKA["group"])
    own = one(entries, "consumer.session.timeout.ms")
    assert (own.value, own.source) == ("50000", ConfigSource.GROUP)
    assert synonyms(own) == [
        ("consumer.session.timeout.ms", "50000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    default = one(entries, "share.auto.offset.reset")
    assert synonyms(default) == [("share.auto.offset.reset", "latest", 5)]
    for entry in describe_group(config, {}):
        assert (entry.type, entry.value) == tuple(KAFKA["group"][entry.name][:2])


def test_client_metrics_have_synonyms_only_once_set() -> None:
    entries = describe_client_metrics({"metrics": "a, b"})
    assert synonyms(one(entries, "metrics")) == [("metrics", "a,b", 7)]
    assert one(entries, "interval.ms").value == "300000"
    assert one(entries, "interval.ms").synonyms == ()


def test_names_select_and_no_names_mean_all() -> None:
    """Rule 32: null and an empty list are the same."""
    entries = describe_topic(kafka(), {})
    assert select(entries, None) == select(entries, []) == entries
    assert [entry.name for entry in select(entries, ["nope", "segment.ms"])] == ["segment.ms"]


def test_a_setting_for_kafkas_own_tests_is_described_where_a_topic_sets_it() -> None:
    name = "internal.segment.bytes"
    assert select(describe_topic(kafka(), {}), [name]) == []
    entry = one(describe_topic(kafka(), {name: "4096"}), name)
    assert (entry.value, entry.source) == ("4096", ConfigSource.TOPIC)


OF_A_RUNNING_NODE = {"broker.id", "node.id", "controller.listener.names", "process.roles"}
"""What the node that was asked had to be given; here these have no value or another."""


def test_a_broker_is_described_as_kafka_4_3_describes_itself() -> None:
    """Names, types, values, and whether they may be changed or are secrets: the whole answer."""
    found = {
        entry.name: [entry.type, entry.value, entry.read_only, entry.is_sensitive]
        for entry in describe_broker(kafka())
    }
    with_zookeeper = ("kafkalite.", "zookeeper.", "password.encoder.")  # as Kafka 3.9 had them
    own = {name for name in found if name.startswith(with_zookeeper)}
    assert {name: found[name] for name in found if name not in own | OF_A_RUNNING_NODE} == {
        name: told for name, told in KAFKA["broker"].items() if name not in OF_A_RUNNING_NODE
    }


def test_a_topic_is_described_as_kafka_4_3_describes_one() -> None:
    found = {
        entry.name: [entry.type, entry.value, entry.read_only, entry.is_sensitive]
        for entry in describe_topic(kafka(), {})
    }
    assert found == KAFKA["topic"]
