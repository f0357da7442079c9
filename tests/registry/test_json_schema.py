"""Which JSON Schemas read what fits others."""

import pytest

from kafkalite.registry.errors import RegistryError
from kafkalite.registry.json_schema import check, incompatibilities

OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**OPEN, "additionalProperties": False}


def props(more, **said):
    return {"type": "object", "properties": {"a": {"type": "string"}, **more}, **said}


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (True, OPEN),
        ({}, {"type": "string"}),
        (OPEN, OPEN),
        (OPEN, False),
        ({"type": "number"}, {"type": "integer"}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        (props({"b": {"type": "string"}}), CLOSED),
        (props({"b": {"type": "string"}}, required=["a"]), {**CLOSED, "required": ["a"]}),
        (props({"b": {"default": 1}}, required=["b"]), CLOSED),
        (OPEN, props({"b": {"type": "integer"}})),
        ({"enum": [1, 2, 3]}, {"enum": [1, 2]}),
        ({"enum": [1, 2]}, {"const": 1}),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 2}),
        ({"maxLength": 9}, {"maxLength": 8}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}]}),
        ({"allOf": [{"minimum": 1}]}, {"allOf": [{"minimum": 1}, {"maximum": 2}]}),
        (
            {"type": "array", "items": {"type": "number"}},
            {"type": "array", "items": {"type": "integer"}},
        ),
        ({"title": "new", "type": "string"}, {"title": "old", "type": "string"}),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"type": "number"}}},
            {"$ref": "#/definitions/y", "definitions": {"y": {"type": "integer"}}},
        ),
        (
            {"$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
            {
                "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}, "title": "x"}},
                "$ref": "#/$defs/n",
            },
        ),
        ({"enum": [1, "a"]}, {"enum": [1.0]}),
        ({"$ref": "#/enum", "enum": [1, 2]}, {"$ref": "#/enum", "enum": [1]}),
    ],
)
def test_reads(reader, writer):
    assert incompatibilities(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "where"),
    [
        (False, OPEN, "#"),
        ({"type": "string"}, {"type": ["string", "null"]}, "#/type: null"),
        ({"type": "string"}, True, "#/type"),
        ({"type": "integer"}, {"type": "number"}, "#/type: number"),
        (props({"b": {"type": "string"}}), OPEN, "#/properties/b/type"),
        (props({}, required=["a"]), CLOSED, "#/required: 'a'"),
        (CLOSED, props({"b": {}}), "#/properties/b"),
        (CLOSED, OPEN, "#/additionalProperties"),
        (
            {**OPEN, "additionalProperties": {"type": "string"}},
            props({"b": {"type": "integer"}}, additionalProperties=False),
            "#/properties/b/type",
        ),
        ({"enum": [1]}, {"enum": [1, 2]}, "#/enum: 2"),
        ({"enum": [1]}, {"type": "integer"}, "#/enum: any"),
        ({"minimum": 3}, {"minimum": 2}, "#/minimum"),
        ({"minimum": 3}, {}, "#/minimum"),
        ({"maxItems": 3}, {"maxItems": 4}, "#/maxItems"),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "null"}]}, "#/anyOf"),
        ({"pattern": "a"}, {"pattern": "b"}, "#/pattern"),
        ({"items": {"type": "string"}}, {"type": "array"}, "#/items/type"),
        ({"items": [{"type": "string"}]}, {"items": [{"type": "null"}]}, "#/items: differs"),
    ],
)
def test_does_not_read(reader, writer, where):
    found = incompatibilities(reader, writer)
    assert found
    assert found[0].startswith(where)


@pytest.mark.parametrize(
    "said",
    [
        3,
        [],
        {"type": "strin"},
        {"type": ["string", 3]},
        {"type": [["string"]]},
        {"type": {"string": 1}},
        {"required": [["a"]]},
        {"required": "a"},
        {"enum": 3},
        {"properties": {"a": 3}},
        {"allOf": [3]},
        {"additionalProperties": 3},
        {"items": [3]},
        {"$defs": {"x": 3}},
    ],
)
def test_what_is_no_schema_is_refused(said):
    with pytest.raises(RegistryError):
        check(said)


@pytest.mark.parametrize("said", [True, {}, OPEN, {"items": [{}, True]}, {"if": {}, "then": False}])
def test_what_is_one_is_not(said):
    check(said)


def test_order_of_names_and_values_has_no_meaning():
    """So many, each compared with each, would take half a minute."""
    names = [f"n{number}" for number in range(30_000)]
    combined = [{"const": name} for name in names]
    wide = {"type": "object", "required": names, "enum": names, "anyOf": combined}
    same = {key: value[::-1] if isinstance(value, list) else value for key, value in wide.items()}
    assert incompatibilities(wide, same) == []
