"""`kafkalite export` and `kafkalite import`: topics as JSON lines, readable in a diff."""

import re
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TextIO

import click

from kafkalite.cli.options import with_cluster
from kafkalite.cli.output import examples, plural
from kafkalite.client.cluster import Client
from kafkalite.fixtures.lines import FixtureError, RecordLine, dump_line, kcat_line, parse_path
from kafkalite.fixtures.transfer import MAX_RATE, export, import_lines

_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _rate(_context: click.Context, parameter: click.Parameter, text: str) -> float:
    if text in ("max", "real"):
        return MAX_RATE if text == "max" else 1.0
    try:
        rate = float(text.removesuffix("x"))
    except ValueError:
        rate = 0.0
    if not 0 < rate < MAX_RATE:
        raise click.BadParameter(f"{text!r} is none of max, real, 10x.", param=parameter)
    return rate


def _shift(
    _context: click.Context, parameter: click.Parameter, text: str | None
) -> int | Callable[[int], int]:
    if text is None:
        return 0
    if text == "now":
        return lambda latest_ms: time.time_ns() // 1_000_000 - latest_ms
    found = re.fullmatch(r"([+-]?\d+)([smhd])", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is none of now, +1h, -7d.", param=parameter)
    return int(found[1]) * _UNIT_MS[found[2]]


def _paths(
    _context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> list[list[str]]:
    try:
        return [parse_path(text) for text in texts]
    except FixtureError as error:
        raise click.BadParameter(f"{error}.", param=parameter) from None


@click.command(
    "export",
    epilog=examples(
        "kafkalite export orders > orders.jsonl",
        "kafkalite export -b prod:9092 orders --last 1000 --mask '$.email' > orders.jsonl",
        "kafkalite export orders --group billing -o orders.jsonl",
        "kafkalite export orders --segments -o broken   # then: kafkalite serve --read-only broken",
    ),
)
@click.argument("topics", nargs=-1, required=True)
@click.option("--last", type=click.IntRange(min=1), help="Only so many of each partition.")
@click.option(
    "--mask",
    "masked",
    multiple=True,
    callback=_paths,
    metavar="PATH",
    help="Make a field of JSON keys and values unreadable, such as $.customer.email.",
)
@click.option("-g", "--group", "groups", multiple=True, help="Tell what it has committed, too.")
@click.option(
    "--layout",
    type=click.Choice(["kafkalite", "kcat"]),
    default="kafkalite",
    show_default=True,
    help="kcat: records alone, as `kcat -J` prints them.",
)
@click.option(
    "--segments",
    is_flag=True,
    help="Copy batches byte for byte into a data directory, which --output names.",
)
@click.option("-o", "--output", type=click.Path(), help="Write here.  [default: stdout]")
@with_cluster
def export_topics(
    client: Client,
    topics: tuple[str, ...],
    last: int | None,
    masked: list[list[str]],
    groups: tuple[str, ...],
    layout: str,
    segments: bool,
    output: str | None,
) -> None:
    """Write TOPICS as JSON lines: settings, committed records, and what groups committed."""
    if segments:
        _export_segments(client, topics, output, has_more=bool(last or masked or groups))
        return
    count = 0
    with open(output, "w", encoding="utf-8") if output else nullcontext(sys.stdout) as file:
        for line in export(client, topics, groups=groups, last=last, masked=masked):
            is_record = isinstance(line, RecordLine)
            if layout == "kafkalite":
                file.write(dump_line(line) + "\n")
            elif isinstance(line, RecordLine):
                file.write(kcat_line(line) + "\n")
            count += is_record
    if output or sys.stderr.isatty():
        click.echo(plural(count, "record"), err=True)


def _export_segments(
    client: Client, topics: tuple[str, ...], output: str | None, *, has_more: bool
) -> None:
    from kafkalite.fixtures.segments import export_segments

    if output is None:
        raise click.UsageError("--segments needs --output: the directory to write")
    if has_more:
        raise click.UsageError("--segments copies all as it is: without --last, --mask and --group")
    try:
        written = export_segments(client, topics, Path(output))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    told = f"{plural(written.partitions, 'partition')}, {written.batches:,} batches"
    click.echo(f"{told}, {written.size_bytes} bytes in {output}", err=True)


@click.command(
    "import",
    epilog=examples(
        "kafkalite import orders.jsonl",
        "kafkalite import orders.jsonl --rate 10x --shift-time now",
        "kcat -C -J -t orders | kafkalite import - ",
    ),
)
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("-t", "--topic", help="Topic of records that name none.")
@click.option(
    "--rate",
    default="max",
    callback=_rate,
    show_default=True,
    help="max, real (with the pauses there were), or so much faster: 10x.",
)
@click.option(
    "--shift-time",
    "shift_ms",
    callback=_shift,
    metavar="now|+1h|-7d",
    help="Move timestamps; now lets the last record be written now.",
)
@click.option(
    "--by-key",
    is_flag=True,
    help="Let keys decide about partitions, instead of writing each record where it was.",
)
@with_cluster
def import_topics(
    client: Client,
    file: TextIO,
    topic: str | None,
    rate: float,
    shift_ms: int | Callable[[int], int],
    by_key: bool,
) -> None:
    """Write what FILE says (`kafkalite export`, `kcat -J`); topics are created as needed."""
    try:
        imported = import_lines(
            client,
            file,
            default_topic=topic,
            same_partitions=not by_key,
            rate=rate,
            shift_ms=shift_ms,
        )
    except FixtureError as error:
        raise click.ClickException(f"{file.name}: {error}") from None
    told = f"{plural(imported.records, 'record')}, {plural(len(imported.topics), 'topic')}"
    if imported.groups:
        told += f", {plural(len(imported.groups), 'group')}"
    click.echo(told)
