"""Framed keys and values of all three languages."""

import pytest

from kafkalite.registry import values
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.registry.values import ResolvedSchema
from tests.registry.harness import avro, json_schema, record

PROTO = """syntax = "proto3";
message A { int32 a = 1; }
message B { message C { string c = 1; } }
"""


def test_bytes_say_which_schema_they_were_written_with():
    data = values.frame(7, b"xyz")
    assert data == b"\0\0\0\0\x07xyz"
    assert values.unframe(data) == (7, b"xyz")
    for other in (None, b"", b"\0\0\0\0", b"{}", b"\x01\0\0\0\x07", b"\0\xff\xff\xff\xff"):
        assert values.unframe(other) is None


def test_each_language_gives_back_what_it_was_given():
    plain = ResolvedSchema(avro(record("a")))
    assert values.decode(plain, values.encode(plain, {"a": "x"})) == {"a": "x"}
    text = ResolvedSchema(json_schema('{"type":"object","required":["a"]}'))
    assert values.decode(text, values.encode(text, {"a": 1})) == {"a": 1}
    proto = ResolvedSchema(Schema(SchemaType.PROTOBUF, PROTO))
    data = values.encode(proto, {"a": 1})
    assert data == b"\0\x08\x01"  # as Confluent's serializers write the first message
    assert values.decode(proto, data) == {"a": 1}
    data = values.encode(proto, {"c": "x"}, "B.C")
    assert data == bytes.fromhex("04 02 00 0a 01 78")
    assert values.decode(proto, data) == {"c": "x"}


def test_what_does_not_fit_is_refused():
    text = ResolvedSchema(json_schema('{"properties":{"a":{"type":"integer"}}}'))
    with pytest.raises(ValueError, match=r"\$\.a: 'x' is not of type 'integer'"):
        values.encode(text, {"a": "x"})
    with pytest.raises(ValueError, match="Expecting value"):
        values.decode(text, b"x")
    proto = ResolvedSchema(Schema(SchemaType.PROTOBUF, PROTO))
    for data in (b"", b"\x04", b"\xff" * 11, b"\xfe\x01"):
        with pytest.raises(ValueError, match=r"."):
            values.decode(proto, data)
    with pytest.raises(ValueError, match="Invalid schema"):
        values.encode(ResolvedSchema(avro("{")), 1)
    with pytest.raises(ValueError, match="Invalid schema"):
        values.decode(ResolvedSchema(avro("{")), b"")


def test_json_schemas_refer_to_others_by_their_names():
    customer = json_schema('{"type":"object","required":["name"]}')
    order = json_schema('{"properties":{"by":{"$ref":"customer.json"}}}')
    known = ResolvedSchema(order, (("customer.json", customer),))
    assert values.encode(known, {"by": {"name": "x"}})
    with pytest.raises(ValueError, match="'name' is a required property"):
        values.encode(known, {"by": {}})
