"""Spark's sink: batch and streaming writes, read back by another client."""

import json

import pytest
from pyspark.sql import functions as sql

ROWS = "key STRING, value STRING"


@pytest.fixture
def write(bootstrap):
    """Write a DataFrame to Kafka with Spark's options."""

    def write(rows, **options):
        writer = rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        writer.options(**options).save()

    return write


class TestBatch:
    def test_keys_values_and_nulls_arrive(self, spark, topics, write):
        topic = topics.create()
        rows = spark.createDataFrame([("k", "v0"), (None, "v1"), ("k", None)], ROWS).coalesce(1)
        write(rows, topic=topic)
        found = [(message.key(), message.value()) for message in topics.read(topic)]
        assert found == [(b"k", b"v0"), (None, b"v1"), (b"k", None)]

    def test_topic_column_sends_each_row_to_its_topic(self, spark, topics, write):
        one, two = topics.create(), topics.create()
        rows = spark.createDataFrame(
            [(one, "v0"), (two, "v1"), (one, "v2")], "topic STRING, value STRING"
        )
        write(rows.coalesce(1))
        assert [message.value() for message in topics.read(one)] == [b"v0", b"v2"]
        assert [message.value() for message in topics.read(two)] == [b"v1"]

    def test_topic_option_overrides_the_column(self, spark, topics, write):
        one, two = topics.create(), topics.create()
        rows = spark.createDataFrame([(one, "v0")], "topic STRING, value STRING")
        write(rows, topic=two)
        assert topics.read(one) == []
        assert [message.value() for message in topics.read(two)] == [b"v0"]

    def test_partition_column_is_kept_to(self, spark, topics, write):
        topic = topics.create(3)
        rows = spark.range(30).selectExpr(
            "CAST(id AS STRING) AS value", "CAST(2 - id % 3 AS INT) AS partition"
        )
        write(rows, topic=topic)
        for message in topics.read(topic):
            assert message.partition() == 2 - int(message.value()) % 3

    def test_headers_arrive_in_order(self, spark, topics, write):
        topic = topics.create()
        headers = (
            "array(struct('a' AS key, CAST('1' AS BINARY) AS value),"
            " struct('a' AS key, CAST(NULL AS BINARY) AS value))"
        )
        rows = spark.range(1).selectExpr("'v' AS value", f"{headers} AS headers")
        write(rows, topic=topic, includeHeaders="true")
        assert topics.read(topic)[0].headers() == [("a", b"1"), ("a", None)]

    def test_equal_keys_share_a_partition_as_with_javas_partitioner(self, spark, topics, write):
        topic = topics.create(4)
        rows = spark.range(200).selectExpr("CAST(id % 20 AS STRING) AS key", "'v' AS value")
        write(rows, topic=topic)
        by_java = {message.key(): message.partition() for message in topics.read(topic)}
        other = topics.create(4)
        topics.produce(
            other, *({"key": key, "value": "v"} for key in by_java), partitioner="murmur2_random"
        )
        assert {message.key(): message.partition() for message in topics.read(other)} == by_java

    @pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
    def test_every_codec_is_written(self, spark, topics, write, codec):
        topic = topics.create()
        rows = spark.range(1000).selectExpr("concat('v', id) AS value").coalesce(1)
        write(rows, topic=topic, **{"kafka.compression.type": codec})
        found = [message.value().decode() for message in topics.read(topic)]
        assert found == [f"v{number}" for number in range(1000)]

    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    def test_every_acks_is_served(self, spark, topics, write, acks):
        topic = topics.create()
        options = {"kafka.acks": acks, "kafka.enable.idempotence": str(acks == "all").lower()}
        write(spark.range(100).selectExpr("concat('v', id) AS value"), topic=topic, **options)
        assert len(topics.read(topic)) == 100

    def test_what_was_written_is_read_back_by_spark(self, spark, topics, write, source):
        topic = topics.create(3)
        rows = spark.range(10_000).selectExpr(
            "CAST(id AS STRING) AS key", "sha2(CAST(id AS STRING), 256) AS value"
        )
        write(rows, topic=topic)
        back = source(subscribe=topic).selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        assert back.count() == 10_000
        assert back.exceptAll(rows).isEmpty()

    def test_partition_that_does_not_exist_is_an_error(self, spark, topics, write):
        topic = topics.create(1)
        rows = spark.range(1).selectExpr("'v' AS value", "CAST(5 AS INT) AS partition")
        with pytest.raises(Exception, match=r"(?i)partition|timeout"):
            write(rows, topic=topic, **{"kafka.max.block.ms": "2000"})

    def test_record_beyond_the_topics_limit_is_an_error(self, spark, topics, write):
        topic = topics.create(max_message_bytes=2000)
        rows = spark.range(1).selectExpr("repeat('x', 5000) AS value")
        with pytest.raises(Exception, match=r"(?i)RecordTooLarge|larger than"):
            write(rows, topic=topic)
        assert topics.read(topic) == []

    def test_topic_that_does_not_exist_is_created_as_the_broker_allows(self, spark, topics, write):
        topic = topics.name("auto")
        write(spark.range(10).selectExpr("concat('v', id) AS value"), topic=topic)
        assert len(topics.read(topic)) == 10
        topics.delete(topic)


class TestStream:
    @pytest.fixture
    def copy(self, stream_source, bootstrap, streams, tmp_path):
        """Run a query from one topic through a change into a topic, from its checkpoint on."""

        def run(taken, change=lambda rows: rows, mode="append", **options):
            rows = stream_source(subscribe=taken, startingOffsets="earliest", includeHeaders="true")
            writer = change(rows).writeStream.format("kafka").outputMode(mode)
            writer = writer.option("kafka.bootstrap.servers", bootstrap)
            writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
            return streams.run(writer.options(**options))

        return run

    def test_records_pass_with_key_headers_and_partition(self, topics, copy):
        taken, given = topics.create(2), topics.create(2)
        sent = [
            {"key": f"k{n}", "value": f"v{n}", "partition": n % 2, "headers": [("n", str(n))]}
            for n in range(40)
        ]
        topics.produce(taken, *sent)
        copy(taken, lambda rows: rows.drop("topic"), topic=given, includeHeaders="true")
        original, copied = topics.read(taken), topics.read(given)
        assert len(copied) == 40
        for one, two in zip(original, copied, strict=True):
            assert one.partition() == two.partition()
            assert (one.key(), one.value()) == (two.key(), two.value())
            assert one.headers() == two.headers()

    def test_restart_sends_only_what_is_new(self, topics, copy):
        taken, given = topics.create(2), topics.create(2)
        for first in (0, 20, 40):
            topics.fill(taken, 20, first=first, partitions=2)
            copy(taken, lambda rows: rows.select("key", "value"), topic=given)
        found = sorted(int(message.value()[1:]) for message in topics.read(given))
        assert found == list(range(60))

    def test_topic_column_splits_a_stream(self, topics, copy):
        taken, even, odd = topics.create(), topics.create(), topics.create()
        topics.fill(taken, 20)
        choice = sql.when(sql.col("offset") % 2 == 0, even).otherwise(odd)
        copy(taken, lambda rows: rows.select("value", choice.alias("topic")))
        assert [message.value() for message in topics.read(even)] == [
            f"v{number}".encode() for number in range(0, 20, 2)
        ]
        assert len(topics.read(odd)) == 10

    def test_running_aggregate_is_updated_in_a_topic(self, topics, copy):
        taken, given = topics.create(2), topics.create()

        def count_by_key(rows):
            counts = rows.groupBy(sql.col("key")).agg(sql.count("*").alias("n"))
            return counts.selectExpr("key", "CAST(n AS STRING) AS value")

        for _ in range(2):
            topics.produce(taken, *({"key": f"k{n % 3}", "value": "v"} for n in range(30)))
            copy(taken, count_by_key, mode="update", topic=given)
        last = {message.key(): message.value() for message in topics.read(given)}
        assert last == {b"k0": b"20", b"k1": b"20", b"k2": b"20"}

    def test_two_topics_are_joined_into_a_third(
        self, topics, stream_source, streams, bootstrap, tmp_path
    ):
        people, orders, joined = topics.create(2), topics.create(2), topics.create()
        topics.produce(people, *({"key": str(n), "value": f"name{n}"} for n in range(10)))
        topics.produce(orders, *({"key": str(n % 10), "value": f"o{n}"} for n in range(30)))

        def read(topic, column):
            rows = stream_source(subscribe=topic, startingOffsets="earliest")
            return rows.selectExpr("CAST(key AS STRING)", f"CAST(value AS STRING) AS {column}")

        rows = read(people, "name").join(read(orders, "item"), "key")
        streams.run(
            rows.selectExpr("key", "to_json(struct(name, item)) AS value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", joined)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        found = sorted(
            (json.loads(message.value())["name"], json.loads(message.value())["item"])
            for message in topics.read(joined)
        )
        assert found == sorted((f"name{n % 10}", f"o{n}") for n in range(30))
