"""Which partitions the next Fetch of a follower is built from."""

from uuid import UUID

import pytest

from kafkalite.isr.fetch_turns import STEP_MAX, FetchTurns

MANY = 3 * STEP_MAX + 10
KEYS = [(UUID(int=1), index) for index in range(MANY)]


@pytest.fixture
def turns():
    turns = FetchTurns()
    turns.due_ms = 1_000
    return turns


def take(turns, now_ms=0, followed=KEYS):
    return turns.take(followed, now_ms, every_ms=500)


def test_what_was_touched_comes_in_its_order_and_once(turns):
    turns.touch(KEYS[5:8])
    turns.touch(KEYS[:6])
    assert take(turns) == [*KEYS[5:8], *KEYS[:5]]
    assert not turns.has_more
    assert take(turns) == []


def test_very_many_come_some_at_a_time(turns):
    turns.touch(KEYS)
    taken = []
    while turns.has_more:
        step = take(turns)
        assert len(step) <= STEP_MAX
        taken += step
    assert taken == KEYS


def test_all_have_their_turn_when_it_is_due(turns):
    seen = []
    for now_ms in range(1_000, 1_000 + 4 * 500, 500):
        step = take(turns, now_ms)
        assert take(turns, now_ms + 499) == []
        assert len(step) <= STEP_MAX
        seen += step
    assert seen == KEYS
    assert take(turns, 3_000) == KEYS[:STEP_MAX]


def test_one_that_is_paused_is_looked_at_each_time(turns):
    turns.pause(KEYS[3])
    assert take(turns) == [KEYS[3]]
    assert not turns.has_more
    assert take(turns) == []


def test_of_very_many_that_are_paused_each_has_its_turn(turns):
    for key in KEYS:
        turns.pause(key)
    seen = []
    for _ in range(4):
        step = take(turns)
        assert len(step) <= STEP_MAX
        seen += step
        for key in step:
            turns.pause(key)
    assert set(seen) == set(KEYS)


def test_all_and_those_that_are_gone_may_be_taken_at_once(turns):
    gone = (UUID(int=2), 0)
    turns.touch([KEYS[1], gone])
    turns.pause(KEYS[0])
    assert turns.take_all(KEYS) == [*KEYS, gone]
    assert take(turns) == []
