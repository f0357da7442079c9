"""Parsing shared by several commands; it imports no client, for a broker starts by it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

LOOPBACK: Final = "127.0.0.1"

bootstrap_option: Final[Callable[[Callable[..., Any]], Callable[..., Any]]] = click.option(
    "-b",
    "--bootstrap",
    "--bootstrap-server",
    "bootstrap",
    default=f"{LOOPBACK}:9092",
    show_default=True,
    envvar="KAFKALITE_BOOTSTRAP",
    show_envvar=True,
    metavar="HOST:PORT",
    help="A broker of the cluster, or several with commas.",
)
"""Which cluster a command talks to."""


def pairs(
    _context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Turn the values of a repeated NAME=VALUE option into a dict; a click callback."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE.", param=parameter)
        found[name.strip()] = value.strip()
    return found


def listen_address(
    _context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, int] | None:
    """Turn `HOST:PORT`, `PORT`, `:PORT` or `[IPV6]:PORT` into (host, port); a click callback.

    A port alone is one of loopback; an empty host stands for all addresses of the machine.
    """
    if text is None:
        return None
    host, _, port = (f"{LOOPBACK}:{text}" if text.isdigit() else text).rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_number = port.isascii() and port.isdigit() and int(port) < 65_536
    if not is_number or "//" in host or (":" in bare) != (host == f"[{bare}]"):
        raise click.BadParameter(f"{text!r} is no address; write HOST:PORT.", param=parameter)
    return bare, int(port)


def http_address(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> str | None:
    """Turn an address as above, or `off`, into kafkalite.http.listener; a click callback."""
    if text is None or text == "auto":
        return text
    if text == "off":
        return ""
    address = listen_address(context, parameter, text)
    assert address is not None
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def make_data_folder(folder: Path) -> None:
    """Make a data directory that git does not see: it lies in the user's own project."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("# Made by kafkalite.\n*\n")


def registry_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--schema-registry`."""
    return click.option(
        "--schema-registry",
        "registry_url",
        metavar="URL",
        envvar="KAFKALITE_SCHEMA_REGISTRY",
        show_envvar=True,
        help="Where the schemas (Avro, JSON Schema, Protobuf) of keys and values are; "
        "here they are JSON.",
    )(command)
