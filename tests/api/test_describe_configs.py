import pytest

from kafkalite.api.describe_configs import HANDLERS, refuse
from kafkalite.meta.events import IncrementalAlterConfigs
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def kit():
    made = MetadataKit(profile="kafka")
    made.create("a", retention_ms="5")
    return made


def resource(kind, name, keys=None):
    return DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)


def describe(kit, *resources, version=4, synonyms=True, documentation=False):
    request = DescribeConfigsRequest(
        resources=list(resources),
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    return kit.ask(HANDLER, request, version).results


def one(kit, kind, name, key, **options):
    (result,) = describe(kit, resource(kind, name, [key]), **options)
    assert (result.error_code, result.error_message) == (0, "")
    (entry,) = result.configs
    return entry


def test_a_topic_tells_all_its_settings(kit):
    """Rules 33 and 223."""
    (result,) = describe(kit, resource(TOPIC, "a"))
    assert len(result.configs) == 33
    assert (result.resource_type, result.resource_name) == (TOPIC, "a")
    values = {entry.name: entry.value for entry in result.configs}
    assert values["cleanup.policy"] == "delete"
    assert values["retention.ms"] == "5"
    assert values["min.compaction.lag.ms"] == "0"


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_is_answered(kit, version):
    """v1: sources. v3: types and documentation (KIP-569)."""
    entry = one(kit, TOPIC, "a", "retention.ms", version=version, documentation=True)
    assert (entry.value, entry.config_source, entry.read_only) == ("5", 1, False)
    assert entry.config_type == (5 if version >= 3 else 0)
    assert bool(entry.documentation) == (version >= 3)
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [("retention.ms", "5", 1)]


def test_synonyms_and_documentation_come_only_when_asked_for(kit):
    entry = one(kit, TOPIC, "a", "segment.bytes", synonyms=False)
    assert (entry.synonyms, entry.documentation) == ([], None)


@pytest.mark.parametrize("keys", [None, []])
def test_null_and_no_names_mean_all(kit, keys):
    """Rule 32."""
    (result,) = describe(kit, resource(TOPIC, "a", keys))
    assert len(result.configs) == 33


def test_unknown_names_are_left_out(kit):
    (result,) = describe(kit, resource(TOPIC, "a", ["nope", "segment.ms"]))
    assert [entry.name for entry in result.configs] == ["segment.ms"]


def test_each_resource_is_answered_by_itself(kit):
    results = describe(kit, resource(TOPIC, "a"), resource(TOPIC, "b"), resource(BROKER, "1"))
    assert [result.error_code for result in results] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0,
    ]


def test_this_broker_is_described_by_its_id(kit):
    """Rule 32."""
    (result,) = describe(kit, resource(BROKER, "1"))
    assert len(result.configs) > 340
    entry = one(kit, BROKER, "1", "num.partitions")
    assert (entry.value, entry.read_only, entry.config_source) == ("1", True, 5)


def test_the_default_of_brokers_holds_what_was_changed(kit):
    """Rule 32: an empty name."""
    (result,) = describe(kit, resource(BROKER, ""))
    assert result.configs == []
    kit.submit(
        IncrementalAlterConfigs(
            resource_type=BROKER, resource_name="", operations=[("log.retention.ms", 0, "7")]
        )
    )
    entry = one(kit, BROKER, "", "log.retention.ms")
    assert (entry.value, entry.config_source, entry.read_only) == ("7", 3, False)
    assert one(kit, BROKER, "1", "log.retention.ms").value == "7"


def test_sensitive_values_are_null(kit):
    """Rule 32."""
    entry = one(kit, BROKER, "1", "ssl.key.password")
    assert (entry.value, entry.is_sensitive, entry.config_type) == (None, True, 9)


def test_groups_and_metrics_subscriptions_are_described_even_if_there_are_none(kit):
    assert one(kit, GROUP, "g", "consumer.session.timeout.ms").value == "45000"
    assert one(kit, METRICS, "m", "interval.ms").value == "300000"


def test_loggers_are_described_with_their_levels(kit):
    """KIP-412."""
    (result,) = describe(kit, resource(LOGGER, "1"))
    entries = {entry.name: entry for entry in result.configs}
    assert entries["kafkalite.meta"].config_source == 6
    assert entries["root"].value in ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
    assert one(kit, LOGGER, "1", "kafkalite.meta", documentation=True).documentation == ""


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nosuch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "9", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "9", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
        (3, "x", ErrorCode.INVALID_REQUEST),
        (64, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_refuses(kit, kind, name, code):
    """Rule 32, as Kafka 4.3 answers."""
    (result,) = describe(kit, resource(kind, name))
    assert result.error_code == code
    assert result.error_message
    assert result.configs == []


def test_an_error_of_the_whole_request_is_answered_for_each_resource(kit):
    request = DescribeConfigsRequest(resources=[resource(TOPIC, "a")])
    response = refuse(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), kit.context(4))
    assert [result.error_code for result in response.results] == [-1]
