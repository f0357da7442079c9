"""`kafkalite topics`: list, create, describe, delete, partitions, trim."""

from dataclasses import dataclass

import click

from kafkalite.cli.options import json_option, with_cluster
from kafkalite.cli.output import examples, plural, print_json, print_table
from kafkalite.cli.parameters import pairs
from kafkalite.cli.positions import FORMS, Position, position_option
from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.client.offsets import beginnings, ends
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError


@click.group()
def topics() -> None:
    """List, create, describe and delete topics of any Kafka cluster."""


@topics.command("list")
@click.option("-i", "--internal", is_flag=True, help="Also those that Kafka keeps for itself.")
@json_option
@with_cluster
def list_(client: Client, internal: bool, as_json: bool) -> None:
    """List all topics."""
    found = sorted(client.fetch_metadata(None).topics, key=lambda topic: topic.name or "")
    shown = [topic for topic in found if internal or not topic.is_internal]
    if as_json:
        print_json([topic.name for topic in shown])
    else:
        print_table(
            ["TOPIC", "PARTITIONS", "REPLICAS"],
            [
                (t.name, len(t.partitions), max(len(p.replica_nodes) for p in t.partitions))
                for t in shown
                if t.partitions
            ],
        )


@topics.command(
    epilog=examples(
        "kafkalite topics create orders -p 3 -c cleanup.policy=compact",
    )
)
@click.argument("name")
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="Default: the broker's.")
@click.option(
    "-r", "--replication-factor", type=click.IntRange(min=1), help="Default: the broker's."
)
@click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A setting of the topic, such as retention.ms=3600000; may be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
@with_cluster
def create(
    client: Client,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    configs: dict[str, str],
    if_not_exists: bool,
) -> None:
    """Create a topic."""
    try:
        admin.create_topic(
            client,
            name,
            partitions=partitions or admin.BROKER_DEFAULT,
            replication_factor=replication_factor or admin.BROKER_DEFAULT,
            configs=configs,
        )
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS or not if_not_exists:
            raise
        click.echo(f"topic {name} exists already")
    else:
        click.echo(f"created topic {name}")


@dataclass(slots=True)
class _PartitionLine:
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    begin: int
    end: int


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
@with_cluster
def describe(client: Client, names: tuple[str, ...], as_json: bool) -> None:
    """Show a topic's partitions, offsets and settings."""
    described = []
    for name in names:
        lines = _partition_lines(client, name)
        settings = {
            config.name: config.value
            for config in admin.describe_configs(client, admin.ResourceType.TOPIC, name)
            if config.config_source == admin.ConfigSource.DYNAMIC_TOPIC_CONFIG
        }
        described.append((name, lines, settings))
    if as_json:
        print_json(
            [
                {
                    "topic": name,
                    "configs": settings,
                    "partitions": [
                        {field: getattr(line, field) for field in _PartitionLine.__slots__}
                        for line in lines
                    ],
                }
                for name, lines, settings in described
            ]
        )
        return
    for name, lines, settings in described:
        total = sum(line.end - line.begin for line in lines)
        click.echo(f"{name}: {plural(len(lines), 'partition')}, {plural(total, 'offset')}")
        for setting, value in settings.items():
            click.echo(f"  {setting}={value}")
        print_table(
            ["PARTITION", "BEGIN", "END", "LEADER", "REPLICAS", "ISR"],
            [
                (
                    line.partition,
                    line.begin,
                    line.end,
                    line.leader,
                    ",".join(map(str, line.replicas)),
                    ",".join(map(str, line.isr)),
                )
                for line in lines
            ],
        )


def _partition_lines(client: Client, name: str) -> list[_PartitionLine]:
    found = client.topic(name)
    places = [TopicPartition(name, p.partition_index) for p in found.partitions]
    first, last = beginnings(client, places), ends(client, places)
    lines = [
        _PartitionLine(
            partition=p.partition_index,
            leader=p.leader_id,
            replicas=p.replica_nodes,
            isr=p.isr_nodes,
            begin=first[place],
            end=last[place],
        )
        for p, place in zip(found.partitions, places, strict=True)
    ]
    return sorted(lines, key=lambda line: line.partition)


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--if-exists", is_flag=True, help="A topic that is not there is no error.")
@with_cluster
def delete(client: Client, names: tuple[str, ...], if_exists: bool) -> None:
    """Delete topics with all their records."""
    failure: KafkaError | None = None
    for name, error in admin.delete_topics(client, names).items():
        if error is None:
            click.echo(f"deleted topic {name}")
        elif error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            if not if_exists:
                failure = KafkaError(error.code, f"topic {name!r} does not exist")
        else:
            failure = error
    if failure is not None:
        raise failure


@topics.command()
@click.argument("name")
@click.argument("count", type=click.IntRange(min=1))
@with_cluster
def partitions(client: Client, name: str, count: int) -> None:
    """Raise a topic's number of partitions to COUNT.

    Keys move: a key's records may go to another partition than before.
    """
    admin.create_partitions(client, name, count)
    click.echo(f"topic {name} has {plural(count, 'partition')}")


@topics.command()
@click.argument("name")
@click.option(
    "--before",
    callback=position_option,
    required=True,
    metavar="POSITION",
    help=f"Delete what lies before: {FORMS}.",
)
@with_cluster
def trim(client: Client, name: str, before: Position) -> None:
    """Delete the oldest records of a topic; `--before end` deletes all."""
    offsets = before.resolve(client, client.partitions(name))
    for place, beginning in sorted(admin.delete_records(client, offsets).items()):
        click.echo(f"{place} begins at {beginning}")
