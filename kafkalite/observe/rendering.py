"""Kafka's messages as JSON, for people: all fields by their names, what is long cut short. Pure."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from kafkalite.observe.entries import Entry, SizeOnly, error_names
from kafkalite.settings.registry import BROKER
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.schema import Structure

ITEMS_MAX: Final = 100
BYTES_MAX: Final = 1_024
DEPTH_MAX: Final = 12
TOPICS_MAX: Final = 5
"""So many topics of a request are told in its subject."""


def message_json(value: Any, depth: int = 0) -> Any:
    """Return a message, or a part of one, as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return int(value) if isinstance(value, IntEnum) else value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, SizeOnly):
        return {"size_bytes": value.size_bytes}
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes_json(bytes(value[:BYTES_MAX]), len(value))
    if depth >= DEPTH_MAX:
        return "..."
    if isinstance(value, list | tuple):
        items = [message_json(each, depth + 1) for each in value[:ITEMS_MAX]]
        return items if len(value) <= ITEMS_MAX else [*items, f"... {len(value) - ITEMS_MAX} more"]
    if isinstance(value, Mapping):
        return {str(name): message_json(each, depth + 1) for name, each in value.items()}
    if isinstance(value, Structure):
        found: dict[str, Any] = {}
        name: str
        kind: Any = type(value)
        for name in kind.__slots__ or kind.__mro__[1].__slots__:  # a default has a class of its own
            each = getattr(value, name, None)
            found[name] = (
                error_json(each) if name == "error_code" else message_json(each, depth + 1)
            )
        setting = BROKER.get(found.get("name", ""))
        if setting is not None and setting.is_sensitive and found.get("value") is not None:
            found["value"] = "(hidden)"
        return found
    if hasattr(value, "__len__"):
        return {"size_bytes": len(value)}
    return type(value).__name__


def bytes_json(data: bytes, size: int) -> Any:
    """Return bytes as text if they are text, else in hexadecimal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex(), "size_bytes": size}
    return (
        text
        if text.isprintable() and size == len(data)
        else {"hex": data.hex(), "size_bytes": size}
    )


def error_json(code: Any) -> Any:
    """Return an error code with its name."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return code


def entry_json(number: int, entry: Entry, *, whole: bool = False) -> dict[str, Any]:
    """Return an entry of the journal; the messages only if `whole`."""
    header, context = entry.exchange.header, entry.context
    found: dict[str, Any] = {
        "id": number,
        "at_ms": entry.at_ms,
        "api": entry.api.name,
        "version": header.api_version,
        "client_id": header.client_id,
        "connection_id": context.connection_id,
        "peer": f"{context.peer_address[0]}:{context.peer_address[1]}",
        "topics": sorted(topics_of(entry.request)),
        "subject": subject_of(entry.request),
        "errors": error_names(entry.response),
        "request_bytes": entry.request_bytes,
        "response_bytes": entry.response_bytes,
        "total_ms": round(entry.total_us / 1_000, 3),
        "wait_ms": round(entry.wait_us / 1_000, 3),
    }
    if whole:
        found["request"] = message_json(entry.request)
        found["response"] = message_json(entry.response)
    return found


def topics_of(request: object) -> set[str]:
    """Return the names of topics in a request."""
    found: set[str] = set()
    for name in ("topics", "topic_data", "topic_names", "topic_partitions"):
        for topic in getattr(request, name, None) or ():
            if isinstance(topic, str):
                found.add(topic)
            else:
                named = getattr(topic, "name", None) or getattr(topic, "topic", None)
                if isinstance(named, str) and named:
                    found.add(named)
    return found


def subject_of(request: object) -> str:
    """Return what a request is about in a few words: `orders-0,1 group=g generation=3`."""
    words = []
    for name in ("topics", "topic_data"):
        for topic in (getattr(request, name, None) or ())[:TOPICS_MAX]:
            words += _places_of(topic)
    for name, label in _SUBJECTS.items():
        value = getattr(request, name, None)
        if isinstance(value, bool) or value in (None, "", -1, []):
            continue
        if isinstance(value, str | int):
            words.append(f"{label}={value}")
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            words.append(f"{label}={','.join(value[:TOPICS_MAX])}")
    if isinstance(getattr(request, "committed", None), bool):
        words.append("commit" if getattr(request, "committed") else "abort")  # noqa: B009
    return " ".join(words)


_SUBJECTS: Final = {
    "group_id": "group",
    "group_ids": "group",
    "generation_id": "generation",
    "generation_id_or_member_epoch": "generation",
    "member_epoch": "epoch",
    "transactional_id": "transaction",
    "key": "key",
    "coordinator_keys": "key",
}


def _places_of(topic: Any) -> list[str]:
    if isinstance(topic, str):
        return [topic]
    name = getattr(topic, "name", None) or getattr(topic, "topic", None)
    if not name:
        topic_id = getattr(topic, "topic_id", None)
        if topic_id is None or not topic_id.int:
            return []
        name = str(topic_id)[:8]
    indexes = []
    for field in ("partition_data", "partitions", "partition_indexes"):
        for each in getattr(topic, field, None) or ():
            for index in ("index", "partition_index", "partition"):
                if hasattr(each, index) and not isinstance(each, int):
                    indexes.append(getattr(each, index))
                    break
            else:
                indexes.append(each)
    told = ",".join(map(str, indexes[:ITEMS_MAX]))
    return [f"{name}-{told}" if told else str(name)]
