"""All settings by name, one mapping for each kind of resource that has them."""

from kafkalite.settings.cluster import CLUSTER_SETTINGS
from kafkalite.settings.config_def import Setting
from kafkalite.settings.coordinators import (
    CLIENT_METRICS_SETTINGS,
    COORDINATOR_SETTINGS,
    GROUP_SETTINGS,
)
from kafkalite.settings.kafkalite import OWN_SETTINGS
from kafkalite.settings.security import SECURITY_SETTINGS, TIERED_STORAGE_SETTINGS
from kafkalite.settings.storage import STORAGE_SETTINGS
from kafkalite.settings.topics import TOPIC_SETTINGS


def _by_name(*tables: tuple[Setting, ...]) -> dict[str, Setting]:
    return {setting.name: setting for table in tables for setting in table}


BROKER: dict[str, Setting] = _by_name(
    CLUSTER_SETTINGS,
    STORAGE_SETTINGS,
    COORDINATOR_SETTINGS,
    SECURITY_SETTINGS,
    TIERED_STORAGE_SETTINGS,
    OWN_SETTINGS,
)
TOPIC: dict[str, Setting] = _by_name(TOPIC_SETTINGS)
GROUP: dict[str, Setting] = _by_name(GROUP_SETTINGS)
CLIENT_METRICS: dict[str, Setting] = _by_name(CLIENT_METRICS_SETTINGS)

GROUP_SYNONYMS: dict[str, str] = {
    name: f"group.{name}" for name in GROUP if f"group.{name}" in BROKER
}
"""Broker setting that a group setting takes its value from."""

SYNONYM_FAMILIES: dict[str, tuple[str, ...]] = {
    member: family
    for family in (
        ("log.roll.ms", "log.roll.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    for member in family
    if member != "log.flush.scheduler.interval.ms"
}
"""Broker settings that stand for each other, most specific first (as Kafka's DynamicBrokerConfig:
log.flush.scheduler.interval.ms has a meaning of its own besides)."""
