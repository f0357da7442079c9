"""The listeners of several broker processes of one machine: one configuration, ports counted up."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kafkalite.settings.config_def import SettingError
from kafkalite.testing.broker_process import BROKER_LISTENER
from kafkalite.testing.processes import unused_port

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkalite.config import BrokerConfig
    from kafkalite.config.listeners import Listener

LISTENER_SETTINGS: Final = frozenset({
    "advertised.listeners",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
})  # fmt: skip
"""Settings of which each process has its own."""

LOOPBACK: Final = "127.0.0.1"


class ProcessListeners:
    """Addresses of processes 1 to N: process K has the ports of the first one plus K - 1.

    Where a PLAINTEXT listener is there and `inter.broker.listener.name` is not set, processes talk
    to each other by one more listener, on loopback. Otherwise they do so by the one that the
    settings name, with the certificates and logins that these tell, as in any Kafka cluster.

    Args:
        config: the settings of all.
        numbers: of the processes.

    Raises:
        SettingError: two listeners would need the same port.
    """

    def __init__(self, config: "BrokerConfig", numbers: range) -> None:
        self._config = config
        self.numbers: Final = numbers
        self._refuse_same_ports()
        self._ports: dict[int, dict[str, int]] = {
            number: {one.name: _port_of(one, number) for one in config.listeners}
            for number in self.numbers
        }
        named = config.optional_str("inter.broker.listener.name") is not None
        self._peer_ports: dict[int, int] = (
            {} if named or self.plain is None else {n: unused_port() for n in self.numbers}
        )

    @property
    def first(self) -> str:
        """Name of the first listener."""
        return self._config.listeners[0].name

    @property
    def plain(self) -> str | None:
        """Name of the first listener without TLS and login; None if there is none."""
        return next((o.name for o in self._config.listeners if o.protocol == "PLAINTEXT"), None)

    def address(self, number: int, name: str | None = None) -> tuple[str, int]:
        """Return host and port that a process listens at, by default those of its first listener.

        All interfaces have the host `0.0.0.0`.
        """
        listener = next(o for o in self._config.listeners if name in (None, o.name))
        return listener.host or "0.0.0.0", self._ports[number][listener.name]

    def addresses(self, name: str) -> str:
        """Return `HOST:PORT,HOST:PORT,...` of a listener, for clients on this machine."""
        return ",".join(_for_clients(*self.address(number, name)) for number in self.numbers)

    def settings(self, number: int) -> dict[str, str]:
        """Return the settings of one process that are about listeners."""
        return self._settings(self._ports[number], self._peer_ports.get(number), number - 1)

    def settings_of_first(self) -> dict[str, str]:
        """Return those of a first process that is not among these, and takes any port if it may."""
        ports = {one.name: one.port for one in self._config.listeners}
        return self._settings(ports, 0 if self._peer_ports else None, 0)

    def _settings(
        self, ports: "Mapping[str, int]", peer_port: int | None, offset: int
    ) -> dict[str, str]:
        listeners = self._config.listeners
        addresses = [f"{one.name}://{_bracketed(one.host)}:{ports[one.name]}" for one in listeners]
        protocols = {one.name: one.protocol for one in listeners}
        advertised = self._advertised(offset)
        inter_broker = self._config.optional_str("inter.broker.listener.name")
        if peer_port is not None:
            inter_broker = BROKER_LISTENER
            protocols[inter_broker] = "PLAINTEXT"
            addresses.append(f"{inter_broker}://{LOOPBACK}:{peer_port}")
        named = {} if inter_broker is None else {"inter.broker.listener.name": inter_broker}
        told = {"advertised.listeners": ",".join(advertised)} if advertised else {}
        return {
            **named,
            **told,
            "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
            "listeners": ",".join(addresses),
        }

    def _advertised(self, offset: int) -> list[str]:
        """Return `advertised.listeners` with ports that are as much higher as those bound."""
        texts = []
        for text in self._config.list("advertised.listeners") or ():
            start, _, port = text.rpartition(":")
            counts = port.isdecimal() and int(port) > 0
            texts.append(f"{start}:{int(port) + offset}" if counts else text)
        return texts

    def _refuse_same_ports(self) -> None:
        last = self.numbers[-1] - 1
        given = sorted(one.port for one in self._config.listeners if one.port)
        for first, second in pairwise(given):
            if second <= first + last:
                raise SettingError(
                    f"listeners: {last + 1} processes take the ports {first} to {first + last}, "
                    f"and another listener begins with {second}"
                )


def _port_of(listener: "Listener", number: int) -> int:
    return listener.port + number - 1 if listener.port else unused_port(listener.host or "0.0.0.0")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _for_clients(host: str, port: int) -> str:
    return f"{LOOPBACK if host in ('0.0.0.0', '::') else _bracketed(host)}:{port}"
