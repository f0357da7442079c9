"""Metrics against messages put together here after OpenTelemetry's definition."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.primitives import unsigned_varint
from kafkalite.wire.telemetry import METRICS_MAX, read_metrics

GAUGE, SUM, HISTOGRAM = 5, 7, 9


def sized(number, data):
    return unsigned_varint(number << 3 | 2) + unsigned_varint(len(data)) + data


def fixed(number, data):
    return unsigned_varint(number << 3 | 1) + data


def attribute(key, text):
    return sized(7, sized(1, key.encode()) + sized(2, sized(1, text.encode())))


def double(value, *attributes):
    return sized(1, b"".join(attributes) + fixed(4, struct.pack("<d", value)))


def integer(value, *attributes):
    # The time of the data point stands before the value, and means nothing here.
    return sized(1, fixed(3, bytes(8)) + fixed(6, struct.pack("<q", value)) + b"".join(attributes))


def metric(name, kind, *points):
    return sized(2, sized(1, name.encode()) + sized(3, b"unit") + sized(kind, b"".join(points)))


def data(*metrics):
    resource = sized(1, attribute("service.name", "x"))
    return sized(1, resource + sized(2, sized(1, b"") + b"".join(metrics)))


def test_values_have_their_names_and_attributes():
    message = data(
        metric("a.rate", GAUGE, double(0.5)),
        metric("b.total", SUM, integer(-3, attribute("topic", "t"), attribute("node", "1"))),
        metric("b.total", SUM, integer(4, attribute("topic", "u")), bytes([0x10, 0x01])),
        metric("c", HISTOGRAM, double(9)),
    )
    assert read_metrics(message) == {
        "a.rate": 0.5,
        "b.total{node=1,topic=t}": -3,
        "b.total{topic=u}": 4,
    }


def test_nothing_is_no_metrics():
    assert read_metrics(b"") == {}


def test_very_many_are_cut_off():
    message = data(*(metric(f"m{number}", GAUGE, double(number)) for number in range(3000)))
    assert len(read_metrics(message)) == METRICS_MAX


@pytest.mark.parametrize(
    "message",
    [b"\x0b", b"\x0a\x05a", b"\x0a", b"\x09abc", b"\x80", b"\x08\xff", b"\x08" + b"\xff" * 11],
)
def test_what_is_no_protobuf_is_refused(message):
    with pytest.raises(MalformedMessage):
        read_metrics(message)


@given(st.binary(max_size=200))
def test_any_bytes_are_metrics_or_refused(message):
    with suppress(MalformedMessage):
        read_metrics(message)
