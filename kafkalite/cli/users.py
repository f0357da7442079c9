"""`kafkalite users`: who may log in by SCRAM, on any Kafka from 2.7 on."""

import secrets

import click

from kafkalite.cli.options import json_option, with_cluster
from kafkalite.cli.output import examples, print_json, print_table
from kafkalite.client import users as user_requests
from kafkalite.client.cluster import Client


@click.group(
    epilog=examples(
        "kafkalite users add alice --password secret",
        "kafkalite users list",
        "kafkalite users remove alice",
    )
)
def users() -> None:
    """List, add and remove users that log in by SCRAM (and PLAIN, on kafkalite)."""


@users.command("list")
@json_option
@with_cluster
def list_(client: Client, as_json: bool) -> None:
    """List all users. Nobody can be told their passwords."""
    found = user_requests.list_users(client)
    if as_json:
        print_json([{"user": name, "mechanisms": dict(one)} for name, one in found.items()])
        return
    print_table(
        ["USER", "MECHANISMS"],
        [(name, " ".join(mechanism for mechanism, _ in one)) for name, one in found.items()],
    )


def _password(given: str | None, *, made: bool) -> str:
    if given is not None:
        return given
    if made:
        return secrets.token_urlsafe(12)
    password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    return password


@users.command()
@click.argument("name")
@click.option("--password", help="Asked for if it is not given; mind who reads the command line.")
@click.option("--generate", is_flag=True, help="Make a password, and print it.")
@with_cluster
def add(client: Client, name: str, password: str | None, generate: bool) -> None:
    """Let NAME log in, or give it another password."""
    chosen = _password(password, made=generate)
    user_requests.set_password(client, name, chosen)
    if generate and password is None:
        click.echo(chosen)


@users.command()
@click.argument("name")
@click.option("--password", help="Asked for if it is not given; mind who reads the command line.")
@with_cluster
def passwd(client: Client, name: str, password: str | None) -> None:
    """Give NAME, who is there already, another password."""
    user_requests.list_users(client, [name])
    user_requests.set_password(client, name, _password(password, made=False))


@users.command()
@click.argument("name")
@with_cluster
def remove(client: Client, name: str) -> None:
    """Take away what NAME logs in with. Connections that it has stay open."""
    user_requests.remove_user(client, name)
