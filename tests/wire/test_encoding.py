"""What encoders give out: few chunks, and records untouched."""

from uuid import UUID

import pytest

from kafkalite.wire.codec import Codec
from kafkalite.wire.encoding import JOIN_SIZE_MAX, lower_encode
from kafkalite.wire.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.messages.produce import PRODUCE, ProduceRequest
from kafkalite.wire.primitives import Bool, Float64, Int8, Int16, Int32, Uuid
from kafkalite.wire.schema import (
    ArrayOf,
    Bytes,
    Message,
    Records,
    String,
    default,
    nullable,
    optional,
    since,
    structure,
    tagged,
)


class Region:
    """Stands for a piece of a file: it has a length, and only the transport can read it."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size


def response_with(*records):
    partitions = [
        PartitionData(partition_index=number, records=value) for number, value in enumerate(records)
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def codec(*members, versions=(0, 1), flexible_from=1):
    return Codec(structure("Made", *members), versions=versions, flexible_from=flexible_from)


def encoded(made, version, **values):
    return b"".join(made.encode(version, made.record(**values)))


@pytest.mark.parametrize("version", [11, 12])
def test_a_file_region_comes_out_as_it_went_in(version):
    region = Region(100_000)
    before, out, *after = FETCH.encode_response(version, response_with(region))
    assert out is region
    blank = bytes(len(region))
    whole = b"".join(FETCH.encode_response(version, response_with(blank)))
    assert whole == before + blank + b"".join(after)


def test_regions_and_bytes_keep_their_order():
    regions = Region(10), Region(70_000)
    chunks = FETCH.encode_response(11, response_with(regions[0], b"small", regions[1], None))
    assert [type(chunk) for chunk in chunks] == [bytes, Region, bytes, Region, bytes]
    assert b"small" in chunks[2]
    assert sum(map(len, chunks)) == len(
        b"".join(FETCH.encode_response(11, response_with(bytes(10), b"small", bytes(70_000), None)))
    )


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_small_records_are_joined_with_what_surrounds_them(kind):
    chunks = FETCH.encode_response(12, response_with(kind(b"abc"), kind(b"def")))
    assert len(chunks) == 1
    assert b"abc" in chunks[0]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_big_records_are_not_copied(kind):
    big = kind(bytes(JOIN_SIZE_MAX))
    assert FETCH.encode_response(12, response_with(big))[1] is big


def test_an_empty_region_is_no_chunk():
    """A transport would have nothing to send, and some sendfile calls read 0 as "to the end"."""
    assert len(FETCH.encode_response(12, response_with(Region(0)))) == 1


def test_records_may_end_a_message():
    message = codec("records" / nullable(Records))
    region = Region(JOIN_SIZE_MAX)
    assert message.encode(0, message.record(records=region)) == [b"\0\0\x40\0", region]


def test_null_and_empty_records_differ():
    message = codec("records" / nullable(Records))
    assert encoded(message, 0, records=None) == b"\xff\xff\xff\xff"
    assert encoded(message, 0, records=b"") == b"\0\0\0\0"
    assert (encoded(message, 1, records=None), encoded(message, 1, records=b"")) == (
        b"\0\0",
        b"\1\0",
    )


def test_messages_without_records_are_one_chunk():
    assert METADATA.encode_request(0, MetadataRequest()) == [b"\0\0\0\0"]


def test_values_that_the_version_lacks_are_dropped():
    """Handlers do not know versions; what an old client cannot be told is left out."""
    assert encoded(codec("a" / Int8, "b" / since(1, Int8)), 0, a=1, b=2) == b"\1"


@pytest.mark.parametrize("count", [0, 1, 64, 65, 126, 127, 20_000])
def test_arrays_of_numbers_have_any_length(count):
    message = codec("numbers" / ArrayOf(Int16))
    numbers = list(range(count))
    for version in (0, 1):
        raw = encoded(message, version, numbers=numbers)
        assert message.decode(version, raw).numbers == numbers
        assert message.at(version).build({"numbers": numbers}) == raw


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 40_000])
def test_lengths_take_as_many_varint_bytes_as_they_need(size):
    message = codec("number" / Int32, "value" / Bytes, "again" / Bytes)
    value = bytes(size)
    raw = encoded(message, 1, value=value, again=value)
    built = message.at(1).build({"number": 0, "value": value, "again": value})
    assert raw == built
    assert message.decode(1, raw) == message.record(value=value, again=value)


def test_arrays_of_all_kinds_of_elements_are_written():
    message = codec(
        "texts" / ArrayOf(String),
        "flags" / ArrayOf(Bool),
        "reals" / nullable(ArrayOf(Float64)),
        "ids" / ArrayOf(Uuid),
        "lists" / ArrayOf(ArrayOf(Int8)),
        "absent" / optional(ArrayOf(Int8)),
        "absent_texts" / optional(ArrayOf(String)),
    )
    values = message.record(
        texts=["a", ""], flags=[True, False], reals=[1.5], lists=[[1], []], absent=None
    )
    for version in (0, 1):
        raw = b"".join(message.encode(version, values))
        assert message.decode(version, raw) == values


def test_a_nested_structure_is_written_in_place():
    inner = structure("Inner", "a" / Int8, "name" / String)
    message = codec("inner" / default(inner, inner(a=5)), "z" / Int8)
    assert encoded(message, 0, inner=inner(a=1, name="n"), z=2) == b"\1\0\1n\2"
    assert message.decode(0, b"\1\0\1n\2") == message.record(inner=inner(a=1, name="n"), z=2)
    assert message.decode(1, encoded(message, 1)).inner == inner(a=5)


def test_a_nullable_structure_has_a_byte_that_says_whether_it_is_there():
    """Rule 14."""
    inner = structure("Inner", "a" / Int8)
    message = codec("before" / Int8, "inner" / optional(inner))
    assert encoded(message, 0, before=3) == b"\3\xff"
    assert encoded(message, 0, before=3, inner=inner(a=7)) == b"\3\1\7"
    assert message.decode(1, b"\3\1\7\0\0") == message.record(before=3, inner=inner(a=7))
    assert message.decode(1, b"\3\xff\0") == message.record(before=3)


def test_tagged_fields_are_written_only_if_they_differ_from_their_default():
    partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1))
    usual, equal = (
        FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])
        for data in (PartitionData(), partition)
    )
    assert FETCH.encode_response(12, usual) == FETCH.encode_response(12, equal)
    partition.current_leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    raw = b"".join(FETCH.encode_response(12, equal))
    assert b"\1\1\x09\0\0\0\1\0\0\0\2\0" in raw
    assert FETCH.decode_response(12, raw) == equal


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (default(String, "x"), ""),
        (optional(String), ""),
        (default(Int32, -1), 0),
        (Bool, True),
        (Uuid, UUID(int=5)),
        (ArrayOf(String), ["a"]),
        (Bytes, b"b"),
        (optional(ArrayOf(Int8)), []),
    ],
)
def test_any_kind_of_field_may_be_tagged(shape, value):
    message = codec("number" / Int8, "field" / since(1, tagged(3, shape)))
    plain = message.record(number=1)
    assert encoded(message, 1, number=1) == b"\1\0"
    raw = encoded(message, 1, number=1, field=value)
    assert raw[:3] == b"\1\1\3"
    assert message.decode(1, raw) == message.record(number=1, field=value)
    assert message.decode(1, b"\1\0") == plain


def test_a_section_of_tags_alone_stands_without_a_run_before_it():
    message = codec("name" / String, "field" / since(1, tagged(0, Int8)))
    assert encoded(message, 1, name="a", field=1) == b"\2a\1\0\1\1"
    assert encoded(message, 1, name="a") == b"\2a\0"


def test_records_cannot_be_tagged():
    struct = Message(
        structure("Made", "records" / tagged(0, Records)), versions=(0, 0), flexible_from=0
    ).at(0)
    with pytest.raises(AssertionError, match="records in a tag"):
        lower_encode(struct)


def test_none_where_none_is_allowed_is_a_mistake_of_the_caller():
    message = codec("name" / String)
    with pytest.raises(AttributeError):
        message.encode(0, message.record(name=None))


def test_a_request_without_batches_is_one_chunk():
    assert len(PRODUCE.encode_request(3, ProduceRequest())) == 1
