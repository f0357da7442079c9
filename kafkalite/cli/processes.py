"""`kafkalite serve --processes N`: several brokers on one machine, one lifetime, no ZooKeeper."""

import os
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from uuid import uuid4

import click

from kafkalite.cli.cluster import Watch, ask_to_stop_by_signals, stop_in_order, told_to_stop
from kafkalite.cli.parameters import make_data_folder
from kafkalite.config import BrokerConfig
from kafkalite.testing.process_group import ProcessGroup
from kafkalite.testing.processes import ProcessError, unused_port

CLUSTER_ID_FILE: Final = "cluster.id"
OWN: Final = {
    "advertised.listeners", "broker.id", "inter.broker.listener.name", "kafkalite.http.listener",
    "listener.security.protocol.map", "listeners", "log.dir", "log.dirs", "node.id",
}  # fmt: skip
"""Settings of which each process has its own."""


def count_of(text: str | None) -> int:
    """Return how many processes `--processes` asks for; `auto` means one for each core."""
    if text is None:
        return 1
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise click.BadParameter("--processes takes 1 to 64, or auto")
    return int(text)


def run_processes(config: BrokerConfig, count: int) -> None:
    """Run a group of processes until a signal asks to stop.

    Raises:
        ClickException: it cannot start.
    """
    (listener, *more) = config.listeners
    if more or listener.protocol != "PLAINTEXT":
        raise click.UsageError("--processes takes one listener, without TLS and logins")
    if config.list("advertised.listeners"):
        raise click.UsageError("--processes takes no advertised.listeners: each has its own port")
    with ExitStack() as kept, told_to_stop():
        data_dir = _data_dir(config, kept, count)
        ask_to_stop_by_signals()
        host = listener.host or "0.0.0.0"
        group = ProcessGroup(
            {
                number: (_port(listener.port, number, host), unused_port())
                for number in range(1, count + 1)
            },
            data_dir=data_dir,
            host=host,
            settings={
                **{name: text for name, text in config.static.items() if name not in OWN},
                "kafkalite.profile": config.profile,
                "kafkalite.cluster.id": _cluster_id(config, data_dir),
            },
            first={"kafkalite.http.listener": config.str("kafkalite.http.listener")},
        )
        try:
            group.start()
            print(_ready_line(group, config), flush=True)
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


def _port(first: int, number: int, host: str) -> int:
    return first + number - 1 if first else unused_port(host)


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


def _ready_line(group: ProcessGroup, config: BrokerConfig) -> str:
    said = re.search(r" http=\S+", group.brokers[1].process.output())
    return (
        f"kafkalite ready: bootstrap={group.bootstrap} profile={config.profile}"
        f"{said[0] if said else ''} processes={len(group.brokers)} data={group.data_dir}"
    )
