"""Lowered code against construct's interpreter, and against input that is no message."""

import random
import time
import tracemalloc

import pytest
from construct import ConstructError

from kafkalite.wire.codec import Codec
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.header import decode_request_header, encode_request_header
from kafkalite.wire.messages.api_versions import API_VERSIONS
from kafkalite.wire.messages.fetch import FETCH, FetchRequest
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.primitives import TAGS_MAX, Int16, Int32, unsigned_varint
from kafkalite.wire.schema import String, from_container, since, structure, to_container
from tests.wire.samples import CODECS, name_of, sample

Value = structure("Value", "name" / String, "size" / since(1, Int32, default=7))
VALUE = Codec(Value, versions=(0, 2), flexible_from=2)


def encoded(codec, version, message):
    return b"".join(codec.encode(version, message))


def outcome(decode):
    """Return what was decoded, None if it was refused; anything else but a refusal is a bug."""
    try:
        return decode()
    except (MalformedMessage, ConstructError):
        return None


@pytest.mark.parametrize("case", CODECS, ids=name_of)
def test_lowered_code_does_what_construct_does(case):
    _, codec, version = case
    struct = codec.at(version)
    for seed in range(3):
        message = sample(codec, version, seed)
        raw = encoded(codec, version, message)
        assert struct.build(to_container(message, struct)) == raw
        assert from_container(struct.parse(raw), struct) == codec.decode(version, raw) == message


@pytest.mark.parametrize("case", CODECS, ids=name_of)
def test_damaged_messages_are_refused_or_read_as_construct_reads_them(case):
    _, codec, version = case
    struct, rng = codec.at(version), random.Random(name_of(case))
    for seed in range(2):
        good = encoded(codec, version, sample(codec, version, seed))[:600]
        for _ in range(12 if good else 0):
            raw = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                raw[rng.randrange(len(raw))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            if rng.random() < 0.3:
                raw = raw[: rng.randrange(len(raw))]
            raw = bytes(raw)
            oracle = outcome(lambda raw=raw: from_container(struct.parse(raw), struct))
            assert outcome(lambda raw=raw: codec.decode(version, raw)) == oracle


@pytest.mark.parametrize("case", CODECS, ids=name_of)
def test_messages_cut_short_are_refused(case):
    _, codec, version = case
    raw = encoded(codec, version, sample(codec, version, seed=1))
    cuts = range(len(raw)) if len(raw) < 60 else random.Random(1).sample(range(len(raw)), 60)
    for cut in cuts:
        with pytest.raises(MalformedMessage):
            codec.decode(version, raw[:cut])


@pytest.mark.parametrize("case", CODECS, ids=name_of)
def test_huge_lengths_cost_neither_time_nor_memory(case):
    """Goal: no length is believed. Method: overwrite each place with the largest lengths."""
    _, codec, version = case
    good = encoded(codec, version, sample(codec, version, seed=2))[:80]
    outcome(lambda: codec.decode(version, good))  # the code for it is made now
    tracemalloc.start()
    started = time.perf_counter()
    for position in range(len(good)):
        for lie in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\xff\xff"):
            raw = good[:position] + lie + good[position + len(lie) :]
            outcome(lambda raw=raw: codec.decode(version, raw))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000
    assert time.perf_counter() - started < 2


def test_too_many_elements_are_refused_before_they_are_made():
    """64 MiB of empty topic names would be half a gigabyte of objects."""
    count = 2**24
    raw = count.to_bytes(4, "big") + bytes(2 * count)
    with pytest.raises(MalformedMessage, match="more than 1048576 array elements"):
        METADATA.decode_request(1, raw)


def test_elements_of_nested_arrays_count_together():
    partitions = (2**19 + 1).to_bytes(4, "big") + bytes(4 * (2**19 + 1))
    topic = b"\0\1t" + partitions
    raw = bytes(17) + bytes(8) + bytes(4) + (2).to_bytes(4, "big") + topic * 2
    with pytest.raises(MalformedMessage, match=r"ForgottenTopic.partitions: more than"):
        FETCH.decode_request(7, raw)


def test_bytes_after_the_message_are_ignored():
    raw = encoded(VALUE, 1, Value(name="a", size=1))
    assert VALUE.decode(1, raw + b"garbage") == Value(name="a", size=1)


def test_decoding_starts_at_the_position():
    raw = encoded(VALUE, 1, Value(name="a", size=1))
    assert VALUE.decode(1, b"header" + raw, 6) == Value(name="a", size=1)


def test_bytes_bytearray_and_memoryview_are_read_alike():
    raw = encoded(VALUE, 2, Value(name="a", size=1))
    assert (
        VALUE.decode(2, bytearray(raw))
        == VALUE.decode(2, memoryview(raw))
        == Value(name="a", size=1)
    )


def test_fields_that_the_version_lacks_hold_their_default():
    assert VALUE.decode(0, encoded(VALUE, 0, Value(name="a", size=3))) == Value(name="a", size=7)
    assert FETCH.decode_request(4, encoded(FETCH.request, 4, FetchRequest())).session_epoch == -1


def test_invalid_utf8_is_read_with_replacement_characters():
    """As Java's String does: a client with a Latin-1 name is served."""
    assert VALUE.decode(0, b"\0\2\xe9t").name == "\N{REPLACEMENT CHARACTER}t"


@pytest.mark.parametrize("version", [-1, 3])
def test_a_version_that_does_not_exist_is_a_callers_mistake(version):
    with pytest.raises(ValueError, match="Value has versions 0 to 2"):
        VALUE.decode(version, b"")
    with pytest.raises(ValueError, match="Value has versions 0 to 2"):
        VALUE.encode(version, Value())


def test_code_is_made_when_a_version_is_first_used():
    codec = Codec(Value, versions=(0, 2), flexible_from=2)
    assert (codec._decoders, codec._encoders) == ({}, {})
    codec.encode(1, Value())
    codec.encode(1, Value())
    assert list(codec._encoders) == [1]


def test_stored_values_carry_their_version():
    raw = VALUE.encode_versioned(1, Value(name="a", size=2))
    assert raw == b"\0\1" + b"\0\1a" + b"\0\0\0\2"
    assert VALUE.decode_versioned(b"xx" + raw, 2) == (1, Value(name="a", size=2))


@pytest.mark.parametrize("raw", [b"", b"\0", b"\0\3\0\0", b"\xff\xff", b"\0\1\0"])
def test_stored_values_of_no_known_version_are_refused(raw):
    with pytest.raises(MalformedMessage, match="Value"):
        VALUE.decode_versioned(raw)


def test_unused_modifiers_do_not_matter():
    assert structure("Plain", "a" / since(0, Int16)).FIELDS[0].first == 0


@pytest.mark.parametrize("case", CODECS, ids=name_of)
def test_steps_come_to_the_same(case):
    """Decision 0062."""
    _, codec, version = case
    message = sample(codec, version)
    chunks = codec.encode(version, message)
    assert b"".join(map(bytes, last_of(codec.encode_in_steps(version, message)))) == b"".join(
        map(bytes, chunks)
    )
    data = memoryview(bytearray().join(map(bytes, chunks)))
    assert last_of(codec.decode_in_steps(version, data)) == codec.decode(version, data)


def test_what_is_cut_short_is_refused_in_steps_too():
    message = METADATA.request
    data = b"".join(map(bytes, message.encode(9, MetadataRequest(topics=[]))))
    with pytest.raises(MalformedMessage, match="cut short"):
        last_of(message.decode_in_steps(9, data[:-2]))


def last_of(steps):
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def test_more_tags_than_anybody_sends_are_refused():
    """Rule 254."""
    head = encode_request_header(API_VERSIONS, 3, correlation_id=1, client_id="c")
    assert decode_request_header(head)
    many = unsigned_varint(TAGS_MAX + 1) + b"\7\0" * (TAGS_MAX + 1)
    with pytest.raises(MalformedMessage, match="1001 tags"):
        decode_request_header(head[:-1] + many)
    with pytest.raises(MalformedMessage, match="1001 tags"):
        API_VERSIONS.decode_request(3, b"\1\1" + many)
