"""`kafkalite dump-log`: print what the files of a data directory say."""

import sys
from pathlib import Path
from typing import Final

import click

from kafkalite.cli.output import examples, progress
from kafkalite.coordinator.shard import RecordCodec
from kafkalite.group.records import GroupRecordCodec
from kafkalite.log.disk import OsDisk
from kafkalite.log.dump import Dump, DumpOptions, RecordDecoder
from kafkalite.txn.records import TransactionRecordCodec
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.records import Record

HIDDEN: Final = (".lock", ".kafka_cleanshutdown")
"""Files without content."""


@click.command(
    epilog=examples(
        "kafkalite dump-log kafkalite-data/orders-0",
        "kafkalite dump-log --contents kafkalite-data/orders-0/00000000000000000000.log",
        "kafkalite dump-log --contents kafkalite-data/__consumer_offsets-*/*.log",
    )
)
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(exists=True, path_type=Path),
)
@click.option("-r", "--records", is_flag=True, help="A line for each record, not only each batch.")
@click.option("-c", "--contents", is_flag=True, help="Keys and values too; implies --records.")
def dump_log(paths: tuple[Path, ...], records: bool, contents: bool) -> None:
    """Print log segments, indexes, snapshots and checkpoints, of kafkalite or Apache Kafka.

    PATH is a file, or a directory whose files are printed. The lines are those of Apache's
    kafka-dump-log; records of __consumer_offsets and
    __transaction_state are decoded. Files are only read, so a broker may
    be at work on them. Ends with 1 if files contradict themselves or each other.
    """
    files = [file for path in paths for file in _files(path)]
    disk = OsDisk()
    problems: list[str] = []
    with progress("dump-log", total=len(files), unit="files", shown=not sys.stdout.isatty()) as bar:
        for file in files:
            topic = file.absolute().parent.name.rpartition("-")[0]
            options = DumpOptions(records=records, contents=contents, decode=DECODERS.get(topic))
            dump = Dump(disk, options, problems)
            try:
                for line in dump.lines(str(file)):
                    sys.stdout.write(f"{line}\n")
            except FileNotFoundError as error:
                # Deleted meanwhile, or an index whose other files are not there.
                problems.append(f"{file}: {error.filename} is missing")
            bar.update(1)
    sys.stdout.flush()
    for problem in problems:
        click.echo(f"kafkalite: {problem}", err=True)
    if problems:
        raise click.exceptions.Exit(1)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and file.name not in HIDDEN)


def _decoder(codec: RecordCodec) -> RecordDecoder:
    """Return what prints the records of an internal topic as their fields."""

    def decode(record: Record) -> tuple[str | None, str | None]:
        try:
            stored = codec.decode(record.key or b"", record.value)
        except MalformedMessage as error:
            return f"<{error}>", None
        if stored is None:
            return "<of a kind that is not known here>", None
        return repr(stored.key), None if stored.value is None else repr(stored.value)

    return decode


DECODERS: Final = {
    CONSUMER_OFFSETS_TOPIC: _decoder(GroupRecordCodec()),
    TRANSACTION_STATE_TOPIC: _decoder(TransactionRecordCodec()),
}
