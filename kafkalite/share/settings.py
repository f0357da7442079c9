"""Settings of share coordinators and share partitions, as plain values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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


class SharePartitionSettings(Protocol):
    """Of the share partitions of one group, as they are in force now (`meta.group_configs`)."""

    @property
    def share_record_lock_duration_ms(self) -> int:
        """How long a member keeps what it has acquired."""
        ...

    @property
    def share_delivery_count_limit(self) -> int:
        """How often a record is delivered at most."""
        ...

    @property
    def share_partition_max_record_locks(self) -> int:
        """Offsets in flight beyond which nothing new is acquired."""
        ...

    @property
    def share_renew_acknowledge_enable(self) -> bool:
        """Whether locks may be renewed."""
        ...
