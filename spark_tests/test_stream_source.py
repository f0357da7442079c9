"""Spark's streaming source: starts, limits, restarts, and topics that change under a query."""

import json

import pytest
from pyspark.errors import StreamingQueryException

from spark_tests.streams import input_rows, values
from spark_tests.topics import wait_until

DATA_LOSS = "(?i)data loss|may have been missed|failOnDataLoss|out of range"


def numbered(count: int, first: int = 0) -> list[str]:
    return [f"v{number}" for number in range(first, first + count)]


class TestWhereItStarts:
    def test_earliest_takes_what_is_there_and_what_comes(self, topics, stream_source, streams):
        topic = topics.create(2)
        topics.fill(topic, 6, partitions=2)
        got = streams.collect(stream_source(subscribe=topic, startingOffsets="earliest"))
        got.wait_count(6)
        topics.fill(topic, 4, first=6, partitions=2)
        got.wait_count(10)
        assert got.values() == numbered(10)

    def test_latest_takes_only_what_comes(self, topics, stream_source, streams):
        topic = topics.create(2)
        topics.fill(topic, 6, partitions=2)
        got = streams.collect(stream_source(subscribe=topic, startingOffsets="latest"))
        got.wait_started()
        topics.fill(topic, 4, first=6, partitions=2)
        got.wait_count(4)
        assert got.values() == numbered(4, first=6)

    def test_offsets_of_each_partition(self, topics, stream_source, streams):
        topic = topics.create(3)
        topics.fill(topic, 9, partitions=3)
        start = json.dumps({topic: {"0": 1, "1": -2, "2": -1}})
        got = streams.collect(stream_source(subscribe=topic, startingOffsets=start))
        got.wait_count(5)
        topics.fill(topic, 3, first=9, partitions=3)
        got.wait_count(8)
        assert got.values() == ["v1", "v3", "v4", "v6", "v7", "v9", "v10", "v11"]

    def test_time(self, topics, stream_source, streams):
        topic = topics.create(2)
        topics.produce(
            topic,
            *(
                {"value": f"v{number}", "partition": number % 2, "timestamp": 1_000_000 + number}
                for number in range(10)
            ),
        )
        rows = stream_source(
            subscribe=topic,
            startingTimestamp=str(1_000_007),
            startingOffsetsByTimestampStrategy="latest",
        )
        got = streams.collect(rows)
        got.wait_count(3)
        assert got.values() == ["v7", "v8", "v9"]

    def test_assign_takes_no_other_partition(self, topics, stream_source, streams):
        topic = topics.create(2)
        topics.fill(topic, 8, partitions=2)
        assigned = json.dumps({topic: [1]})
        got = streams.collect(stream_source(assign=assigned, startingOffsets="earliest"))
        got.wait_count(4)
        assert got.values() == ["v1", "v3", "v5", "v7"]

    def test_headers_are_included_when_asked_for(self, topics, stream_source, streams):
        topic = topics.create()
        topics.produce(topic, {"value": "v0", "headers": [("a", b"1"), ("a", None)]})
        rows = stream_source(subscribe=topic, startingOffsets="earliest", includeHeaders="true")
        got = streams.collect(rows)
        got.wait_count(1)
        headers = got.rows.first().headers
        assert [(header.key, header.value) for header in headers] == [("a", b"1"), ("a", None)]


class TestHowMuchAtOnce:
    def test_available_now_takes_all_and_ends(self, topics, stream_source, streams, tmp_path):
        topic = topics.create(2)
        topics.fill(topic, 50, partitions=2)
        rows = stream_source(subscribe=topic, startingOffsets="earliest")
        query = streams.run(
            rows.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        assert sum(input_rows(query)) == 50

    @pytest.mark.parametrize("minimum", [{}, {"minPartitions": "4"}], ids=["", "minPartitions"])
    def test_max_offsets_per_trigger_bounds_each_batch(
        self, topics, stream_source, streams, spark, tmp_path, minimum
    ):
        topic = topics.create(2)
        sent = topics.fill(topic, 50, partitions=2)
        rows = stream_source(
            subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20", **minimum
        )
        query = streams.run(
            rows.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        counts = input_rows(query)
        assert len(counts) == 3
        assert max(counts) <= 20
        assert values(spark.read.parquet(str(tmp_path / "out"))) == sent

    def test_micro_batches_go_on_at_the_interval(self, topics, stream_source, streams):
        topic = topics.create()
        rows = stream_source(subscribe=topic, startingOffsets="earliest")
        seen = []
        writer = rows.writeStream.foreachBatch(lambda batch, number: seen.extend(values(batch)))
        query = streams.start(writer.trigger(processingTime="200 milliseconds"))
        for first in (0, 5, 10):
            topics.fill(topic, 5, first=first)
            wait_until(lambda count=first + 5: len(seen) >= count, "the batch came")
        wait_until(lambda: len(input_rows(query)) == 3, "each batch is reported")
        query.stop()
        assert seen == numbered(15)


class TestRestart:
    """The checkpoint holds offsets; the broker must answer for them as before."""

    @pytest.fixture
    def restart(self, spark, streams, stream_source, tmp_path):
        """Run a query to Parquet with AvailableNow, each time from the same checkpoint."""

        def run(topic, **options):
            options = {"startingOffsets": "earliest", **options}
            rows = stream_source(subscribe=topic, **options)
            streams.run(
                rows.writeStream.format("parquet")
                .option("path", str(tmp_path / "out"))
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
            )
            return values(spark.read.parquet(str(tmp_path / "out")))

        return run

    def test_loses_and_repeats_nothing(self, topics, restart):
        topic = topics.create(3)
        sent = []
        for round_ in range(4):
            sent += topics.fill(topic, 30, first=30 * round_, partitions=3)
            assert restart(topic) == sent
        assert restart(topic) == sent, "a run without new records adds none"

    def test_query_stopped_in_the_middle_goes_on(
        self, topics, stream_source, streams, spark, tmp_path, restart
    ):
        topic = topics.create(2)
        sent = topics.fill(topic, 100, partitions=2)
        rows = stream_source(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="10")
        query = streams.start(
            rows.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        wait_until(lambda: len(input_rows(query)) >= 2, "two batches are written")
        query.stop()
        sent += topics.fill(topic, 20, first=100, partitions=2)
        assert restart(topic) == sent

    def test_partitions_added_meanwhile_are_read_from_their_start(self, topics, restart):
        topic = topics.create(1)
        sent = topics.fill(topic, 10)
        assert restart(topic) == sent
        topics.add_partitions(topic, 3)
        sent += topics.fill(topic, 9, first=10, partitions=3)
        assert restart(topic) == sent

    def test_records_deleted_meanwhile_are_data_loss(self, topics, restart):
        topic = topics.create()
        sent = topics.fill(topic, 10)
        assert restart(topic) == sent
        topics.fill(topic, 10, first=10)
        topics.delete_records(topic, 0, 15)
        with pytest.raises(StreamingQueryException, match=DATA_LOSS):
            restart(topic, failOnDataLoss="true")
        assert restart(topic, failOnDataLoss="false") == sent + numbered(5, first=15)

    def test_records_that_retention_deleted_meanwhile_are_data_loss(self, topics, restart):
        topic = topics.create()
        sent = topics.fill(topic, 10)
        assert restart(topic) == sent
        old = {"timestamp": 1_000_000, "partition": 0}
        topics.produce(topic, *({"value": f"v{number}", **old} for number in range(10, 20)))
        topics.set_config(topic, "retention.ms", 1)
        wait_until(lambda: topics.watermarks(topic)[0] == 20, "retention deleted all 20", 60)
        topics.set_config(topic, "retention.ms", -1)
        topics.fill(topic, 5, first=20)
        with pytest.raises(StreamingQueryException, match=DATA_LOSS):
            restart(topic, failOnDataLoss="true")
        assert restart(topic, failOnDataLoss="false") == sent + numbered(5, first=20)

    def test_topic_deleted_and_recreated_is_data_loss(self, topics, restart):
        topic = topics.create()
        sent = topics.fill(topic, 10)
        assert restart(topic) == sent
        topics.delete(topic)
        topics.create(name=topic)
        topics.fill(topic, 4, first=10)
        with pytest.raises(StreamingQueryException, match=DATA_LOSS):
            restart(topic, failOnDataLoss="true")

    def test_topic_deleted_and_recreated_goes_on_behind_its_end_if_loss_is_allowed(
        self, topics, restart
    ):
        """Spark takes the end of the new topic as its position: what is beyond comes through."""
        topic = topics.create()
        sent = topics.fill(topic, 10)
        assert restart(topic) == sent
        topics.delete(topic)
        topics.create(name=topic)
        topics.fill(topic, 4, first=10)
        found = restart(topic, failOnDataLoss="false")
        topics.fill(topic, 3, first=14)
        later = restart(topic, failOnDataLoss="false")
        assert found[:10] == sent
        assert later[-3:] == numbered(3, first=14)
        assert len(later) == len(set(later))


class TestTopicsThatChangeUnderAQuery:
    def test_partitions_added_are_taken_up(self, topics, stream_source, streams):
        topic = topics.create(1)
        topics.fill(topic, 5)
        got = streams.collect(stream_source(subscribe=topic, startingOffsets="earliest"))
        got.wait_count(5)
        topics.add_partitions(topic, 3)
        topics.fill(topic, 9, first=5, partitions=3)
        got.wait_count(14)
        assert got.values() == numbered(14)

    def test_topics_that_come_to_fit_the_pattern_are_taken_up(self, topics, stream_source, streams):
        prefix = topics.name("p")
        first = topics.create(name=f"{prefix}-1")
        topics.fill(first, 5)
        rows = stream_source(subscribePattern=f"{prefix}-.*", startingOffsets="earliest")
        got = streams.collect(rows)
        got.wait_count(5)
        second = topics.create(2, name=f"{prefix}-2")
        topics.fill(second, 6, first=5, partitions=2)
        got.wait_count(11)
        assert got.values() == numbered(11)

    def test_records_deleted_before_they_were_read_fail_the_query(
        self, topics, stream_source, streams
    ):
        topic = topics.create()
        rows = stream_source(
            subscribe=topic, startingOffsets=json.dumps({topic: {"0": 3}}), failOnDataLoss="true"
        )
        topics.fill(topic, 10)
        topics.delete_records(topic, 0, 6)
        got = streams.collect(rows)
        with pytest.raises(StreamingQueryException, match=DATA_LOSS):
            got.wait_count(7)

    def test_topic_deleted_and_recreated_fails_the_running_query(
        self, topics, stream_source, streams
    ):
        topic = topics.create()
        topics.fill(topic, 10)
        rows = stream_source(subscribe=topic, startingOffsets="earliest", failOnDataLoss="true")
        got = streams.collect(rows)
        got.wait_count(10)
        topics.delete(topic)
        with pytest.raises(StreamingQueryException):
            wait_until(lambda: _raise(got.query.exception()), "the query failed", 90)
        topics.create(name=topic)
        topics.fill(topic, 3)
        again = streams.collect(stream_source(subscribe=topic, startingOffsets="earliest"))
        again.wait_count(3)
        assert again.values() == numbered(3)


def _raise(error):
    if error is not None:
        raise error
