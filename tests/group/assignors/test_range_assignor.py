"""The assignor `range` against Kafka's class."""

import pytest

from kafkalite.group.assignors import range_assignor
from kafkalite.group.slices import complete
from tests.group.assignors.spec import of_case, spec
from tests.group.assignors.vectors import assignment, cases, in_order, name


def assign_ranges(group):
    return complete(range_assignor.assign_ranges(group))


@pytest.mark.parametrize("case", cases("range"), ids=name)
def test_results_are_kafkas(case):
    expected = {member: assignment(topics) for member, topics in case["result"].items()}
    assert in_order(assign_ranges(of_case(case))) == in_order(expected)


def test_static_members_stand_before_others():
    group = spec({"a": [1], "b": [1], "c": [1]}, {1: 3}, instances={"c": "z", "b": "y"})
    assert assign_ranges(group) == {"a": {1: [2]}, "b": {1: [0]}, "c": {1: [1]}}


def test_nobody_gets_nothing():
    assert assign_ranges(spec({}, {})) == {}


def test_who_comes_too_late_gets_nothing():
    assert assign_ranges(spec({"a": [1], "b": [1]}, {1: 1})) == {"a": {1: [0]}, "b": {}}
