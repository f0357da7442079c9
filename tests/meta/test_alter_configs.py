import pytest

from kafkalite.meta.changes import ConfigsChanged
from kafkalite.meta.controller import decide
from kafkalite.meta.events import AlterConfigs, IncrementalAlterConfigs, Operation
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import BROKER, GROUP, METRICS, TOPIC, after, image, refusal, rules

SET, DELETE, APPEND, SUBTRACT = Operation


def alter(*operations, kind=TOPIC, name="a"):
    return IncrementalAlterConfigs(resource_type=kind, resource_name=name, operations=operations)


def replace(kind=TOPIC, name="a", **configs):
    named = [(key.replace("_", "."), value) for key, value in configs.items()]
    return AlterConfigs(resource_type=kind, resource_name=name, configs=named)


def configs(*events):
    """Return the settings of topic a after these events."""
    before = image("a")
    for event in events:
        before = after(event, before)
    return before.topics["a"].configs


def test_settings_are_set_and_deleted():
    """Rule 34."""
    assert configs(alter(("retention.ms", SET, "5"))) == {"retention.ms": "5"}
    assert configs(alter(("retention.ms", SET, "5")), alter(("retention.ms", DELETE, None))) == {}


def test_nothing_changes_where_nothing_differs():
    assert decide(alter(("retention.ms", DELETE, None)), image("a"), rules()) == []
    assert decide(alter(("nope", DELETE, None)), image("a"), rules()) == []
    assert decide(alter(), image("a"), rules()) == []
    set_already = after(alter(("retention.ms", SET, "5")), image("a"))
    assert decide(alter(("retention.ms", SET, "5")), set_already, rules()) == []


def test_the_change_holds_only_what_differs():
    before = after(replace(retention_ms="5", segment_ms="6"), image("a"))
    (change,) = decide(replace(retention_ms="7"), before, rules())
    assert change == ConfigsChanged(
        resource_type=TOPIC,
        resource_name="a",
        values={"retention.ms": "7"},
        removed=("segment.ms",),
    )


def test_lists_are_appended_to_and_subtracted_from():
    """Rule 34, KIP-339: what is not set counts with its default."""
    appended = alter(("cleanup.policy", APPEND, "compact"))
    assert configs(appended) == {"cleanup.policy": "delete,compact"}
    assert configs(appended, appended) == {"cleanup.policy": "delete,compact"}
    subtracted = alter(("cleanup.policy", SUBTRACT, "delete,nope"))
    assert configs(appended, subtracted) == {"cleanup.policy": "compact"}
    assert configs(subtracted) == {"cleanup.policy": ""}
    replicas = "leader.replication.throttled.replicas"
    assert configs(alter((replicas, APPEND, "0:1,0:1,1:1"))) == {replicas: "0:1,1:1"}


@pytest.mark.parametrize(
    ("event", "code", "words"),
    [
        (alter(("retention.ms", APPEND, "5")), ErrorCode.INVALID_CONFIG, "APPEND to key retention"),
        (alter(("retention.ms", SUBTRACT, "5")), ErrorCode.INVALID_CONFIG, "SUBTRACT"),
        (alter(("nope", APPEND, "5")), ErrorCode.INVALID_CONFIG, "not a list"),
        (alter(("nope", SET, "5")), ErrorCode.INVALID_CONFIG, "nope"),
        (alter(("segment.bytes", SET, "x")), ErrorCode.INVALID_CONFIG, "segment.bytes: 'x'"),
        (alter(("retention.ms", 7, "5")), ErrorCode.INVALID_REQUEST, "Unknown operation 7"),
        (alter(("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST, "No value"),
        (alter(("a", SET, "1"), ("a", SET, "2")), ErrorCode.INVALID_REQUEST, "more than once"),
        (alter(name="b"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "'b' does not exist"),
        (alter(name=""), ErrorCode.INVALID_REQUEST, "no common default"),
        (alter(name="bad name"), ErrorCode.INVALID_TOPIC_EXCEPTION, "ASCII"),
        (replace(retention_ms=None), ErrorCode.INVALID_REQUEST, "No value"),
        (replace(nope="1"), ErrorCode.INVALID_CONFIG, "nope"),
        (replace(name="b", retention_ms="5"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "'b'"),
        (alter(kind=99), ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
        (replace(kind=8, name="1"), ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
    ],
)
def test_refuses(event, code, words):
    """Rules 34 and 227, as Kafka 4.3 answers."""
    error = refusal(event, image("a"))
    assert error.code is code
    assert words in error.message


def test_one_wrong_setting_refuses_all_of_its_resource():
    event = alter(("retention.ms", SET, "5"), ("segment.bytes", SET, "x"))
    assert refusal(event, image("a")).code is ErrorCode.INVALID_CONFIG


def test_the_whole_set_is_checked_together():
    before = after(alter(("min.compaction.lag.ms", SET, "100")), image("a"))
    error = refusal(alter(("max.compaction.lag.ms", SET, "10")), before)
    assert "min.compaction.lag.ms" in error.message


class TestBroker:
    def test_settings_are_for_one_or_for_all(self):
        """KIP-226."""
        for name in ("1", ""):
            event = alter(("log.retention.ms", SET, "5"), kind=BROKER, name=name)
            assert after(event, image()).configs == {(BROKER, name): {"log.retention.ms": "5"}}

    def test_lists_may_be_appended_to(self):
        event = alter(("log.cleanup.policy", APPEND, "compact"), kind=BROKER, name="1")
        expected = {"log.cleanup.policy": "delete,compact"}
        assert after(event, image()).configs == {(BROKER, "1"): expected}

    @pytest.mark.parametrize(
        ("name", "setting", "value", "code"),
        [
            ("1", "num.partitions", "5", ErrorCode.INVALID_REQUEST),
            ("1", "log.segment.bytes", "x", ErrorCode.INVALID_REQUEST),
            ("", "sasl.jaas.config", "x", ErrorCode.INVALID_REQUEST),
            ("1", "advertised.listeners", "NOPE://a:1", ErrorCode.INVALID_REQUEST),
            ("1", "advertised.listeners", "PLAINTEXT://0.0.0.0:1", ErrorCode.INVALID_REQUEST),
            ("2", "log.retention.ms", "5", ErrorCode.INVALID_REQUEST),
            ("x", "log.retention.ms", "5", ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_refuses(self, name, setting, value, code):
        """As Kafka 4.3, which calls a wrong value of a broker INVALID_REQUEST (KAFKA-13609)."""
        error = refusal(alter((setting, SET, value), kind=BROKER, name=name), image())
        assert error.code is code

    def test_the_advertised_address_can_be_changed(self):
        """USERS 2."""
        address = ("advertised.listeners", SET, "PLAINTEXT://outside:19092")
        assert decide(alter(address, kind=BROKER, name="1"), image(), rules())


def test_group_settings_are_bounded_by_the_broker():
    setting = "consumer.session.timeout.ms"
    event = alter((setting, SET, "50000"), kind=GROUP, name="g")
    assert after(event, image()).configs == {(GROUP, "g"): {setting: "50000"}}
    for event in (
        alter((setting, SET, "5"), kind=GROUP, name="g"),
        alter(("nope", SET, "5"), kind=GROUP, name="g"),
    ):
        assert refusal(event, image()).code is ErrorCode.INVALID_CONFIG
    assert refusal(alter(kind=GROUP, name=""), image()).code is ErrorCode.INVALID_REQUEST


def test_client_metrics_have_codes_of_their_own():
    event = alter(("interval.ms", SET, "1000"), kind=METRICS, name="m")
    assert after(event, image()).configs == {(METRICS, "m"): {"interval.ms": "1000"}}
    for operation, code in (
        (("interval.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
        (("interval.ms", SET, "often"), ErrorCode.INVALID_CONFIG),
        (("nope", SET, "5"), ErrorCode.INVALID_REQUEST),
        (("match", SET, "x"), ErrorCode.INVALID_CONFIG),
        (("metrics", APPEND, "x"), ErrorCode.INVALID_CONFIG),
    ):
        assert refusal(alter(operation, kind=METRICS, name="m"), image()).code is code
    assert refusal(alter(kind=METRICS, name=""), image()).code is ErrorCode.INVALID_REQUEST


def test_the_controller_decides_for_every_registered_broker():
    """Other brokers hand on what they are asked (KIP-590)."""
    before = image(brokers=(1, 2))
    operations = [("log.retention.ms", 0, "5")]
    event = IncrementalAlterConfigs(resource_type=BROKER, resource_name="2", operations=operations)
    assert after(event, before).configs_of((BROKER, "2")) == {"log.retention.ms": "5"}
    other = IncrementalAlterConfigs(resource_type=BROKER, resource_name="3", operations=operations)
    assert refusal(other, before).code is ErrorCode.INVALID_REQUEST
