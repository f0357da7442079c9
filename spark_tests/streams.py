"""Streaming queries of one test: started with less ado, stopped at its end."""

import uuid

from pyspark.sql import DataFrame, SparkSession

from spark_tests.topics import wait_until

FINISH_SECONDS = 60


def values(rows: DataFrame) -> list[str]:
    """Return the values of records as text, sorted as v0, v1, … v10."""
    found = [row[0] for row in rows.selectExpr("CAST(value AS STRING)").collect()]
    return sorted(found, key=lambda value: int(value[1:]))


def input_rows(query) -> list[int]:
    """Return how many rows each batch took in, leaving out empty batches."""
    counts = {report["batchId"]: report["numInputRows"] for report in query.recentProgress}
    return [count for _, count in sorted(counts.items()) if count]


class Streams:
    """Starts queries and remembers them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._queries = []

    def start(self, writer):
        """Start a DataStreamWriter."""
        query = writer.start()
        self._queries.append(query)
        return query

    def run(self, writer) -> object:
        """Start a DataStreamWriter with AvailableNow and wait until it has taken all there is."""
        query = self.start(writer.trigger(availableNow=True))
        assert query.awaitTermination(FINISH_SECONDS), "the stream did not finish"
        return query

    def collect(self, rows: DataFrame, **options) -> "Collected":
        """Start a query that keeps every row in memory, as soon as rows arrive."""
        name = f"rows_{uuid.uuid4().hex[:10]}"
        writer = rows.writeStream.format("memory").queryName(name).options(**options)
        return Collected(self._spark, self.start(writer), name)

    def close(self) -> None:
        for query in self._queries:
            query.stop()


class Collected:
    """What a running query has collected."""

    def __init__(self, spark: SparkSession, query, name: str) -> None:
        self.query = query
        self._spark = spark
        self._name = name

    @property
    def rows(self) -> DataFrame:
        return self._spark.table(self._name)

    def values(self) -> list[str]:
        """Return what has arrived by now."""
        return values(self.rows)

    def wait_started(self) -> None:
        """Wait until the starting offsets are fixed."""
        self.query.processAllAvailable()

    def wait_count(self, count: int) -> None:
        """Wait until at least so many rows arrived; a failed query raises its error."""

        def arrived() -> bool:
            if self.query.exception() is not None:
                raise self.query.exception()
            return self.rows.count() >= count

        wait_until(arrived, f"{count} rows", FINISH_SECONDS)
