"""What judges the output of Streams and of the chain finds what is wrong with it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from compat_tests.chain.run import Chain
from compat_tests.streams.application import expected_updates
from compat_tests.streams.output import first_difference

LINES = [("a", "to be or not to be"), ("b", "To-be!"), ("a", "that is"), ("a", "")]


def test_words_are_counted_one_by_one():
    counts, _ = expected_updates(LINES)
    assert counts == {
        "to": ["1", "2", "3"],
        "be": ["1", "2", "3"],
        "or": ["1"],
        "not": ["1"],
        "that": ["1"],
        "is": ["1"],
    }


@pytest.mark.parametrize(
    "wrong",
    [
        [*LINES[:2], LINES[3]],
        [LINES[0], *LINES],
        [LINES[2], *LINES[:2], LINES[3]],
    ],
    ids=["lost", "repeated", "out of place"],
)
def test_chains_show_every_line_that_is_not_in_its_place(wrong):
    _, expected = expected_updates(LINES)
    _, found = expected_updates(wrong)
    assert "'a'" in first_difference(expected, found)
    assert first_difference(expected, expected) is None


def read(*records):
    """Return a reader that has read (partition, offset, value) of one topic to its end."""
    return SimpleNamespace(
        updates={"end": {}},
        ends={("end", 0): 10, ("end", 1): 10},
        records=[("end", *record) for record in records],
    )


def findings(*records):
    chain = SimpleNamespace(sent=[["0-0", "0-2"], ["1-1"]])
    return [str(found) for found in Chain._findings(chain, read(*records))]


ALL = [(0, 0, "0-0"), (0, 2, "0-2"), (1, 0, "1-1")]


def test_a_whole_chain_is_right():
    assert findings(*ALL) == []


@pytest.mark.parametrize(
    ("records", "word"),
    [
        (ALL[1:], "lost"),
        ([*ALL, (0, 5, "0-0")], "duplicate"),
        ([(0, 0, "0-2"), (0, 1, "0-0"), ALL[2]], "non-monotonic"),
        ([*ALL, (0, 6, "of nobody")], "phantom"),
        ([*ALL[:2], (0, 4, "1-1")], "phantom"),
    ],
    ids=["lost", "twice", "swapped", "invented", "in another partition"],
)
def test_what_is_wrong_with_a_chain_is_found(records, word):
    assert any(word in found for found in findings(*records))
