"""Settings of transaction coordinators, as plain values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig


@dataclass(slots=True, frozen=True, kw_only=True)
class TransactionSettings:
    """Defaults are Kafka's."""

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms"""
    expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    """transactional.id.expiration.ms"""
    expiration_check_interval_ms: int = 3_600_000
    """transaction.remove.expired.transaction.cleanup.interval.ms"""
    abort_retry_interval_ms: int = 10_000
    """transaction.abort.timed.out.transaction.cleanup.interval.ms: here, how soon an abort that
    could not be written is tried again. Transactions are aborted when their time has come, not
    at the next round of a clean-up."""


def transaction_settings(config: "BrokerConfig") -> TransactionSettings:
    """Return what the broker's configuration says; none of these can be changed later."""
    return TransactionSettings(
        max_timeout_ms=config.int("transaction.max.timeout.ms"),
        expiration_ms=config.int("transactional.id.expiration.ms"),
        expiration_check_interval_ms=config.int(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
        abort_retry_interval_ms=config.int(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
    )
