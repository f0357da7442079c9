"""The settings `listeners` and `advertised.listeners` as values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kafkalite.settings.config_def import SettingError, split_list

AUTO = "auto"
"""Value of `advertised.listeners`: answer each client with the address that it came in by."""

_ADDRESS = re.compile(
    r"([A-Za-z0-9_.-]+)://(\[[0-9A-Fa-f:.%a-z]*\]|[^:/\[\]]*):([0-9]{1,5})", re.ASCII
)
_ALL_INTERFACES = frozenset({"", "0.0.0.0", "::"})
_PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})


@dataclass(slots=True, frozen=True, kw_only=True)
class Listener:
    """An address to listen on. An empty host means all interfaces, port 0 any free port.

    Attributes:
        is_inter_broker: brokers may come in here; False where they have a listener of their own.
        protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    """

    name: str
    host: str
    port: int
    is_inter_broker: bool = True
    protocol: str = "PLAINTEXT"

    @property
    def is_encrypted(self) -> bool:
        """Whether clients speak TLS here."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def is_authenticated(self) -> bool:
        """Whether clients log in by SASL here."""
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


def parse_listeners(
    addresses: Sequence[str],
    *,
    protocol_map: str,
    controller_names: Sequence[str],
    inter_broker_name: str | None = None,
) -> tuple[Listener, ...]:
    """Return the listeners for clients and brokers; those of a controller are left out.

    A configuration made for a combined Kafka node names a controller's listener too, which has no
    use here.

    Raises:
        SettingError: an address that cannot be read, a name or port used twice, a name without
            a protocol, or brokers that are to come in by no listener.
    """
    protocols = dict(_split_pair(pair) for pair in split_list(protocol_map))
    listeners = tuple(
        listener
        for listener in (_parse_address("listeners", address) for address in addresses)
        if listener.name not in controller_names
    )
    if not listeners:
        raise SettingError("listeners: there has to be one for clients")
    if len({listener.name for listener in listeners}) < len(listeners):
        raise SettingError("listeners: each has to have a name of its own")
    ports = [(listener.host, listener.port) for listener in listeners if listener.port]
    if len(set(ports)) < len(ports):
        raise SettingError("listeners: each has to have an address of its own")
    for listener in listeners:
        if listener.name not in protocols:
            raise SettingError(
                f"listener.security.protocol.map: has to give a protocol for {listener.name}"
            )
    listeners = tuple(replace(one, protocol=protocols[one.name]) for one in listeners)
    if inter_broker_name is None:
        return listeners
    for_brokers = inter_broker_name.upper()
    if all(listener.name != for_brokers for listener in listeners):
        names = ", ".join(listener.name for listener in listeners)
        raise SettingError(
            f"inter.broker.listener.name: {inter_broker_name} is not the name of a listener "
            f"({names})"
        )
    return tuple(
        replace(listener, is_inter_broker=listener.name == for_brokers) for listener in listeners
    )


def inter_broker_listener(listeners: Sequence[Listener]) -> Listener:
    """Return the listener that other brokers are to come in by.

    Where none was named (`inter.broker.listener.name`), that is the one called PLAINTEXT, as in
    Kafka, which refuses to start without it; here it is the first then.
    """
    candidates = [listener for listener in listeners if listener.is_inter_broker]
    return next((one for one in candidates if one.name == "PLAINTEXT"), candidates[0])


def parse_advertised(
    addresses: Sequence[str], *, listener_names: Sequence[str], controller_names: Sequence[str] = ()
) -> dict[str, tuple[str, int]]:
    """Return host and port by listener name, for the listeners that `advertised.listeners` names.

    Port 0 stands for the port that the listener got. Those of a controller are left out: the file
    of a combined Kafka node names them.

    Raises:
        SettingError: an address that no client could connect to.
    """
    advertised: dict[str, tuple[str, int]] = {}
    if tuple(addresses) == (AUTO,):
        return advertised
    for address in addresses:
        listener = _parse_address("advertised.listeners", address)
        if listener.name in controller_names:
            continue
        if listener.name not in listener_names:
            names = ", ".join(listener_names)
            raise SettingError(
                f"advertised.listeners: {listener.name} is not the name of a listener ({names})"
            )
        if listener.host in _ALL_INTERFACES:
            raise SettingError(
                f"advertised.listeners: '{address}' is no address that a client can connect to, "
                f"use a host name or {AUTO}"
            )
        if listener.name in advertised:
            raise SettingError(f"advertised.listeners: {listener.name} is given twice")
        advertised[listener.name] = (listener.host, listener.port)
    return advertised


def endpoints(
    bound_ports: Mapping[str, int], advertised: Mapping[str, tuple[str, int]]
) -> dict[str, tuple[str, int]]:
    """Return what a broker registers for each listener: host and port.

    A listener that is not advertised gets an empty host: its clients are answered with the address
    that they came in by.
    """
    result = {}
    for name, bound in bound_ports.items():
        host, port = advertised.get(name, ("", bound))
        result[name] = (host, port or bound)
    return result


def with_hosts(
    found: Mapping[str, tuple[str, int]], listeners: Sequence[Listener], *, host_name: str
) -> dict[str, tuple[str, int]]:
    """Return endpoints that other brokers, and their clients, can be told: each has a host.

    Where none is advertised it is the one that the listener is bound to, and where that is all
    interfaces the name of the machine, as in Kafka.
    """
    bound = {listener.name: listener.host for listener in listeners}
    result = {}
    for name, (host, port) in found.items():
        own = bound.get(name, "")
        result[name] = (host or (host_name if own in _ALL_INTERFACES else own), port)
    return result


def _parse_address(setting: str, address: str) -> Listener:
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[3]) > 65_535:
        raise SettingError(f"{setting}: '{address}' is not allowed, it has to be NAME://host:port")
    return Listener(name=match[1].upper(), host=match[2].strip("[]"), port=int(match[3]))


def _split_pair(pair: str) -> tuple[str, str]:
    name, _, protocol = pair.partition(":")
    if not name or protocol.upper() not in _PROTOCOLS:
        raise SettingError(
            f"listener.security.protocol.map: '{pair}' is not allowed, it has to be NAME:PROTOCOL "
            f"with one of {', '.join(sorted(_PROTOCOLS))}"
        )
    return name.upper(), protocol.upper()
