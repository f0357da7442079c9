"""`kafkalite serve --processes N`: several brokers on one machine, one lifetime, no ZooKeeper."""

import os
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import click

from kafkalite.cli.cluster import Watch, ask_to_stop_by_signals, stop_in_order, told_to_stop
from kafkalite.cli.parameters import make_data_folder
from kafkalite.config import BrokerConfig
from kafkalite.testing.process_group import ProcessGroup
from kafkalite.testing.process_listeners import LISTENER_SETTINGS, ProcessListeners
from kafkalite.testing.processes import ProcessError

if TYPE_CHECKING:
    from kafkalite.security.development import SecureFolder

CLUSTER_ID_FILE: Final = "cluster.id"
OWN: Final = {"broker.id", "kafkalite.http.listener", "log.dir", "log.dirs", "node.id"}
"""Settings of which each process has its own, besides those of listeners."""


def count_of(text: str | None) -> int:
    """Return how many processes `--processes` asks for; `auto` means one for each core."""
    if text is None:
        return 1
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise click.BadParameter("--processes takes 1 to 64, or auto")
    return int(text)


def run_processes(config: BrokerConfig, count: int, folder: "SecureFolder | None" = None) -> None:
    """Run a group of processes until a signal asks to stop.

    Args:
        config: settings of all of them.
        count: how many.
        folder: certificates and users of `--secure`; None without.

    Raises:
        ClickException: it cannot start.
        SettingError: the listeners leave no room for so many.
    """
    listeners = ProcessListeners(config, range(1, count + 1))
    if folder is not None and listeners.plain is None:
        raise click.UsageError("--secure with --processes needs a PLAINTEXT listener, too")
    with ExitStack() as kept, told_to_stop():
        data_dir = _data_dir(config, kept, count)
        ask_to_stop_by_signals()
        left_out = OWN | LISTENER_SETTINGS
        group = ProcessGroup(
            listeners,
            data_dir=data_dir,
            settings={
                **{name: text for name, text in config.static.items() if name not in left_out},
                "kafkalite.profile": config.profile,
                "kafkalite.cluster.id": _cluster_id(config, data_dir),
            },
            first={"kafkalite.http.listener": config.str("kafkalite.http.listener")},
        )
        try:
            group.start()
            secure = "" if folder is None else _let_users_in(group, listeners, folder)
            print(_ready_line(group, config, secure), flush=True)
            Watch(group, restart=True).run()
        except ProcessError as error:
            last = error.tail.splitlines()[-1:] if error.tail else []
            raise click.ClickException(": ".join([error.summary, *last])) from None
        except TimeoutError as error:
            raise click.ClickException(str(error)) from None
        finally:
            stop_in_order(group)
            group.close(at_once=True)


def _data_dir(config: BrokerConfig, kept: ExitStack, count: int) -> Path:
    if not config.log_dirs:
        scratch = tempfile.TemporaryDirectory(prefix="kafkalite-", ignore_cleanup_errors=True)
        return Path(kept.enter_context(scratch))
    if len(config.log_dirs) > 1:
        raise click.UsageError("--processes takes one data directory, and makes one in it for each")
    path = Path(config.log_dirs[0])
    if (path / "meta.properties").exists():
        raise click.ClickException(
            f"{path} holds the data of a single broker; --processes needs another --data-dir"
        )
    known = [file.parent.name[len("broker-") :] for file in path.glob("broker-*/meta.properties")]
    most = max((int(number) for number in known if number.isdecimal()), default=0)
    if most > count:
        raise click.ClickException(
            f"{path} holds the data of {most} processes: {count} would leave partitions without "
            "a leader; start as many, or move their partitions away first"
        )
    make_data_folder(path)
    return path


def _cluster_id(config: BrokerConfig, data_dir: Path) -> str:
    """Return the id that the settings name, that of the last run, or a new one."""
    file = data_dir / CLUSTER_ID_FILE
    wanted = config.optional_str("kafkalite.cluster.id")
    if file.exists():
        known = file.read_text().strip()
        if wanted not in (None, known):
            raise click.ClickException(
                f"{data_dir} is of cluster {known}, and kafkalite.cluster.id is {wanted}"
            )
        return known
    chosen = wanted or uuid4().hex[:22]
    file.write_text(chosen + "\n")
    return chosen


def _let_users_in(group: ProcessGroup, listeners: ProcessListeners, folder: "SecureFolder") -> str:
    """Make the users whose passwords are kept, where they are not there; tell the addresses."""
    from kafkalite.client.cluster import Client
    from kafkalite.client.users import list_users, set_password
    from kafkalite.security.development import LISTENER
    from kafkalite.security.scram import SHA_512
    from kafkalite.wire.errors import KafkaError

    try:
        with Client(group.bootstrap) as client:
            known = list_users(client)
            for name, password in folder.users().items():
                if name not in known:
                    set_password(client, name, password, [SHA_512])
    except KafkaError as error:
        raise click.ClickException(f"--secure cannot make its users: {error}") from None
    address = listeners.addresses(LISTENER)
    folder.note_address(address)
    return f" secure={address}"


def _ready_line(group: ProcessGroup, config: BrokerConfig, secure: str) -> str:
    said = re.search(r" http=\S+", group.brokers[1].process.output())
    return (
        f"kafkalite ready: bootstrap={group.bootstrap}{secure} profile={config.profile}"
        f"{said[0] if said else ''} processes={len(group.brokers)} data={group.data_dir}"
    )
