"""Keys and values of records that were written with a schema: bytes to JSON and back.

In front of such bytes stand a zero and the id of the schema in four bytes; Protobuf has the place
of the message in its file next.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kafkalite.registry import avro_values, protobuf
from kafkalite.registry.errors import RegistryError, invalid_schema
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.registry.schemas import Resolved, parse_avro, texts_of

MAGIC: Final = 0
HEADER: Final = struct.Struct(">bi")
VARINT_BYTES_MAX: Final = 10
INDEXES_MAX: Final = 64


class Framed(NamedTuple):
    """A value that was written with a schema."""

    schema_id: int
    payload: bytes


def unframe(data: bytes | None) -> Framed | None:
    """Return the parts of bytes that may have been written with a schema; None of others."""
    if data is None or len(data) < HEADER.size or data[0] != MAGIC:
        return None
    _, schema_id = HEADER.unpack_from(data)
    return Framed(schema_id, data[HEADER.size :]) if schema_id >= 0 else None


def frame(schema_id: int, payload: bytes) -> bytes:
    """Return a payload with what stands in front of it."""
    return HEADER.pack(MAGIC, schema_id) + payload


@dataclass(slots=True, frozen=True)
class ResolvedSchema:
    """A schema with all that it refers to, each after what it needs itself."""

    schema: Schema
    references: Resolved = ()


def decode(known: ResolvedSchema, payload: bytes) -> Any:
    """Return the JSON value of what was written with a schema.

    Raises:
        ValueError: it was not; the message says why.
    """
    schema = known.schema
    try:
        match schema.schema_type:
            case SchemaType.AVRO:
                return avro_values.decode(parse_avro(schema, known.references), payload)
            case SchemaType.JSON:
                return json.loads(payload)
            case SchemaType.PROTOBUF:
                indexes, position = read_indexes(payload)
                return protobuf.decode(
                    schema.text, texts_of(known.references), indexes, payload[position:]
                )
    except RegistryError as error:
        raise ValueError(error.message) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def encode(known: ResolvedSchema, value: Any, message: str = "") -> bytes:
    """Return the payload of a JSON value.

    Args:
        known: the schema.
        value: what `json.loads` returns.
        message: of a Protobuf file with several; the first one without.

    Raises:
        ValueError: it does not fit; the message says where.
    """
    schema = known.schema
    try:
        match schema.schema_type:
            case SchemaType.AVRO:
                return avro_values.encode(parse_avro(schema, known.references), value)
            case SchemaType.JSON:
                _validate(known, value)
                return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
            case SchemaType.PROTOBUF:
                texts = texts_of(known.references)
                indexes = protobuf.indexes_of(schema.text, texts, message)
                data = protobuf.encode(schema.text, texts, indexes, value)
                return _write_indexes(indexes) + data
    except RegistryError as error:
        raise ValueError(error.message) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


# --- JSON Schema ---------------------------------------------------------------------------------


def _validate(known: ResolvedSchema, value: Any) -> None:
    from jsonschema.exceptions import ValidationError

    try:
        _validator(known.schema, tuple(known.references)).validate(value)
    except ValidationError as error:
        raise ValueError(f"{error.json_path}: {error.message}") from None


@lru_cache(maxsize=64)
def _validator(schema: Schema, references: tuple[tuple[str, Schema], ...]) -> Any:
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry
        from referencing.jsonschema import DRAFT202012
    except ImportError:
        raise invalid_schema(
            "JSON Schema needs a library: pip install 'kafkalite[registry]'"
        ) from None
    others = [
        (name, DRAFT202012.create_resource(json.loads(other.text))) for name, other in references
    ]
    said = json.loads(schema.text)
    kind = validator_for(said)
    try:
        kind.check_schema(said)
    except SchemaError as error:
        raise invalid_schema(error.message) from None
    return kind(said, registry=Registry().with_resources(others))


# --- Protobuf's indexes --------------------------------------------------------------------------


def read_indexes(payload: bytes) -> tuple[list[int], int]:
    """Return the place of a Protobuf message in its file, and where in the payload it begins.

    Raises:
        ValueError: there is none.
    """
    count, position = _read_varint(payload, 0)
    if count == 0:
        return [0], position
    if not 0 < count <= INDEXES_MAX:
        raise ValueError(f"{count} indexes of a message")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(payload, position)
        indexes.append(index)
    return indexes, position


def _read_varint(payload: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(VARINT_BYTES_MAX):
        if position >= len(payload):
            raise ValueError("ends before the place of its message")
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise ValueError("the place of its message is no number")


def _write_indexes(indexes: Sequence[int]) -> bytes:
    if [*indexes] == [0]:
        return b"\0"
    return b"".join(_write_varint(each) for each in (len(indexes), *indexes))


def _write_varint(value: int) -> bytes:
    rest, data = value << 1, bytearray()
    while rest > 0x7F:
        data.append(rest & 0x7F | 0x80)
        rest >>= 7
    data.append(rest)
    return bytes(data)
