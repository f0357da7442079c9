"""Single records: their bytes, and every way in which they can be malformed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.record_codec import append_record, scan_keys, scan_payload
from kafkalite.wire.records import Record

optional_bytes = st.none() | st.binary(max_size=300)
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70) | st.integers(-9000, 9000)


def encoded(record, timestamp_delta=0, offset_delta=0):
    payload = bytearray()
    append_record(payload, record, timestamp_delta, offset_delta)
    return bytes(payload)


def test_bytes_of_a_record():
    """Kafka's DefaultRecord: length, attributes, deltas, key, value, headers; zig-zag varints."""
    record = Record(0, 0, b"k", None, [("h", b"12"), ("n", None)])
    assert encoded(record, timestamp_delta=-1, offset_delta=64).hex(" ") == (
        "20 00 01 80 01 02 6b 01 04 02 68 04 31 32 02 6e 01"
    )


@pytest.mark.parametrize("number", [0, 63, 64, 8191, 8192, 2**20, 2**27])
def test_varints_of_every_length(number):
    size = min(number, 2**20)
    record = Record(
        0, 0, b"k" * size, b"v" * size, [("n" * min(number, 70), None)] * min(number, 9000)
    )
    payload = encoded(record, timestamp_delta=-number - 1, offset_delta=number)
    ((_, end, timestamp_delta, offset_delta, key, _, length, headers),) = scan_payload(payload, 1)
    assert (end, timestamp_delta, offset_delta) == (len(payload), -number - 1, number)
    assert (len(key), length, len(headers)) == (size, size, min(number, 9000))


@given(
    numbers,
    st.integers(0, 2**31 - 1),
    optional_bytes,
    optional_bytes,
    st.lists(st.tuples(st.text(max_size=80), optional_bytes), max_size=70),
)
def test_round_trip(timestamp_delta, offset_delta, key, value, headers):
    payload = encoded(Record(0, 0, key, value, headers), timestamp_delta, offset_delta)
    ((start, end, *deltas, found_key, at, length, found_headers),) = scan_payload(payload, 1)
    assert (start, end) == (0, len(payload))
    assert deltas == [timestamp_delta, offset_delta]
    assert found_key == key
    assert (None if length < 0 else payload[at : at + length]) == value
    assert found_headers == headers
    assert list(scan_keys(payload * 2, 2)) == [(offset_delta, key)] * 2


def test_records_one_after_another():
    parts = [encoded(Record(0, 0, b"k" * n, None), offset_delta=n) for n in range(5)]
    found = list(scan_payload(b"".join(parts), 5))
    assert [fields[3] for fields in found] == [0, 1, 2, 3, 4]
    assert [fields[1] - fields[0] for fields in found] == [len(part) for part in parts]


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("", id="no record"),
        pytest.param("01", id="negative length"),
        pytest.param("20 00 00 00 01 01 00", id="longer than the batch"),
        pytest.param("0c 00 00 00 01 01 00 00", id="bytes after the last record"),
        pytest.param("0e 00 00 00 01 01 00 00", id="record longer than its fields"),
        pytest.param("0a 00 00 00 01 01 00", id="record shorter than its fields"),
        pytest.param("0c 00 00 00 7e 01 00", id="key beyond the end"),
        pytest.param("0c 00 00 00 01 7e 00", id="value beyond the end"),
        pytest.param("0c 00 00 00 01 01 02", id="more headers than bytes"),
        pytest.param("0e 00 00 00 01 01 01 00", id="negative header count"),
        pytest.param("10 00 00 00 01 01 02 01 00", id="negative header key length"),
        pytest.param("10 00 00 00 01 01 02 7e 00", id="header key beyond the end"),
        pytest.param("10 00 00 00 01 01 02 00 7e", id="header value beyond the end"),
        pytest.param("20 00" + " ff" * 15, id="endless varint"),
    ],
)
def test_malformed_record_is_invalid(payload):
    with pytest.raises(KafkaError) as caught:
        list(scan_payload(bytes.fromhex(payload), 1))
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("count", [-1, 0, 2, 2**31 - 1])
def test_count_must_be_that_of_the_records(count):
    payload = bytes.fromhex("0c 00 00 00 01 01 00")
    assert len(list(scan_payload(payload, 1))) == 1
    with pytest.raises(KafkaError) as caught:
        list(scan_payload(payload, count))
    assert caught.value.code is ErrorCode.INVALID_RECORD


@given(st.binary(max_size=100), st.integers(0, 5))
def test_any_bytes_give_records_or_a_kafka_error(payload, count):
    try:
        found = list(scan_payload(payload, count))
    except KafkaError:
        return
    assert len(found) == count


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("", id="no record"),
        pytest.param("20 00 00 00 01 01 00", id="longer than the batch"),
        pytest.param("0c 00 00 00 7e 01 00", id="key beyond the end"),
        pytest.param("0c 00 00 00 0e 01 00", id="key beyond the record"),
        pytest.param("20 00" + " ff" * 15, id="endless varint"),
    ],
)
def test_scanning_keys_stops_at_what_cannot_be(payload):
    with pytest.raises(KafkaError) as caught:
        list(scan_keys(bytes.fromhex(payload), 1))
    assert caught.value.code is ErrorCode.INVALID_RECORD


@given(st.binary(max_size=100), st.integers(0, 5))
def test_scanning_keys_of_any_bytes_ends(payload, count):
    try:
        found = list(scan_keys(payload, count))
    except KafkaError:
        return
    assert len(found) == count
