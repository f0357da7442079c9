"""Users, clients and addresses as resources with settings, named as in ZooKeeper (rule 535).

The credentials of a user and the quotas of a user, of a client, of both together or of an address
are settings of these. Their numbers are no resource types of the protocol, so that no request for
settings reaches them.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from kafkalite.meta.changes import Change, ConfigsChanged, settings_of
from kafkalite.meta.events import AlterScramCredential
from kafkalite.meta.image import ConfigResource, Image
from kafkalite.wire.errors import ErrorCode, KafkaError

USER_ENTITY: Final = -1
CLIENT_ENTITY: Final = -2
IP_ENTITY: Final = -3

ENTITIES: Final = (USER_ENTITY, CLIENT_ENTITY, IP_ENTITY)

DEFAULT_NAME: Final = "<default>"
CLIENTS_FOLDER: Final = "/clients/"


def sanitized(name: str) -> str:
    """Return a name as Kafka writes it in a path."""
    return quote(name, safe="").replace("~", "%7E")


def user_resource(user: str | None, client: str | None = "") -> ConfigResource:
    """Return what a user's settings belong to; None is the default of all users.

    Args:
        user: its name.
        client: a client of the user, None for the default of all its clients, empty for none.
    """
    path = DEFAULT_NAME if user is None else sanitized(user)
    if client != "":
        path += f"{CLIENTS_FOLDER}{DEFAULT_NAME if client is None else sanitized(client)}"
    return ConfigResource(USER_ENTITY, path)


def client_resource(client: str | None) -> ConfigResource:
    """Return what a client's settings belong to; None is the default of all clients."""
    return ConfigResource(CLIENT_ENTITY, DEFAULT_NAME if client is None else sanitized(client))


def ip_resource(address: str | None) -> ConfigResource:
    """Return what an address's settings belong to; None is the default of all addresses."""
    return ConfigResource(IP_ENTITY, DEFAULT_NAME if address is None else address)


def user_of(resource: ConfigResource) -> str | None:
    """Return the user of a user's resource; None for the default."""
    return _read(resource.name.partition(CLIENTS_FOLDER)[0])


def client_of(resource: ConfigResource) -> str | None:
    """Return the client of a user's resource: None for the default, empty if it has none."""
    _, folder, client = resource.name.partition(CLIENTS_FOLDER)
    return _read(client) if folder else ""


def name_of(resource: ConfigResource) -> str | None:
    """Return the client or address of any other resource; None for the default."""
    return _read(resource.name)


def alter_scram_credential(event: AlterScramCredential, image: Image) -> list[Change]:
    """Give a user a credential, or take one away (KIP-554).

    Raises:
        KafkaError: RESOURCE_NOT_FOUND, there is nothing to take away.
    """
    resource = user_resource(event.user)
    if event.credential is None and event.mechanism not in image.configs_of(resource):
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )
    return changed_settings(resource, {event.mechanism: event.credential}, image)


def changed_settings(
    resource: ConfigResource, values: Mapping[str, str | None], image: Image
) -> list[Change]:
    """Return the change to these settings of a resource, of which None removes one."""
    before = settings_of(resource, image)
    given = {name: value for name, value in values.items() if value is not None}
    new = {name: value for name, value in given.items() if before.get(name) != value}
    removed = tuple(name for name in values if name in before and name not in given)
    if not new and not removed:
        return []
    return [
        ConfigsChanged(
            resource_type=resource.type,
            resource_name=resource.name,
            values=new,
            removed=removed,
        )
    ]


def _read(name: str) -> str | None:
    return None if name == DEFAULT_NAME else unquote(name)
