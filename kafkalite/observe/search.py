"""Which records somebody wants to see: words, a key, a header, a field of JSON. Pure.

    paid                       the word anywhere in key, value or headers, in any case
    key:42  header:trace=abc   only there
    $.order.total > 100        a field of a JSON value, compared with = != < <= > >= or ~ (contains)

Several conditions stand side by side, and all must hold; -word must not.
"""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kafkalite.wire.records import Record

CONDITIONS_MAX: Final = 20
TEXT_MAX: Final = 2_000

JsonOf = Callable[[bytes | None], Any]
"""Returns the JSON that a value is, or raises ValueError or RecursionError."""

Condition = Callable[[Record, JsonOf], bool]

_FIELD = re.compile(r"^\$((?:\.[\w-]+|\[\d+\])*)\s*(>=|<=|!=|=|>|<|~)\s*(.*)$", re.DOTALL)
_PART = re.compile(r"\.([\w-]+)|\[(\d+)\]")


@dataclass(slots=True, frozen=True)
class Filter:
    """Conditions that all must hold; none is true of every record."""

    conditions: tuple[Condition, ...] = ()

    def matches(self, record: Record, json_of: "JsonOf | None" = None) -> bool:
        """Whether a record is wanted; `json_of` knows values that are JSON in another form."""
        reads = json_of or plain_json
        return all(condition(record, reads) for condition in self.conditions)


def plain_json(value: bytes | None) -> Any:
    """Return the JSON that a value is."""
    return json.loads(value or b"")


def parse_filter(text: str) -> Filter:
    """Return what a text means.

    Raises:
        ValueError: quotes that do not end, or too much.
    """
    if len(text) > TEXT_MAX:
        raise ValueError(f"a filter has at most {TEXT_MAX} characters")
    try:
        words = shlex.split(_joined(text))
    except ValueError as error:
        raise ValueError(f"the filter {text!r} has {str(error).lower()}") from None
    if len(words) > CONDITIONS_MAX:
        raise ValueError(f"a filter has at most {CONDITIONS_MAX} conditions")
    return Filter(tuple(_condition(word) for word in words if word))


def _joined(text: str) -> str:
    """Let `$.a > 1` be one word."""
    return re.sub(r"(\$[\w.\[\]-]*)\s*(>=|<=|!=|=|>|<|~)\s*", r"\1\2", text)


def _condition(word: str) -> Condition:
    if word.startswith("-") and len(word) > 1 and not word[1].isdigit():
        inner = _condition(word[1:])
        return lambda record, reads: not inner(record, reads)
    field = _FIELD.match(word)
    if field:
        path, operator, wanted = field.groups()
        return _field_condition(path, operator, wanted)
    name, colon, rest = word.partition(":")
    if colon and name == "key":
        key = rest.encode()
        return lambda record, _: record.key == key
    if colon and name == "header":
        header, equals, value = rest.partition("=")
        return lambda record, _: any(
            each == header and (not equals or (content or b"").decode("utf-8", "replace") == value)
            for each, content in record.headers
        )
    needle = word.lower().encode()
    return lambda record, _: (
        needle in (record.value or b"").lower()
        or needle in (record.key or b"").lower()
        or any(needle in name.lower().encode() or needle in (value or b"").lower()
               for name, value in record.headers)
    )  # fmt: skip


def _field_condition(path: str, operator: str, text: str) -> Condition:
    try:
        wanted: Any = json.loads(text)
    except ValueError:
        wanted = text
    steps: list[str | int] = [int(index) if index else name for name, index in _PART.findall(path)]

    def holds(record: Record, reads: JsonOf) -> bool:
        try:
            value = reads(record.value)
        except (ValueError, RecursionError):
            return False
        for step in steps:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return operator == "!="
        return _compared(value, operator, wanted)

    return holds


def _compared(value: Any, operator: str, wanted: Any) -> bool:
    if operator == "~":
        text = value if isinstance(value, str) else json.dumps(value)
        return str(wanted).lower() in text.lower()
    if operator in ("=", "!="):
        return (value == wanted) is (operator == "=")
    try:
        is_less, is_more = bool(value < wanted), bool(value > wanted)
    except TypeError:
        return False
    is_equal = operator.endswith("=") and not is_less and not is_more
    return is_equal or (is_less if operator.startswith("<") else is_more)
