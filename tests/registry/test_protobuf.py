"""Protobuf: what is a schema, what reads what, and values as JSON."""

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kafkalite.registry import protobuf
from kafkalite.registry.errors import RegistryError

ORDER = """syntax = "proto3";
package shop;
message Order {
  int64 id = 1;
  string customer = 2;
  repeated Line lines = 3;
  map<string, int32> counts = 4;
  oneof paid { string card = 5; bool cash = 6; }
  message Line { string article = 1; optional int32 pieces = 2; }
}
enum State { NEW = 0; }
message Other { State state = 1; }
"""


def found(new, old, references=()):
    return protobuf.incompatibilities(
        protobuf.descriptors(new, references), protobuf.descriptors(old, references)
    )


def message(fields, name="M", syntax="proto3", more=""):
    return f'syntax = "{syntax}"; package p; message {name} {{ {fields} }} {more}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int32 a = 1;", "int32 a = 1; string b = 2;"),
        ("int32 a = 1; string b = 2;", "int32 a = 1;"),
        ("int32 a = 1;", "int64 renamed = 1;"),
        ("int32 a = 1;", "bool a = 1;"),
        ("string a = 1;", "bytes a = 1;"),
        ("string a = 1;", "repeated string a = 1;"),
        ("fixed32 a = 1;", "sfixed32 a = 1;"),
        ("int32 a = 1;", "oneof o { int32 a = 1; string b = 2; }"),
        ("oneof o { int32 a = 1; }", "oneof o { int32 a = 1; string b = 2; }"),
        ("map<string, int32> a = 1;", "map<string, int32> a = 1;"),
        ("E a = 1; enum E { X = 0; }", "int32 a = 1;"),
        ("message N { int32 a = 1; } N n = 1;", "message N { int32 a = 1; int32 b = 2; } N n = 1;"),
    ],
)
def test_what_reads_the_other_is_compatible(old, new):
    assert found(message(new), message(old)) == []


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("int32 a = 1;", "string a = 1;", "was int32, and is string"),
        ("int32 a = 1;", "sint32 a = 1;", "was int32, and is sint32"),
        ("int32 a = 1;", "repeated int32 a = 1;", "is repeated"),
        ("float a = 1;", "double a = 1;", "was float"),
        ("oneof o { int32 a = 1; string b = 2; }", "oneof o { int32 a = 1; }", "out of its oneof"),
        ("int32 a = 1; int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }", "several fields"),
        ("message N {} N n = 1;", "message N {} message O {} O n = 1;", "was M.N, and is M.O"),
        ("message N { int32 a = 1; }", "", "M.N: message is not there"),
        ("message N { int32 a = 1; }", "message N { string a = 1; }", "M.N.a"),
    ],
)
def test_what_misreads_the_other_is_not(old, new, why):
    (only,) = found(message(new), message(old))
    assert why in only


def test_required_fields_neither_come_nor_go():
    old = message("required int32 a = 1;", syntax="proto2")
    new = message("required int32 b = 2;", syntax="proto2")
    assert len(found(new, old)) == 2
    optional = message("optional int32 a = 1;", syntax="proto2")
    assert "whether it is required" in found(optional, old)[0]


def test_another_package_is_no_other_message():
    assert (
        found(message("int32 a = 1;").replace("package p", "package q"), message("int32 a = 1;"))
        == []
    )


@pytest.mark.parametrize(
    ("text", "references", "why"),
    [
        ("hello", (), "line 1"),
        ('syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }', (), "already been used"),
        ('syntax = "proto3"; message A { B b = 1; }', (), "not defined"),
        ('syntax = "proto3"; import "b.proto";', (), "b.proto"),
        ('syntax = "proto3";', (), "no message is defined"),
        (message("int32 a = 1;"), (("../b.proto", "x"),), "no name of a file"),
        (message("int32 a = 1;"), (("/b.proto", "x"),), "no name of a file"),
    ],
)
def test_what_is_no_schema_is_refused(text, references, why):
    with pytest.raises(RegistryError, match=why):
        protobuf.check(text, references)


def test_messages_become_json_and_come_back():
    value = {
        "id": "7",
        "customer": "é",
        "lines": [{"article": "pen", "pieces": 0}],
        "counts": {"a": 1},
        "cash": True,
    }
    indexes = protobuf.indexes_of(ORDER, (), "")
    data = protobuf.encode(ORDER, (), indexes, value)
    assert protobuf.decode(ORDER, (), indexes, data) == value
    assert protobuf.message_names(ORDER, ()) == ["Order", "Order.Line", "Other"]
    assert protobuf.indexes_of(ORDER, (), "shop.Order.Line") == [0, 0]
    assert protobuf.indexes_of(ORDER, (), "Other") == [1]
    with pytest.raises(ValueError, match=r"there are Order, Order\.Line, Other"):
        protobuf.indexes_of(ORDER, (), "Nothing")
    with pytest.raises(ValueError, match="no field"):
        protobuf.encode(ORDER, (), [0], {"colour": 1})
    with pytest.raises(ValueError, match=r"no Protobuf message shop\.Order"):
        protobuf.decode(ORDER, (), [0], b"\xff")
    with pytest.raises(ValueError, match="no message at"):
        protobuf.decode(ORDER, (), [9], b"")


@pytest.mark.parametrize("form", ["text", "descriptor"])
def test_imports_are_references(form):
    line = 'syntax = "proto3"; package l; message Line { string article = 1; }'
    order = (
        'syntax = "proto3"; import "l/line.proto"; import "google/protobuf/timestamp.proto";'
        "message Order { l.Line line = 1; google.protobuf.Timestamp at = 2; }"
    )
    if form == "descriptor":
        order = protobuf.serialized(order, (("l/line.proto", line),))
        assert base64.b64decode(order)
        line = protobuf.serialized(line, ())
    references = (("l/line.proto", line),)
    value = {"line": {"article": "pen"}, "at": "2026-01-01T00:00:00Z"}
    data = protobuf.encode(order, references, [0], value)
    assert protobuf.decode(order, references, [0], data) == value
    assert found(order, order, references) == []


def test_a_descriptor_that_makes_no_sense_is_refused():
    file = FileDescriptorProto(name="x.proto")
    field = file.message_type.add(name="A").field.add(name="f", number=1, type_name=".nowhere")
    field.oneof_index = 4
    with pytest.raises(RegistryError):
        protobuf.check(base64.b64encode(file.SerializeToString()).decode(), ())


def test_references_that_cannot_be_files_beside_each_other_are_refused():
    one = 'syntax = "proto3"; message A {}'
    with pytest.raises(RegistryError, match="no name of a file beside others"):
        protobuf.descriptors(one, (("a", one), ("a/b", one)))
