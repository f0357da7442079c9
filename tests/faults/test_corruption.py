"""Damage that clients notice as what it is said to be."""

import pytest

from kafkalite.faults.corruption import corrupted
from kafkalite.wire.records import LENGTH_OVERHEAD, MAGIC, crc_matches, read_batch_header
from tests.log.log_kit import batch


@pytest.fixture
def records():
    return bytes(batch(b"a" * 100)) + bytes(batch(b"b" * 100))


def header(records):
    return read_batch_header(bytearray(records), 0)


def test_wrong_checksum_leaves_the_records_as_they_are(records):
    damaged = corrupted(records, "crc")
    assert not crc_matches(bytearray(damaged), 0, header(damaged))
    assert damaged[:17] + records[17:18] + damaged[18:] == records


def test_wrong_records_leave_header_and_length_as_they_are(records):
    damaged = corrupted(records, "batch")
    assert header(damaged) == header(records)
    assert not crc_matches(bytearray(damaged), 0, header(damaged))
    assert len(damaged) == len(records)


def test_unknown_magic_is_of_no_format(records):
    damaged = corrupted(records, "magic")
    assert damaged[16] not in range(MAGIC + 1)
    assert damaged[:16] + records[16:17] + damaged[17:] == records


def test_wrong_length_ends_inside_of_the_batch(records):
    damaged = corrupted(records, "length")
    said = LENGTH_OVERHEAD + int.from_bytes(damaged[8:12], "big")
    assert 0 < said < len(records) // 2
    assert damaged[12:] == records[12:]


@pytest.mark.parametrize("how", ["crc", "batch", "magic", "length"])
def test_only_the_first_batch_is_damaged(records, how):
    half = len(records) // 2
    assert corrupted(records, how)[half:] == records[half:]
    assert corrupted(records, how) != records


def test_what_is_no_batch_stays_as_it_is():
    assert corrupted(b"", "crc") == b""
    assert corrupted(bytes(61), "batch") == bytes(61)
