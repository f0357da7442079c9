"""`kafkalite serve --secure`: a listener with TLS and logins beside the one without."""

import datetime as dt
import os
from typing import TYPE_CHECKING, Final

import click

from kafkalite.meta.entities import user_resource
from kafkalite.meta.events import AlterScramCredential
from kafkalite.security import scram
from kafkalite.security.development import LISTENER, MECHANISM, SecureFolder

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig
    from kafkalite.server.broker import Broker

DEFAULT_PORT: Final = 9094
SALT_BYTES: Final = 16


def prepare(
    config: "BrokerConfig", listen: tuple[str, int] | None, processes: int
) -> tuple[SecureFolder, dict[str, str]]:
    """Make certificates and a user; return their folder, and settings to be added.

    Args:
        config: the broker's settings without them.
        listen: host and port of the new listener; by default those of the first one, and port 9094
            or, where that may have any, any.
        processes: how many brokers there will be, each with ports one higher.

    Raises:
        SettingError: it cannot be done.
    """
    if not config.log_dirs:
        raise click.UsageError("--secure keeps its certificates in --data-dir, which is not given.")
    if not config.is_alone:
        raise click.UsageError("--secure is for a broker that is alone.")
    if any(one.name == LISTENER for one in config.listeners):
        raise click.UsageError(f"--secure adds a listener {LISTENER}, and there is one already.")
    first = config.listeners[0]
    taken = range(first.port - processes + 1, first.port + processes)
    port = 0 if not first.port else taken.stop if DEFAULT_PORT in taken else DEFAULT_PORT
    host, port = listen or (first.host, port)
    folder = SecureFolder.of(config.log_dirs[0])
    hosts = [host if host not in ("0.0.0.0", "::") else "", *_advertised_hosts(config)]
    folder.prepare(hosts, dt.datetime.now(dt.UTC))
    address = f"{f'[{host}]' if ':' in host else host}:{port}"
    return folder, folder.settings(config.list("listeners"), address)


async def let_users_in(broker: "Broker", folder: SecureFolder) -> str:
    """Make the users whose passwords are kept, where they are not there; return the address."""
    metadata = broker.services.metadata
    mechanism = scram.BY_NAME[MECHANISM]
    for name, password in folder.users().items():
        if MECHANISM in metadata.image.configs_of(user_resource(name)):
            continue
        credential = scram.Credential.of_password(mechanism, password, salt=os.urandom(SALT_BYTES))
        await metadata.submit(
            AlterScramCredential(user=name, mechanism=MECHANISM, credential=str(credential))
        )
    address = broker.bootstrap_for(LISTENER)
    folder.note_address(address)
    return address


def _advertised_hosts(config: "BrokerConfig") -> list[str]:
    """Return the hosts that clients are told, whose certificate they will want to see."""
    ports = {listener.name: listener.port for listener in config.listeners}
    return [host for host, _ in config.endpoints(ports).values()]
