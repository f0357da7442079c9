"""Structured Streaming from and to three brokers that die and come back while batches run."""

import itertools
import threading
import time
from collections import Counter

import pytest
from confluent_kafka import Producer

from kafkalite.testing import Cluster
from spark_tests.streams import input_rows
from spark_tests.topics import Topics, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.long]

SOURCE, TARGET = "source", "target"
PARTITIONS = 3
RECORDS_PER_S = 100
ANSWER_S = 60
BATCHES_BETWEEN_FAULTS = 2

#: The partition whose leader it hits, what is done to that broker, and whether the query to files
#: is meanwhile stopped and started from its checkpoint.
FAULTS = (
    (TARGET, Cluster.stop, False),
    (SOURCE, Cluster.kill, True),
)

#: The admin client of Kafka 3.9, by which Spark 4.0 asks for end offsets, sticks to a leader that
#: left the cluster until its time is up, a minute by default (KAFKA-20673); Spark then tries anew.
SOURCE_OPTIONS = {"kafka.default.api.timeout.ms": "5000", "kafka.request.timeout.ms": "5000"}


@pytest.fixture
def cluster():
    """Every record is on all three brokers, and acknowledged by two of them."""
    with Cluster(3, config={"min.insync.replicas": 2}, links=False) as cluster:
        cluster.create_topic(SOURCE, partitions=PARTITIONS)
        cluster.create_topic(TARGET, partitions=PARTITIONS)
        yield cluster


class Feeder:
    """Writes numbers as text to one partition after the other, at a steady pace, idempotently."""

    def __init__(self, bootstrap):
        self.sent = []
        self.refused = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join()

    def finish(self):
        """Return all values that were sent, by partition in their order, once all are in."""
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(ANSWER_S) == 0
        assert not self.refused, self.refused[0]
        return {
            partition: [value for index, value in self.sent if index == partition]
            for partition in range(PARTITIONS)
        }

    def _feed(self):
        begin = time.monotonic()
        for number in itertools.count():
            partition, value = number % PARTITIONS, str(number)
            self._producer.produce(
                SOURCE, value, f"k{number}", partition, on_delivery=self._on_delivery
            )
            self.sent.append((partition, value))
            self._producer.poll(0)
            ahead_s = begin + len(self.sent) / RECORDS_PER_S - time.monotonic()
            if self._stopping.wait(max(0.0, ahead_s)):
                return

    def _on_delivery(self, error, _):
        if error is not None:
            self.refused.append(error)


class Copies:
    """Two queries over one source: into Parquet files, and into another topic."""

    def __init__(self, spark, streams, cluster, folder):
        self._spark = spark
        self._streams = streams
        self._bootstrap = cluster.bootstrap
        self._folder = folder
        self.queries = {}

    def start(self):
        self.start_files()
        rows = self._source().select("key", "value", "partition")
        writer = rows.writeStream.format("kafka").option("topic", TARGET)
        writer = writer.option("kafka.bootstrap.servers", self._bootstrap)
        self._start(TARGET, writer)

    def start_files(self):
        """Start the query to files; again from its checkpoint if it ran before."""
        rows = self._source().selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
        self._start("files", rows.writeStream.format("parquet").option("path", self._files))

    def stop_files(self):
        self.queries["files"].stop()

    def wait_batches(self):
        """Return when each of the queries has written some more batches with rows in them."""
        before = {name: self._batches(name) for name in self.queries}
        for name in self.queries:
            wanted = before[name] + BATCHES_BETWEEN_FAULTS
            wait_until(
                lambda name=name, wanted=wanted: self._batches(name) >= wanted,
                f"more batches of {name}: {before}",
                ANSWER_S,
            )

    def finish(self):
        """Write all that there is, and stop."""
        for query in self.queries.values():
            query.processAllAvailable()
            query.stop()

    def files(self):
        """Return what the files hold: (partition, offset, value)."""
        rows = self._spark.read.parquet(self._files).collect()
        return sorted((row["partition"], row["offset"], row["value"]) for row in rows)

    @property
    def _files(self):
        return str(self._folder / "files")

    def _source(self):
        reader = self._spark.readStream.format("kafka").option("subscribe", SOURCE)
        reader = reader.options(**SOURCE_OPTIONS)
        reader = reader.option("kafka.bootstrap.servers", self._bootstrap)
        return reader.option("startingOffsets", "earliest").load()

    def _start(self, name, writer):
        writer = writer.option("checkpointLocation", str(self._folder / f"checkpoint-{name}"))
        self.queries[name] = self._streams.start(writer.trigger(processingTime="200 milliseconds"))

    def _batches(self, name):
        query = self.queries[name]
        if query.exception() is not None:
            raise query.exception()
        return len(input_rows(query))


def test_output_is_exact_while_brokers_are_killed_and_stopped(spark, streams, cluster, tmp_path):
    """Rows come out exactly once in files and at least once in a topic; no query fails meanwhile.

    That also says that what a batch was planned with never vanishes: a leader that knew of fewer
    records than the one before would be data loss to Spark (KIP-207).
    """
    copies = Copies(spark, streams, cluster, tmp_path)
    with Feeder(cluster.bootstrap) as feeder:
        copies.start()
        copies.wait_batches()
        for topic, end, again in FAULTS:
            leader = cluster.leader_of(topic)
            assert end(cluster, leader) in (None, 0)
            if again:
                copies.stop_files()
                copies.start_files()
            cluster.wait_leader(topic, other_than=leader)
            copies.wait_batches()
            cluster.restart(leader)
            cluster.wait_in_sync()
        sent = feeder.finish()
        copies.finish()
    check(sent, copies.files(), Topics(cluster.bootstrap))


def check(sent, files, topics):
    """The source holds what was sent, the files hold the source, the target lacks nothing."""
    source = [(m.partition(), m.offset(), m.value().decode()) for m in topics.read(SOURCE)]
    assert source == [
        (partition, offset, value)
        for partition, values in sent.items()
        for offset, value in enumerate(values)
    ]
    assert files == source
    copied = Counter((m.partition(), m.value().decode()) for m in topics.read(TARGET))
    assert copied.keys() == {(partition, value) for partition, _, value in source}
    print(f"{len(source)} records, {copied.total() - len(copied)} of them twice in the topic")
