"""Filters by themselves, on records that are not what the filter expects."""

import pytest

from kafkalite.observe.search import CONDITIONS_MAX, parse_filter
from kafkalite.wire.records import Record


def record(value=b"", key=None, headers=()):
    return Record(0, 0, key, value, list(headers))


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("", b"anything", True),
        ("WORD", b"some word", True),
        ("word other", b"some word", False),
        ("-word", b"some word", False),
        ("-5", b"-5", True),
        ("$.a = 1", b'{"a": 1}', True),
        ("$.a=1", b'{"a": "1"}', False),
        ("$.a != 1", b"{}", True),
        ("$.a < 2", b'{"a": "x"}', False),
        ("$.a <= 2", b'{"a": 2}', True),
        ("$.a > 2", b'{"a": 2}', False),
        ("$.a.b[1] = x", b'{"a": {"b": ["y", "x"]}}', True),
        ("$.a.b[9] = x", b'{"a": {"b": []}}', False),
        ("$.a ~ AB", b'{"a": "cabin"}', True),
        ("$.a ~ 1", b'{"a": [1]}', True),
        ("$ = 5", b"5", True),
        ("$.a = 1", b"\xff\xfe", False),
        ("$.a = 1", b"[" * 5_000, False),
        ("$.a = 1", b"no JSON", False),
        ('"two words"', b"has two words", True),
        ("key:k", b"k", False),
        ("header:h", b"h", False),
    ],
)
def test_conditions(text, value, holds):
    assert parse_filter(text).matches(record(value)) is holds


def test_keys_and_headers():
    one = record(None, b"k", [("h", b"v"), ("empty", None)])
    for text in ("key:k", "header:h", "header:h=v", "header:empty=", "k", "v", "empty"):
        assert parse_filter(text).matches(one), text
    for text in ("key:kk", "header:h=w", "header:x", "nothing"):
        assert not parse_filter(text).matches(one), text


@pytest.mark.parametrize("text", ['"open', "x" * 2_001, "a " * (CONDITIONS_MAX + 1)])
def test_what_is_too_much_is_refused(text):
    with pytest.raises(ValueError, match=r"filter"):
        parse_filter(text)
