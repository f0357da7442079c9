"""`kafkalite serve`: run a broker until it is told to stop."""

import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click
import trio

from kafkalite.cli.output import examples
from kafkalite.cli.parameters import http_address, listen_address, make_data_folder, pairs
from kafkalite.clock import AdjustableClock, TrioClock
from kafkalite.config import BrokerConfig, KafkaliteConfigError, load_config
from kafkalite.http.port import HttpPortError
from kafkalite.log.manager import LogDirectoryError
from kafkalite.meta.store import MetadataStoreError
from kafkalite.network.listeners import BindError
from kafkalite.server.broker import Broker
from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    from kafkalite.security.development import SecureFolder

logger = logging.getLogger("kafkalite.cli")

KAFKA_LOG_LINES: Final = """\
[BrokerLifecycleManager id={id}] Transitioning from RECOVERY to RUNNING.
[KafkaRaftServer nodeId={id}] Kafka Server started
[KafkaServer id={id}] started"""
"""One line of each kind that Testcontainers' modules wait for: with KRaft, and with ZooKeeper."""


@click.command(
    epilog=examples(
        "kafkalite serve --listen 127.0.0.1:9093 --data-dir /var/tmp/kafka",
        "kafkalite serve server.properties --set num.partitions=4",
        "kafkalite serve --profile test --listen 127.0.0.1:0",
    )
)
@click.argument("properties", required=False, type=click.Path(path_type=Path))
@click.option(
    "--listen",
    metavar="HOST:PORT",
    callback=listen_address,
    help="Where to accept clients; port 0 takes any free one.  [default: 127.0.0.1:9092]",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    help="Where topics are kept.  [default: ./kafkalite-data; a temporary one with --profile test]",
)
@click.option(
    "--profile",
    type=click.Choice(["dev", "test", "kafka"]),
    help="Defaults for a developer's machine, for the life of a test, or Apache Kafka's own.  "
    "[default: dev]",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="A setting by Kafka's name, such as log.retention.hours=1; may be repeated.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Add a listener with TLS and a first user; `kafkalite client-config` shows how to use it.",
)
@click.option(
    "--secure-listen",
    metavar="HOST:PORT",
    callback=listen_address,
    help="Where that one listens.  [default: port 9094]",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    callback=http_address,
    help="Where browsers, Prometheus and scripts find the broker; 'off' for nowhere.  "
    "[default: 127.0.0.1:9080 or the next free port with --profile dev, else off]",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Log lines for people, or one JSON object a line.",
)
@click.option(
    "--schema-registry",
    is_flag=True,
    help="Serve a schema registry, too, at the HTTP address under /schema-registry.",
)
@click.option(
    "--faults",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Fault rules from the start: a JSON list of what `kafkalite faults add` takes.",
)
@click.option(
    "--until-stdin-ends",
    is_flag=True,
    help="Stop when standard input ends, so also when the program that started the broker is gone.",
)
@click.option(
    "--kafka-log-lines",
    is_flag=True,
    help="Also print the lines by which Apache Kafka tells that it runs: test kits wait for them.",
)
@click.option(
    "--processes",
    metavar="N",
    help="So many brokers, each a process with a data directory of its own; 'auto' for one a core.",
)
@click.option(
    "--read-only",
    "shown",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Show a data directory of kafkalite or Kafka without changing a byte of it.",
)
@click.option("--force", is_flag=True, help="Let --profile test use a data directory that exists.")
@click.option("-v", "--verbose", count=True, help="Log more to stderr; -vv logs everything.")
def serve(
    properties: Path | None,
    listen: tuple[str, int] | None,
    data_dir: str | None,
    profile: str | None,
    settings: dict[str, str],
    secure: bool,
    secure_listen: tuple[str, int] | None,
    http: str | None,
    log_format: str,
    schema_registry: bool,
    faults: Path | None,
    until_stdin_ends: bool,
    kafka_log_lines: bool,
    processes: str | None,
    shown: Path | None,
    force: bool,
    verbose: int,
) -> None:
    """Run a broker until Ctrl-C, SIGTERM or SIGHUP.

    Settings come from PROPERTIES (a Kafka server.properties), then from the environment as with
    Kafka's container image (KAFKA_NUM_PARTITIONS=4), then from the options. When clients can
    connect, one line is printed on standard output:

    kafkalite ready: bootstrap=127.0.0.1:9092 profile=dev http=http://127.0.0.1:9080 data=...

    With --secure it also names the listener that has TLS and logins: secure=127.0.0.1:9094. With
    --processes it names the addresses of all of them; one that ends is started again.
    """
    _log_to_stderr(verbose, as_json=log_format == "json")
    count = _count_of(processes)
    overrides = _overrides(listen=listen, data_dir=data_dir, profile=profile, settings=settings)
    if http is not None:
        overrides["kafkalite.http.listener"] = http
    if schema_registry:
        overrides["kafkalite.schema.registry"] = "true"
    try:
        with ExitStack() as kept:
            if shown is not None:
                # Most starts do without this, and what follows.
                from kafkalite.cli.read_only import settings_to_show

                if data_dir is not None:
                    raise click.UsageError("--read-only and --data-dir contradict each other")
                overrides |= settings_to_show(shown, kept)
            config = _configured(properties, overrides, force=force or shown is not None)
            folder = None
            if secure or secure_listen is not None:
                from kafkalite.cli.secure import prepare

                folder, more = prepare(config, secure_listen, count)
                overrides |= more
                config = load_config(properties, environment=os.environ, overrides=overrides)
            for warning in config.warnings:
                logger.warning("%s", warning)
            wishes = _Wishes(folder, faults, until_stdin_ends, kafka_log_lines, shown)
            if count > 1:
                return _run_processes(config, count, wishes)
            _refuse_data_of_processes(config)
            _run(config, wishes)
    except BaseExceptionGroup as group:
        _raise_plainly(group)
    except (KafkaliteConfigError, SettingError) as error:
        raise click.ClickException(str(error)) from None


class _Wishes(NamedTuple):
    """Options that are not settings."""

    folder: "SecureFolder | None"
    faults: Path | None
    until_stdin_ends: bool
    kafka_log_lines: bool
    shown: Path | None


YOUNG_OBJECTS_MAX: Final = 10_000
"""New objects between two collections of cyclic garbage; Python's 700 are a few requests. What the
journal keeps would be looked at again and again: 7 of 28 us of processor time a request."""


def _run(config: BrokerConfig, wishes: _Wishes) -> None:
    """Run a broker; where tests may turn it, by a clock and with a disk that they can turn."""
    gc.set_threshold(YOUNG_OBJECTS_MAX, *gc.get_threshold()[1:])
    if wishes.shown is not None:
        from kafkalite.log.view import ViewDisk

        trio.run(_serve, Broker(config, disk=ViewDisk(syncs=False)), config, wishes)
        return
    if not config.bool("kafkalite.control"):
        if wishes.faults is not None:
            raise click.ClickException("--faults needs kafkalite.control=true")
        trio.run(_serve, Broker(config), config, wishes)
        return
    from kafkalite.faults.disk import FaultyDisk

    clock, disk = AdjustableClock(), FaultyDisk(syncs=config.bool("kafkalite.metadata.flush"))
    broker = Broker(config, clock=clock, disk=disk)
    trio.run(_serve, broker, config, wishes, clock=TrioClock(clock))


def _count_of(processes: str | None) -> int:
    if processes in (None, "1"):
        return 1
    # Most starts do without this import.
    from kafkalite.cli.processes import count_of

    return count_of(processes)


def _run_processes(config: BrokerConfig, count: int, wishes: _Wishes) -> None:
    from kafkalite.cli.processes import run_processes

    if any(wishes._replace(folder=None)):
        raise click.UsageError(
            "--processes goes with neither --faults, --until-stdin-ends, --kafka-log-lines nor "
            "--read-only"
        )
    run_processes(config, count, wishes.folder)


def _refuse_data_of_processes(config: BrokerConfig) -> None:
    """Refuse a folder of several brokers: broker-1 would be taken for a partition of `broker`."""
    for path in config.log_dirs:
        if (Path(path) / "cluster.id").exists() or (Path(path) / "cluster.json").exists():
            raise click.ClickException(
                f"{path} holds the data of several brokers; start it with --processes, or "
                "`kafkalite cluster`, as before"
            )


def _load_faults(broker: Broker, path: Path) -> int:
    from kafkalite.faults.control import load_rules

    try:
        return load_rules(path.read_text(encoding="utf-8"), broker.control)
    except (OSError, ValueError) as error:
        raise KafkaliteConfigError(f"{path}: {error}") from None


async def _serve(broker: Broker, config: BrokerConfig, wishes: _Wishes) -> None:
    with trio.open_signal_receiver(*_ends()) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_on_signal, signals, nursery.cancel_scope)
            if wishes.until_stdin_ends:
                nursery.start_soon(_stop_at_end_of_stdin, nursery.cancel_scope)
            await nursery.start(broker.run)
            secure = "" if wishes.folder is None else await _let_users_in(broker, wishes.folder)
            faults = wishes.faults
            more = "" if faults is None else f" faults={_load_faults(broker, faults)}"
            more += "" if wishes.shown is None else f" read-only={wishes.shown.absolute()}"
            print(_ready_line(broker, config, secure) + more, flush=True)
            if wishes.kafka_log_lines:
                print(KAFKA_LOG_LINES.format(id=config.node_id), flush=True)


def _ends() -> list[int]:
    """Return the signals that end the broker: also the terminal's end, unless nohup ignores it."""
    ends = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    return list(ends)


async def _let_users_in(broker: Broker, folder: "SecureFolder") -> str:
    from kafkalite.cli.secure import let_users_in

    return f" secure={await let_users_in(broker, folder)}"


def _ready_line(broker: Broker, config: BrokerConfig, secure: str) -> str:
    data = ",".join(os.path.abspath(path) for path in broker.data_dirs)
    where = f"bootstrap={broker.bootstrap}{secure}"
    http = "" if broker.http_url is None else f" http={broker.http_url}"
    return f"kafkalite ready: {where} profile={config.profile}{http} data={data}"


async def _stop_on_signal(signals: AsyncIterator[int], broker: trio.CancelScope) -> None:
    async for number in signals:
        # A second Ctrl-C ends the process at once.
        signal.signal(number, signal.SIG_DFL)
        broker.cancel()


async def _stop_at_end_of_stdin(broker: trio.CancelScope) -> None:
    """Read what comes and throw it away until there is no more.

    Not in a thread: who advances the clock waits for those.
    """
    more = b"?"
    while more:
        with contextlib.suppress(PermissionError):  # a file, which is never waited for
            await trio.lowlevel.wait_readable(0)
        more = os.read(0, 4_096)
    broker.cancel()


def _overrides(
    *,
    listen: tuple[str, int] | None,
    data_dir: str | None,
    profile: str | None,
    settings: dict[str, str],
) -> dict[str, str]:
    """Return what the options say, by the names of settings."""
    overrides = dict(settings)
    if profile is not None:
        overrides["kafkalite.profile"] = profile
    if data_dir is not None:
        overrides["log.dirs"] = data_dir
    if listen is not None:
        host, port = listen
        overrides["listeners"] = f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}"
    return overrides


def _configured(properties: Path | None, overrides: dict[str, str], *, force: bool) -> BrokerConfig:
    """Load the settings, and see to the data directory."""
    config = load_config(properties, environment=os.environ, overrides=overrides)
    if config.profile == "test" and not force:
        _refuse_existing(config)
    elif config.profile == "dev" and not config.static.keys() & {"log.dirs", "log.dir"}:
        for path in config.log_dirs:
            make_data_folder(Path(path))
    return config


def _refuse_existing(config: BrokerConfig) -> None:
    for path in config.log_dirs:
        if (Path(path) / "meta.properties").exists():
            raise click.ClickException(
                f"{path} holds data, which profile test would not keep safe: "
                "use another profile, or --force"
            )


def _raise_plainly(group: BaseExceptionGroup[BaseException]) -> None:
    """Raise what went wrong in a nursery: in one line where it is no bug, else all of it.

    Several tasks may find out the same thing at once, such as that a node.id is taken.
    """
    errors = list(_single(group))
    lines = [line for line in map(_plain_line, errors) if line is not None]
    if len(lines) == len(errors):
        raise click.ClickException("; ".join(dict.fromkeys(lines))) from None
    raise errors[0] if len(errors) == 1 else group


def _single(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _single(part)
    else:
        yield error


def _plain_line(error: BaseException) -> str | None:
    """Return what to tell of an error that has its cause outside; None for a bug."""
    match error:
        case KafkaliteConfigError() | SettingError() | LogDirectoryError() | MetadataStoreError():
            return str(error)
        case HttpPortError():
            return f"{error}; --http HOST:PORT chooses another, --http off none"
        case BindError():
            return f"{error}; --listen HOST:PORT chooses another"
        case _:
            return None


def _log_to_stderr(verbose: int, *, as_json: bool) -> None:
    level = [logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)]
    logging.basicConfig(
        stream=sys.stderr,
        level=level,
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
    )
    if as_json:
        from kafkalite.cli.logs import JsonFormatter

        logging.getLogger().handlers[0].setFormatter(JsonFormatter())
