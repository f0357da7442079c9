"""Settings of group coordinators, as plain values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig

MINUTE_MS = 60_000


@dataclass(slots=True, frozen=True, kw_only=True)
class GroupSettings:
    """Names and defaults are Kafka's."""

    group_max_size: int = 2**31 - 1
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    offsets_retention_check_interval_ms: int = 600_000
    consumer_group_max_size: int = 2**31 - 1
    consumer_group_assignors: tuple[str, ...] = ("uniform", "range")
    """Names that members may ask for; the first is used where nobody asks."""
    consumer_group_migration_policy: str = "bidirectional"
    consumer_group_regex_refresh_interval_ms: int = 600_000
    streams_group_max_size: int = 2**31 - 1
    share_group_max_size: int = 200
    share_initialize_retry_interval_ms: int = 30_000
    evict_on_disconnect: bool = False
    """A dynamic member leaves when its connection closes (profile `test`; never Kafka's way)."""


def group_settings(config: "BrokerConfig") -> GroupSettings:
    """Return what the broker's configuration says; none of these can be changed later."""
    return GroupSettings(
        group_max_size=config.int("group.max.size"),
        group_min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
        offset_metadata_max_bytes=config.int("offset.metadata.max.bytes"),
        offsets_retention_ms=config.int("offsets.retention.minutes") * MINUTE_MS,
        offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
        consumer_group_max_size=config.int("group.consumer.max.size"),
        consumer_group_assignors=tuple(config.list("group.consumer.assignors")),
        consumer_group_migration_policy=config.str("group.consumer.migration.policy").lower(),
        consumer_group_regex_refresh_interval_ms=config.int(
            "group.consumer.regex.refresh.interval.ms"
        ),
        streams_group_max_size=config.int("group.streams.max.size"),
        share_group_max_size=config.int("group.share.max.size"),
        share_initialize_retry_interval_ms=config.int("group.share.initialize.retry.interval.ms"),
        evict_on_disconnect=config.bool("kafkalite.group.evict.on.disconnect"),
    )
