"""Every declaration at every version against Apache's JSON, as kafka-python's wheel carries it.

Of the messages between brokers, which it lacks, `between_brokers` tells the same.
"""

import importlib.resources
import json
import re

import pytest

from kafkalite.types import ZERO_UUID
from kafkalite.wire.api import FLEXIBLE_FROM, ApiKey
from kafkalite.wire.apis import APIS
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
    UInt16,
    Uuid,
)
from kafkalite.wire.schema import TAGGED_FIELDS, ArrayOf
from tests.wire import (
    between_brokers,
    consumer_messages,
    other_definitions,
    share_messages,
    streams_messages,
    token_messages,
)
from tests.wire.samples import CODECS, name_of

FIXED = {
    "bool": Bool,
    "int8": Int8,
    "int16": Int16,
    "uint16": UInt16,
    "int32": Int32,
    "int64": Int64,
    "float64": Float64,
    "uuid": Uuid,
}
TEXT = {"string": StringLeaf, "bytes": BytesLeaf, "records": RecordsLeaf}
JSON = {}
DEFINITIONS = {
    **between_brokers.DEFINITIONS,
    **consumer_messages.DEFINITIONS,
    **other_definitions.DEFINITIONS,
    **share_messages.DEFINITIONS,
    **streams_messages.DEFINITIONS,
    **token_messages.DEFINITIONS,
}


def definition_of(name):
    if name in DEFINITIONS:
        return {**DEFINITIONS[name], "common": {}}
    if name not in JSON:
        source = importlib.resources.files("kafka.protocol.schemas.resources") / f"{name}.json"
        text = re.sub(r"(^|\s)//.*$", "", source.read_text(), flags=re.MULTILINE)
        definition = json.loads(text)
        definition["common"] = {s["name"]: s["fields"] for s in definition.get("commonStructs", [])}
        JSON[name] = definition
    return JSON[name]


def in_range(version, text):
    first, _, last = (text or "none").partition("-")
    if first == "none":
        return False
    if first.endswith("+"):
        return version >= int(first[:-1])
    return int(first) <= version <= int(last or first)


def first_of(text):
    return None if text == "none" else int(re.match(r"\d+", text)[0])


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def element_fields(field, definition):
    return field.get("fields") or definition["common"].get(field["type"].removeprefix("[]"))


def expected_struct(fields, version, definition):
    """Describe what the JSON says: name -> leaf, tag -> (name, leaf), flexible or not."""
    plain, tags = [], {}
    for field in fields:
        if not in_range(version, field["versions"]):
            continue
        leaf = expected_leaf(field, field["type"], version, definition)
        if in_range(version, field.get("taggedVersions")):
            tags[int(field["tag"])] = (snake(field["name"]), leaf)
        else:
            plain.append((snake(field["name"]), leaf))
    flexible = in_range(version, definition["flexibleVersions"])
    return ("struct", plain, tags if flexible else None)


def expected_leaf(field, kind, version, definition):
    compact = in_range(version, definition["flexibleVersions"])
    nullable = in_range(version, field.get("nullableVersions"))
    if kind.startswith("[]"):
        element = expected_leaf({**field, "nullableVersions": None}, kind[2:], version, definition)
        return ("array", compact, nullable, element)
    if kind in FIXED:
        return FIXED[kind]
    if kind in TEXT:
        return (TEXT[kind], compact, nullable)
    struct = expected_struct(element_fields(field, definition), version, definition)
    return ("nullable", struct) if nullable else struct


def declared_struct(struct):
    plain = [
        (member.name, declared_leaf(member.subcon))
        for member in struct.subcons
        if member.name != TAGGED_FIELDS
    ]
    tags = None
    for member in struct.subcons:
        if member.name == TAGGED_FIELDS:
            known = member.subcon.known
            tags = {tag: (field.name, declared_leaf(field.subcon)) for tag, field in known.items()}
    return ("struct", plain, tags)


def declared_leaf(leaf):
    if isinstance(leaf, ArrayLeaf):
        return ("array", leaf.compact, leaf.nullable, declared_leaf(leaf.element))
    if isinstance(leaf, NullableStruct):
        return ("nullable", declared_struct(leaf.struct))
    if isinstance(leaf, BytesLeaf | StringLeaf):
        return (type(leaf), leaf.compact, leaf.nullable)
    return declared_struct(leaf) if hasattr(leaf, "subcons") else leaf


@pytest.mark.parametrize("case", CODECS, ids=name_of)
def test_fields_types_nullability_and_tags_are_apaches(case):
    _, codec, version = case
    definition = definition_of(codec.record.__name__)
    expected = expected_struct(definition["fields"], version, definition)
    assert declared_struct(codec.at(version)) == expected


@pytest.mark.parametrize("api", APIS.values(), ids=repr)
def test_keys_and_versions_are_apaches(api):
    for codec in (api.request, api.response):
        definition = definition_of(codec.record.__name__)
        first, _, last = definition["validVersions"].partition("-")
        last_stable = int(last or first) - bool(definition.get("latestVersionUnstable"))
        assert definition["apiKey"] == api.key
        assert codec.versions == api.versions
        if codec is api.request:
            assert api.versions == (int(first), last_stable)
        assert codec.flexible_from == first_of(definition["flexibleVersions"])
    assert FLEXIBLE_FROM[api.key] == api.flexible_from
    assert f"{api.request.record.__name__}" == f"{camel(api.key)}Request"
    assert f"{api.response.record.__name__}" == f"{camel(api.key)}Response"


def camel(key):
    return "".join(word.capitalize() for word in key.name.split("_"))


def test_flexible_versions_of_keys_without_declaration_are_apaches():
    for key in ApiKey:
        try:
            definition = definition_of(f"{camel(key)}Request")
        except FileNotFoundError:
            continue
        assert definition["apiKey"] == key
        assert FLEXIBLE_FROM[key] == first_of(definition["flexibleVersions"])


@pytest.mark.parametrize("api", APIS.values(), ids=repr)
def test_defaults_are_apaches(api):
    for codec in (api.request, api.response):
        definition = definition_of(codec.record.__name__)
        assert_defaults(codec.record, definition["fields"], definition)


def assert_defaults(record, fields, definition):
    by_name = {snake(field["name"]): field for field in fields}
    made = record()
    for field in record.FIELDS:
        source = by_name[field.name]
        shape = field.shape.element if isinstance(field.shape, ArrayOf) else field.shape
        if isinstance(shape, type):
            name = RENAMED.get(shape.__name__, shape.__name__)
            assert name == source["type"].removeprefix("[]")
            assert_defaults(shape, element_fields(source, definition), definition)
        expected = expected_default(source, shape)
        actual = getattr(made, field.name)
        assert actual == expected, f"{record.__name__}.{field.name}"
        assert type(actual) is type(expected) or isinstance(shape, type)


RENAMED = {"EntryResult": "EntryData", "EntityResult": "EntityData"}
"""Where request and response of an API have structures of one name that differ."""


def expected_default(field, shape):
    kind, value = field["type"], field.get("default")
    if kind == "float64":
        return float(value or 0)
    if value == "null" or (kind == "records" and value is None):
        return None
    if kind.startswith("[]"):
        return []
    if kind == "bool":
        return value in ("true", True)
    if kind.startswith(("int", "uint")):
        return int(str(value or 0), 0)
    return {"string": value or "", "bytes": b"", "uuid": ZERO_UUID}.get(kind) or (
        shape.default_instance() if isinstance(shape, type) else {"string": "", "bytes": b""}[kind]
    )
