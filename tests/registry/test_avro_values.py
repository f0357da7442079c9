"""Avro data as JSON and back."""

import json

import pytest

from kafkalite.registry import avro_values
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.registry.schemas import parse_avro


def schema(said):
    return parse_avro(Schema(SchemaType.AVRO, json.dumps(said)), ())


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "namespace": "n",
    "fields": [
        field("flag", "boolean"),
        field("small", "int"),
        field("large", "long"),
        field("ratio", "double"),
        field("name", "string"),
        field("raw", "bytes"),
        field("hash", {"type": "fixed", "name": "Hash", "size": 2}),
        field("state", {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}),
        field("tags", {"type": "array", "items": "string"}),
        field("counts", {"type": "map", "values": "long"}),
        field("note", ["null", "string"]),
        field("number", ["int", "string"]),
        field("next", ["null", "Everything"]),
        field("day", {"type": "int", "logicalType": "date"}),
        field("at", {"type": "long", "logicalType": "timestamp-millis"}),
        field("time", {"type": "int", "logicalType": "time-millis"}),
        field("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        field("id", {"type": "string", "logicalType": "uuid"}),
    ],
}
VALUE = {
    "flag": True,
    "small": -1,
    "large": 2**40,
    "ratio": 0.5,
    "name": "é",
    "raw": "\u0000ÿ",
    "hash": "ab",
    "state": "OLD",
    "tags": ["x", "y"],
    "counts": {"a": 1},
    "note": None,
    "number": "seven",
    "next": None,
    "day": "2026-02-28",
    "at": "2026-02-28T12:00:00.250000+00:00",
    "time": "23:59:59.250000",
    "price": "12.34",
    "id": "6fa459ea-ee8a-3ca4-894e-db77e160355e",
}


A_RECORD = {"type": "record", "name": "R", "fields": [field("a", "int")]}


def test_every_kind_of_value_comes_back_as_it_was():
    parsed = schema(EVERYTHING)
    value = {**VALUE, "next": {**VALUE, "note": "inner"}}
    data = avro_values.encode(parsed, value)
    read = avro_values.decode(parsed, data)
    assert json.loads(json.dumps(read)) == value


def test_bytes_are_those_of_the_specification():
    parsed = schema(
        {"type": "record", "name": "R", "fields": [field("a", "long"), field("b", "string")]}
    )
    assert avro_values.encode(parsed, {"a": 27, "b": "foo"}) == bytes.fromhex("36 06 66 6f 6f")


def test_a_union_is_read_with_and_without_the_name_of_its_branch():
    parsed = schema(["null", "string", "long"])
    assert avro_values.encode(parsed, {"string": "x"}) == avro_values.encode(parsed, "x")
    assert avro_values.encode(parsed, {"long": 1}) == avro_values.encode(parsed, 1)
    with pytest.raises(ValueError, match=r"\$: True is none of null, string, long"):
        avro_values.encode(parsed, True)


def test_defaults_are_filled_in():
    parsed = schema({"type": "record", "name": "R", "fields": [field("a", "int", default=3)]})
    assert avro_values.decode(parsed, avro_values.encode(parsed, {})) == {"a": 3}


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("int", 2**31, "range of int"),
        ("int", 1.5, "whole number"),
        ("int", True, "whole number"),
        ("string", 1, "is not text"),
        ("boolean", "x", "true or false"),
        ("null", 0, "is not null"),
        ("bytes", "\u0100", "no byte"),
        ("float", "x", "a number"),
        ({"type": "fixed", "name": "F", "size": 3}, "ab", "of 3 bytes"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "one of A"),
        ({"type": "array", "items": "int"}, ["x"], r"\$\[0\]: 'x'"),
        ({"type": "map", "values": "int"}, {"k": None}, r"\$\.k: None"),
        ({"type": "int", "logicalType": "date"}, "soon", "no date"),
        (["null", A_RECORD], {"a": ""}, r"\$\.a: ''"),
        (A_RECORD, {}, r"\$\.a is missing"),
        ({"type": "record", "name": "R", "fields": []}, {"b": 1}, "no field b"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_with_its_place(kind, value, message):
    with pytest.raises(ValueError, match=message):
        avro_values.encode(schema(kind), value)


@pytest.mark.parametrize("data", [b"", b"\x36", b"\x36\x06foo!", b"\x36\xff\xff\xff\xff\x7f"])
def test_bytes_that_are_not_of_the_schema_are_refused(data):
    parsed = schema(
        {"type": "record", "name": "R", "fields": [field("a", "long"), field("b", "string")]}
    )
    with pytest.raises(ValueError, match="no Avro of this schema"):
        avro_values.decode(parsed, data)
