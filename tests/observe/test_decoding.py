"""What bytes are taken for."""

import struct
from uuid import UUID

import pytest

from kafkalite.observe.decoding import SHOWN_MAX_BYTES, decoded, encoded, internal
from kafkalite.registry.errors import schema_not_found
from kafkalite.registry.lookup import SchemaLookup
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.registry.values import ResolvedSchema
from kafkalite.wire.stored.offset_commit import OFFSET_COMMIT_KEY, OffsetCommitKey


@pytest.mark.parametrize(
    ("data", "kind", "value"),
    [
        (None, "null", None),
        (b"", "text", ""),
        ("grün\n".encode(), "text", "grün\n"),
        (b'{"a": [1]}', "json", {"a": [1]}),
        (b"{no json", "text", "{no json"),
        (b"17", "text", "17"),
        (b"\xff\x00", "binary", "ff 00"),
        (b"bell\x07", "binary", "62 65 6c 6c 07"),
        (b"[" * 100_000, "text", "[" * SHOWN_MAX_BYTES),
    ],
)
def test_bytes_are_what_they_look_like(data, kind, value):
    found = decoded(data)
    assert (found["type"], found["value"]) == (kind, value)
    assert found["size"] == len(data or b"")


def test_numbers_and_uuids_are_told_besides():
    assert decoded(b"\x80\0\0\x01")["integer"] == -(2**31) + 1
    assert decoded(struct.pack(">d", -2.5))["float"] == -2.5
    assert "float" not in decoded(struct.pack(">d", float("nan")))
    number = UUID(int=2**127 + 1)
    assert decoded(number.bytes)["uuid"] == str(number)


def test_values_with_a_schema_name_its_id():
    found = decoded(b"\0\0\0\0\x07" + b'{"a": 1}')
    assert (found["type"], found["inner"], found["schema_id"]) == ("schema", "json", 7)
    assert found["value"] == {"a": 1}


@pytest.mark.parametrize("encoding", ["text", "base64", "json"])
def test_nothing_is_nothing_in_every_encoding(encoding):
    assert encoded(None, encoding) is None


def test_values_become_bytes():
    assert encoded("a", "text") == b"a"
    assert encoded({"a": 1}, "text") == b'{"a": 1}'
    assert encoded("a", "json") == b'"a"'
    assert encoded("AAE=", "base64") == b"\0\x01"
    for value, encoding in (("%", "base64"), ("a", "rot13")):
        with pytest.raises(ValueError, match=r".+"):
            encoded(value, encoding)


def test_kafkas_own_records_are_decoded_and_others_are_not():
    key = OFFSET_COMMIT_KEY.encode_versioned(1, OffsetCommitKey(group="g", topic="t", partition=2))
    assert internal("orders", key, b"") is None
    found = internal("__consumer_offsets", key, None)
    assert (found[0].group, found[0].partition, found[1]) == ("g", 2, None)
    for broken in (None, b"", b"\0", b"\0\x63", key[:5]):
        assert internal("__consumer_offsets", broken, None) is None
    assert internal("__consumer_offsets", key, b"\xff\xff") is None


def known(schema, schema_id=7):
    """Return a lookup that knows one schema."""

    async def fetch(wanted):
        if wanted != schema_id:
            raise schema_not_found()
        return ResolvedSchema(schema)

    return SchemaLookup(fetch)


async def test_values_are_shown_by_their_schemas():
    schemas = known(Schema(SchemaType.AVRO, '"long"'))
    good, bad, unknown = b"\0\0\0\0\x07\x0e", b"\0\0\0\0\x07", b"\0\0\0\0\x08\x0e"
    assert "problem" not in decoded(good, schemas)  # not asked for yet: as without a registry
    await schemas.load(good, bad, unknown, None, b"plain")
    found = decoded(good, schemas)
    assert (found["type"], found["inner"], found["value"]) == ("schema", "avro", 7)
    assert "no Avro of this schema" in decoded(bad, schemas)["problem"]
    assert decoded(unknown, schemas)["inner"] == "binary"
    assert decoded(b"plain", schemas)["type"] == "text"
