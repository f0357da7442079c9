"""Records as text and back: what `consume` prints and `produce` reads."""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kafkalite.client.consumer import ConsumedRecord

NULL: Final = b"null"
BASE64: Final = "base64"


class JsonText(bytes):
    """Bytes of a key or value that are JSON, made of what was written with a schema."""


@dataclass(slots=True)
class NewRecord:
    """A record to be written; None stands for what the command line or the producer decides."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None


def render_value(record: ConsumedRecord) -> bytes:
    """Return the value as it is."""
    return NULL if record.value is None else record.value


def render_key_value(record: ConsumedRecord) -> bytes:
    """Return key and value with a tab between them."""
    return (NULL if record.key is None else record.key) + b"\t" + render_value(record)


def render_long(record: ConsumedRecord) -> bytes:
    """Return where and when the record was written, its key, headers and value, for reading."""
    parts = [f"{record.topic}-{record.partition}", f"{record.offset:>6}"]
    if record.timestamp >= 0:
        moment = datetime.fromtimestamp(record.timestamp / 1000).astimezone()
        parts.append(moment.isoformat(sep=" ", timespec="milliseconds"))
    if record.key is not None:
        parts.append(f"key={_printable(record.key)}")
    parts += [f"{name}={_printable(content)}" for name, content in record.headers]
    parts.append(_printable(record.value))
    return "  ".join(parts).encode()


def render_json(record: ConsumedRecord) -> bytes:
    """Return one JSON object; bytes that are no UTF-8 become {"base64": "..."}."""
    document = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _to_json(record.key),
        "value": _to_json(record.value),
        "headers": [[name, _to_json(content)] for name, content in record.headers],
    }
    return json.dumps(document, ensure_ascii=False).encode()


FORMATS: Final[dict[str, Callable[[ConsumedRecord], bytes]]] = {
    "value": render_value,
    "key-value": render_key_value,
    "long": render_long,
    "json": render_json,
}


ToBytes = Callable[[Any], bytes | None]


def to_bytes(value: Any) -> bytes | None:
    """Return the bytes that a JSON value stands for; those of its text if it is none of ours.

    Raises:
        ValueError: bad base64.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {BASE64}:
        try:
            return base64.b64decode(value[BASE64], validate=True)
        except (binascii.Error, TypeError):
            raise ValueError("bad base64") from None
    return json.dumps(value, ensure_ascii=False).encode()


def parse_json(line: bytes, key: ToBytes = to_bytes, value: ToBytes = to_bytes) -> NewRecord:
    """Return the record that `render_json` wrote; only `value` need be there.

    Any other JSON in `key` or `value` (a number, an object) is written as its JSON text, or as what
    the functions of these names make of it.

    Raises:
        ValueError: the line is no such object.
    """
    document = json.loads(line)
    if not isinstance(document, dict) or "value" not in document:
        raise ValueError('not a JSON object with a "value"')
    headers = document.get("headers") or []
    if isinstance(headers, dict):
        headers = list(headers.items())
    try:
        pairs = [(str(name), to_bytes(content)) for name, content in headers]
    except (TypeError, ValueError):
        raise ValueError('"headers" is neither an object nor a list of pairs') from None
    return NewRecord(
        value=value(document["value"]),
        key=key(document.get("key")),
        headers=pairs,
        partition=_integer(document, "partition"),
        timestamp_ms=_integer(document, "timestamp"),
    )


def _printable(data: bytes | None) -> str:
    return "null" if data is None else data.decode("utf-8", "backslashreplace")


def _to_json(data: bytes | None) -> Any:
    if data is None:
        return None
    if isinstance(data, JsonText):
        return json.loads(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(data).decode()}


def _integer(document: dict[str, Any], name: str) -> int | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, int):
        raise ValueError(f'"{name}" is no integer')  # noqa: TRY004  all refusals are ValueErrors
    return None if value < 0 else value
