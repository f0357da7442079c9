"""Spark's batch source: which records a query gets for which options."""

import json
import time

import pytest

from spark_tests.streams import values

HOUR_MS = 3_600_000


class TestWhatARecordIs:
    def test_every_column_comes_back_as_it_was_sent(self, topics, source):
        topic = topics.create(2)
        sent_ms = 1_357_000_000_123
        topics.produce(
            topic, {"key": b"\x00k", "value": b"\xffv", "partition": 1, "timestamp": sent_ms}
        )
        rows = source(subscribe=topic).selectExpr("*", "unix_millis(timestamp) AS ms").collect()
        assert len(rows) == 1
        row = rows[0].asDict()
        assert (row["topic"], row["partition"], row["offset"]) == (topic, 1, 0)
        assert (bytes(row["key"]), bytes(row["value"])) == (b"\x00k", b"\xffv")
        assert (row["ms"], row["timestampType"]) == (sent_ms, 0)

    def test_null_keys_and_values_and_empty_ones_are_told_apart(self, topics, source):
        topic = topics.create()
        topics.produce(topic, {"value": None}, {"key": b"", "value": b""}, {"key": b"k"})
        rows = source(subscribe=topic).orderBy("offset").collect()
        assert [(row.key, row.value) for row in rows] == [(None, None), (b"", b""), (b"k", None)]

    def test_headers_keep_order_duplicates_and_nulls(self, topics, source):
        topic = topics.create()
        headers = [("a", b"1"), ("b", None), ("a", b"2")]
        topics.produce(topic, {"value": "v0", "headers": headers}, {"value": "v1"})
        rows = source(subscribe=topic, includeHeaders="true").orderBy("offset").collect()
        assert [(header.key, header.value) for header in rows[0].headers] == headers
        assert rows[1].headers is None

    def test_log_append_time_is_reported_as_such(self, topics, source):
        topic = topics.create(message_timestamp_type="LogAppendTime")
        before = int(time.time() * 1000)
        topics.produce(topic, {"value": "v0", "timestamp": 1000})
        row = source(subscribe=topic).selectExpr("timestampType", "unix_millis(timestamp)").first()
        assert row[0] == 1
        assert before <= row[1] <= int(time.time() * 1000)

    @pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_every_codec_is_read(self, topics, source, codec):
        topic = topics.create()
        sent = [f"v{number}" for number in range(500)]
        topics.produce(topic, *({"value": value} for value in sent), compression_type=codec)
        assert values(source(subscribe=topic)) == sent

    def test_records_of_the_largest_default_size_are_read(self, topics, source):
        topic = topics.create()
        large = bytes(range(256)) * 3900
        topics.produce(topic, *({"value": large} for _ in range(8)))
        rows = source(subscribe=topic).collect()
        assert [bytes(row.value) for row in rows] == [large] * 8


class TestWhichTopics:
    def test_subscribe_takes_several_topics(self, topics, source):
        one, two = topics.create(2), topics.create(1)
        topics.fill(one, 4, partitions=2)
        topics.fill(two, 3, first=4)
        rows = source(subscribe=f"{one},{two}")
        assert values(rows) == [f"v{number}" for number in range(7)]
        assert {row.topic for row in rows.select("topic").distinct().collect()} == {one, two}

    def test_subscribe_pattern_is_searched_in_the_names(self, topics, source):
        prefix = topics.name("p")
        for suffix, first in (("-a", 0), ("-b", 2), ("-ab", 4)):
            topics.create(name=prefix + suffix)
            topics.fill(prefix + suffix, 2, first=first)
        assert values(source(subscribePattern=f"^{prefix}-[ab]$")) == ["v0", "v1", "v2", "v3"]
        assert source(subscribePattern=f"{prefix}-[ab]").count() == 6

    def test_assign_takes_the_partitions_named(self, topics, source):
        topic = topics.create(3)
        topics.fill(topic, 9, partitions=3)
        assigned = source(assign=json.dumps({topic: [0, 2]}))
        assert values(assigned) == ["v0", "v2", "v3", "v5", "v6", "v8"]

    def test_topic_that_does_not_exist_is_an_error(self, topics, source):
        with pytest.raises(Exception, match=r"UnknownTopicOrPartition|does not host|no resolvable"):
            source(subscribe=topics.name("absent")).collect()

    def test_empty_topic_has_no_rows(self, topics, source):
        assert source(subscribe=topics.create(3)).count() == 0


class TestWhichOffsets:
    @pytest.fixture
    def topic(self, topics):
        """Three partitions of ten records, v0 to v29 in turn."""
        topic = topics.create(3)
        topics.fill(topic, 30, partitions=3)
        return topic

    def test_default_is_all(self, topic, source):
        assert values(source(subscribe=topic)) == [f"v{number}" for number in range(30)]

    def test_earliest_and_latest_are_the_whole_topic(self, topic, source):
        rows = source(subscribe=topic, startingOffsets="earliest", endingOffsets="latest")
        assert rows.count() == 30

    def test_offsets_of_each_partition_are_kept_to(self, topic, source):
        """-2 is earliest, -1 is latest; ends are exclusive."""
        rows = source(
            subscribe=topic,
            startingOffsets=json.dumps({topic: {"0": -2, "1": 3, "2": 10}}),
            endingOffsets=json.dumps({topic: {"0": 2, "1": -1, "2": 10}}),
        )
        found = sorted((row.partition, row.offset) for row in rows.collect())
        assert found == [(0, 0), (0, 1), *((1, offset) for offset in range(3, 10))]

    def test_read_committed_gives_the_same_without_transactions(self, topic, source):
        rows = source(subscribe=topic, **{"kafka.isolation.level": "read_committed"})
        assert rows.count() == 30

    def test_min_partitions_cuts_ranges_without_losing_any(self, topic, source):
        rows = source(subscribe=topic, minPartitions="7")
        # Spark rounds: ranges of equal length give a few less or more than asked for.
        assert rows.rdd.getNumPartitions() >= 6
        assert values(rows) == [f"v{number}" for number in range(30)]

    def test_start_below_the_log_start_is_data_loss(self, topics, topic, source):
        topics.delete_records(topic, 0, 5)
        start = json.dumps({topic: {"0": 2, "1": 10, "2": 10}})
        options = {"subscribe": topic, "startingOffsets": start}
        with pytest.raises(Exception, match=r"(?i)data loss|missed|out of range|failOnDataLoss"):
            source(**options, failOnDataLoss="true").collect()
        kept = source(**options, failOnDataLoss="false").collect()
        assert [row.offset for row in kept] == [5, 6, 7, 8, 9]

    def test_earliest_is_the_log_start_after_delete_records(self, topics, topic, source):
        topics.delete_records(topic, 0, 7)
        topics.delete_records(topic, 1, 10)
        rows = source(subscribe=topic).collect()
        assert sorted((row.partition, row.offset) for row in rows) == [
            *((0, offset) for offset in range(7, 10)),
            *((2, offset) for offset in range(10)),
        ]

    def test_gaps_that_compaction_left_are_passed_over(self, topics, source):
        topic, left = topics.create_compacted()
        rows = source(subscribe=topic).selectExpr(
            "CAST(key AS STRING)", "CAST(value AS STRING)", "offset"
        )
        found = rows.orderBy("offset").collect()
        assert {row.key: row.value for row in found} == left
        assert [row.offset for row in found] == [20, 21, 22, 23, 24, 25]
        # A range that holds nothing any more is read to its end, not waited for.
        ends = {"startingOffsets": json.dumps({topic: {"0": 3}})}
        ends["endingOffsets"] = json.dumps({topic: {"0": 9}})
        assert source(subscribe=topic, **ends).count() == 0


class TestOffsetsByTime:
    """ListOffsets with a timestamp gives the first offset at or after it, -1 without one."""

    @pytest.fixture
    def topic(self, topics):
        """Partition 0: ten records at hours 0 to 9. Partition 1: ten at hours 5 to 14."""
        topic = topics.create(2)
        topics.produce(
            topic,
            *(
                {"value": f"v{hour}", "partition": part, "timestamp": (hour + 1) * HOUR_MS}
                for part, hours in ((0, range(10)), (1, range(5, 15)))
                for hour in hours
            ),
        )
        return topic

    def test_one_time_for_all_partitions(self, topic, source):
        rows = source(
            subscribe=topic,
            startingTimestamp=str(3 * HOUR_MS + 1),
            endingTimestamp=str(8 * HOUR_MS),
        )
        found = sorted((row.partition, row.offset) for row in rows.collect())
        assert found == [*((0, n) for n in range(3, 7)), (1, 0), (1, 1)]

    def test_one_time_for_each_partition(self, topic, source):
        rows = source(
            subscribe=topic,
            startingOffsetsByTimestamp=json.dumps({topic: {"0": 10 * HOUR_MS, "1": 14 * HOUR_MS}}),
            endingOffsetsByTimestamp=json.dumps({topic: {"0": 99 * HOUR_MS, "1": 15 * HOUR_MS}}),
        )
        found = sorted((row.partition, row.offset) for row in rows.collect())
        assert found == [(0, 9), (1, 8)]

    def test_no_record_so_late_is_an_error_or_the_end_as_asked(self, topic, source):
        options = {"subscribe": topic, "startingTimestamp": str(12 * HOUR_MS)}
        with pytest.raises(Exception, match=r"No offset matched|timestamp"):
            source(**options).collect()
        rows = source(**options, startingOffsetsByTimestampStrategy="latest")
        found = sorted((row.partition, row.offset) for row in rows.collect())
        assert found == [(1, offset) for offset in range(6, 10)]
