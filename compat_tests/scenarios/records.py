"""Records from producer to log to consumer."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from compat_tests.partitioning import java_partition
from compat_tests.scenarios.registry import Bench, scenario
from compat_tests.stored_batches import stored_batches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compat_tests.driver import ConsumedRecord, Produced


def check_sent(results: Sequence[Produced]) -> None:
    """Assert that nothing was refused."""
    refused = [result for result in results if result.error is not None]
    assert not refused, refused[:3]


def check_same(sent: Sequence[Mapping[str, Any]], read: Sequence[ConsumedRecord]) -> None:
    """Assert that the records of one partition came back as they were sent, in order."""
    assert [record.key for record in read] == [record.get("key") for record in sent]
    assert [record.value for record in read] == [record.get("value") for record in sent]
    expected = [tuple(record.get("headers") or ()) for record in sent]
    assert [record.headers for record in read] == expected


@scenario("zstd", "codec:zstd", codec="zstd")
@scenario("lz4", "codec:lz4", codec="lz4")
@scenario("snappy", "codec:snappy", codec="snappy")
@scenario("gzip", "codec:gzip", codec="gzip")
@scenario("uncompressed", codec="none")
def batches_are_stored_as_compressed(bench: Bench, codec: str) -> None:
    topic = bench.topic()
    sent = [
        {"partition": 0, "key": b"key-%d" % i, "value": b"value %d " % i * 20} for i in range(200)
    ]
    results = bench.driver.produce(topic, sent, codec=codec)
    check_sent(results)
    assert sorted(result.offset for result in results) == list(range(200))
    assert {batch.codec for batch in stored_batches(bench.bootstrap, topic)} == {codec}
    check_same(sent, bench.driver.consume(topic, {0: "earliest"}, 200))


@scenario("headers", "headers")
def headers_keep_order_and_duplicates(bench: Bench) -> None:
    topic = bench.topic()
    headers = [("trace", b"1"), ("trace", b"2"), ("Grüße", b"hello world")]
    sent = [{"partition": 0, "key": b"k", "value": b"v", "headers": headers}]
    check_sent(bench.driver.produce(topic, sent))
    check_same(sent, bench.driver.consume(topic, {0: "earliest"}, 1))


@scenario("headers with any bytes", "headers", "binary_header")
def header_values_are_bytes(bench: Bench) -> None:
    topic = bench.topic()
    sent = [{"partition": 0, "value": b"v", "headers": [("all", bytes(range(256)))]}]
    check_sent(bench.driver.produce(topic, sent))
    check_same(sent, bench.driver.consume(topic, {0: "earliest"}, 1))


@scenario("header without value", "headers", "null_header")
def header_values_may_be_null(bench: Bench) -> None:
    topic = bench.topic()
    sent = [{"partition": 0, "value": b"v", "headers": [("null", None), ("empty", b"")]}]
    check_sent(bench.driver.produce(topic, sent))
    check_same(sent, bench.driver.consume(topic, {0: "earliest"}, 1))


@scenario("0-byte key and value", "empty_key_and_value", key=b"", value=b"")
@scenario("null key and value", "null_key_and_value", key=None, value=None)
@scenario("null value", "null_value", key=b"key", value=None)
@scenario("null key", key=None, value=b"value")
def null_is_not_empty(bench: Bench, key: bytes | None, value: bytes | None) -> None:
    topic = bench.topic()
    sent = [{"partition": 0, "key": key, "value": value}]
    check_sent(bench.driver.produce(topic, sent))
    check_same(sent, bench.driver.consume(topic, {0: "earliest"}, 1))


#: The largest value without key and headers whose batch has max.message.bytes' default, 1048588:
#: 61 bytes of batch header and 11 of the record's own fields around it.
LARGEST_VALUE = 1048588 - 61 - 11


@scenario("record of maximum size", "large_request")
def record_of_maximum_size_is_stored(bench: Bench) -> None:
    topic = bench.topic()
    sent = [{"partition": 0, "value": random.Random(1).randbytes(LARGEST_VALUE)}]
    check_sent(bench.driver.produce(topic, sent, max_request_bytes=2_000_000))
    assert [batch.size for batch in stored_batches(bench.bootstrap, topic)] == [1048588]
    check_same(sent, bench.driver.consume(topic, {0: "earliest"}, 1))


@scenario("record larger than a fetch", "small_fetch")
def record_larger_than_a_fetch_is_delivered(bench: Bench) -> None:
    topic = bench.topic()
    sent = [{"partition": 0, "value": bytes([65 + i]) * 100_000} for i in range(3)]
    check_sent(bench.driver.produce(topic, sent))
    check_same(sent, bench.driver.consume(topic, {0: "earliest"}, 3, max_partition_bytes=10_000))


@scenario("keys go where Java puts them", "murmur2")
def keys_go_to_the_partitions_of_the_java_client(bench: Bench) -> None:
    topic = bench.topic(partitions=7)
    keys = [b"", b"a", b"ab", b"abc", b"\xff\xfe"] + [b"key-%d" % i for i in range(25)]
    results = bench.driver.produce(topic, [{"key": key, "value": b"v"} for key in keys])
    check_sent(results)
    assert [result.partition for result in results] == [java_partition(key, 7) for key in keys]


@scenario("producer's timestamps", "timestamps")
def create_time_is_kept(bench: Bench) -> None:
    topic = bench.topic()
    now = int(time.time() * 1000)
    stamps = [now - 5000, now - 7000, now, 1_600_000_000_000]
    sent = [{"partition": 0, "value": b"v", "timestamp": stamp} for stamp in stamps]
    check_sent(bench.driver.produce(topic, sent))
    read = bench.driver.consume(topic, {0: "earliest"}, len(sent))
    assert [record.timestamp for record in read] == stamps
    assert {record.timestamp_type for record in read} <= {"create", None}


@scenario("log append time", "log_append_time")
def log_append_time_is_the_brokers(bench: Bench) -> None:
    topic = bench.topic(configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    sent = [{"partition": 0, "value": b"v"} for _ in range(3)]
    if bench.client.reason_against(["timestamps"]) is None:
        sent = [{**record, "timestamp": 1_600_000_000_000} for record in sent]
    check_sent(bench.driver.produce(topic, sent))
    after = int(time.time() * 1000)
    read = bench.driver.consume(topic, {0: "earliest"}, 3)
    assert all(before <= (record.timestamp or 0) <= after for record in read), read
    assert all(batch.log_append_time for batch in stored_batches(bench.bootstrap, topic))
    assert {record.timestamp_type for record in read} <= {"append", None}
    if bench.client.reason_against(["timestamp_type"]) is None:
        assert {record.timestamp_type for record in read} == {"append"}


@scenario("idempotent producer", "idempotence")
def idempotent_batches_carry_a_sequence(bench: Bench) -> None:
    topic = bench.topic(partitions=2)
    sent = [{"partition": i // 150, "value": b"%d" % i * 10} for i in range(300)]
    check_sent(bench.driver.produce(topic, sent, idempotence=True, acks="all"))
    for partition in range(2):
        batches = stored_batches(bench.bootstrap, topic, partition)
        assert len({(batch.producer_id, batch.producer_epoch) for batch in batches}) == 1
        assert batches[0].producer_id >= 0
        sequence = 0
        for batch in batches:
            assert batch.base_sequence == sequence
            sequence += batch.record_count
        assert sequence == 150
        read = bench.driver.consume(topic, {partition: "earliest"}, 150)
        check_same(sent[partition * 150 : (partition + 1) * 150], read)


@scenario("acks=all", acks="all")
@scenario("acks=1", acks="1")
@scenario("acks=0", "acks0", acks="0")
def every_kind_of_acks_stores(bench: Bench, acks: str) -> None:
    topic = bench.topic()
    sent = [{"partition": 0, "value": b"%d" % i} for i in range(20)]
    results = bench.driver.produce(topic, sent, acks=acks)
    check_sent(results)
    if acks != "0":
        assert [result.offset for result in results] == list(range(20))
    check_same(sent, bench.driver.consume(topic, {0: "earliest"}, 20))


@scenario("5,000 records over 3 partitions")
def many_records_arrive_whole_and_in_order(bench: Bench) -> None:
    topic = bench.topic(partitions=3)
    counts = {0: 2500, 1: 1500, 2: 1000}
    sent = [
        {"partition": partition, "key": b"%d" % i, "value": b"x" * (i % 300 + 1)}
        for partition, count in counts.items()
        for i in range(count)
    ]
    check_sent(bench.driver.produce(topic, sent, codec="gzip"))
    read = bench.driver.consume(topic, dict.fromkeys(counts, "earliest"), 5000)
    for partition, count in counts.items():
        here = [record for record in read if record.partition == partition]
        assert [record.offset for record in here] == list(range(count))
        check_same([record for record in sent if record["partition"] == partition], here)


@scenario("topic created by first produce", "auto_create")
def producing_creates_a_missing_topic(bench: Bench) -> None:
    topic = bench.name()
    check_sent(bench.driver.produce(topic, [{"key": b"k", "value": b"v"}]))
    found = bench.helper.call("describe_topic", topic=topic)
    ends = bench.helper.list_offsets(topic, {int(i): "latest" for i in found["partitions"]})
    assert sum(ends.values()) == 1


@scenario("chosen partitions without a group", "assign")
def assigned_partitions_need_no_group(bench: Bench) -> None:
    topic = bench.topic(partitions=3)
    sent = [{"partition": i % 3, "value": b"%d" % i} for i in range(30)]
    sent.sort(key=lambda record: record["partition"])
    check_sent(bench.driver.produce(topic, sent))
    read = bench.driver.consume(topic, {0: "earliest", 2: 4}, 16)
    offsets = {
        partition: [record.offset for record in read if record.partition == partition]
        for partition in range(3)
    }
    assert offsets == {0: list(range(10)), 1: [], 2: list(range(4, 10))}
