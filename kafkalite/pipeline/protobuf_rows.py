"""Messages of Protobuf as rows: their types as Spark writes them, and their values for it.

Spark has a module of its own for that, which Maven Central lacks for some releases; here Google's
library does it, in Spark's Python workers.
"""

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from kafkalite.registry import protobuf, values

DEPTH_MAX: Final = 16
_SCALARS: Final = {
    "int32": "INT",
    "sint32": "INT",
    "sfixed32": "INT",
    "uint32": "BIGINT",
    "fixed32": "BIGINT",
    "int64": "BIGINT",
    "sint64": "BIGINT",
    "sfixed64": "BIGINT",
    "uint64": "DECIMAL(20,0)",
    "fixed64": "DECIMAL(20,0)",
    "bool": "BOOLEAN",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "bytes": "BINARY",
    "enum": "STRING",
}
_TIMESTAMP: Final = "google.protobuf.Timestamp"


def row_type(text: str, references: protobuf.Texts) -> str:
    """Return the type of a schema's first message, as Spark writes it.

    Enums are their names, timestamps TIMESTAMP, wrappers what they wrap; what has no fixed fields
    (Struct, Any) and messages within themselves are STRING, their JSON.
    """
    return _struct(protobuf.message_class(text, references, [0]).DESCRIPTOR, ())


def reader(text: str, references: protobuf.Texts) -> Callable[[bytes | None], Any]:
    """Return what makes a row of a payload; None of what is no first message of this schema."""

    def read(payload: bytes | None) -> Any:
        from google.protobuf.message import DecodeError

        if payload is None:
            return None
        try:
            indexes, position = values.read_indexes(bytes(payload))
            if [*indexes] != [0]:
                return None
            message = _message_class(text, references)()
            message.ParseFromString(bytes(payload[position:]))
        except (ValueError, DecodeError):
            return None
        return _row(message, ())

    return read


@lru_cache(maxsize=16)
def _message_class(text: str, references: protobuf.Texts) -> Any:
    return protobuf.message_class(text, references, [0])


def _struct(descriptor: Any, outer: Sequence[str]) -> str:
    fields = [
        f"`{each.name}`: {_type_of(each, (*outer, descriptor.full_name))}"
        for each in descriptor.fields
    ]
    return f"STRUCT<{', '.join(fields)}>" if fields else "STRUCT<>"


def _type_of(field: Any, outer: Sequence[str]) -> str:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return f"MAP<{_single(key, outer)}, {_single(value, outer)}>"
    kind = _single(field, outer)
    return f"ARRAY<{kind}>" if field.is_repeated else kind


def _single(field: Any, outer: Sequence[str]) -> str:
    if field.message_type is None:
        return _SCALARS[_kind(field)]
    name = field.message_type.full_name
    if name == _TIMESTAMP:
        return "TIMESTAMP"
    if _is_wrapper(field.message_type):
        return _SCALARS[_kind(field.message_type.fields[0])]
    return "STRING" if _is_json(field.message_type, outer) else _struct(field.message_type, outer)


def _is_json(descriptor: Any, outer: Sequence[str]) -> bool:
    return (
        descriptor.full_name in outer
        or len(outer) >= DEPTH_MAX
        or descriptor.file.package == "google.protobuf"
        or not descriptor.fields
    )


def _is_wrapper(descriptor: Any) -> bool:
    return bool(descriptor.file.name == "google/protobuf/wrappers.proto")


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _kind(field: Any) -> str:
    from google.protobuf import descriptor_pb2

    name: str = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)
    return name.removeprefix("TYPE_").lower()


def _row(message: Any, outer: Sequence[str]) -> tuple[Any, ...]:
    inner = (*outer, message.DESCRIPTOR.full_name)
    return tuple(_value_of(message, each, inner) for each in message.DESCRIPTOR.fields)


def _value_of(message: Any, field: Any, outer: Sequence[str]) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if _is_map(field):
        key_field, value_field = (field.message_type.fields_by_name[n] for n in ("key", "value"))
        return {
            _plain(key, key_field, outer): _plain(each, value_field, outer)
            for key, each in value.items()
        }
    if field.is_repeated:
        return [_plain(each, field, outer) for each in value]
    return _plain(value, field, outer)


def _plain(value: Any, field: Any, outer: Sequence[str]) -> Any:
    from google.protobuf import json_format

    if field.message_type is None:
        if field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            return str(value) if known is None else known.name
        return Decimal(value) if _SCALARS[_kind(field)].startswith("DECIMAL") else value
    if field.message_type.full_name == _TIMESTAMP:
        return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(
            seconds=value.seconds, microseconds=value.nanos // 1_000
        )
    if _is_wrapper(field.message_type):
        return _plain(value.value, field.message_type.fields[0], outer)
    if _is_json(field.message_type, outer):
        return json_format.MessageToJson(value, indent=None, preserving_proto_field_name=True)
    return _row(value, outer)
