import logging

import pytest

from kafkalite.api.alter_configs import HANDLERS, refuse_full, refuse_incremental
from kafkalite.meta.events import AlterConfigs
from kafkalite.meta.image import ConfigResource
from kafkalite.security.password_encoder import PasswordEncoder
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages import alter_configs as full
from kafkalite.wire.messages import incremental_alter_configs as incremental
from tests.api.metadata_kit import MetadataKit

FULL, INCREMENTAL = HANDLERS
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def kit():
    made = MetadataKit()
    made.create("a")
    made.create("b")
    return made


def replacing(*resources):
    return [
        full.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[full.AlterableConfig(name=key, value=value) for key, value in configs],
        )
        for kind, name, configs in resources
    ]


def changing(*resources):
    return [
        incremental.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in configs
            ],
        )
        for kind, name, configs in resources
    ]


def replace(kit, *resources, version=2, validate_only=False):
    request = full.AlterConfigsRequest(resources=replacing(*resources), validate_only=validate_only)
    return kit.ask(FULL, request, version).responses


def change(kit, *resources, version=1, validate_only=False):
    request = incremental.IncrementalAlterConfigsRequest(
        resources=changing(*resources), validate_only=validate_only
    )
    return kit.ask(INCREMENTAL, request, version).responses


def codes(responses):
    return [response.error_code for response in responses]


@pytest.mark.parametrize("version", range(3))
def test_a_resource_gets_exactly_the_settings_it_is_given(kit, version):
    """Rule 34."""
    replace(kit, (TOPIC, "a", [("retention.ms", "5"), ("segment.ms", "6")]), version=version)
    (response,) = replace(kit, (TOPIC, "a", [("segment.ms", "7")]), version=version)
    assert (response.error_code, response.error_message) == (0, None)
    assert (response.resource_type, response.resource_name) == (TOPIC, "a")
    assert kit.image.topics["a"].configs == {"segment.ms": "7"}


@pytest.mark.parametrize("version", range(2))
def test_single_settings_are_changed(kit, version):
    """KIP-339."""
    change(kit, (TOPIC, "a", [("retention.ms", SET, "5"), ("segment.ms", SET, "6")]))
    changes = [("retention.ms", DELETE, None), ("cleanup.policy", APPEND, "compact")]
    assert codes(change(kit, (TOPIC, "a", changes), version=version)) == [0]
    assert kit.image.topics["a"].configs == {
        "segment.ms": "6",
        "cleanup.policy": "delete,compact",
    }


def test_changes_take_effect_before_they_are_answered(kit):
    change(kit, (TOPIC, "a", [("retention.ms", SET, "5")]))
    assert kit.metadata.log_config("a").retention_ms == 5
    change(kit, (BROKER, "1", [("message.max.bytes", SET, "5000")]))
    assert kit.config.int("message.max.bytes") == 5000
    assert kit.metadata.log_config("b").max_message_bytes == 5000


def test_one_refused_resource_does_not_touch_the_others(kit):
    wrong, right = (TOPIC, "a", [("nope", "1")]), (TOPIC, "b", [("retention.ms", "5")])
    responses = replace(kit, wrong, right, (TOPIC, "nosuch", []))
    assert codes(responses) == [
        ErrorCode.INVALID_CONFIG,
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert "nope" in responses[0].error_message
    assert kit.image.topics["b"].configs == {"retention.ms": "5"}


def test_a_resource_named_twice_is_refused(kit):
    """As Kafka 4.3 answers."""
    twice = [(TOPIC, "a", [("retention.ms", SET, "5")]), (TOPIC, "a", [("segment.ms", SET, "6")])]
    third = (TOPIC, "b", [("retention.ms", SET, "5")])
    assert codes(change(kit, *twice, third)) == [ErrorCode.INVALID_REQUEST] * 2 + [0]
    assert kit.image.topics["a"].configs == {}


def test_validate_only_changes_nothing(kit):
    assert codes(replace(kit, (TOPIC, "a", [("retention.ms", "5")]), validate_only=True)) == [0]
    right, wrong = ("retention.ms", SET, "5"), ("retention.ms", SET, "x")
    assert codes(change(kit, (TOPIC, "a", [right]), validate_only=True)) == [0]
    assert codes(change(kit, (TOPIC, "a", [wrong]), validate_only=True)) == [
        ErrorCode.INVALID_CONFIG
    ]
    assert kit.image.topics["a"].configs == {}


def test_nothing_asked_is_nothing_answered(kit):
    assert change(kit) == []
    assert codes(change(kit, (TOPIC, "a", []))) == [0]


@pytest.mark.parametrize("kind", [0, 1, 3, 5, 64, -1])
def test_unknown_kinds_of_resources_are_refused(kit, kind):
    assert codes(change(kit, (kind, "x", []))) == [ErrorCode.INVALID_REQUEST]
    assert codes(replace(kit, (kind, "x", []))) == [ErrorCode.INVALID_REQUEST]


def test_groups_and_metrics_subscriptions_have_settings(kit):
    resources = [
        (GROUP, "g", [("share.auto.offset.reset", SET, "earliest")]),
        (METRICS, "m", [("interval.ms", SET, "1000")]),
    ]
    assert codes(change(kit, *resources)) == [0, 0]
    assert len(kit.image.configs) == 2


class TestLoggers:
    """KIP-412: levels are set at once and stored nowhere."""

    @pytest.fixture(autouse=True)
    def logger(self):
        logger = logging.getLogger("kafkalite.meta")
        before = logger.level
        yield logger
        logger.setLevel(before)

    def test_levels_are_set_and_given_back(self, kit, logger):
        version = kit.image.version
        assert codes(change(kit, (LOGGER, "1", [("kafkalite.meta", SET, "TRACE")]))) == [0]
        assert logger.level == 5
        assert codes(change(kit, (LOGGER, "1", [("kafkalite.meta", DELETE, None)]))) == [0]
        assert logger.level == logging.NOTSET
        assert kit.image.version == version

    def test_validate_only_sets_nothing(self, kit, logger):
        before = logger.level
        change(kit, (LOGGER, "1", [("kafkalite.meta", SET, "FATAL")]), validate_only=True)
        assert logger.level == before

    @pytest.mark.parametrize(
        ("broker", "operation", "code"),
        [
            ("1", ("nosuch", SET, "INFO"), ErrorCode.INVALID_CONFIG),
            ("1", ("kafkalite.meta", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
            ("1", ("kafkalite.meta", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
            ("1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
            ("9", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_refuses(self, kit, broker, operation, code):
        assert codes(change(kit, (LOGGER, broker, [operation]))) == [code]

    def test_all_or_none(self, kit, logger):
        before = logger.level
        operations = [("kafkalite.meta", SET, "FATAL"), ("nosuch", SET, "INFO")]
        change(kit, (LOGGER, "1", operations))
        assert logger.level == before

    def test_the_older_request_cannot_set_levels(self, kit):
        assert codes(replace(kit, (LOGGER, "1", [("kafkalite.meta", "INFO")]))) == [
            ErrorCode.INVALID_REQUEST
        ]


def test_an_error_of_the_whole_request_is_answered_for_each_resource(kit):
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    first = full.AlterConfigsRequest(resources=replacing((TOPIC, "a", []), (TOPIC, "b", [])))
    responses = refuse_full(first, error, kit.context(2)).responses
    assert [(each.resource_name, each.error_message) for each in responses] == [
        ("a", "why"),
        ("b", "why"),
    ]
    second = incremental.IncrementalAlterConfigsRequest(resources=changing((TOPIC, "a", [])))
    assert codes(refuse_incremental(second, error, kit.context(1)).responses) == [-1]


class TestPasswords:
    """Rule 255: a broker's passwords are encoded where `password.encoder.secret` is set."""

    NAME = "listener.name.internal.ssl.key.password"

    def stored(self, kit):
        return kit.image.configs_of(ConfigResource(BROKER, "1"))

    @pytest.mark.parametrize("kind", ["full", "incremental"])
    def test_they_are_stored_encoded_and_in_force_as_they_are(self, kind):
        kit = MetadataKit(password_encoder_secret="secret", node_id="1")
        if kind == "full":
            (answer,) = replace(kit, (BROKER, "1", [(self.NAME, "open sesame")]))
        else:
            (answer,) = change(kit, (BROKER, "1", [(self.NAME, SET, "open sesame")]))
        assert answer.error_code == ErrorCode.NONE
        stored = self.stored(kit)[self.NAME]
        assert "open sesame" not in stored
        assert PasswordEncoder("secret").decode(stored) == "open sesame"
        assert kit.config.for_listener("INTERNAL").text("ssl.key.password") == "open sesame"
        change(kit, (BROKER, "1", [("log.cleaner.threads", SET, "2")]))
        assert self.stored(kit)[self.NAME] == stored, "nobody else touches it"
        change(kit, (BROKER, "1", [(self.NAME, DELETE, None)]))
        assert self.NAME not in self.stored(kit)

    def test_without_a_secret_they_are_stored_as_they_are(self, kit):
        change(kit, (BROKER, "1", [(self.NAME, SET, "open sesame")]))
        assert self.stored(kit)[self.NAME] == "open sesame"

    def test_one_that_cannot_be_encoded_is_refused(self):
        kit = MetadataKit(password_encoder_secret="s", password_encoder_key_length="200")
        (answer,) = change(kit, (BROKER, "1", [(self.NAME, SET, "x")]))
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert "200 bits" in answer.error_message

    def test_one_of_another_secret_is_left_out_and_told(self, caplog):
        kit = MetadataKit(password_encoder_secret="secret", node_id="1")
        theirs = PasswordEncoder("theirs").encode("open sesame")
        values = {self.NAME: theirs, "listener.name.internal.ssl.key.location": "x"}
        kit.submit(AlterConfigs(resource_type=BROKER, resource_name="1", configs=[*values.items()]))
        assert kit.config.for_listener("INTERNAL").text("ssl.key.password") is None
        assert "could not be decoded" in caplog.text
        assert "open sesame" not in caplog.text
