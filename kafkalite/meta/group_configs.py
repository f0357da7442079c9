"""Settings that are in force for one group: its own, else the broker's (KIP-848, 932, 1071).

A group has settings whether it exists or not (resource type GROUP). Those that were stored under
other bounds are brought into the broker's present ones when they are used, as in Kafka 4.3.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import GROUP_RESOURCE
from kafkalite.meta.image import ConfigResource, Image
from kafkalite.settings.checks import GROUP_BOUNDS
from kafkalite.settings.config_def import SettingError, Value, parse_value
from kafkalite.settings.registry import BROKER, GROUP, GROUP_SYNONYMS


@dataclass(slots=True, frozen=True, kw_only=True)
class GroupConfig:
    """Names are Kafka's, with underscores for dots; times are in milliseconds."""

    consumer_assignment_interval_ms: int
    consumer_heartbeat_interval_ms: int
    consumer_session_timeout_ms: int
    share_assignment_interval_ms: int
    share_auto_offset_reset: str
    share_delivery_count_limit: int
    share_heartbeat_interval_ms: int
    share_isolation_level: str
    share_partition_max_record_locks: int
    share_record_lock_duration_ms: int
    share_renew_acknowledge_enable: bool
    share_session_timeout_ms: int
    streams_assignment_interval_ms: int
    streams_heartbeat_interval_ms: int
    streams_initial_rebalance_delay_ms: int
    streams_num_standby_replicas: int
    streams_session_timeout_ms: int


def group_config(config: BrokerConfig, own: Mapping[str, str]) -> GroupConfig:
    """Return the settings of a group that sets `own` itself.

    What cannot be read counts as not set: another version must have stored it.
    """
    values: dict[str, Value] = {}
    for field in fields(GroupConfig):
        name = field.name.replace("_", ".")
        setting = GROUP[name]
        synonym = GROUP_SYNONYMS.get(name)
        value = setting.default if synonym is None else config.value(synonym)
        if name in own:
            with suppress(SettingError):
                value = _within_bounds(name, parse_value(setting, own[name]), config)
        values[field.name] = value
    return GroupConfig(**values)  # type: ignore[arg-type]


class GroupConfigs:
    """The settings of all groups; call it with a group's name, each time that they are needed.

    Args:
        config: the broker's settings, some of which may change.
        image: gives the metadata of the moment.
    """

    def __init__(self, config: BrokerConfig, image: Callable[[], Image]) -> None:
        self._config = config
        self._image = image
        self._known: dict[str, GroupConfig] = {}
        self._configs: object = None
        self._values: object = None

    def __call__(self, group_id: str) -> GroupConfig:
        """Return the settings of this group, whether it exists or not."""
        configs, values = self._image().configs, self._config.values
        if configs is not self._configs or values is not self._values:
            self._known.clear()
            self._configs, self._values = configs, values
        own = configs.get(ConfigResource(GROUP_RESOURCE, group_id), {})
        # All groups without settings of their own share an entry: no group has an empty name.
        key = group_id if own else ""
        if key not in self._known:
            self._known[key] = group_config(self._config, own)
        return self._known[key]


def _within_bounds(name: str, value: Value, config: BrokerConfig) -> Value:
    if name not in GROUP_BOUNDS:
        return value
    assert isinstance(value, int)
    least, largest = GROUP_BOUNDS[name]
    if least in BROKER:
        value = max(value, config.int(least))
    return min(value, config.int(largest))
