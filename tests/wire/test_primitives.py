"""Leaves are bounded: no length is believed, no varint is longer than five bytes."""

import io
from uuid import UUID

import pytest
from construct import ConstructError, Struct
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.primitives import (
    ArrayLeaf,
    Bool,
    BytesLeaf,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableStruct,
    RecordsLeaf,
    StringLeaf,
    TaggedFields,
    UInt16,
    UInt32,
    UnsignedVarint,
    Uuid,
    format_of,
    read_unsigned_varint,
    size_min,
    unsigned_varint,
    uuid_from_bytes,
)

COMPACT = {"compact": True, "nullable": False}
PLAIN = {"compact": False, "nullable": False}
VARINT = UnsignedVarint()


@given(st.integers(0, 2**35 - 1))
def test_varints_are_read_as_they_were_written(value):
    raw = unsigned_varint(value)
    assert read_unsigned_varint(b"x" + raw + b"y", 1) == (value, 1 + len(raw))
    assert VARINT.parse(raw) == value
    assert VARINT.build(value) == raw


@pytest.mark.parametrize(
    ("value", "raw"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\1"), (300, b"\xac\2")]
)
def test_varints_have_seven_bits_in_a_byte_lowest_first(value, raw):
    assert unsigned_varint(value) == raw


def test_a_megabyte_of_continuation_bits_is_refused_at_once():
    raw = b"\x80" * 1_000_000
    with pytest.raises(MalformedMessage, match="longer than 5 bytes"):
        VARINT.parse(raw)
    with pytest.raises(MalformedMessage, match="longer than 5 bytes"):
        read_unsigned_varint(raw, 0)


@pytest.mark.parametrize(
    ("leaf", "value", "raw"),
    [
        (Int8, -1, b"\xff"),
        (Int16, 1, b"\0\1"),
        (Int32, -2, b"\xff\xff\xff\xfe"),
        (Int64, 1, bytes(7) + b"\1"),
        (UInt16, 65535, b"\xff\xff"),
        (UInt32, 2**32 - 1, b"\xff\xff\xff\xff"),
        (Float64, 1.0, b"\x3f\xf0" + bytes(6)),
        (Bool, True, b"\1"),
        (Uuid, UUID(int=1), bytes(15) + b"\1"),
        (StringLeaf(**PLAIN), "é", b"\0\2\xc3\xa9"),
        (StringLeaf(**COMPACT), "é", b"\3\xc3\xa9"),
        (StringLeaf(compact=False, nullable=True), None, b"\xff\xff"),
        (StringLeaf(compact=True, nullable=True), None, b"\0"),
        (BytesLeaf(**PLAIN), b"ab", b"\0\0\0\2ab"),
        (BytesLeaf(**COMPACT), b"ab", b"\3ab"),
        (BytesLeaf(compact=True, nullable=True), None, b"\0"),
        (RecordsLeaf(compact=False, nullable=True), None, b"\xff\xff\xff\xff"),
        (ArrayLeaf(Int16, **PLAIN), [1, 2], b"\0\0\0\2\0\1\0\2"),
        (ArrayLeaf(Int16, **COMPACT), [1, 2], b"\3\0\1\0\2"),
        (ArrayLeaf(Int16, compact=True, nullable=True), None, b"\0"),
        (NullableStruct(Struct("a" / Int8)), None, b"\xff"),
        (NullableStruct(Struct("a" / Int8)), {"a": 5}, b"\1\5"),
    ],
)
def test_leaves_have_kafkas_bytes(leaf, value, raw):
    assert leaf.build(value) == raw
    assert leaf.parse(raw) == value


@pytest.mark.parametrize(
    "leaf", [StringLeaf(**PLAIN), BytesLeaf(**COMPACT), ArrayLeaf(Int8, **PLAIN)]
)
def test_null_where_none_is_allowed_is_refused(leaf):
    with pytest.raises(ValueError, match="None where none is allowed"):
        leaf.build(None)
    with pytest.raises(MalformedMessage, match="null where none is allowed"):
        leaf.parse(b"\0" if leaf.compact else b"\xff" * 4)


@pytest.mark.parametrize(
    ("leaf", "raw"),
    [
        (StringLeaf(**PLAIN), b"\x7f\xffab"),
        (BytesLeaf(**COMPACT), b"\xff\xff\xff\xff\7ab"),
        (ArrayLeaf(Int64, **PLAIN), b"\x7f\xff\xff\xff" + bytes(100)),
        (TaggedFields({}), b"\1\0\x7f"),
    ],
)
def test_lengths_beyond_the_end_are_refused(leaf, raw):
    with pytest.raises(MalformedMessage):
        leaf.parse(raw)


def test_tags_are_written_in_ascending_order_and_unknown_ones_skipped():
    tags = TaggedFields({5: "b" / Int8, 1: "a" / Int16})
    assert tags.build({"b": 2, "a": 1}) == b"\2\1\2\0\1\5\1\2"
    assert tags.build(None) == b"\0"
    assert tags.parse(b"\3\1\2\0\1\4\1x\5\1\2") == {"a": 1, "b": 2}


def test_a_tag_longer_than_its_value_is_refused():
    with pytest.raises(MalformedMessage, match="1 bytes too many"):
        TaggedFields({1: "a" / Int8}).parse(b"\1\1\2xy")
    with pytest.raises(ConstructError):
        TaggedFields({1: "a" / Int16}).parse(b"\1\1\1x")


@pytest.mark.parametrize(
    ("leaf", "size", "fmt"),
    [
        (Bool, 1, "?"),
        (Int16, 2, "h"),
        (Float64, 8, "d"),
        (Uuid, 16, "16s"),
        (StringLeaf(**PLAIN), 2, ""),
        (StringLeaf(**COMPACT), 1, ""),
        (BytesLeaf(**PLAIN), 4, ""),
        (TaggedFields({}), 1, ""),
        (NullableStruct(Struct("a" / Int64)), 1, ""),
        (Struct("a" / Int64, "b" / StringLeaf(**COMPACT)), 9, ""),
        (Struct(), 1, ""),
    ],
)
def test_least_sizes_and_formats_are_known(leaf, size, fmt):
    assert size_min(leaf) == size
    assert format_of(leaf) == fmt


def test_a_uuid_seen_before_is_the_same_object():
    raw = bytes(range(16))
    assert uuid_from_bytes(raw) is uuid_from_bytes(raw)
    assert uuid_from_bytes(raw).bytes == raw


def test_leaves_leave_the_stream_where_they_end():
    stream = io.BytesIO(b"\0\1aREST")
    assert StringLeaf(**PLAIN).parse_stream(stream) == "a"
    assert stream.read() == b"REST"
