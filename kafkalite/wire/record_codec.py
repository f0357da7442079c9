"""The bytes of single records inside a (decompressed) batch, after Kafka's DefaultRecord."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

from kafkalite.wire.errors import ErrorCode, KafkaError


class RecordLike(Protocol):
    """A record, as `build_batch` reads it."""

    @property
    def offset(self) -> int: ...  # noqa: D102
    @property
    def timestamp(self) -> int: ...  # noqa: D102
    @property
    def key(self) -> bytes | None: ...  # noqa: D102
    @property
    def value(self) -> bytes | None: ...  # noqa: D102
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...  # noqa: D102


Scanned: TypeAlias = tuple[
    int, int, int, int, bytes | None, int, int, list[tuple[str, bytes | None]]
]


def scan_payload(payload: bytes, record_count: int) -> Iterator[Scanned]:
    """Yield (start, end, timestamp delta, offset delta, key, value start, value length, headers).

    `start` and `end` delimit the whole record; a value length of -1 stands for null.

    One byte per varint is by far the most common, and is decoded in line: a call per field would
    double the time per record.

    Raises:
        KafkaError: INVALID_RECORD if the payload is not exactly `record_count` whole records.
    """
    position = 0
    payload_end = len(payload)
    try:
        for _ in range(record_count):
            start = position
            length = payload[position]
            position += 1
            if length >= 0x80:
                length, position = read_more(payload, position, length)
            end = position + (length >> 1)
            if length & 1 or end > payload_end:
                raise invalid("a record is longer than its batch")
            position += 1  # attributes: none are defined
            timestamp_delta = payload[position]
            position += 1
            if timestamp_delta >= 0x80:
                timestamp_delta, position = read_more(payload, position, timestamp_delta)
            timestamp_delta = (timestamp_delta >> 1) ^ -(timestamp_delta & 1)
            offset_delta = payload[position]
            position += 1
            if offset_delta >= 0x80:
                offset_delta, position = read_more(payload, position, offset_delta)
            offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
            length = payload[position]
            position += 1
            if length >= 0x80:
                length, position = read_more(payload, position, length)
            if length & 1:
                key = None
            else:
                key = payload[position : position + (length >> 1)]
                position += length >> 1
            length = payload[position]
            position += 1
            if length >= 0x80:
                length, position = read_more(payload, position, length)
            value_start = position
            value_length = -1 if length & 1 else length >> 1
            if value_length > 0:
                position += value_length
            header_count = payload[position]
            position += 1
            headers: list[tuple[str, bytes | None]] = []
            if header_count:
                position = _read_headers(payload, position, end, header_count, headers)
            if position != end:
                raise invalid("a record's fields do not add up to its length")
            yield start, end, timestamp_delta, offset_delta, key, value_start, value_length, headers
    except IndexError:
        raise invalid("the records end before their count is reached") from None
    if position != payload_end or record_count < 0:
        raise invalid("bytes follow the last record")


def scan_keys(payload: bytes, record_count: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield (offset delta, key) of each record, passing over the rest of it unseen.

    Twice as fast as `scan_payload`, for payloads whose CRC was checked.

    Raises:
        KafkaError: INVALID_RECORD if there are not `record_count` records.
    """
    position = 0
    payload_end = len(payload)
    try:
        for _ in range(record_count):
            length = payload[position]
            position += 1
            if length >= 0x80:
                length, position = read_more(payload, position, length)
            end = position + (length >> 1)
            position += 1  # attributes: none are defined
            while payload[position] >= 0x80:  # timestamp delta
                position += 1
            position += 1
            delta = payload[position]
            position += 1
            if delta >= 0x80:
                delta, position = read_more(payload, position, delta)
            length = payload[position]
            position += 1
            if length >= 0x80:
                length, position = read_more(payload, position, length)
            key_end = position + (length >> 1)
            if end > payload_end or key_end > end:
                raise invalid("a record is longer than its batch")
            yield delta >> 1, None if length & 1 else payload[position:key_end]
            position = end
    except IndexError:
        raise invalid("the records end before their count is reached") from None


def _read_headers(
    payload: bytes,
    position: int,
    end: int,
    first: int,
    headers: list[tuple[str, bytes | None]],
) -> int:
    count = first
    if first >= 0x80:
        count, position = read_more(payload, position, first)
    if count & 1 or count >> 1 > end - position:
        raise invalid("a record has an impossible number of headers")
    for _ in range(count >> 1):
        length, position = read_varint(payload, position)
        if length & 1:
            raise invalid("a record header has a key of negative length")
        key_end = position + (length >> 1)
        # Any bytes come through unchanged, though a header key ought to be UTF-8.
        name = payload[position:key_end].decode("utf-8", "surrogateescape")
        length, position = read_varint(payload, key_end)
        if length & 1:
            headers.append((name, None))
        else:
            headers.append((name, payload[position : position + (length >> 1)]))
            position += length >> 1
    return position


def read_varint(payload: bytes, position: int) -> tuple[int, int]:
    """Return (unsigned varint, position after it)."""
    first = payload[position]
    if first < 0x80:
        return first, position + 1
    return read_more(payload, position + 1, first)


def read_more(payload: bytes, position: int, first: int) -> tuple[int, int]:
    """Return (unsigned varint, position after it) of several bytes; `first` was read already."""
    byte = payload[position]
    position += 1
    value = (first & 0x7F) | (byte & 0x7F) << 7
    if byte < 0x80:
        return value, position
    shift = 14
    while byte >= 0x80:
        if shift > 63:
            raise invalid("a number has more than ten bytes")
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, position


def invalid(message: str) -> KafkaError:
    """Return the refusal of a batch whose records are not what they should be."""
    return KafkaError(ErrorCode.INVALID_RECORD, f"invalid record batch: {message}")


def append_record(
    payload: bytearray, record: RecordLike, timestamp_delta: int, offset_delta: int
) -> None:
    """Append the bytes of one record to `payload`."""
    body = bytearray(b"\x00")
    _append_varint(body, timestamp_delta)
    _append_varint(body, offset_delta)
    _append_bytes(body, record.key)
    _append_bytes(body, record.value)
    headers = record.headers
    _append_varint(body, len(headers))
    for name, value in headers:
        _append_bytes(body, name.encode("utf-8", "surrogateescape"))
        _append_bytes(body, value)
    _append_varint(payload, len(body))
    payload += body


def _append_bytes(body: bytearray, value: bytes | None) -> None:
    if value is None:
        body.append(1)
        return
    _append_varint(body, len(value))
    body += value


def _append_varint(body: bytearray, value: int) -> None:
    """Append `value` in zig-zag form: small numbers of either sign take one byte."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    while rest >= 0x80:
        body.append(rest & 0x7F | 0x80)
        rest >>= 7
    body.append(rest)
