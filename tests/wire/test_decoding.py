"""What decoders give out, and what they refuse."""

from uuid import UUID

import pytest

from kafkalite.wire.codec import Codec
from kafkalite.wire.decoding import ELEMENTS_MAX
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.messages.produce import PRODUCE, PartitionProduceData, ProduceRequest
from kafkalite.wire.messages.produce import TopicProduceData as Topic
from kafkalite.wire.primitives import STRING_SIZE_MAX, Int8, Int32, Uuid
from kafkalite.wire.schema import (
    ArrayOf,
    Bytes,
    Records,
    String,
    default,
    nullable,
    optional,
    since,
    structure,
    tagged,
)


def codec(*members):
    return Codec(structure("Made", *members), versions=(0, 1), flexible_from=1)


TAGS = codec("size" / Int8, "name" / since(1, tagged(2, optional(String))))


def test_records_are_a_writable_slice_of_the_receive_buffer():
    """The offset is assigned in the frame itself (rule 42)."""
    partition = PartitionProduceData(index=0, records=b"batch")
    request = ProduceRequest(topic_data=[Topic(name="t", partition_data=[partition])])
    frame = bytearray(b"head" + b"".join(PRODUCE.encode_request(9, request)))
    decoded = PRODUCE.decode_request(9, memoryview(frame), 4)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[:] = b"BATCH"
    assert b"BATCH" in frame


def test_null_records_are_none():
    message = codec("records" / nullable(Records))
    assert message.decode(0, b"\xff\xff\xff\xff").records is None
    assert message.decode(1, b"\0\0").records is None


def test_bytes_are_a_copy():
    message = codec("value" / Bytes)
    buffer = bytearray(b"\0\0\0\1a")
    value = message.decode(0, memoryview(buffer)).value
    buffer[4:] = b"b"
    assert value == b"a"
    assert isinstance(value, bytes)


def test_every_message_has_lists_of_its_own():
    message = codec("numbers" / since(1, ArrayOf(Int8)))
    first, second = message.decode(0, b""), message.decode(0, b"")
    first.numbers.append(1)
    assert second.numbers == []


@pytest.mark.parametrize("shape", [String, Bytes, Records, ArrayOf(Int8), ArrayOf(String)])
def test_null_is_refused_where_none_is_allowed(shape):
    message = codec("field" / shape)
    for version, raw in ((0, b"\xff\xff\xff\xff"), (1, b"\0\0")):
        with pytest.raises(MalformedMessage, match=r"Made.field: null where none is allowed"):
            message.decode(version, raw)


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\0\0\0"])
def test_any_negative_length_is_null(length):
    """As in Kafka's generated readers, which ask for < 0."""
    message = codec("field" / nullable(Bytes), "list" / nullable(ArrayOf(Int8)))
    assert message.decode(0, length * 2) == message.record(field=None, list=None)


def test_a_length_beyond_the_end_is_refused_by_name():
    with pytest.raises(MalformedMessage, match=r"Made.name: length 5 does not fit the 2 bytes"):
        codec("name" / String).decode(0, b"\0\5ab")
    with pytest.raises(MalformedMessage, match=r"Made.numbers: length 9 does not fit the 4 bytes"):
        codec("numbers" / nullable(ArrayOf(Int32))).decode(0, b"\0\0\0\x09abcd")


def test_a_varint_has_at_most_five_bytes():
    message = codec("value" / Bytes)
    assert message.decode(1, b"\x81\x80\x80\x80\x00\0").value == b""
    with pytest.raises(MalformedMessage, match="varint longer than 5 bytes"):
        message.decode(1, b"\x81\x80\x80\x80\x80\0\0")


def test_unknown_tags_are_skipped():
    """Rule 13."""
    assert TAGS.decode(1, b"\1\3\0\1x\2\2\2n\x81\1\0") == TAGS.record(size=1, name="n")
    plain = codec("size" / Int8)
    assert plain.decode(1, b"\1\2\0\1x\5\0") == plain.record(size=1)


def test_a_section_may_have_more_than_127_tags():
    count = b"\x80\1"
    plain = codec("size" / Int8)
    for message in (TAGS, plain):
        assert message.decode(1, b"\1" + count + b"\7\0" * 128) == message.record(size=1)


@pytest.mark.parametrize(
    "tags", [b"\1\2\3\2n", b"\1\2\1\2n", b"\1\2\4\2nxx", b"\1\7\5x", b"\1\7", b"\1"]
)
def test_a_tag_whose_size_is_not_that_of_its_value_is_refused(tags):
    with pytest.raises(MalformedMessage):
        TAGS.decode(1, b"\1" + tags)


def test_a_tag_of_the_wrong_size_is_refused_by_name():
    with pytest.raises(MalformedMessage, match=r"Made.name: ends -2 bytes from the end of its tag"):
        TAGS.decode(1, b"\1\1\2\4\2nxx")


def test_a_message_cut_short_is_refused_with_its_version():
    with pytest.raises(MalformedMessage, match="Made v0 is cut short"):
        codec("size" / Int32).decode(0, b"\0\0")


def test_arrays_of_all_kinds_of_elements_are_read():
    inner = structure("Inner", "name" / String)
    message = codec(
        "numbers" / ArrayOf(Int32), "ids" / ArrayOf(Uuid), "inners" / nullable(ArrayOf(inner))
    )
    raw = b"\0\0\0\2\0\0\0\1\0\0\0\2" + b"\0\0\0\1" + bytes(15) + b"\5" + b"\0\0\0\1\0\1n"
    expected = message.record(numbers=[1, 2], ids=[UUID(int=5)], inners=[inner(name="n")])
    assert message.decode(0, raw) == expected


@pytest.mark.parametrize("count", [0, 64, 65, 70_000])
def test_arrays_of_numbers_have_any_length(count):
    message = codec("numbers" / ArrayOf(Int8))
    raw = count.to_bytes(4, "big") + b"\3" * count
    assert message.decode(0, raw).numbers == [3] * count


def test_a_nested_structure_is_read_in_place():
    inner = structure("Inner", "a" / Int8)
    message = codec("inner" / default(inner, None), "cursor" / optional(inner), "z" / Int8)
    assert message.decode(0, b"\1\xff\2") == message.record(inner=inner(a=1), z=2)
    assert message.decode(0, b"\1\1\5\2") == message.record(
        inner=inner(a=1), cursor=inner(a=5), z=2
    )


def test_what_the_version_lacks_holds_its_default():
    inner = structure("Inner", "a" / Int8)
    message = codec(
        "id" / since(1, Uuid), "inner" / since(1, tagged(0, inner)), "raw" / since(1, Bytes)
    )
    decoded = message.decode(0, b"")
    assert decoded == message.record()
    assert decoded.inner is inner.default_instance()


def test_elements_are_limited():
    message = codec("numbers" / ArrayOf(Int8))
    count = ELEMENTS_MAX + 1
    with pytest.raises(MalformedMessage, match=r"Made.numbers: more than 1048576 array elements"):
        message.decode(0, count.to_bytes(4, "big") + bytes(count))


def test_compact_string_is_as_short_as_one_of_int16_must_be():
    """As in Kafka: what a request holds can be stored and answered in any version."""
    message = codec("name" / String, "other" / since(1, tagged(0, optional(String))))
    longest = message.encode(1, message.record(name="x" * STRING_SIZE_MAX))
    assert len(message.decode(1, b"".join(longest)).name) == STRING_SIZE_MAX
    for name, other in [("x", "x" * (STRING_SIZE_MAX + 1)), ("x" * (STRING_SIZE_MAX + 1), None)]:
        data = b"".join(message.encode(1, message.record(name=name, other=other)))
        with pytest.raises(MalformedMessage, match=f"a string of {STRING_SIZE_MAX + 1} bytes"):
            message.decode(1, data)
