"""Offsets in Spark's JSON."""

import json

import pytest

from kafkalite.pipeline.offsets import (
    assignment_json,
    offsets_behind,
    offsets_json,
    parse_offsets,
)
from kafkalite.types import TopicPartition


def test_offsets_and_assignments_are_grouped_by_topic():
    one, two, other = TopicPartition("t", 0), TopicPartition("t", 10), TopicPartition("u", 1)
    assert json.loads(offsets_json({one: 5, two: 6, other: 7})) == {
        "t": {"0": 5, "10": 6},
        "u": {"1": 7},
    }
    assert json.loads(assignment_json([one, two, other])) == {"t": [0, 10], "u": [1]}


@pytest.mark.parametrize(
    "reported", ['{"t": {"10": 2, "9": 1}}', {"t": {"10": 2, "9": 1}}], ids=["text", "parsed"]
)
def test_reported_offsets_are_sorted_by_number(reported):
    found = parse_offsets(reported)
    assert found == {"t": {9: 1, 10: 2}}
    assert list(found["t"]) == [9, 10]


@pytest.mark.parametrize("reported", [None, "", "None", "null", {}, "{}"])
def test_absent_offsets_are_none_at_all(reported):
    assert parse_offsets(reported) == {}


def test_behind_counts_what_is_ahead_and_new_partitions_whole():
    assert offsets_behind({"t": {0: 3, 1: 9}}, {"t": {0: 5, 1: 7, 2: 4}, "u": {0: 1}}) == 7
