"""Records of `__consumer_offsets` in Kafka's bytes (rule 156)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.records import RECORD_TYPES, GroupRecordCodec
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.stored.group_metadata import (
    GROUP_METADATA_VALUE,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from kafkalite.wire.stored.offset_commit import (
    OFFSET_COMMIT_VALUE,
    OffsetCommitKey,
    OffsetCommitValue,
)

codec = GroupRecordCodec()
text = st.text(max_size=10)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
OFFSET_KEY = OffsetCommitKey(group="g", topic="t", partition=1)


RECORDED = [
    line.split("\t")
    for line in (Path(__file__).parent / "testdata/records-4.3.1.tsv").read_text().splitlines()
    if not line.startswith("#")
]
KNOWN = {each.number for each in RECORD_TYPES}


@pytest.mark.parametrize("number", sorted(KNOWN - {0}))
def test_records_of_apache_kafka_are_read_and_written_to_the_byte(number):
    """Of offsets without a topic id the version is ours (3); Kafka 4.3 writes no such."""
    rows = [row for row in RECORDED if int(row[0]) == number]
    assert rows
    for _, _, key, value in rows:
        data = None if value == "-" else bytes.fromhex(value)
        record = codec.decode(bytes.fromhex(key), data)
        assert record is not None
        assert codec.encode(record) == (bytes.fromhex(key), data)


def round_trip(record):
    return codec.decode(*codec.encode(record))


@given(text, text, int32, int64, int32, text, int64)
def test_offsets_come_back(group, topic, partition, offset, epoch, metadata, timestamp):
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    value = OffsetCommitValue(
        offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=timestamp
    )
    assert round_trip(StoredRecord(key, value)) == StoredRecord(key, value)


@given(st.lists(st.tuples(text, st.none() | text, int32, int32, st.binary(max_size=9))), text)
def test_groups_come_back(members, protocol):
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol=protocol,
        leader=None,
        current_state_timestamp=5,
        members=[
            MemberMetadata(
                member_id=member_id,
                group_instance_id=instance_id,
                client_id="c",
                client_host="/h",
                rebalance_timeout=rebalance,
                session_timeout=session,
                subscription=data,
                assignment=data,
            )
            for member_id, instance_id, rebalance, session, data in members
        ],
    )
    key = GroupMetadataKey(group="g")
    assert round_trip(StoredRecord(key, value)) == StoredRecord(key, value)


def test_bytes_of_an_offset_are_kafkas():
    """Key type 1; value version 3 with the leader epoch after the offset."""
    value = OffsetCommitValue(offset=2, leader_epoch=3, metadata="m", commit_timestamp=4)
    key, data = codec.encode(StoredRecord(OFFSET_KEY, value))
    assert key.hex(" ") == "00 01 00 01 67 00 01 74 00 00 00 01"
    assert data.hex(" ") == (
        "00 03 00 00 00 00 00 00 00 02 00 00 00 03 00 01 6d 00 00 00 00 00 00 00 04"
    )


def test_bytes_of_an_offset_with_its_own_expiry_are_version_1():
    """The only version that has room for it."""
    value = OffsetCommitValue(offset=2, metadata="", commit_timestamp=4, expire_timestamp=9)
    _, data = codec.encode(StoredRecord(OFFSET_KEY, value))
    assert data[:2] == b"\0\1"
    assert round_trip(StoredRecord(OFFSET_KEY, value)).value.expire_timestamp == 9


def test_bytes_of_a_group_are_kafkas():
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol=None,
        leader=None,
        current_state_timestamp=2,
    )
    key, data = codec.encode(StoredRecord(GroupMetadataKey(group="g"), value))
    assert key.hex(" ") == "00 02 00 01 67"
    assert data == (
        b"\0\3\0\x08consumer" + b"\0\0\0\1" + b"\xff\xff" * 2 + b"\0" * 7 + b"\2" + b"\0\0\0\0"
    )


@pytest.mark.parametrize("key", [OFFSET_KEY, GroupMetadataKey(group="g")])
def test_tombstones(key):
    encoded, value = codec.encode(StoredRecord(key, None))
    assert value is None
    assert codec.decode(encoded, None) == StoredRecord(key, None)


@pytest.mark.parametrize("version", range(5))
def test_all_versions_of_an_offset_are_read(version):
    value = OffsetCommitValue(offset=2, metadata="m", commit_timestamp=4)
    data = OFFSET_COMMIT_VALUE.encode_versioned(version, value)
    key, _ = codec.encode(StoredRecord(OFFSET_KEY, None))
    for key_type in (b"\0\0", b"\0\1"):
        assert codec.decode(key_type + key[2:], data) == StoredRecord(OFFSET_KEY, value)


@pytest.mark.parametrize("version", range(5))
def test_all_versions_of_a_group_are_read(version):
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="p", leader="l")
    data = GROUP_METADATA_VALUE.encode_versioned(version, value)
    key = GroupMetadataKey(group="g")
    assert codec.decode(codec.encode(StoredRecord(key, None))[0], data) == StoredRecord(key, value)


@pytest.mark.parametrize("key_type", [9, 24, 999, -1])
def test_kinds_that_are_not_known_are_skipped(key_type):
    """Written by another broker."""
    assert codec.decode(key_type.to_bytes(2, "big", signed=True) + b"rest", b"value") is None


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\1\0", b"\0\2\0\5ab"])
def test_broken_keys_are_malformed(key):
    with pytest.raises(MalformedMessage):
        codec.decode(key, b"")


def test_value_of_a_version_to_come_is_malformed():
    key, _ = codec.encode(StoredRecord(OFFSET_KEY, None))
    with pytest.raises(MalformedMessage):
        codec.decode(key, b"\0\x63")
