"""What share coordinators and share partitions need of the settings, as plain values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig


@dataclass(slots=True, frozen=True, kw_only=True)
class ShareCoordinatorSettings:
    """Of share coordinators; defaults are Kafka's."""

    update_records_per_snapshot: int = 500
    """share.coordinator.snapshot.update.records.per.snapshot"""
    prune_interval_ms: int = 300_000
    """share.coordinator.state.topic.prune.interval.ms"""
    cold_snapshot_interval_ms: int = 300_000
    """share.coordinator.cold.partition.snapshot.interval.ms"""


def share_coordinator_settings(config: "BrokerConfig") -> ShareCoordinatorSettings:
    """Return what the broker's configuration says; none of these can be changed later."""
    return ShareCoordinatorSettings(
        update_records_per_snapshot=config.int(
            "share.coordinator.snapshot.update.records.per.snapshot"
        ),
        prune_interval_ms=config.int("share.coordinator.state.topic.prune.interval.ms"),
        cold_snapshot_interval_ms=config.int(
            "share.coordinator.cold.partition.snapshot.interval.ms"
        ),
    )


@dataclass(slots=True, frozen=True, kw_only=True)
class SharePartitionSettings:
    """Of the share partitions of one group, as they are in force now; defaults are Kafka's."""

    record_lock_duration_ms: int = 30_000
    """share.record.lock.duration.ms, group.share.record.lock.duration.ms"""
    delivery_count_limit: int = 5
    """share.delivery.count.limit, group.share.delivery.count.limit"""
    max_record_locks: int = 2_000
    """share.partition.max.record.locks, group.share.partition.max.record.locks"""
    renew_enabled: bool = True
    """share.renew.acknowledge.enable"""
