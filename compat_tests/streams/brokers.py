"""Brokers that can be killed and come back."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Protocol

from compat_tests.apache_kafka import KAFKA_4, ApacheBroker, free_port
from tests.server.broker_process import BrokerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AWAY_S_MAX = 0.5

#: Lets a killed instance be missed soon; both brokers know these names.
BROKER_SETTINGS = {
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.session.timeout.ms": "500",
    "group.streams.session.timeout.ms": "1500",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


class RestartableBroker(Protocol):
    """A broker that comes back at the same address with the same data."""

    bootstrap: str
    port: int
    may_be_killed: bool
    """Whether transactions survive that by what is promised of it."""
    away_s_max: float
    """How long it is dead, at most, before it is started again."""

    def start(self) -> object:
        """Return when it serves."""

    def kill(self) -> None:
        """End it as a crash would."""


class _KafkaliteProcess(BrokerProcess):  # type: ignore[misc] (tests have no types)
    may_be_killed = True
    away_s_max = AWAY_S_MAX


class _ApacheProcess:
    # Apache Kafka 4.3.1 writes no markers to partitions whose leader its one broker does not know
    # yet while it starts ("likely deleted already"), and forgets the transaction: see FINDINGS.md.
    may_be_killed = False
    away_s_max = AWAY_S_MAX

    def __init__(self, version: str, data_dir: Path, advertised_port: int | None) -> None:
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._broker = ApacheBroker(
            version,
            BROKER_SETTINGS,
            data_dir=data_dir,
            port=self.port,
            advertised_port=advertised_port,
        )

    def start(self) -> None:
        self._broker.start()

    def kill(self) -> None:
        self._broker.stop(kill=True)
        # A restart would write over it.
        log = self._broker.log_file
        log.rename(log.with_suffix(f".{time.time_ns()}"))


@contextlib.contextmanager
def restartable_broker(
    folder: Path, *, advertised_port: int | None = None
) -> Iterator[RestartableBroker]:
    """Run kafkalite, or Apache Kafka where KAFKALITE_COMPAT_BROKER says so (as in `broker`).

    `advertised_port` is that of a proxy in front, if there is one.
    """
    kind = os.environ.get("KAFKALITE_COMPAT_BROKER", "kafkalite")
    broker: RestartableBroker
    if kind.startswith("apache"):
        version = kind.removeprefix("apache").removeprefix("-") or KAFKA_4
        broker = _ApacheProcess(version, folder / "broker", advertised_port)
    else:
        settings = {name.replace(".", "_"): value for name, value in BROKER_SETTINGS.items()}
        if advertised_port is not None:
            settings["advertised_listeners"] = f"PLAINTEXT://127.0.0.1:{advertised_port}"
        broker = _KafkaliteProcess(folder / "broker", **settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
