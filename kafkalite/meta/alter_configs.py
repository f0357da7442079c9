"""Decisions about settings of topics, brokers, groups and metrics subscriptions.

Which error code a refusal has differs between the kinds of resource, as in Kafka: a value that a
topic cannot have is INVALID_CONFIG, one that a broker cannot have INVALID_REQUEST.
Unknown names are refused but for brokers.
"""

from collections.abc import Mapping, Sequence

from kafkalite.config.listeners import parse_advertised
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    Change,
    ConfigsChanged,
    settings_of,
)
from kafkalite.meta.events import AlterConfigs, ControllerConfig, IncrementalAlterConfigs, Operation
from kafkalite.meta.image import ConfigResource, Image
from kafkalite.meta.names import refusal_of_name
from kafkalite.settings.checks import (
    check_broker,
    check_client_match,
    check_client_metrics,
    check_group,
    check_topic,
)
from kafkalite.settings.config_def import (
    ConfigType,
    Setting,
    SettingError,
    format_value,
    parse_value,
    split_list,
)
from kafkalite.settings.registry import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError

_TABLES: Mapping[int, Mapping[str, Setting]] = {
    TOPIC_RESOURCE: TOPIC,
    BROKER_RESOURCE: BROKER,
    GROUP_RESOURCE: GROUP,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS,
}


def replace_configs(event: AlterConfigs, image: Image, rules: ControllerConfig) -> list[Change]:
    """Give a resource exactly these settings.

    Raises:
        KafkaError: see the module.
    """
    resource = ConfigResource(event.resource_type, event.resource_name)
    _check_resource(resource, image, rules)
    names = [name for name, _ in event.configs]
    _check_names_once(names)
    missing = [name for name, value in event.configs if value is None]
    if missing:
        raise _null_values(missing)
    before = settings_of(resource, image)
    after = {name: value for name, value in event.configs if value is not None}
    return _change(resource, before, after, image, rules)


def alter_configs(
    event: IncrementalAlterConfigs, image: Image, rules: ControllerConfig
) -> list[Change]:
    """Change some settings of a resource.

    Raises:
        KafkaError: see the module.
    """
    resource = ConfigResource(event.resource_type, event.resource_name)
    _check_resource(resource, image, rules)
    _check_names_once([name for name, _, _ in event.operations])
    missing = [
        name
        for name, operation, value in event.operations
        if value is None and operation != Operation.DELETE
    ]
    if missing:
        raise _null_values(missing)
    before = settings_of(resource, image)
    after = dict(before)
    for name, operation, value in event.operations:
        _operate(resource, after, name, operation, value or "")
    return _change(resource, before, after, image, rules)


def check_topic_configs(
    configs: Mapping[str, str | None], rules: ControllerConfig
) -> dict[str, str]:
    """Return the settings that a new topic is to have.

    Raises:
        KafkaError: INVALID_CONFIG (rules 28, 227).
    """
    missing = [name for name, value in configs.items() if value is None]
    if missing:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"No value is given for topic configs: {', '.join(missing)}"
        )
    checked = {name: value for name, value in configs.items() if value is not None}
    try:
        check_topic(checked, rules.topic_defaults)
    except SettingError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return checked


def _check_resource(resource: ConfigResource, image: Image, rules: ControllerConfig) -> None:
    """Refuse what can never have settings of its own."""
    match resource.type:
        case t if t == TOPIC_RESOURCE:
            if not resource.name:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Topics have no common default, name one"
                )
            refusal = refusal_of_name(resource.name)
            if refusal is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, refusal)
        case t if t == BROKER_RESOURCE:
            # The controller decides for all brokers: others hand on what they are asked.
            is_known = resource.name.isdecimal() and int(resource.name) in image.brokers
            if resource.name and not is_known:
                check_broker_name(resource.name, rules.broker_id)
        case t if t == GROUP_RESOURCE:
            if not resource.name:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Groups have no common default, name one"
                )
        case t if t == CLIENT_METRICS_RESOURCE:
            if not resource.name:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "A client metrics subscription has to have a name"
                )
        case other:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {other}")


def check_broker_name(name: str, broker_id: int) -> None:
    """Refuse a resource name that is not this broker's id.

    Raises:
        KafkaError: INVALID_REQUEST (rule 32).
    """
    if not name.removeprefix("-").isdecimal():
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"A broker is named by its id, a number, not by '{name}'"
        )
    if int(name) != broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"This is broker {broker_id}, not broker {name}; ask that one",
        )


def _check_names_once(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A setting is named more than once")


def _null_values(names: Sequence[str]) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"No value is given for: {', '.join(names)}")


def _operate(
    resource: ConfigResource, configs: dict[str, str], name: str, operation: int, value: str
) -> None:
    match operation:
        case Operation.SET:
            configs[name] = value
        case Operation.DELETE:
            configs.pop(name, None)
        case Operation.APPEND | Operation.SUBTRACT:
            setting = _TABLES[resource.type].get(name)
            is_list = setting is not None and setting.type is ConfigType.LIST
            if setting is None or not is_list or resource.type == CLIENT_METRICS_RESOURCE:
                verb = Operation(operation).name
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {name}, it is not a list"
                )
            # What is not set counts with Kafka's default, not with the broker's: as Kafka does.
            current = split_list(configs.get(name, format_value(setting.default) or ""))
            given = value.split(",")
            if operation == Operation.APPEND:
                current += tuple(item for item in dict.fromkeys(given) if item not in current)
            else:
                current = tuple(item for item in current if item not in given)
            configs[name] = ",".join(current)
        case other:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation {other} on {name}")


def _change(
    resource: ConfigResource,
    before: Mapping[str, str],
    after: Mapping[str, str],
    image: Image,
    rules: ControllerConfig,
) -> list[Change]:
    """Check the whole set that would be in force, and return the difference."""
    _check_set(resource, after, rules)
    if resource.type == TOPIC_RESOURCE and resource.name not in image.topics:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
        )
    values = {name: value for name, value in after.items() if before.get(name) != value}
    removed = tuple(name for name in before if name not in after)
    if not values and not removed:
        return []
    return [
        ConfigsChanged(
            resource_type=resource.type,
            resource_name=resource.name,
            values=values,
            removed=removed,
        )
    ]


def _check_set(
    resource: ConfigResource, configs: Mapping[str, str], rules: ControllerConfig
) -> None:
    code = ErrorCode.INVALID_CONFIG
    try:
        match resource.type:
            case t if t == TOPIC_RESOURCE:
                check_topic(configs, rules.topic_defaults)
            case t if t == GROUP_RESOURCE:
                check_group(configs, lambda name: _whole_number(rules, name))
            case t if t == CLIENT_METRICS_RESOURCE:
                check_client_match(configs.get("match", ""))
                for name in configs.keys() & CLIENT_METRICS.keys():  # rule 228
                    parse_value(CLIENT_METRICS[name], configs[name])
                code = ErrorCode.INVALID_REQUEST
                check_client_metrics(configs)
            case _:
                code = ErrorCode.INVALID_REQUEST
                check_broker(configs, cluster_default=not resource.name)
                if "advertised.listeners" in configs:
                    parse_advertised(
                        split_list(configs["advertised.listeners"]),
                        listener_names=rules.listener_names,
                    )
    except SettingError as error:
        raise KafkaError(code, str(error)) from None


def _whole_number(rules: ControllerConfig, name: str) -> int:
    value = rules.broker_values[name]
    assert isinstance(value, int)
    return value
