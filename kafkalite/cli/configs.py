"""`kafkalite configs`: show and change the settings of topics, brokers and groups."""

import re
from typing import Final

import click

from kafkalite.cli.options import json_option, with_cluster
from kafkalite.cli.output import examples, print_json, print_table
from kafkalite.cli.parameters import pairs
from kafkalite.client import admin
from kafkalite.client.admin import ConfigChange, ConfigOperation, ConfigSource, ResourceType
from kafkalite.client.cluster import Client
from kafkalite.wire.messages.describe_configs import DescribeConfigsResourceResult

TYPES: Final = {
    "topic": ResourceType.TOPIC,
    "broker": ResourceType.BROKER,
    "group": ResourceType.GROUP,
}

INDENT: Final = "    "
_TAG: Final = re.compile(r"</?\w[^>]*>")
"""Kafka's documentation of settings is HTML."""

_type_argument = click.argument(
    "kind", metavar="topic|broker|group", type=click.Choice(list(TYPES))
)


@click.group()
def configs() -> None:
    """Show and change the settings of topics, brokers and groups."""


@configs.command(
    epilog=examples(
        "kafkalite configs describe topic orders",
        "kafkalite configs describe broker --all      (the only broker, or the controller)",
    )
)
@_type_argument
@click.argument("name", required=False)
@click.option("-a", "--all", "show_all", is_flag=True, help="Also settings left at their default.")
@click.option("-d", "--doc", "with_doc", is_flag=True, help="Also what each setting does.")
@json_option
@with_cluster
def describe(
    client: Client, kind: str, name: str | None, show_all: bool, with_doc: bool, as_json: bool
) -> None:
    """Show the settings of a topic, a broker or a group."""
    name = _name(client, kind, name)
    found = admin.describe_configs(client, TYPES[kind], name, documentation=with_doc)
    shown = [
        config
        for config in found
        if show_all or config.config_source != ConfigSource.DEFAULT_CONFIG
    ]
    if as_json:
        print_json([_as_dict(config, with_doc) for config in shown])
    elif with_doc:
        for config in shown:
            click.echo(f"{config.name}={_value(config)}  ({_source(config)})")
            text = _TAG.sub("", config.documentation or "")
            click.echo(click.wrap_text(text, 100, initial_indent=INDENT, subsequent_indent=INDENT))
    else:
        print_table(
            ["SETTING", "VALUE", "SOURCE"],
            [(config.name, _value(config), _source(config)) for config in shown],
        )


@configs.command(
    epilog=examples(
        "kafkalite configs alter topic orders -s retention.ms=3600000 -d max.message.bytes",
    )
)
@_type_argument
@click.argument("name", required=False)
@click.option(
    "-s",
    "--set",
    "values",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Set a setting; may be repeated, as the others.",
)
@click.option("-d", "--delete", "deleted", multiple=True, metavar="NAME", help="Back to default.")
@click.option(
    "--append",
    "appended",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Add to a list.",
)
@click.option(
    "--subtract",
    "subtracted",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Remove from a list.",
)
@with_cluster
def alter(
    client: Client,
    kind: str,
    name: str | None,
    values: dict[str, str],
    deleted: tuple[str, ...],
    appended: dict[str, str],
    subtracted: dict[str, str],
) -> None:
    """Change settings; they take effect at once."""
    changes = [ConfigChange(key, ConfigOperation.SET, value) for key, value in values.items()]
    changes += [ConfigChange(key, ConfigOperation.DELETE) for key in deleted]
    changes += [ConfigChange(key, ConfigOperation.APPEND, v) for key, v in appended.items()]
    changes += [ConfigChange(key, ConfigOperation.SUBTRACT, v) for key, v in subtracted.items()]
    if not changes:
        raise click.UsageError("Nothing to change: give --set, --delete, --append or --subtract.")
    name = _name(client, kind, name)
    admin.alter_configs(client, TYPES[kind], name, changes)
    click.echo(f"changed {kind} {name}")


def _name(client: Client, kind: str, name: str | None) -> str:
    """Return the resource's name: a broker may be left out where it does not matter which."""
    if name is not None:
        return name
    if kind != "broker":
        raise click.UsageError(f"Name the {kind}.")
    return str(client.metadata().controller_id)


def _value(config: DescribeConfigsResourceResult) -> str:
    if config.is_sensitive:
        return "(hidden)"
    return "(none)" if config.value is None else config.value


def _source(config: DescribeConfigsResourceResult) -> str:
    try:
        return ConfigSource(config.config_source).name.removesuffix("_CONFIG").lower()
    except ValueError:
        return str(config.config_source)


def _as_dict(config: DescribeConfigsResourceResult, with_doc: bool) -> dict[str, object]:
    described: dict[str, object] = {
        "name": config.name,
        "value": config.value,
        "source": _source(config),
        "read_only": config.read_only,
        "sensitive": config.is_sensitive,
    }
    if with_doc:
        described["documentation"] = config.documentation
    return described
