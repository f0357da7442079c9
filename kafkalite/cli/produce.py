"""`kafkalite produce`: write records from the command line, files or a pipe."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from kafkalite.cli.options import with_cluster
from kafkalite.cli.output import Progress, examples, plural, progress
from kafkalite.cli.parameters import pairs
from kafkalite.cli.rendering import NewRecord, parse_json
from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer
from kafkalite.wire.compression import Codec

READ_BYTES: Final = 256 * 1024
LINE_MAX_BYTES: Final = 128 * 1024 * 1024
"""A longer line is refused: no broker takes a record near this size."""

LINGER_S: Final = 0.01
"""A pipe that has brought nothing for this long has its records sent, full batch or not."""

CODECS: Final = [codec.name.lower() for codec in Codec]
ACKS: Final = {"all": -1, "1": 1, "0": 0}


@click.command(
    epilog=examples(
        "kafkalite produce orders -m '{\"id\": 1}' -k customer-7",
        "kafkalite produce orders --key-separator : < orders.txt",
        "kafkalite consume orders --format json | kafkalite produce copy --format json",
    )
)
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("-m", "--message", "messages", multiple=True, help="Write this value; repeatable.")
@click.option(
    "-F",
    "--format",
    "format_name",
    type=click.Choice(["lines", "json", "whole"]),
    default="lines",
    show_default=True,
    help="A record a line; a JSON object a line (as `consume --format json` prints them); "
    "or each file whole as one record.",
)
@click.option("-k", "--key", help="Key of all records.")
@click.option(
    "-K",
    "--key-separator",
    metavar="TEXT",
    help="Lines are KEY TEXT VALUE, for example with -K ':' or -K '\\t'.",
)
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A header of all records; repeatable.",
)
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Default: by key, as in Java.")
@click.option("--timestamp", "timestamp_ms", type=int, metavar="MS", help="Default: now.")
@click.option(
    "-z",
    "--codec",
    type=click.Choice(CODECS),
    default="none",
    show_default=True,
    help="Compression of the batches.",
)
@click.option(
    "--acks",
    type=click.Choice(list(ACKS)),
    default="all",
    show_default=True,
    help="Who must have stored a record before the next are sent.",
)
@click.option(
    "--repartition", is_flag=True, help="Choose partitions anew where JSON lines name them."
)
@click.option("--empty-as-null", is_flag=True, help="An empty value is null (a tombstone).")
@with_cluster
def produce(
    client: Client,
    topic: str,
    files: tuple[str, ...],
    messages: tuple[str, ...],
    format_name: str,
    key: str | None,
    key_separator: str | None,
    headers: dict[str, str],
    partition: int | None,
    timestamp_ms: int | None,
    codec: str,
    acks: str,
    repartition: bool,
    empty_as_null: bool,
) -> None:
    """Write records to TOPIC: from -m, from FILES, or from standard input.

    A topic that does not exist is created, if the broker is set to (kafkalite is).
    """
    parse = _parser(format_name, key_separator)
    overrides = _Overrides(
        key=None if key is None else key.encode(),
        headers=[(name, value.encode()) for name, value in headers.items()],
        partition=partition,
        timestamp_ms=timestamp_ms,
        repartition=repartition,
        empty_as_null=empty_as_null,
    )
    producer = Producer(client, topic, acks=ACKS[acks], codec=Codec[codec.upper()])
    sources = list(files) or ([] if messages else ["-"])
    with progress("produce", total=_total_bytes(sources), unit="B") as bar:
        for message in messages:
            overrides.send(producer, NewRecord(message.encode()))
        for source in sources:
            if format_name == "whole":
                overrides.send(producer, NewRecord(_read_whole(source)))
            else:
                _send_lines(source, producer, parse, overrides, bar)
        producer.flush()
    click.echo(f"{plural(producer.record_count, 'record')} to {topic}", err=True)


@dataclass(slots=True, frozen=True, kw_only=True)
class _Overrides:
    """What the command line says about every record."""

    key: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    timestamp_ms: int | None
    repartition: bool
    empty_as_null: bool

    def send(self, producer: Producer, record: NewRecord) -> None:
        own_partition = None if self.repartition else record.partition
        value = None if self.empty_as_null and not record.value else record.value
        producer.send(
            value,
            key=record.key if self.key is None else self.key,
            headers=[*record.headers, *self.headers],
            partition=own_partition if self.partition is None else self.partition,
            timestamp_ms=record.timestamp_ms if self.timestamp_ms is None else self.timestamp_ms,
        )


Parse = Callable[[bytes], NewRecord]


def _parser(format_name: str, key_separator: str | None) -> Parse:
    if key_separator is None:
        return parse_json if format_name == "json" else NewRecord
    if format_name != "lines" or not key_separator:
        raise click.UsageError("--key-separator is for --format lines, and not empty.")
    separator = key_separator.replace("\\t", "\t").encode()

    def parse(line: bytes) -> NewRecord:
        key, found, value = line.partition(separator)
        if not found:
            raise ValueError(f"no {key_separator!r} between key and value")
        return NewRecord(value, key)

    return parse


def _send_lines(
    source: str, producer: Producer, parse: Parse, overrides: _Overrides, bar: Progress
) -> None:
    """Send each line of a file; of a pipe or terminal as soon as nothing more is waiting."""
    name = "standard input" if source == "-" else source
    number = 0
    for lines, is_last_for_now in _lines(source, bar):
        for line in lines:
            number += 1
            try:
                record = parse(line)
            except ValueError as error:
                producer.flush()
                raise click.ClickException(f"{name}, line {number}: {error}") from None
            overrides.send(producer, record)
        if is_last_for_now:
            producer.flush()


def _lines(source: str, bar: Progress) -> Iterator[tuple[list[bytes], bool]]:
    """Yield whole lines without their ends, and whether the source has no more at the moment."""
    descriptor = sys.stdin.fileno() if source == "-" else os.open(source, os.O_RDONLY)
    try:
        rest = b""
        while data := os.read(descriptor, READ_BYTES):
            bar.update(len(data))
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LINE_MAX_BYTES:
                raise click.ClickException(f"a line of more than {LINE_MAX_BYTES} bytes")
            readable, _, _ = select.select([descriptor], [], [], LINGER_S)
            yield [line.removesuffix(b"\r") for line in lines], not readable
        if rest:
            yield [rest], False
    finally:
        if source != "-":
            os.close(descriptor)


def _read_whole(source: str) -> bytes:
    return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()


def _total_bytes(sources: list[str]) -> int | None:
    """Return the size of all sources; None if one is a pipe."""
    return None if "-" in sources else sum(os.stat(source).st_size for source in sources)
