"""`kafkalite produce`: write records from the command line, files or a pipe."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kafkalite.cli.options import schema_options, with_cluster
from kafkalite.cli.output import Progress, examples, plural, progress
from kafkalite.cli.parameters import pairs, registry_option
from kafkalite.cli.rendering import NewRecord, parse_json, to_bytes
from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer
from kafkalite.wire.compression import Codec

if TYPE_CHECKING:
    from kafkalite.cli.schemas import Encoder

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
        "kafkalite produce orders -m '{\"id\": 1}' --schema-registry URL --value-schema order.avsc",
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
@registry_option
@schema_options("value", "With --schema-registry, values are JSON of TOPIC-value's latest schema.")
@schema_options("key", "Keys have no schema unless one of these options is there.")
@with_cluster
def produce(
    client: Client,
    /,
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
    registry_url: str | None,
    **schema_choices: Any,
) -> None:
    """Write records to TOPIC: from -m, from FILES, or from standard input.

    A topic that does not exist is created, if the broker is set to (kafkalite is).
    """
    schemas = _schemas(registry_url, topic, schema_choices)
    parse = _parser(format_name, key_separator, schemas)
    overrides = _Overrides(
        key=None if key is None else _of_text(schemas.key, key.encode(), "--key"),
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
            value = _of_text(schemas.value, message.encode(), "--message")
            overrides.send(producer, NewRecord(value))
        for source in sources:
            if format_name == "whole":
                value = _of_text(schemas.value, _read_whole(source), source)
                overrides.send(producer, NewRecord(value))
            else:
                _send_lines(source, producer, parse, overrides, bar)
        producer.flush()
    click.echo(f"{plural(producer.record_count, 'record')} to {topic}", err=True)


@dataclass(slots=True, frozen=True, kw_only=True)
class _Overrides:
    """Values from the command line that apply to every record."""

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


class _Schemas(NamedTuple):
    """With which schemas keys and values are written; None for those without."""

    key: "Encoder | None" = None
    value: "Encoder | None" = None


def _schemas(url: str | None, topic: str, choices: dict[str, Any]) -> _Schemas:
    if url is None:
        given = [f"--{name.replace('_', '-')}" for name, choice in choices.items() if choice]
        if given:
            raise click.UsageError(f"{given[0]} needs --schema-registry.")
        return _Schemas()
    # Most runs do without it.
    from kafkalite.cli.schemas import client_of, encoder_of

    client = client_of(url)

    def encoder(part: str) -> "Encoder":
        subject = choices[f"{part}_subject"] or f"{topic}-{part}"
        return encoder_of(
            client, subject, choices[f"{part}_schema"], choices[f"{part}_protobuf"] or ""
        )

    has_key = any(choices[f"key_{name}"] for name in ("schema", "subject", "protobuf"))
    return _Schemas(encoder("key") if has_key else None, encoder("value"))


def _of_text(encoder: "Encoder | None", text: bytes, what: str) -> bytes | None:
    """Return what is written for a text of the command line or a whole file."""
    if encoder is None:
        return text
    try:
        return encoder.encode_text(text)
    except ValueError as error:
        raise click.ClickException(f"{what}: {error}") from None


def _parser(format_name: str, key_separator: str | None, schemas: _Schemas) -> Parse:
    of_key, of_value = schemas
    if key_separator is not None and (format_name != "lines" or not key_separator):
        raise click.UsageError("--key-separator is for --format lines, and not empty.")
    if format_name == "json":
        return partial(
            parse_json,
            key=to_bytes if of_key is None else of_key.encode,
            value=to_bytes if of_value is None else of_value.encode,
        )
    if key_separator is None:
        return NewRecord if of_value is None else lambda line: NewRecord(of_value.encode_text(line))
    separator = key_separator.replace("\\t", "\t").encode()

    def parse(line: bytes) -> NewRecord:
        key, found, value = line.partition(separator)
        if not found:
            raise ValueError(f"no {key_separator!r} between key and value")
        return NewRecord(
            value if of_value is None else of_value.encode_text(value),
            key if of_key is None else of_key.encode_text(key),
        )

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
