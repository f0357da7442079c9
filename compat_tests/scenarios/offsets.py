"""Finding positions: by time, ends, out of range, after records were deleted."""

from __future__ import annotations

from compat_tests.scenarios.records import check_sent
from compat_tests.scenarios.registry import Bench, scenario

#: Timestamps of ten records, one second apart and long past.
_STAMPS = [1_600_000_000_000 + 1000 * i for i in range(10)]


def _timed_topic(bench: Bench) -> str:
    topic = bench.topic()
    sent = [
        {"partition": 0, "value": b"%d" % i, "timestamp": stamp} for i, stamp in enumerate(_STAMPS)
    ]
    # Two batches: the lookup has to go through an index and through a batch.
    check_sent(bench.helper.produce(topic, sent[:5]))
    check_sent(bench.helper.produce(topic, sent[5:]))
    return topic


@scenario("seek by time", "seek_by_time")
def consumption_starts_at_a_time(bench: Bench) -> None:
    topic = _timed_topic(bench)
    for timestamp, first in ((_STAMPS[3], 3), (_STAMPS[6] - 500, 6), (0, 0)):
        read = bench.driver.consume(topic, {0: {"timestamp": timestamp}}, 10 - first)
        assert [record.offset for record in read] == list(range(first, 10))


@scenario("start inside a batch")
def consumption_starts_inside_a_batch(bench: Bench) -> None:
    topic = bench.topic()
    sent = [{"partition": 0, "value": b"%d" % i} for i in range(100)]
    check_sent(bench.helper.produce(topic, sent, codec="zstd"))
    read = bench.driver.consume(topic, {0: 37}, 63)
    assert [record.offset for record in read] == list(range(37, 100))


@scenario("out of range resets to earliest", "out_of_range_reset")
def offset_out_of_range_is_reset(bench: Bench) -> None:
    topic = _timed_topic(bench)
    bench.helper.delete_records(topic, {0: 4})
    for start in (1000, 1):
        read = bench.driver.consume(topic, {0: start}, 6, reset="earliest")
        assert [record.offset for record in read] == list(range(4, 10))


@scenario("list offsets: earliest, latest, time", "admin:list_offsets")
def offsets_are_listed(bench: Bench) -> None:
    topic = _timed_topic(bench)
    bench.helper.delete_records(topic, {0: 2})
    assert bench.driver.list_offsets(topic, {0: "earliest"}) == {0: 2}
    assert bench.driver.list_offsets(topic, {0: "latest"}) == {0: 10}
    assert bench.driver.list_offsets(topic, {0: _STAMPS[7]}) == {0: 7}
    assert bench.driver.list_offsets(topic, {0: _STAMPS[7] - 1}) == {0: 7}


@scenario("list offsets: time after the last record", "admin:list_offsets", "admin:no_offset")
def no_record_is_that_late(bench: Bench) -> None:
    topic = _timed_topic(bench)
    assert bench.driver.list_offsets(topic, {0: _STAMPS[9] + 1}) == {0: -1}


@scenario("list offsets: largest timestamp", "admin:list_offsets", "admin:max_timestamp")
def offset_of_largest_timestamp(bench: Bench) -> None:
    topic = bench.topic()
    order = [3, 9, 1, 7]
    sent = [{"partition": 0, "value": b"v", "timestamp": _STAMPS[i]} for i in order]
    check_sent(bench.helper.produce(topic, sent))
    assert bench.driver.list_offsets(topic, {0: "max_timestamp"}) == {0: 1}
