"""Options shared by commands that talk to a cluster."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click

from kafkalite.cli.parameters import bootstrap_option
from kafkalite.client.cluster import Client

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

CLIENT_ID = "kafkalite-cli"


def with_cluster(
    command: Callable[Concatenate[Client, Parameters], Result],
) -> Callable[..., Result]:
    """Give a command the options that name a cluster, and a `Client` of it as first argument."""

    @bootstrap_option
    @click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0.1),
        default=30,
        show_default=True,
        metavar="SECONDS",
        help="Give up on a cluster that does not answer.",
    )
    @click.option(
        "--command-config",
        metavar="FILE",
        envvar="KAFKALITE_COMMAND_CONFIG",
        show_envvar=True,
        help="Client settings by Kafka's names, for TLS and logins (`kafkalite client-config`).",
    )
    @functools.wraps(command)
    def wrapper(
        bootstrap: str,
        timeout_s: float,
        command_config: str | None,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        timeout_ms = int(timeout_s * 1000)
        credentials = None
        if command_config is not None:
            # Most commands do without it.
            from kafkalite.client.login import Credentials

            credentials = Credentials.read(command_config)
        with Client(
            bootstrap, client_id=CLIENT_ID, timeout_ms=timeout_ms, credentials=credentials
        ) as client:
            return command(client, *args, **kwargs)

    return wrapper


def json_option(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a command `--json`, for programs that read its output."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        command
    )


def partition_list(
    _context: click.Context, parameter: click.Parameter, text: str | None
) -> list[int] | None:
    """Turn `0,3,5-7` into partition numbers, ascending; a click callback."""
    if text is None:
        return None
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise click.BadParameter(
                f"{text!r} is no list of partitions such as 0,3,5-7.", param=parameter
            )
        numbers.update(range(int(first), int(last if dash else first) + 1))
    return sorted(numbers)


def schema_options(
    part: str, default: str
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a command what says with which schema it writes keys or values."""

    def add(command: Callable[..., Result]) -> Callable[..., Result]:
        command = click.option(
            f"--{part}-protobuf", metavar="NAME", help="Message of a .proto file with several."
        )(command)
        command = click.option(
            f"--{part}-subject", metavar="SUBJECT", help=f"Subject other than TOPIC-{part}."
        )(command)
        return click.option(
            f"--{part}-schema",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help=f"File of the {part}s' schema (.avsc, .json, .proto), which is registered. "
            f"{default}",
        )(command)

    return add
