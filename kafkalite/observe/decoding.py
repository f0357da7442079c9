"""Decoding of keys and values: JSON, text, a number, a schema's, a broker's own. Pure.

Tried in order; what nothing fits is hexadecimal.
"""

import base64
import json
import struct
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.codec import Codec
from kafkalite.wire.errors import MalformedMessage

if TYPE_CHECKING:
    from kafkalite.registry.lookup import SchemaLookup

SHOWN_MAX_BYTES: Final = 64 * 1024
"""Of a longer value the beginning is shown."""

SENSIBLE: Final = (1e-9, 1e15)
"""Absolute values that four or eight bytes are taken for, if they are a floating point number."""

SCHEMA_MAGIC: Final = 0
SCHEMA_HEADER: Final = struct.Struct(">bi")

INTERNAL: Final[dict[str, tuple[str, ...]]] = {
    CONSUMER_OFFSETS_TOPIC: (
        "offset_commit",
        "group_metadata",
        "consumer_group",
        "share_group",
        "streams_group",
    ),
    "__transaction_state": ("transaction_log",),
    "__share_group_state": ("share_state",),
}
"""Modules that declare what lies in Kafka's own topics."""


def decoded(data: bytes | None, schemas: "SchemaLookup | None" = None) -> dict[str, Any]:
    """Return {"type", "value", "size"} and where useful "base64" of bytes; value is JSON.

    Of what was written with a schema also "schema_id", "inner", the schema's type or what the bytes
    look like without it, and "problem", why it is not shown by its schema.
    """
    if data is None:
        return {"type": "null", "value": None, "size": 0}
    size = len(data)
    if size > SHOWN_MAX_BYTES:
        cut = data[:SHOWN_MAX_BYTES]
        return {**_plain(cut), "size": size, "cut": True}
    if size >= SCHEMA_HEADER.size and data[0] == SCHEMA_MAGIC:
        _, schema_id = SCHEMA_HEADER.unpack_from(data)
        told = {"type": "schema", "schema_id": schema_id, "size": size}
        known = None if schemas is None else schemas.decode(data)
        if known is not None and not known.problem:
            return {**told, "inner": known.schema_type, "value": known.value}
        inner = _plain(data[SCHEMA_HEADER.size :])
        if known is not None and known.schema_type:
            told["problem"] = known.problem
        return {**inner, **told, "inner": inner["type"]}
    return {**_plain(data), "size": size}


def _plain(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _binary(data)
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"') or stripped in ("true", "false", "null"):
        try:
            return {"type": "json", "value": json.loads(text), "text": text}
        except (ValueError, RecursionError):
            pass
    if all(character.isprintable() or character in "\r\n\t" for character in text):
        return {"type": "text", "value": text}
    return _binary(data)


def _binary(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "binary",
        "value": data.hex(" "),
        "base64": base64.b64encode(data).decode(),
    }
    if len(data) in (4, 8):
        found["integer"] = int.from_bytes(data, "big", signed=True)
        kind = ">f" if len(data) == 4 else ">d"
        number = struct.unpack(kind, data)[0]
        if SENSIBLE[0] < abs(number) < SENSIBLE[1]:
            found["float"] = number
    if len(data) == 16:
        found["uuid"] = str(UUID(bytes=data))
    return found


def encoded(value: Any, encoding: str) -> bytes | None:
    """Return the bytes that a JSON value stands for.

    Raises:
        ValueError: it cannot be, or the encoding is none of text, json and base64.
    """
    if value is None:
        return None
    if encoding == "json" or (encoding == "text" and not isinstance(value, str)):
        return json.dumps(value, ensure_ascii=False).encode()
    if encoding == "text":
        return str(value).encode()
    if encoding == "base64":
        return base64.b64decode(str(value), validate=True)
    raise ValueError(f"encoding {encoding!r} is none of text, json, base64")


def internal(topic: str, key: bytes | None, value: bytes | None) -> tuple[Any, Any] | None:
    """Return key and value of a record of Kafka's own topics as messages; None for other topics."""
    modules = INTERNAL.get(topic)
    if modules is None or key is None:
        return None
    try:
        (kind,) = struct.unpack_from(">h", key)
        pair = _codecs(modules).get(kind)
        if pair is None:
            return None
        key_message = pair[0].decode_versioned(key)[1]
        value_message = None if value is None else pair[1].decode_versioned(value)[1]
    except (MalformedMessage, struct.error, ValueError):
        return None
    return key_message, value_message


@cache
def _codecs(modules: tuple[str, ...]) -> dict[int, tuple[Codec[Any], Codec[Any]]]:
    """Return the codecs of keys and values by the type of the key, which is its version."""
    found: dict[int, tuple[Codec[Any], Codec[Any]]] = {}
    for name in modules:
        module = vars(import_module(f"kafkalite.wire.stored.{name}"))
        for each, codec in module.items():
            if each.endswith("_KEY") and isinstance(codec, Codec):
                first, last = codec.versions
                value = module[each.removesuffix("KEY") + "VALUE"]
                found.update(dict.fromkeys(range(first, last + 1), (codec, value)))
    return found
