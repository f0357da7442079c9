"""Files to a topic: Parquet, CSV or JSON rows, or an archive of topics, with their own times.

Ordered replays are sorted once by Spark into slices that follow each other, and the slices are
sent one after the other, so that the whole replay is in order, is never held in memory, and a
failure leaves a known prefix of it in the topic.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kafkalite.pipeline.archive import read_archive
from kafkalite.pipeline.errors import PipelineError, plain_line
from kafkalite.pipeline.installation import INSTALL_SPARK
from kafkalite.pipeline.pace import Pace
from kafkalite.pipeline.sender import (
    RESULT_SCHEMA,
    SendFailed,
    SendPlan,
    producer_settings,
    sending,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = ("parquet", "csv", "json", "archive")

#: Rows of one slice: a second or less of sending, so that progress moves and memory stays small.
_SLICE_RECORDS = 50_000
#: Length of a slice of a replay that has a pace.
_SLICE_SECONDS = 3.0
#: Spark samples the rows to cut slices; beyond some hundreds the sample costs more than it gives.
_MAX_SLICES = 400
_ANSWER_SECONDS = 15.0


@dataclass(slots=True, frozen=True, kw_only=True)
class ReplayJob:
    """Plan of a replay: source, target and speed.

    The columns are Spark SQL expressions over the columns of the input, so a plain column name
    does, and so does ``concat(carrier, flight)``.

    Attributes:
        bootstrap: ``host:port`` of a broker, or several with commas.
        topic: the topic to send to.
        paths: files or folders of one format.
        format: one of `FORMATS`; guessed from the first path if None.
        key: the key; none if None.
        value: the value; the whole row as JSON if None.
        headers: expression by header name.
        time: the record's time: a timestamp, or a number of ms since the epoch. Records are sent
            in this order and carry it; without it they carry the time of sending.
        partition: the partition's number; chosen by the key if None.
        pace: how fast.
        create_partitions: create the topic with that many partitions if it does not exist. Records
            that carry times of their own are then kept for ever, because retention goes by those
            times: it would delete last year's records at once.
        topic_settings: settings of the topic when it is created; they win.
        producer_options: further settings of librdkafka, such as ``security.protocol``.
    """

    bootstrap: str
    topic: str
    paths: tuple[str, ...]
    format: str | None = None
    key: str | None = None
    value: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    time: str | None = None
    partition: str | None = None
    pace: Pace = field(default_factory=Pace)
    create_partitions: int | None = None
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    producer_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def input_format(self) -> str:
        """The format that was given, or the one that the first path looks like."""
        return self.format or guess_format(self.paths[0])

    @property
    def is_ordered(self) -> bool:
        """True if records carry times of their own and are sent in their order."""
        return self.time is not None or self.input_format == "archive"


@dataclass(slots=True)
class ReplayProgress:
    """How far a replay is; times in ms since the epoch, None if the records have none."""

    total: int = 0
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    first_time_ms: int | None = None
    last_time_ms: int | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Count what one task reported."""
        self.records += row["records"]
        self.bytes += row["bytes"]
        times = [self.first_time_ms, self.last_time_ms, row["first_time"], row["last_time"]]
        known = [moment for moment in times if moment is not None]
        if known:
            self.first_time_ms, self.last_time_ms = min(known), max(known)


def guess_format(path: str) -> str:
    """Return the format of a path by its ending: CSV and JSON (also packed), else Parquet."""
    name = path.rstrip("/").lower()
    for packed in (".gz", ".bz2", ".zst"):
        name = name.removesuffix(packed)
    if name.endswith(".csv"):
        return "csv"
    if name.endswith((".json", ".jsonl", ".ndjson")):
        return "json"
    return "parquet"


def replay(
    spark: "SparkSession",
    job: ReplayJob,
    on_progress: Callable[[ReplayProgress], None] = lambda _: None,
) -> ReplayProgress:
    """Send every row and return what was sent, once all of it is acknowledged.

    `on_progress` is called when the number of rows is known and after each slice.

    Raises:
        PipelineError: bad columns, no broker, or a refused record; says how many were sent.
    """
    prepare_topic(job)
    progress = ReplayProgress()
    try:
        rows = records_to_send(read_input(spark, job), job)
        _send(spark, rows, job, progress, on_progress)
    except Exception as error:
        raise PipelineError(_failure(error, progress)) from error
    return progress


def read_input(spark: "SparkSession", job: ReplayJob) -> "DataFrame":
    """Return the rows of the input files."""
    if job.input_format == "archive":
        return read_archive(spark, job.paths[0])
    if job.input_format == "csv":
        return spark.read.csv(list(job.paths), header=True, inferSchema=True)
    if job.input_format == "json":
        return spark.read.json(list(job.paths))
    return spark.read.parquet(*job.paths)


def records_to_send(rows: "DataFrame", job: ReplayJob) -> "DataFrame":
    """Return the rows as records (columns of `SENT_SCHEMA`) behind the columns they sort by.

    Rows of equal time keep the order of the input.
    """
    from pyspark.sql import functions as sql

    if job.input_format == "archive":
        return _archived_records(rows, job)
    headers = [
        sql.struct(sql.lit(name).alias("key"), _bytes(rows, text).alias("value"))
        for name, text in job.headers.items()
    ]
    empty = "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>)"
    return rows.select(
        (_millis(rows, job.time) if job.time else sql.expr("CAST(NULL AS LONG)")).alias("order_1"),
        sql.monotonically_increasing_id().alias("order_2"),
        (_bytes(rows, job.key) if job.key else sql.expr("CAST(NULL AS BINARY)")).alias("key"),
        _bytes(rows, job.value or "to_json(struct(*))").alias("value"),
        (_millis(rows, job.time) if job.time else sql.expr("CAST(NULL AS LONG)")).alias("time"),
        sql.expr(f"CAST({job.partition or 'NULL'} AS INT)").alias("partition"),
        (sql.array(*headers) if headers else sql.expr(empty)).alias("headers"),
    )


def _archived_records(rows: "DataFrame", job: ReplayJob) -> "DataFrame":
    """Archived records go back as they were, in the order of their offsets in each partition.

    Across partitions they go by time. Times need not rise with the offsets, so a record is sorted
    by the greatest time up to it.
    """
    window = "OVER (PARTITION BY topic, partition ORDER BY offset)"
    return rows.selectExpr(
        f"max(unix_millis(timestamp)) {window} AS order_1",
        "offset AS order_2",
        "key",
        "value",
        "unix_millis(timestamp) AS time",
        f"CAST({job.partition or 'partition'} AS INT) AS partition",
        "headers",
    )


def _bytes(rows: "DataFrame", text: str) -> "Column":
    """Return an expression as the bytes of its text; binary columns stay as they are."""
    from pyspark.sql import functions as sql

    kind = rows.select(sql.expr(text)).schema[0].dataType.simpleString()
    if kind.startswith(("struct", "array", "map")):
        return sql.to_json(sql.expr(text)).cast("binary")
    if kind == "binary":
        return sql.expr(text)
    # A number cast to binary at once would be its big-endian bytes.
    return sql.expr(text).cast("string").cast("binary")


def _millis(rows: "DataFrame", text: str) -> "Column":
    from pyspark.sql import functions as sql

    kind = rows.select(sql.expr(text)).schema[0].dataType.simpleString()
    if kind in {"bigint", "int", "double", "float", "smallint"}:
        return sql.expr(text).cast("long")
    return sql.unix_millis(sql.expr(text).cast("timestamp"))


def _send(
    spark: "SparkSession",
    rows: "DataFrame",
    job: ReplayJob,
    progress: ReplayProgress,
    on_progress: Callable[[ReplayProgress], None],
) -> None:
    in_turn = job.is_ordered or job.pace.is_limited
    pace, slices = _sliced(rows, job.pace, in_turn=in_turn)
    slices.persist()
    try:
        counts = _counts(slices)
        progress.total = sum(counts.values())
        on_progress(progress)
        plan = SendPlan(
            topic=job.topic,
            producer=producer_settings(job.bootstrap, job.producer_options),
            pace=pace,
            preceding=_preceding(counts),
        )
        started = time.time()
        numbers = sorted(counts)
        together = 1 if in_turn else spark.sparkContext.defaultParallelism
        for first in range(0, len(numbers), together):
            group = numbers[first : first + together]
            began = _send_slices(spark, slices, plan, group, progress)
            plan = replace(plan, started=plan.started or began)
            progress.seconds = time.time() - started
            on_progress(progress)
    finally:
        slices.unpersist()


def _send_slices(
    spark: "SparkSession",
    slices: "DataFrame",
    plan: SendPlan,
    group: list[int],
    progress: ReplayProgress,
) -> float:
    """Send some slices side by side and return when the first of them began (wall clock, s)."""
    sent = slices.drop("order_1", "order_2").mapInArrow(sending(plan), RESULT_SCHEMA).rdd
    results = spark.sparkContext.runJob(sent, list, group)
    for row in results:
        progress.add(row.asDict())
    for row in results:
        if row["error"] is not None:
            raise SendFailed(row["error"])
    return float(min(row["started"] for row in results))


def _sliced(rows: "DataFrame", pace: Pace, *, in_turn: bool) -> "tuple[Pace, DataFrame]":
    """Return the pace with its first time, and the rows in Spark partitions.

    If wanted, the partitions are such that, taken in turn, they are in order.
    """
    if not in_turn:
        return pace, rows
    count, first, last = rows.selectExpr("count(*)", "min(time)", "max(time)").collect()[0]
    pace = replace(pace, first_timestamp_ms=first or 0)
    seconds = pace.due_seconds(count, last)
    by = ("order_1", "order_2")
    return pace, rows.repartitionByRange(slice_count(count, seconds), *by).sortWithinPartitions(*by)


def slice_count(count: int, seconds: float) -> int:
    """Return in how many slices to send so many records in (at least) so many seconds.

    Progress is told, and a worker's memory freed, after each.
    """
    by_records = count // _SLICE_RECORDS + 1
    by_time = int(seconds / _SLICE_SECONDS) + 1
    return max(1, min(_MAX_SLICES, count, max(by_records, by_time)))


def _counts(slices: "DataFrame") -> dict[int, int]:
    from pyspark.sql import functions as sql

    number = sql.spark_partition_id().alias("number")
    rows = slices.select(number).groupBy("number").count().collect()
    return {row["number"]: row["count"] for row in rows}


def _preceding(counts: Mapping[int, int]) -> dict[int, int]:
    result, total = {}, 0
    for number in sorted(counts):
        result[number] = total
        total += counts[number]
    return result


def prepare_topic(job: ReplayJob) -> None:
    """Check that a broker answers, and create the topic if the job asks for it.

    Raises:
        PipelineError: no broker answers, or it refuses the topic.
    """
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic
    except ImportError as error:
        raise PipelineError(
            f"replay sends with confluent-kafka, which is not installed; {INSTALL_SPARK}"
        ) from error
    settings: dict[str, str | int | float | bool]
    settings = {"bootstrap.servers": job.bootstrap, "log_level": 0, **job.producer_options}
    admin = AdminClient(settings)
    try:
        topics = admin.list_topics(timeout=_ANSWER_SECONDS).topics
        if job.create_partitions is not None and job.topic not in topics:
            config = {"retention.ms": "-1"} if job.is_ordered else {}
            config.update(job.topic_settings)
            topic = NewTopic(job.topic, num_partitions=job.create_partitions, config=config)
            admin.create_topics([topic])[job.topic].result(_ANSWER_SECONDS)
    except KafkaException as error:
        raise PipelineError(f"{job.bootstrap}: {error.args[0].str()}") from error


def _failure(error: Exception, progress: ReplayProgress) -> str:
    line = plain_line(error)
    return f"{line} (after {progress.records} records)" if progress.records else line
