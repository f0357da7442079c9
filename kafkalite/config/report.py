"""DescribeConfigs' view of settings: value, source, synonyms, type (rules 32, 33).

The order of the synonyms, and when there are none, is that of Kafka's ConfigHelper.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from kafkalite.config import BrokerConfig, profile_values
from kafkalite.settings.config_def import (
    ConfigSource,
    Setting,
    Update,
    Value,
    format_value,
    parse_value,
)
from kafkalite.settings.documentation import documentation
from kafkalite.settings.registry import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    GROUP_SYNONYMS,
    SYNONYM_FAMILIES,
    TOPIC,
)
from kafkalite.settings.topics import TOPIC_SYNONYMS

UNKNOWN_TYPE = 0

_TOLD_READ_ONLY = {
    "advertised.listeners": True,
    "listener.security.protocol.map": False,
    "listeners": False,
}
"""What Apache Kafka says of settings that can be changed here and not there, or the reverse."""


@dataclass(slots=True, frozen=True, kw_only=True)
class Synonym:
    """One place that gives, or would give, a setting its value."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(slots=True, frozen=True, kw_only=True)
class ConfigEntry:
    """One setting of one resource. The value of a sensitive setting is None (rule 32)."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()
    setting: Setting | None
    """None for a name that means nothing, which is reported as sensitive."""

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is never told to anybody."""
        return self.setting is None or self.setting.is_sensitive

    @property
    def type(self) -> int:
        """Number of the type, as DescribeConfigs v3+ has it."""
        return UNKNOWN_TYPE if self.setting is None else self.setting.type

    @property
    def documentation(self) -> str | None:
        """Documentation of the setting."""
        return None if self.setting is None else documentation(self.setting)


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Return the settings of a topic, by name; those for Kafka's own tests once they are set."""
    shown = [TOPIC[name] for name in sorted(TOPIC) if not TOPIC[name].internal or name in overrides]
    return [_topic_entry(config, overrides, setting) for setting in shown]


def describe_broker(config: BrokerConfig) -> list[ConfigEntry]:
    """Return the settings of this broker, and at the end what was set under unknown names."""
    entries = [_broker_entry(config, setting) for setting in _visible(BROKER)]
    hidden = [setting for setting in BROKER.values() if setting.internal]
    given = {*config.static, *config.dynamic_broker, *config.dynamic_default}
    entries += [_broker_entry(config, setting) for setting in hidden if setting.name in given]
    for name in sorted(given.difference(BROKER)):
        synonyms = _synonyms(config, (name,), name, is_sensitive=True)
        entries.append(
            ConfigEntry(
                name=name,
                value=None,
                source=synonyms[0].source,
                read_only=True,
                synonyms=synonyms,
                setting=None,
            )
        )
    return entries


def describe_cluster_default(config: BrokerConfig) -> list[ConfigEntry]:
    """Return what was changed for all brokers while they ran; nothing else (rule 32)."""
    entries = []
    for name in sorted(config.dynamic_default):
        setting = BROKER.get(name)
        is_sensitive = setting is None or setting.is_sensitive
        value = None if is_sensitive else config.dynamic_default[name]
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        synonym = Synonym(name=name, value=value, source=source)
        entries.append(
            ConfigEntry(name=name, value=value, source=source, synonyms=(synonym,), setting=setting)
        )
    return entries


def describe_group(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Return the settings of a group, whether it exists or not."""
    entries = []
    for setting in _visible(GROUP):
        name = setting.name
        broker_name = GROUP_SYNONYMS.get(name)
        value = setting.default if broker_name is None else config.value(broker_name)
        synonyms: tuple[Synonym, ...]
        if broker_name is None:
            default = Synonym(name=name, value=format_value(value), source=ConfigSource.DEFAULT)
            synonyms = (default,)
        else:
            synonyms = _synonyms(config, (broker_name,), broker_name, is_sensitive=False)
        if name in overrides:
            value = parse_value(setting, overrides[name])
            own = Synonym(name=name, value=format_value(value), source=ConfigSource.GROUP)
            synonyms = (own, *synonyms)
        entries.append(_entry(setting, value, synonyms))
    return entries


def describe_client_metrics(overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Return the settings of a subscription to client metrics, whether it exists or not."""
    entries = []
    for setting in _visible(CLIENT_METRICS):
        synonyms: tuple[Synonym, ...] = ()
        value = setting.default
        if setting.name in overrides:
            value = parse_value(setting, overrides[setting.name])
            synonyms = (
                Synonym(
                    name=setting.name,
                    value=format_value(value),
                    source=ConfigSource.CLIENT_METRICS,
                ),
            )
        entries.append(_entry(setting, value, synonyms))
    return entries


def select(entries: Iterable[ConfigEntry], names: Iterable[str] | None) -> list[ConfigEntry]:
    """Return the entries of these names; of all, if there are none (rule 32)."""
    wanted = frozenset(names or ())
    return [entry for entry in entries if not wanted or entry.name in wanted]


def _topic_entry(
    config: BrokerConfig, overrides: Mapping[str, str], setting: Setting
) -> ConfigEntry:
    name = setting.name
    value = config.topic_default(name)
    synonyms: tuple[Synonym, ...] = ()
    if name in TOPIC_SYNONYMS:
        first = TOPIC_SYNONYMS[name][0][0]
        synonyms = _synonyms(config, _family(first), first, is_sensitive=False)
    if name in overrides:
        value = parse_value(setting, overrides[name])
        own = Synonym(name=name, value=format_value(value), source=ConfigSource.TOPIC)
        synonyms = (own, *synonyms)
    return _entry(setting, value, synonyms)


def _broker_entry(config: BrokerConfig, setting: Setting) -> ConfigEntry:
    name = setting.name
    synonyms = _synonyms(config, _family(name), name, is_sensitive=setting.is_sensitive)
    read_only = _TOLD_READ_ONLY.get(name, setting.update is Update.READ_ONLY)
    return _entry(setting, config.value(name), synonyms, read_only=read_only)


def _entry(
    setting: Setting, value: Value, synonyms: tuple[Synonym, ...], *, read_only: bool = False
) -> ConfigEntry:
    return ConfigEntry(
        name=setting.name,
        value=None if setting.is_sensitive else format_value(value),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        read_only=read_only,
        synonyms=synonyms,
        setting=setting,
    )


def _synonyms(
    config: BrokerConfig, family: tuple[str, ...], name: str, *, is_sensitive: bool
) -> tuple[Synonym, ...]:
    """Return who gives a broker setting its value, most specific first.

    What comes before the first entry of `name` itself is dropped, and so is everything if there
    is no such entry: log.retention.ms has no synonyms as long as only log.retention.hours is set.
    """
    layers: tuple[tuple[Mapping[str, str], ConfigSource], ...] = (
        (config.dynamic_broker, ConfigSource.DYNAMIC_BROKER),
        (config.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (config.static, ConfigSource.STATIC_BROKER),
        (_default_texts(config.profile), ConfigSource.DEFAULT),
    )
    found = [
        Synonym(name=member, value=None if is_sensitive else layer[member], source=source)
        for layer, source in layers
        for member in family
        if member in layer
    ]
    while found and found[0].name != name:
        del found[0]
    return tuple(found)


def _family(name: str) -> tuple[str, ...]:
    return SYNONYM_FAMILIES.get(name, (name,))


def _visible(table: Mapping[str, Setting]) -> list[Setting]:
    return [table[name] for name in sorted(table) if not table[name].internal]


@cache
def _default_texts(profile: str) -> dict[str, str]:
    """Return the defaults as text, without those that have no value."""
    texts = {}
    for name, value in profile_values(profile).items():
        text = format_value(value)
        if text is not None:
            texts[name] = text
    return texts
