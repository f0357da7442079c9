"""Share states and the bytes that Apache Kafka 4.3.1 wrote of them."""

from pathlib import Path

import pytest

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.share.events import ShareState, StateUpdate
from kafkalite.share.records import ShareStateCodec
from kafkalite.wire.errors import MalformedMessage

VECTORS = Path(__file__).parent.parent / "wire/testdata/share_records.tsv"
ROWS = [
    (name, bytes.fromhex(key), bytes.fromhex(value))
    for name, key, value, _ in (line.split("\t") for line in VECTORS.read_text().splitlines())
    if name in ("ShareSnapshot", "ShareUpdate")
]
CODEC = ShareStateCodec()


@pytest.mark.parametrize(("name", "key", "value"), ROWS)
def test_bytes_of_kafka_are_read_and_written(name, key, value):
    record = CODEC.decode(key, value)
    assert isinstance(record.value, ShareState if name == "ShareSnapshot" else StateUpdate)
    assert CODEC.encode(record) == (key, value)


def test_tombstone_has_the_key_of_a_snapshot():
    _, key, _ = next(row for row in ROWS if row[0] == "ShareSnapshot")
    tombstone = CODEC.decode(key, None)
    assert tombstone.value is None
    assert CODEC.encode(StoredRecord(tombstone.key, None)) == (key, None)


def test_other_kinds_are_skipped_and_broken_ones_refused():
    assert CODEC.decode(b"\x00\x05abc", b"") is None
    with pytest.raises(MalformedMessage):
        CODEC.decode(b"\x00", b"")
    _, key, _ = next(row for row in ROWS if row[0] == "ShareUpdate")
    with pytest.raises(MalformedMessage):
        CODEC.decode(key, None)
