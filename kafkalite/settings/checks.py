"""Whether a set of settings is allowed for a topic, a broker, a group, or a metrics subscription.

Each function raises `SettingError` with one line that names the setting. What error code that
becomes differs between the kinds of resource, and is decided in `meta/controller.py`.
"""

import re
from collections.abc import Callable, Mapping

from kafkalite.log_config import LogConfig
from kafkalite.settings.config_def import SettingError, Update, parse_value, split_list
from kafkalite.settings.registry import BROKER, CLIENT_METRICS, GROUP, TOPIC

_LISTENER_PREFIX = "listener.name."
_PER_LISTENER_ONLY = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")
_METRICS_INTERVAL_MS = (100, 3_600_000)
_MATCH_NAMES = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)

GROUP_BOUNDS: dict[str, tuple[str, str]] = {
    name: (f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}")
    for name in GROUP
    for kind, _, rest in (name.partition("."),)
    if f"group.{kind}.max.{rest}" in BROKER
} | {"streams.num.standby.replicas": ("", "group.streams.max.standby.replicas")}
"""Broker settings that bound a group setting: the least (if any) and the largest value."""


def check_topic(configs: Mapping[str, str], defaults: LogConfig) -> None:
    """Check what a topic sets, in itself and together with the broker's defaults (rule 227)."""
    values = {}
    for name, text in configs.items():
        setting = TOPIC.get(name)
        if setting is None:
            raise SettingError(f"Unknown topic config name: {name}")
        values[name] = parse_value(setting, text)
    if values.get("remote.storage.enable"):
        raise SettingError("remote.storage.enable: has to be false, there is no tiered storage")
    shortest = values.get("min.compaction.lag.ms", defaults.min_compaction_lag_ms)
    longest = values.get("max.compaction.lag.ms", defaults.max_compaction_lag_ms)
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if shortest > longest:
        raise SettingError(
            f"min.compaction.lag.ms ({shortest}) has to be at most max.compaction.lag.ms "
            f"({longest})"
        )


def check_broker(configs: Mapping[str, str], *, cluster_default: bool) -> None:
    """Check what is to be changed of brokers while they run (KIP-226).

    Args:
        configs: the whole set that would then be in force.
        cluster_default: whether it is the default of all brokers, not the set of one.
    """
    for name, text in configs.items():
        setting = BROKER.get(name)
        if setting is None:
            if name.startswith(_LISTENER_PREFIX) and not cluster_default:
                continue
            if name.startswith(_LISTENER_PREFIX):
                raise _needs_broker(name)
            # As Kafka: it may be a plug-in's, and is then described as a secret.
            continue
        if setting.update is Update.READ_ONLY:
            raise SettingError(f"{name}: cannot be changed while the broker runs")
        if name.startswith(_PER_LISTENER_ONLY):
            raise SettingError(f"{name}: can only be changed for a listener, listener.name.<name>.")
        if cluster_default and setting.update is Update.PER_BROKER:
            raise _needs_broker(name)
        parse_value(setting, text)


def check_group(configs: Mapping[str, str], broker_value: Callable[[str], int]) -> None:
    """Check what a group sets.

    Args:
        configs: the whole set that would then be in force.
        broker_value: the value of a broker setting, for the bounds that brokers set to groups.
    """
    values: dict[str, int] = {}
    for name, text in configs.items():
        setting = GROUP.get(name)
        if setting is None:
            raise SettingError(f"Unknown group config name: {name}")
        value = parse_value(setting, text)
        if name not in GROUP_BOUNDS:
            continue
        assert isinstance(value, int)
        values[name] = value
        least, largest = GROUP_BOUNDS[name]
        if least in BROKER and value < broker_value(least):
            raise SettingError(f"{name}: has to be at least {least} ({broker_value(least)})")
        if value > broker_value(largest):
            raise SettingError(f"{name}: has to be at most {largest} ({broker_value(largest)})")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if session not in values and heartbeat not in values:
            continue
        session_ms = values.get(session, broker_value(f"group.{session}"))
        if session_ms <= values.get(heartbeat, broker_value(f"group.{heartbeat}")):
            raise SettingError(f"{session}: has to be larger than {heartbeat}")


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Check a subscription to client metrics (KIP-714), except for the patterns in `match`."""
    for name, text in configs.items():
        setting = CLIENT_METRICS.get(name)
        if setting is None:
            raise SettingError(f"Unknown client metrics configuration: {name}")
        value = parse_value(setting, text)
        if name == "interval.ms":
            least, largest = _METRICS_INTERVAL_MS
            assert isinstance(value, int)
            if not least <= value <= largest:
                raise SettingError(f"{name}: has to be between {least} and {largest}")


def check_client_match(text: str) -> None:
    """Check the setting `match` of a subscription to client metrics."""
    for pattern in split_list(text):
        name, equals, expression = pattern.partition("=")
        try:
            re.compile(expression)
        except re.error:
            equals = ""
        if not equals or name not in _MATCH_NAMES:
            names = ", ".join(sorted(_MATCH_NAMES))
            raise SettingError(
                f"match: '{pattern}' is not allowed, it has to be name=regular expression, "
                f"with one of the names {names}"
            )


def _needs_broker(name: str) -> SettingError:
    return SettingError(f"{name}: can only be changed for one broker, by its id")
