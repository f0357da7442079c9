"""Messages of Protobuf as rows, without a Spark."""

import datetime as dt
from decimal import Decimal

from kafkalite.pipeline.protobuf_rows import reader, row_type
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.registry.values import ResolvedSchema, encode

PROTO = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
message Order {
  int32 id = 1;
  uint64 large = 2;
  State state = 3;
  repeated Line lines = 4;
  map<string, Line> by_name = 5;
  google.protobuf.Timestamp at = 6;
  google.protobuf.Int64Value maybe = 7;
  google.protobuf.Struct any = 8;
  Order parent = 9;
  optional string note = 10;
  bytes raw = 11;
  message Line { double price = 1; }
}
enum State { NEW = 0; OLD = 1; }
message Other { int32 a = 1; }
"""
VALUE = {
    "id": 7,
    "large": str(2**64 - 1),
    "state": "OLD",
    "lines": [{"price": 1.5}],
    "by_name": {"x": {"price": 2}},
    "at": "2026-01-01T00:00:00.5Z",
    "maybe": "3",
    "any": {"k": 1},
    "parent": {"id": 6},
    "raw": "AAE=",
}


def payload(value, message=""):
    return encode(ResolvedSchema(Schema(SchemaType.PROTOBUF, PROTO)), value, message)


def test_types_are_those_of_the_message():
    assert row_type(PROTO, ()) == (
        "STRUCT<`id`: INT, `large`: DECIMAL(20,0), `state`: STRING, "
        "`lines`: ARRAY<STRUCT<`price`: DOUBLE>>, "
        "`by_name`: MAP<STRING, STRUCT<`price`: DOUBLE>>, `at`: TIMESTAMP, `maybe`: BIGINT, "
        "`any`: STRING, `parent`: STRING, `note`: STRING, `raw`: BINARY>"
    )


def test_values_are_those_of_the_message():
    assert reader(PROTO, ())(payload(VALUE)) == (
        7,
        Decimal(2**64 - 1),
        "OLD",
        [(1.5,)],
        {"x": (2.0,)},
        dt.datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=dt.UTC),
        3,
        '{"k": 1.0}',
        '{"id": 6}',
        None,
        b"\0\x01",
    )


def test_what_is_no_such_message_is_nothing():
    read = reader(PROTO, ())
    for wrong in (None, b"", b"\0\xff", payload({"a": 1}, "Other")):
        assert read(wrong) is None
