"""`kafkalite groups`: list, describe with lag, delete, reset offsets."""

from collections.abc import Iterable

import click

from kafkalite.cli.consumer_groups import print_consumer_group, read_by
from kafkalite.cli.options import json_option, partition_list, with_cluster
from kafkalite.cli.output import examples, plural, print_json, print_table
from kafkalite.cli.positions import FORMS, Position, position_option
from kafkalite.cli.share_groups import print_share_group
from kafkalite.cli.streams_groups import print_streams_group
from kafkalite.client import groups as group_requests
from kafkalite.client.cluster import Client
from kafkalite.client.consumer_groups import describe_consumer_group
from kafkalite.client.groups import Group
from kafkalite.client.offsets import ends
from kafkalite.client.share_groups import (
    alter_share_offsets,
    describe_share_group,
    share_progress,
)
from kafkalite.client.streams_groups import describe_streams_group, source_topics
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

DEAD = "Dead"
STREAMS = "streams"
CONSUMER = "consumer"
SHARE = "share"


@click.group()
def groups() -> None:
    """List groups, show their lag and tasks, reset their offsets."""


@groups.command("list")
@json_option
@with_cluster
def list_(client: Client, as_json: bool) -> None:
    """List all groups."""
    found = group_requests.list_groups(client)
    if as_json:
        print_json(
            [
                {
                    "group": g.group_id,
                    "state": g.group_state,
                    "protocol_type": g.protocol_type,
                    "type": g.group_type,
                }
                for g in found
            ]
        )
    else:
        print_table(
            ["GROUP", "STATE", "PROTOCOL", "TYPE"],
            [
                (g.group_id, g.group_state or None, g.protocol_type or None, g.group_type or None)
                for g in found
            ],
        )


@groups.command()
@click.argument("group_id", metavar="GROUP")
@json_option
@with_cluster
def describe(client: Client, group_id: str, as_json: bool) -> None:
    """Show a group's members, committed offsets and lag.

    Lag is how many offsets lie between what is committed and the end of the partition. Members that
    use Kafka 4's consumer protocol are shown with their epochs, and with what they are to have if
    they have something else. Of a streams group its subtopologies and tasks are shown too. A share
    group has no committed offsets: it is shown where it begins, and how many records are not
    finished with.
    """
    kind = group_requests.type_of(client, group_id)
    if kind == STREAMS:
        _describe_streams(client, group_id, as_json=as_json)
        return
    if kind == CONSUMER:
        _describe_consumer(client, group_id, as_json=as_json)
        return
    if kind == SHARE:
        described = describe_share_group(client, group_id)
        print_share_group(described, share_progress(client, group_id), as_json=as_json)
        return
    group = group_requests.describe_group(client, group_id)
    state = _state(client, group)
    committed = group_requests.committed_offsets(client, group_id)
    owners = {place: member for member in group.members for place in member.assignment}
    places = sorted({*committed, *owners})
    last = _ends_of_existing(client, places)
    rows = [
        (
            place.topic,
            place.partition,
            committed.get(place),
            last.get(place),
            last[place] - committed[place] if place in committed and place in last else None,
            owners[place].client_id if place in owners else None,
        )
        for place in places
    ]
    columns = ["topic", "partition", "committed", "end", "lag", "client"]
    if as_json:
        print_json(
            {
                "group": group_id,
                "state": state,
                "assignor": group.assignor,
                "members": [
                    {
                        "member_id": member.member_id,
                        "group_instance_id": member.group_instance_id,
                        "client_id": member.client_id,
                        "host": member.client_host,
                        "partitions": [str(place) for place in member.assignment],
                    }
                    for member in group.members
                ],
                "offsets": [dict(zip(columns, row, strict=True)) for row in rows],
            }
        )
        return
    assignor = f", assignor {group.assignor}" if group.assignor else ""
    click.echo(f"{group_id}: {state}, {plural(len(group.members), 'member')}{assignor}")
    for member in group.members:
        names = ", ".join(map(str, member.assignment)) or "nothing assigned"
        click.echo(f"  {member.member_id} at {member.client_host.removeprefix('/')}: {names}")
    if rows:
        print_table([name.upper() for name in columns], rows)


def _describe_consumer(client: Client, group_id: str, *, as_json: bool) -> None:
    group = describe_consumer_group(client, group_id)
    committed = group_requests.committed_offsets(client, group_id)
    last = _ends_of_existing(client, [*committed, *read_by(group)])
    print_consumer_group(group, committed, last, as_json=as_json)


def _describe_streams(client: Client, group_id: str, *, as_json: bool) -> None:
    group = describe_streams_group(client, group_id)
    committed = group_requests.committed_offsets(client, group_id)
    read = [place for topic in source_topics(group) for place in _existing(client, topic)]
    last = _ends_of_existing(client, [*committed, *read])
    print_streams_group(group, committed, last, as_json=as_json)


@groups.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...")
@with_cluster
def delete(client: Client, group_ids: tuple[str, ...]) -> None:
    """Delete groups that have no members, with their committed offsets."""
    failure: KafkaError | None = None
    for group_id, error in group_requests.delete_groups(client, group_ids).items():
        if error is None:
            click.echo(f"deleted group {group_id}")
        elif error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            failure = KafkaError(error.code, f"group {group_id!r} does not exist")
        elif error.code is ErrorCode.NON_EMPTY_GROUP:
            failure = KafkaError(error.code, f"group {group_id!r} has members; stop them first")
        else:
            failure = error
    if failure is not None:
        raise failure


@groups.command(
    "reset-offsets",
    epilog=examples(
        "kafkalite groups reset-offsets billing --topic orders --to beginning",
        "kafkalite groups reset-offsets billing --to @-1h --dry-run",
    ),
)
@click.argument("group_id", metavar="GROUP")
@click.option(
    "-t",
    "--topic",
    "topic_names",
    multiple=True,
    help="Which topic; may be repeated. Default: all that the group has committed.",
)
@click.option(
    "-p",
    "--partitions",
    callback=partition_list,
    metavar="LIST",
    help="Only these, for example 0,3,5-7.",
)
@click.option(
    "--to",
    "position",
    callback=position_option,
    required=True,
    metavar="POSITION",
    help=f"Where to: {FORMS}.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would be committed.")
@with_cluster
def reset_offsets(
    client: Client,
    group_id: str,
    topic_names: tuple[str, ...],
    partitions: list[int] | None,
    position: Position,
    dry_run: bool,
) -> None:
    """Set the committed offsets of a group that has no members, or where a share group begins."""
    is_share = group_requests.type_of(client, group_id) == SHARE
    committed: dict[TopicPartition, int | None] = {}
    if is_share:
        progress = share_progress(client, group_id)
        committed.update({place: each.start_offset for place, each in progress.items()})
    else:
        committed.update(group_requests.committed_offsets(client, group_id))
    names: Iterable[str] = topic_names or sorted({place.topic for place in committed})
    places = [
        place
        for name in names
        for place in client.partitions(name)
        if partitions is None or place.partition in partitions
    ]
    if not places:
        raise click.ClickException(f"group {group_id!r} has committed nothing; name a --topic")
    offsets = position.resolve(client, places)
    if not dry_run and is_share:
        alter_share_offsets(client, group_id, offsets)
    elif not dry_run:
        group_requests.commit_offsets(client, group_id, offsets)
    print_table(
        ["TOPIC", "PARTITION", "OLD", "NEW"],
        [(p.topic, p.partition, committed.get(p), offsets[p]) for p in places],
    )


def _state(client: Client, group: Group) -> str:
    """Return the group's state; what DescribeGroups does not know may be of the newer kind."""
    if group.state != DEAD:
        return group.state
    for listed in group_requests.list_groups(client):
        if listed.group_id == group.group_id:
            return listed.group_state
    raise click.ClickException(f"group {group.group_id!r} does not exist")


def _ends_of_existing(
    client: Client, places: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the ends of those partitions that still exist: offsets outlive their topic."""
    found: dict[TopicPartition, int] = {}
    wanted = list(places)
    for name in {place.topic: None for place in wanted}:
        existing = set(_existing(client, name))
        found |= ends(client, [p for p in wanted if p in existing])
    return found


def _existing(client: Client, topic: str) -> list[TopicPartition]:
    """Return a topic's partitions, none if it does not exist."""
    try:
        return client.partitions(topic)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return []
