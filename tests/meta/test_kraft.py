"""What Apache Kafka's metadata log says of topics.

The layout of the records was checked against a log that Kafka 4.3.1 wrote.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.meta.kraft import KraftMetadata, merge, read_kraft_metadata
from kafkalite.wire.primitives import unsigned_varint
from kafkalite.wire.records import Record, build_batch, control_batch
from tests.log.sim_disk import SimDisk
from tests.meta.meta_kit import topic_id

DIRECTORY = "/data/__cluster_metadata-0"


def frame(key, body, version=0):
    return b"\x01" + unsigned_varint(key) + unsigned_varint(version) + body + b"\0"


def text(value):
    return b"\0" if value is None else unsigned_varint(len(value) + 1) + value.encode()


def topic(name, number):
    return frame(2, text(name) + topic_id(number).bytes)


def removed(number):
    return frame(9, topic_id(number).bytes)


def config(name, setting, value, kind=2):
    return frame(4, bytes([kind]) + text(name) + text(setting) + text(value))


def producer_ids(end):
    return frame(15, (1).to_bytes(4, "big") + (5).to_bytes(8, "big") + end.to_bytes(8, "big"))


def batch(first_offset, *values):
    records = [
        Record(offset=first_offset + index, timestamp=0, key=None, value=value, headers=[])
        for index, value in enumerate(values)
    ]
    return bytes(build_batch(records, base_offset=first_offset))


def disk():
    made = SimDisk()
    made.make_directory(DIRECTORY)
    return made


def put(made, name, data):
    made.file(f"{DIRECTORY}/{name}").data = bytearray(data)
    return made


def log(*values):
    return put(disk(), "00000000000000000000.log", batch(0, *values))


def read(some_disk):
    return read_kraft_metadata(some_disk, "/data")


def test_without_a_metadata_log_nothing_is_known():
    assert read(SimDisk()) == KraftMetadata()
    assert read(disk()) == KraftMetadata()


def test_settings_of_topics_are_read():
    found = read(
        log(
            topic("a", 1),
            config("a", "cleanup.policy", "compact"),
            config("a", "retention.ms", "5"),
            config("a", "retention.ms", None),
            topic("b", 2),
        )
    )
    assert found.topic_configs == {"a": {"cleanup.policy": "compact"}}


def test_a_deleted_topic_takes_its_settings_with_it():
    found = read(
        log(topic("a", 1), config("a", "retention.ms", "5"), removed(1), removed(9), topic("a", 2))
    )
    assert found.topic_configs == {}


def test_other_records_are_passed_over():
    found = read(
        log(
            config("1", "log.retention.ms", "5", kind=4),
            frame(0, b"anything"),
            frame(2, b"of a later version", version=1),
            topic("a", 1),
            config("a", "segment.ms", "7"),
        )
    )
    assert found.topic_configs == {"a": {"segment.ms": "7"}}


def test_producer_ids_go_on_behind_those_of_kafka():
    """Rule 64."""
    assert read(log(producer_ids(1000), producer_ids(2000))).next_producer_id == 2000


def test_settings_that_mean_nothing_here_are_left_out(caplog):
    found = read(log(config("a", "nope", "1"), config("a", "retention.ms", "x")))
    assert found.topic_configs == {}
    assert "nope: unknown" in caplog.text
    assert "retention.ms: 'x'" in caplog.text


def test_segments_are_read_in_order_and_control_batches_skipped():
    marker = control_batch(
        is_commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0
    )
    first = bytes(marker) + batch(1, topic("a", 1), config("a", "segment.ms", "7"))
    made = put(disk(), "00000000000000000003.log", batch(3, config("a", "segment.ms", "8")))
    put(made, "00000000000000000000.log", first)
    assert read(made).topic_configs == {"a": {"segment.ms": "8"}}


def test_a_snapshot_stands_for_what_the_log_no_longer_has():
    snapshot = batch(0, topic("a", 1), config("a", "segment.ms", "7"), config("a", "flush.ms", "1"))
    made = put(disk(), "00000000000000000010-0000000001.checkpoint", snapshot)
    put(
        made, "00000000000000000005-0000000001.checkpoint", batch(0, config("old", "flush.ms", "1"))
    )
    log = batch(8, config("a", "segment.ms", "0"), config("a", "segment.ms", "1"))
    log += batch(10, config("a", "segment.ms", "9"))
    put(made, "00000000000000000008.log", log)
    assert read(made).topic_configs == {"a": {"segment.ms": "9", "flush.ms": "1"}}


def test_a_snapshot_alone_is_enough():
    made = put(
        disk(), "00000000000000000010-0000000001.checkpoint", batch(0, config("a", "flush.ms", "1"))
    )
    assert read(made).topic_configs == {"a": {"flush.ms": "1"}}


def test_a_snapshot_beside_the_whole_log_is_not_needed():
    made = log(config("a", "flush.ms", "2"))
    put(made, "00000000000000000010-0000000001.checkpoint", batch(0, config("a", "flush.ms", "1")))
    assert read(made).topic_configs == {"a": {"flush.ms": "2"}}


@pytest.mark.parametrize("broken", [frame(2, text("a")), frame(4, b"\x02\xff\xff"), b"\x01"])
def test_a_damaged_record_ends_the_reading_with_a_warning(broken, caplog):
    found = read(log(config("a", "flush.ms", "1"), broken[:-1], config("b", "flush.ms", "1")))
    assert found.topic_configs == {"a": {"flush.ms": "1"}}
    assert "not read to its end" in caplog.text


def test_a_disk_that_fails_is_no_reason_not_to_start(caplog):
    made = log(config("a", "flush.ms", "1"))
    made.fail("read")
    assert read(made) == KraftMetadata()
    assert "not read to its end" in caplog.text


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40))
def test_no_record_stops_the_start(data):
    read(log(data, config("a", "flush.ms", "1")))


def test_several_directories_are_put_together():
    one = KraftMetadata(topic_configs={"a": {"flush.ms": "1"}}, next_producer_id=5)
    assert merge([KraftMetadata(), one, KraftMetadata(next_producer_id=3)]) == one
