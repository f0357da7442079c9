"""Metrics as clients push them: OpenTelemetry's MetricsData v1, a protobuf message (KIP-714).

Only what a person reads is taken: names of metrics and their values. The field numbers are those of
opentelemetry/proto/metrics/v1/metrics.proto.
"""

import struct
from collections.abc import Iterator
from typing import Final

from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.primitives import read_unsigned_varint

METRICS_MAX: Final = 2_000
"""Data points that are read of one message; clients have some hundreds."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_RESOURCE_METRICS = 1
_SCOPE_METRICS = 2
_METRICS = 2
_NAME = 1
_KINDS = (5, 7)
"""Gauge and sum; clients send no histograms."""
_DATA_POINTS = 1
_AS_DOUBLE, _AS_INT, _ATTRIBUTES = 4, 6, 7
_KEY, _VALUE = 1, 2
_STRING_VALUE = 1


def read_metrics(data: bytes) -> dict[str, float]:
    """Return the values by name, with the attributes of a data point in braces: `name{a=b}`.

    Of a message with very many data points the first METRICS_MAX.

    Raises:
        MalformedMessage: it is no protobuf.
    """
    try:
        return _read_metrics(memoryview(data))
    except IndexError:
        raise MalformedMessage("metrics end in the middle of a number") from None


def _read_metrics(data: memoryview) -> dict[str, float]:
    values: dict[str, float] = {}
    for metric in _metrics_of(data):
        name = ""
        points: list[memoryview] = []
        for number, value in _fields(metric):
            if number == _NAME and isinstance(value, memoryview):
                name = _text(value)
            elif number in _KINDS and isinstance(value, memoryview):
                points += _messages(value, _DATA_POINTS)
        for point in points:
            if len(values) == METRICS_MAX:
                return values
            labels, number_value = _read_point(point)
            values[f"{name}{{{labels}}}" if labels else name] = number_value
    return values


def _metrics_of(data: memoryview) -> Iterator[memoryview]:
    for resource in _messages(data, _RESOURCE_METRICS):
        for scope in _messages(resource, _SCOPE_METRICS):
            yield from _messages(scope, _METRICS)


def _read_point(point: memoryview) -> tuple[str, float]:
    labels: list[str] = []
    result = 0.0
    for number, value in _fields(point):
        if number == _AS_DOUBLE and isinstance(value, bytes):
            (result,) = struct.unpack("<d", value)
        elif number == _AS_INT and isinstance(value, bytes):
            (result,) = struct.unpack("<q", value)
        elif number == _ATTRIBUTES and isinstance(value, memoryview):
            labels.append(_read_attribute(value))
    return ",".join(sorted(labels)), result


def _read_attribute(attribute: memoryview) -> str:
    key = text = ""
    for number, value in _fields(attribute):
        if number == _KEY and isinstance(value, memoryview):
            key = _text(value)
        elif number == _VALUE and isinstance(value, memoryview):
            text = "".join(_text(each) for each in _messages(value, _STRING_VALUE))
    return f"{key}={text}"


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in _fields(data):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | bytes | int]]:
    """Yield number and value of each field: a view of what has a length, bytes of what is fixed."""
    position, end = 0, len(data)
    while position < end:
        tag, position = read_unsigned_varint(data, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            position = _after_varint(data, position)
            yield number, 0
            continue
        if kind == _BYTES:
            size, position = read_unsigned_varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise MalformedMessage(f"wire type {kind} at byte {position} of metrics")
        if position + size > end:
            raise MalformedMessage(f"a field of {size} bytes ends behind its metrics")
        value = data[position : position + size]
        position += size
        yield number, value if kind == _BYTES else bytes(value)


def _after_varint(data: memoryview, position: int) -> int:
    """Return the byte after a varint of up to ten bytes, whose value nobody needs."""
    for index in range(position, min(position + 10, len(data))):
        if data[index] < 0x80:
            return index + 1
    raise MalformedMessage(f"a number at byte {position} of metrics has no end")


def _text(value: memoryview) -> str:
    return bytes(value).decode(errors="replace")
