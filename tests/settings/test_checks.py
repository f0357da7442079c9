import pytest

from kafkalite.config import load_config
from kafkalite.log_config import LogConfig
from kafkalite.settings.checks import (
    check_broker,
    check_client_match,
    check_client_metrics,
    check_group,
    check_topic,
)
from kafkalite.settings.config_def import SettingError

DEFAULTS = LogConfig()
BROKER_VALUE = load_config().int


def test_known_topic_settings_with_allowed_values_pass() -> None:
    check_topic({"retention.ms": "-1", "cleanup.policy": "compact", "segment.ms": "1"}, DEFAULTS)


def test_unknown_topic_setting_is_refused() -> None:
    """Rule 227; also those that 4.x dropped."""
    for name in ("nope", "message.format.version", "message.downconversion.enable"):
        with pytest.raises(SettingError, match=f"Unknown topic config name: {name}"):
            check_topic({name: "1"}, DEFAULTS)


def test_topic_values_are_checked() -> None:
    with pytest.raises(SettingError, match=r"segment\.bytes: '1048575'.*at least 1048576"):
        check_topic({"segment.bytes": "1048575"}, DEFAULTS)


def test_shortest_lag_may_not_exceed_the_longest() -> None:
    lags = {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "10"}
    with pytest.raises(SettingError, match=r"min\.compaction\.lag\.ms \(100\)"):
        check_topic(lags, DEFAULTS)
    with pytest.raises(SettingError, match=r"min\.compaction\.lag\.ms \(50\)"):
        check_topic({"max.compaction.lag.ms": "10"}, LogConfig(min_compaction_lag_ms=50))


def test_there_is_no_tiered_storage_to_switch_on() -> None:
    check_topic({"remote.storage.enable": "false"}, DEFAULTS)
    with pytest.raises(SettingError, match=r"remote\.storage\.enable"):
        check_topic({"remote.storage.enable": "true"}, DEFAULTS)


def test_dynamic_broker_settings_pass() -> None:
    check_broker({"log.retention.ms": "5", "num.io.threads": "9"}, cluster_default=True)
    check_broker({"advertised.listeners": "PLAINTEXT://a:1"}, cluster_default=False)
    check_broker({"listener.name.internal.ssl.keystore.location": "/x"}, cluster_default=False)
    check_broker({"leader.replication.throttled.rate": "1000"}, cluster_default=False)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num.partitions", "3", "cannot be changed while the broker runs"),
        ("log.retention.hours", "3", "cannot be changed while the broker runs"),
        ("listeners", "PLAINTEXT://a:1", "cannot be changed while the broker runs"),
        ("log.segment.bytes", "1", "at least 1048576"),
        ("ssl.keystore.location", "/x", "can only be changed for a listener"),
        ("ssl.key.password", "x", "can only be changed for a listener"),
    ],
)
def test_other_broker_changes_are_refused(name: str, value: str, message: str) -> None:
    for cluster_default in (True, False):
        with pytest.raises(SettingError, match=message):
            check_broker({name: value}, cluster_default=cluster_default)


def test_unknown_broker_settings_are_taken() -> None:
    """As Kafka takes them; they are told as secrets."""
    for cluster_default in (True, False):
        check_broker({"no.such": "x"}, cluster_default=cluster_default)


@pytest.mark.parametrize(
    "name", ["advertised.listeners", "sasl.jaas.config", "listener.name.x.ssl.keystore.location"]
)
def test_settings_of_one_broker_are_no_default_of_all(name: str) -> None:
    with pytest.raises(SettingError, match="only be changed for one broker"):
        check_broker({name: "x"}, cluster_default=True)


def test_group_settings_stay_within_the_brokers_bounds() -> None:
    check_group({"consumer.session.timeout.ms": "50000"}, BROKER_VALUE)
    check_group({"share.auto.offset.reset": "earliest"}, BROKER_VALUE)
    refused = {
        "consumer.session.timeout.ms": ("5", "at least group.consumer.min.session.timeout.ms"),
        "consumer.heartbeat.interval.ms": ("5000000", "at most group.consumer.max.heartbeat"),
        "streams.num.standby.replicas": ("9", "at most group.streams.max.standby.replicas"),
        "share.isolation.level": ("x", "read_committed, read_uncommitted"),
        "nope": ("1", "Unknown group config name: nope"),
    }
    for name, (value, message) in refused.items():
        with pytest.raises(SettingError, match=message.replace(".", r"\.")):
            check_group({name: value}, BROKER_VALUE)


def test_a_session_outlasts_its_heartbeat() -> None:
    config = load_config(
        overrides={
            "group.consumer.min.session.timeout.ms": "1",
            "group.consumer.max.heartbeat.interval.ms": "90000",
        }
    )
    with pytest.raises(SettingError, match="larger than consumer"):
        check_group({"consumer.session.timeout.ms": "4000"}, config.int)
    with pytest.raises(SettingError, match="larger than consumer"):
        check_group({"consumer.heartbeat.interval.ms": "45000"}, config.int)


def test_client_metrics_have_three_settings() -> None:
    check_client_metrics({"interval.ms": "100", "metrics": "a,b", "match": "client_id=x"})
    for value in ("99", "3600001"):
        with pytest.raises(SettingError, match="between 100 and 3600000"):
            check_client_metrics({"interval.ms": value})
    with pytest.raises(SettingError, match="Unknown client metrics configuration: nope"):
        check_client_metrics({"nope": "1"})


def test_clients_are_matched_by_known_names_and_expressions() -> None:
    check_client_match("client_id=a.*,client_software_name=b")
    check_client_match("")
    for text in ("x", "foo=x", "client_id=["):
        with pytest.raises(SettingError, match="name=regular expression"):
            check_client_match(text)
