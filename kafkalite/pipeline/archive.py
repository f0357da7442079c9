"""Topics to Parquet by Structured Streaming: partitioned, resumable, each record exactly once.

The file sink writes a list of committed files (``_spark_metadata``) and the checkpoint holds the
offsets of each batch, so a run that was killed anywhere goes on without loss or duplicates as long
as readers honour that list, as Spark does (`read_archive`). A reader that takes every file of the
folder may see, after a crash, the files of the unfinished batch twice.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.pipeline.broker_view import broker_view
from kafkalite.pipeline.errors import PipelineError, plain_line
from kafkalite.pipeline.offsets import TopicOffsets, offsets_behind, parse_offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kafkalite.pipeline.schemas import TopicSchemas

#: Columns of an archive as Spark DDL. The last three are folders of the path, not in the files.
ARCHIVE_SCHEMA = (
    "offset LONG, timestamp TIMESTAMP, timestampType INT, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, partition INT, date STRING"
)
PARTITION_COLUMNS = ("topic", "partition", "date")
#: Length of time of one folder, and how its name is written (in UTC).
PERIODS = {"day": "yyyy-MM-dd", "month": "yyyy-MM", "year": "yyyy"}

_WATCH_SECONDS = 1


@dataclass(slots=True, frozen=True, kw_only=True)
class ArchiveJob:
    """Plan of an archive: source, target and interval.

    Attributes:
        bootstrap: ``host:port`` of a broker, or several with commas.
        output: folder of the archive (any path or URL that Spark can write).
        topics: names; empty if `topic_pattern` is given.
        topic_pattern: Java regular expression of whole names; topics that appear later are taken
            up too.
        starting: ``earliest``, ``latest`` or a timestamp in ms; only the first run looks at it.
        checkpoint: folder of the progress; inside the output if None.
        every_seconds: keep running and write that often; None: take what is there now, then end.
        max_records_per_batch: bound of one micro-batch; None for no bound.
        period: one of `PERIODS`: how much time one folder holds.
        allow_data_loss: go on when the broker deleted records before they were archived.
        compression: codec of the Parquet files.
        kafka_options: further settings of the Kafka client, such as ``security.protocol``.
        schema_registry: URL of the registry by whose schemas keys and values become typed columns
            as well (`schemas.TopicSchemas`); of one topic, because each has its own columns.
    """

    bootstrap: str
    output: str
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    starting: str | int = "earliest"
    checkpoint: str | None = None
    every_seconds: float | None = None
    max_records_per_batch: int | None = None
    period: str = "day"
    allow_data_loss: bool = False
    compression: str = "zstd"
    kafka_options: Mapping[str, str] = field(default_factory=dict)
    schema_registry: str | None = None


@dataclass(slots=True)
class ArchiveProgress:
    """How far a run is: counts of this run, and the offsets that the archive reaches (exclusive).

    `remaining` is what the broker had beyond the last batch when that batch was planned.
    """

    records: int = 0
    batches: int = 0
    seconds: float = 0.0
    remaining: int = 0
    end_offsets: TopicOffsets = field(default_factory=dict)


def kafka_source_options(
    bootstrap: str, kafka_options: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the options of Spark's Kafka source for a cluster and its client settings."""
    # After every poll Spark asks for the first and the last offset of the partition; with Kafka's
    # default of 500 records a poll these questions cost more than the records.
    options = {"kafka.max.poll.records": "10000"}
    options.update((f"kafka.{name}", value) for name, value in (kafka_options or {}).items())
    options["kafka.bootstrap.servers"] = bootstrap
    return options


def archive(
    spark: "SparkSession",
    job: ArchiveJob,
    on_progress: Callable[[ArchiveProgress], None] = lambda _: None,
) -> ArchiveProgress:
    """Run an archive job to its end (or until interrupted, if it has none) and tell how far it got.

    Raises:
        PipelineError: a topic is missing, no broker answers, or the stream failed; what was
            committed stays, and the next run goes on behind it.
    """
    with broker_view(spark, job.bootstrap, job.kafka_options) as view:
        view.topics(job.topics, job.topic_pattern)
    schemas = _schemas(job)
    progress = ArchiveProgress()
    started = time.monotonic()
    while not _run(spark, job, schemas, progress, started, on_progress):
        pass  # goes on where it was, with a schema more
    return progress


def _schemas(job: ArchiveJob) -> "TopicSchemas | None":
    if job.schema_registry is None:
        return None
    if job.topic_pattern is not None or len(job.topics) != 1:
        raise PipelineError("with a schema registry one topic is archived, because of its columns")
    # Most archives do without it.
    from kafkalite.pipeline.schemas import TopicSchemas

    return TopicSchemas(job.schema_registry, job.topics[0])


def _run(
    spark: "SparkSession",
    job: ArchiveJob,
    schemas: "TopicSchemas | None",
    progress: ArchiveProgress,
    started: float,
    on_progress: Callable[[ArchiveProgress], None],
) -> bool:
    """Run until the end; return whether that was reached, or a schema was learnt instead."""
    query = start_archive(spark, job, schemas)
    watcher = _Watcher(progress)
    try:
        finished = False
        while not finished:
            finished = bool(query.awaitTermination(_WATCH_SECONDS))
            watcher.take(query)
            progress.seconds = time.monotonic() - started
            on_progress(progress)
    except KeyboardInterrupt:
        if job.every_seconds is None:
            raise
    except Exception as error:
        if schemas is not None and schemas.learn(error):
            return False
        raise PipelineError(_failure(error)) from error
    finally:
        query.stop()
    return True


def start_archive(
    spark: "SparkSession", job: ArchiveJob, schemas: "TopicSchemas | None" = None
) -> "StreamingQuery":
    """Start the stream of an archive job and return it running.

    Raises:
        PipelineError: the archive has columns of `schemas` with other types.
    """
    rows = archive_rows(_source(spark, job), period=job.period)
    if schemas is not None:
        from kafkalite.pipeline.schemas import archived_columns, check_types

        rows = schemas.decoded(rows)
        before = archived_columns(spark, job.output)
        if before is not None:
            check_types(before.schema, rows.schema)
    checkpoint = job.checkpoint or f"{job.output.rstrip('/')}/_checkpoint"
    writer = (
        rows.writeStream.format("parquet")
        .partitionBy(*PARTITION_COLUMNS)
        .outputMode("append")
        .option("path", job.output)
        .option("checkpointLocation", checkpoint)
        .option("compression", job.compression)
        .queryName("kafkalite archive")
    )
    if job.every_seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(job.every_seconds * 1000)} milliseconds")
    return writer.start()


def archive_rows(records: "DataFrame", *, period: str = "day") -> "DataFrame":
    """Return records of Spark's Kafka source with the columns of an archive.

    The date is the UTC day (or month or year) of the record's timestamp.
    """
    return records.selectExpr(
        "offset",
        "timestamp",
        "timestampType",
        "key",
        "value",
        "headers",
        "topic",
        "partition",
        f"date_format(timestamp, '{PERIODS[period]}') AS date",
    )


def read_archive(spark: "SparkSession", path: str) -> "DataFrame":
    """Return the records of an archive; only files of committed batches are read."""
    return spark.read.schema(ARCHIVE_SCHEMA).parquet(path)


def read_decoded(spark: "SparkSession", path: str) -> "DataFrame":
    """Return the records of an archive with the typed columns of all its schemas.

    A column that a later schema added is null in what was archived before.

    Raises:
        PipelineError: nothing is archived there.
    """
    from kafkalite.pipeline.schemas import archived_columns

    rows = archived_columns(spark, path)
    if rows is None:
        raise PipelineError(f"nothing is archived in {path}")
    return rows


def _source(spark: "SparkSession", job: ArchiveJob) -> "DataFrame":
    reader = (
        spark.readStream.format("kafka")
        .options(**kafka_source_options(job.bootstrap, job.kafka_options))
        .option("includeHeaders", "true")
        .option("failOnDataLoss", str(not job.allow_data_loss).lower())
    )
    if job.topic_pattern is not None:
        # Spark looks for the pattern anywhere in a name.
        reader = reader.option("subscribePattern", f"^(?:{job.topic_pattern})$")
    else:
        reader = reader.option("subscribe", ",".join(job.topics))
    if isinstance(job.starting, int):
        # Partitions without a record at or after that time start at their end, instead of failing.
        reader = reader.option("startingTimestamp", str(job.starting)).option(
            "startingOffsetsByTimestampStrategy", "latest"
        )
    else:
        reader = reader.option("startingOffsets", job.starting)
    if job.max_records_per_batch is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(job.max_records_per_batch))
    return reader.load()


class _Watcher:
    """Adds up the batches that a query reports; each is reported once or more."""

    def __init__(self, progress: ArchiveProgress) -> None:
        self._progress = progress
        self._last_batch = -1

    def take(self, query: "StreamingQuery") -> None:
        for report in query.recentProgress:
            batch = int(report["batchId"])
            if batch <= self._last_batch or not report["sources"]:
                continue
            source = report["sources"][0]
            if int(report["numInputRows"]) > 0:
                self._last_batch = batch
                self._progress.records += int(report["numInputRows"])
                self._progress.batches += 1
            end = parse_offsets(source["endOffset"])
            if end:
                self._progress.end_offsets = end
                self._progress.remaining = offsets_behind(
                    end, parse_offsets(source["latestOffset"])
                )


def _failure(error: Exception) -> str:
    line = plain_line(error)
    if "failOnDataLoss" in str(error) or "some data may have been" in str(error):
        return (
            f"{line} (records were deleted before they were archived; "
            "--allow-data-loss goes on with what is left)"
        )
    return line
