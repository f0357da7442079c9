"""Settings of one log: plain values, resolved once per change."""

from dataclasses import dataclass, field

UNLIMITED_MS = 2**63 - 1


@dataclass(slots=True, frozen=True, kw_only=True)
class LogConfig:
    """Topic settings under Kafka's names in snake case; defaults are Apache Kafka 4.3's.

    Times are milliseconds, sizes bytes, -1 means "no limit" where Kafka says so.
    """

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = 2**63 - 1
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = 2**63 - 1
    message_timestamp_after_max_ms: int = 3_600_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False
    validate_records: bool = False
    """kafkalite.validate.records, which is the broker's and the same for all topics."""
    looks_at_records: bool = field(init=False, default=False, compare=False)
    """Whether a client's batch is refused or not by its records, rather than by its header."""

    def __post_init__(self) -> None:
        """Work out what is asked at each append."""
        has_earliest = (
            self.message_timestamp_type == "CreateTime"
            and self.message_timestamp_before_max_ms < UNLIMITED_MS
        )
        looks = self.validate_records or has_earliest or "compact" in self.cleanup_policy
        object.__setattr__(self, "looks_at_records", looks)
