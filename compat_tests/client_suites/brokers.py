"""Clusters of both kinds whose brokers tell clients other addresses than their own.

A suite that puts a proxy of its own before each broker says by which ports it wants to come.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, Self

from compat_tests.apache_kafka import ApacheBroker
from kafkalite.testing import Cluster
from kafkalite.testing.broker_process import BROKER_LISTENER
from kafkalite.testing.processes import unused_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KAFKALITE = "kafkalite"
APACHE = "apache"
KINDS = (KAFKALITE, APACHE)

_MAP = "listener.security.protocol.map"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
#: Controllers vote before their authorizer has read its rules, which only super users may.
_CONTROLLER_LOGIN = {
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        f'{_PLAIN} username="controller" password="controller" user_controller="controller";'
    ),
    "super.users": "User:controller",
}
_APACHE_JVM_OPTIONS = ("-Xms128m", "-Xmx512m")


class Brokers(Protocol):
    """Brokers 1 to n, as a suite needs them.

    Attributes:
        addresses: where each listens; it may tell clients another address.
    """

    addresses: Mapping[int, str]

    def stop(self, number: int) -> None:
        """Stop a broker by SIGTERM; nothing happens if it does not run."""

    def start(self, number: int) -> None:
        """Start a broker that was stopped; nothing happens if it runs."""

    def log_text(self, number: int) -> str:
        """Return all that a broker logged."""


@contextlib.contextmanager
def brokers_of(
    kind: str,
    count: int,
    config: Mapping[str, Any],
    *,
    broker_config: Mapping[int, Mapping[str, Any]] | None = None,
    advertised: Mapping[int, str] | None = None,
) -> Iterator[Brokers]:
    """Yield a running cluster of this kind.

    Args:
        kind: one of `KINDS`.
        count: how many brokers.
        config: settings of all of them.
        broker_config: settings of single ones.
        advertised: `HOST:PORT` that clients are told, by broker; its own if None.
    """
    ports = {number: unused_port() for number in range(1, count + 1)}
    told = advertised or {number: f"localhost:{port}" for number, port in ports.items()}
    single = {
        number: {**(broker_config or {}).get(number, {}), **_listeners(port, told[number])}
        for number, port in ports.items()
    }
    make = _Kafkalite if kind == KAFKALITE else _Apache
    with make(config, single, ports) as brokers:
        yield brokers


def _listeners(port: int, told: str) -> dict[str, str]:
    """Return settings by which brokers have a listener of their own, which no proxy cuts."""
    own = f"{BROKER_LISTENER}://127.0.0.1:{unused_port()}"
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},{own}",
        "advertised.listeners": f"PLAINTEXT://{told},{own}",
        _MAP: f"PLAINTEXT:PLAINTEXT,{BROKER_LISTENER}:PLAINTEXT",
        "inter.broker.listener.name": BROKER_LISTENER,
    }


class _Kafkalite:
    def __init__(
        self,
        config: Mapping[str, Any],
        single: Mapping[int, dict[str, Any]],
        ports: Mapping[int, int],
    ) -> None:
        self._cluster = Cluster(
            len(single),
            config=config,
            broker_config=single,
            ports={number: (port, unused_port()) for number, port in ports.items()},
            links=False,
            control=False,
        )
        self.addresses = {number: f"127.0.0.1:{port}" for number, port in ports.items()}

    def __enter__(self) -> Self:
        self._cluster.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    def stop(self, number: int) -> None:
        if self._cluster.brokers[number].is_running:
            self._cluster.stop(number)

    def start(self, number: int) -> None:
        if not self._cluster.brokers[number].is_running:
            self._cluster.restart(number)

    def log_text(self, number: int) -> str:
        return self._cluster.brokers[number].log_file.read_text(errors="replace")


class _Apache:
    def __init__(
        self,
        config: Mapping[str, Any],
        single: Mapping[int, dict[str, Any]],
        ports: Mapping[int, int],
    ) -> None:
        self._scratch = TemporaryDirectory(prefix="apache-kafkas-", ignore_cleanup_errors=True)
        self.addresses = {number: f"127.0.0.1:{port}" for number, port in ports.items()}
        controllers = {number: f"127.0.0.1:{unused_port()}" for number in ports}
        needs_login = "authorizer.class.name" in config and "super.users" not in config
        protocol = "SASL_PLAINTEXT" if needs_login else "PLAINTEXT"
        voters = ",".join(f"{number}@{address}" for number, address in controllers.items())
        self._brokers = {
            number: ApacheBroker(
                config={
                    "node.id": number,
                    "controller.quorum.voters": voters,
                    **(_CONTROLLER_LOGIN if needs_login else {}),
                    **config,
                    **settings,
                    _MAP: f"{settings[_MAP]},CONTROLLER:{protocol}",
                    "listeners": f"{settings['listeners']},CONTROLLER://{controllers[number]}",
                },
                data_dir=Path(self._scratch.name) / f"data-{number}",
                port=ports[number],
                jvm_options=_APACHE_JVM_OPTIONS,
            )
            for number, settings in single.items()
        }

    def __enter__(self) -> Self:
        try:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda broker: broker.start(180), self._brokers.values()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda broker: broker.stop(kill=True), self._brokers.values()))
        for broker in self._brokers.values():
            broker.close()
        self._scratch.cleanup()

    def stop(self, number: int) -> None:
        self._brokers[number].stop()

    def start(self, number: int) -> None:
        if self._brokers[number].process is None:
            self._brokers[number].start(180)

    def log_text(self, number: int) -> str:
        return self._brokers[number].log_file.read_text(errors="replace")
