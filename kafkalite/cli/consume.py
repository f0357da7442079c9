"""`kafkalite consume`: print records."""

import sys
from collections.abc import Callable, Sequence

import click

from kafkalite.cli.options import partition_list, with_cluster
from kafkalite.cli.output import Progress, examples, plural, progress
from kafkalite.cli.parameters import registry_option
from kafkalite.cli.positions import FORMS, Position, parse_position, position_option
from kafkalite.cli.rendering import FORMATS
from kafkalite.client.cluster import Client
from kafkalite.client.consumer import ConsumedRecord, Consumer
from kafkalite.client.groups import commit_offsets, committed_offsets
from kafkalite.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, ends
from kafkalite.types import TopicPartition

ISOLATION = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}


@click.command(
    epilog=examples(
        "kafkalite consume orders",
        "kafkalite consume orders --from -10 --follow --format long",
        "kafkalite consume orders --from @-1h --format json > last-hour.json",
        "kafkalite consume orders --schema-registry http://127.0.0.1:9080/schema-registry",
    )
)
@click.argument("topic")
@click.option(
    "--from",
    "start",
    callback=position_option,
    metavar="POSITION",
    help=f"Where to start: {FORMS}.  [default: beginning; end with --follow]",
)
@click.option("-f", "--follow", is_flag=True, help="Wait for more at the end, until Ctrl-C.")
@click.option("-n", "--count", type=click.IntRange(min=1), help="Stop after so many records.")
@click.option(
    "-p",
    "--partitions",
    callback=partition_list,
    metavar="LIST",
    help="Only these, for example 0,3,5-7.",
)
@click.option(
    "-F",
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default="value",
    show_default=True,
    help="How a record is printed; `produce --format json` reads json back.",
)
@click.option(
    "-g",
    "--group",
    "group_id",
    metavar="GROUP",
    help="Start where this group has committed, and commit what was printed. "
    "Does not join the group: it must have no members.",
)
@click.option(
    "--isolation",
    type=click.Choice(list(ISOLATION)),
    default="read_uncommitted",
    show_default=True,
    help="Whether records of open and aborted transactions are printed.",
)
@registry_option
@with_cluster
def consume(
    client: Client,
    topic: str,
    start: Position | None,
    follow: bool,
    count: int | None,
    partitions: list[int] | None,
    format_name: str,
    group_id: str | None,
    isolation: str,
    registry_url: str | None,
) -> None:
    """Print the records of TOPIC up to its present end.

    The order is kept within each partition.
    """
    level = ISOLATION[isolation]
    render = _renderer(format_name, registry_url)
    places = [
        place
        for place in client.partitions(topic)
        if partitions is None or place.partition in partitions
    ]
    if not places:
        raise click.UsageError(f"Topic {topic!r} has no such partitions.")
    if start is None:
        start = parse_position("end" if follow else "beginning", now_ms=0)
        assert start is not None
    positions = start.resolve(client, places, isolation=level)
    if group_id is not None:
        positions |= committed_offsets(client, group_id, places)
    last = ends(client, places, isolation=level)
    consumer = Consumer(client, positions, ends=None if follow else last, isolation=level)
    total = None if follow else sum(max(0, last[p] - positions[p]) for p in places)
    bar = progress("consume", total=total, unit="records", shown=not sys.stdout.isatty())
    with bar:
        try:
            printed = _print_records(consumer, render, count, bar)
        except KeyboardInterrupt:
            if not follow:
                raise
            printed = None
    if group_id is not None:
        commit_offsets(client, group_id, _moved(consumer, places))
    for line in consumer.skipped:
        click.echo(f"kafkalite: skipped {line}", err=True)
    if printed is not None and sys.stderr.isatty():
        click.echo(plural(printed, "record"), err=True)


Render = Callable[[ConsumedRecord], bytes]


def _renderer(format_name: str, registry_url: str | None) -> Render:
    render = FORMATS[format_name]
    if registry_url is None:
        return render
    # Most runs do without it.
    from kafkalite.cli.schemas import Decoder, client_of

    decoder = Decoder(client_of(registry_url))
    return lambda record: render(decoder.decoded(record))


def _print_records(consumer: Consumer, render: Render, count: int | None, bar: Progress) -> int:
    """Print until the consumer is done or `count` records are; return how many were printed."""
    output = sys.stdout.buffer
    printed = 0
    while not consumer.done:
        before = printed
        for record in consumer.poll():
            output.write(render(record) + b"\n")
            printed += 1
            if printed == count:
                break
        output.flush()
        bar.update(printed - before)
        if printed == count:
            break
    return printed


def _moved(consumer: Consumer, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    return {place: consumer.positions[place] for place in places}
