"""Which quota applies to whom: settings of users, clients and both together (rule 556)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from kafkalite.meta.entities import (
    CLIENT_ENTITY,
    ENTITIES,
    IP_ENTITY,
    USER_ENTITY,
    client_of,
    name_of,
    user_of,
)
from kafkalite.meta.image import ConfigResource
from kafkalite.settings.config_def import ConfigType

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

CLIENT_QUOTAS: Final = {
    PRODUCER_BYTE_RATE: ConfigType.LONG,
    CONSUMER_BYTE_RATE: ConfigType.LONG,
    REQUEST_PERCENTAGE: ConfigType.DOUBLE,
    CONTROLLER_MUTATION_RATE: ConfigType.DOUBLE,
}
"""Of users and clients."""

IP_QUOTAS: Final = {CONNECTION_CREATION_RATE: ConfigType.INT}
"""Of addresses."""

ALL_QUOTAS: Final = {**CLIENT_QUOTAS, **IP_QUOTAS}

USER, CLIENT_ID, IP = "user", "client-id", "ip"

Entity = tuple[tuple[str, str | None], ...]
"""Types and names, of which None is the default, of what a quota belongs to; sorted by type."""

DEFAULT: Final = None
NONE: Final = ""
"""No user, or no client: those with empty names have no quotas of their own."""

Configs = Mapping[ConfigResource, Mapping[str, str]]


class Sharers(NamedTuple):
    """Clients whose requests are counted together: a user, a client, or a client of a user."""

    user: str
    client: str


def entity_of(resource: ConfigResource) -> Entity:
    """Return what a resource of users, clients or addresses is in the protocol."""
    if resource.type == USER_ENTITY:
        client = client_of(resource)
        user = (USER, user_of(resource))
        return (user,) if client == NONE else ((CLIENT_ID, client), user)
    kind = CLIENT_ID if resource.type == CLIENT_ENTITY else IP
    return ((kind, name_of(resource)),)


def quotas_of(configs: Configs) -> Iterable[tuple[Entity, dict[str, float]]]:
    """Yield all that have quotas, with these; what else they have is left out."""
    for resource, values in configs.items():
        if resource.type not in ENTITIES:
            continue
        quotas = {}
        for name, text in values.items():
            if name in ALL_QUOTAS:
                quotas[name] = float(text)
        if quotas:
            yield entity_of(resource), quotas


def normal_address(host: str) -> str:
    """Return an address as it is compared; what is none stays as it is."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address)


@dataclass(slots=True, frozen=True)
class Limits:
    """The quotas of one kind, such as `producer_byte_rate`.

    Attributes:
        of_clients_of_users: by user and client; None is the default of either.
        of_users: by user.
        of_clients: by client.
    """

    of_clients_of_users: Mapping[tuple[str | None, str | None], float]
    of_users: Mapping[str | None, float]
    of_clients: Mapping[str | None, float]

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.of_clients_of_users or self.of_users or self.of_clients)

    def find(self, user: str, client: str) -> tuple[Sharers, float] | None:
        """Return the quota that a client has, and who shares it; None if it has none.

        The most specific counts: user and client, user and default client, user, default user and
        client, default user and default client, default user, client, default client.
        """
        both = self.of_clients_of_users
        if both and client:
            limit = both.get((user, client), both.get((user, DEFAULT)))
            if limit is not None:
                return Sharers(user, client), limit
        if user in self.of_users:
            return Sharers(user, NONE), self.of_users[user]
        if both and client:
            limit = both.get((DEFAULT, client), both.get((DEFAULT, DEFAULT)))
            if limit is not None:
                return Sharers(user, client), limit
        if DEFAULT in self.of_users:
            return Sharers(user, NONE), self.of_users[DEFAULT]
        if client:
            limit = self.of_clients.get(client, self.of_clients.get(DEFAULT))
            if limit is not None:
                return Sharers(NONE, client), limit
        return None


def limits_of(configs: Configs, name: str) -> Limits:
    """Return the quotas of one kind."""
    both: dict[tuple[str | None, str | None], float] = {}
    users: dict[str | None, float] = {}
    clients: dict[str | None, float] = {}
    for entity, quotas in quotas_of(configs):
        if name not in quotas:
            continue
        parts = dict(entity)
        if IP in parts:
            continue
        if len(parts) == len((USER, CLIENT_ID)):
            both[parts[USER], parts[CLIENT_ID]] = quotas[name]
        elif USER in parts:
            users[parts[USER]] = quotas[name]
        else:
            clients[parts[CLIENT_ID]] = quotas[name]
    return Limits(both, users, clients)


def connection_rates(configs: Configs) -> dict[str | None, float]:
    """Return how many connections a second an address may make; None is the default of all."""
    rates: dict[str | None, float] = {}
    for resource, values in configs.items():
        if resource.type == IP_ENTITY and CONNECTION_CREATION_RATE in values:
            name = name_of(resource)
            address = None if name is None else normal_address(name)
            rates[address] = float(values[CONNECTION_CREATION_RATE])
    return rates
