"""`kafkalite quotas`: how much clients may use, on any Kafka from 2.6 on."""

from collections.abc import Iterable, Sequence

import click

from kafkalite.cli.options import json_option, with_cluster
from kafkalite.cli.output import examples, print_json, print_table
from kafkalite.client import quotas as quota_requests
from kafkalite.client.cluster import Client
from kafkalite.quota.limits import ALL_QUOTAS, CLIENT_ID, IP, USER, Entity

KINDS = {"user": USER, "client": CLIENT_ID, "ip": IP}
DEFAULT_NAME = "*"


@click.group(
    epilog=examples(
        "kafkalite quotas set user:alice producer_byte_rate=1000000",
        "kafkalite quotas set user:alice client:app request_percentage=50",
        "kafkalite quotas set 'ip:*' connection_creation_rate=10",
        "kafkalite quotas list",
        "kafkalite quotas remove user:alice",
    )
)
def quotas() -> None:
    """Say how much clients may use; who uses more is made to wait.

    Quotas are of user:NAME, client:ID, both together, or ip:ADDRESS; the name * is all others. They
    are producer_byte_rate, consumer_byte_rate (bytes a second and broker), request_percentage (of
    one thread), controller_mutation_rate (partitions a second) and, of an ip,
    connection_creation_rate.
    """


_words = click.argument("words", nargs=-1, required=True)


@quotas.command("list")
@json_option
@with_cluster
def list_(client: Client, as_json: bool) -> None:
    """List all quotas."""
    found = quota_requests.list_quotas(client)
    if as_json:
        print_json([{"entity": _shown(entity), "quotas": one} for entity, one in found.items()])
        return
    rows = [
        (" ".join(_shown(entity)), name, f"{value:.15g}")
        for entity, one in found.items()
        for name, value in sorted(one.items())
    ]
    print_table(["OF", "QUOTA", "VALUE"], rows)


@quotas.command("set")
@_words
@with_cluster
def set_(client: Client, words: tuple[str, ...]) -> None:
    """Set quotas: WORDS are whose they are, and NAME=VALUE."""
    values: dict[str, float | None] = {}
    for word in words:
        name, is_value, text = word.partition("=")
        if ":" in name or not is_value:
            continue
        try:
            values[_known(name)] = float(text)
        except ValueError:
            raise click.UsageError(f"{word}: {text} is no number") from None
    if not values:
        raise click.UsageError("say what they may use, as producer_byte_rate=1000000")
    quota_requests.alter_quotas(client, _entity(words), values)


@quotas.command()
@_words
@with_cluster
def remove(client: Client, words: tuple[str, ...]) -> None:
    """Remove quotas: WORDS are whose they are, and NAMES of some; without names all."""
    entity = _entity(words)
    names = [_known(word) for word in words if ":" not in word]
    if not names:
        names = list(quota_requests.list_quotas(client).get(entity, ()))
    if not names:
        raise click.ClickException(f"{' '.join(_shown(entity))} has no quotas")
    quota_requests.alter_quotas(client, entity, dict.fromkeys(names))


def _entity(words: Sequence[str]) -> Entity:
    parts: dict[str, str | None] = {}
    for word in words:
        kind, is_entity, name = word.partition(":")
        if not is_entity or "=" in kind:
            continue
        if kind not in KINDS or not name:
            raise click.UsageError(f"{word}: quotas are of user:NAME, client:ID or ip:ADDRESS")
        parts[KINDS[kind]] = None if name == DEFAULT_NAME else name
    if not parts:
        raise click.UsageError("say whose quotas, as user:NAME, client:ID or ip:ADDRESS")
    return tuple(sorted(parts.items()))


def _known(name: str) -> str:
    if name not in ALL_QUOTAS:
        raise click.UsageError(f"{name} is none of {', '.join(ALL_QUOTAS)}")
    return name


def _shown(entity: Iterable[tuple[str, str | None]]) -> list[str]:
    words = {kind: word for word, kind in KINDS.items()}
    return [
        f"{words.get(kind, kind)}:{DEFAULT_NAME if name is None else name}"
        for kind, name in sorted(entity, reverse=True)
    ]
