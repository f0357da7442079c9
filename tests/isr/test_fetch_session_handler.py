"""A follower's half of a fetch session: what each Fetch has to say."""

from uuid import UUID

import pytest

from kafkalite.isr.fetch_session_handler import EPOCH_MAX, Asked, FetchSessionHandler
from kafkalite.isr.follower import Position

TOPIC = UUID(int=1)
A, B, C = (TOPIC, 0), (TOPIC, 1), (TOPIC, 2)


def asked(offset=0, high_watermark=0):
    return Asked("t", Position(1, offset, 1, 0), high_watermark)


@pytest.fixture
def handler():
    """Of a session 7 with A and B, each at offset 0."""
    handler = FetchSessionHandler()
    handler.build({A: asked(), B: asked()}, is_all=True)
    handler.on_answer(7)
    return handler


def test_first_fetch_says_everything_and_opens_a_session():
    handler = FetchSessionHandler()
    assert handler.is_full
    said = handler.build({A: asked(), B: None}, is_all=True)
    assert said == (0, 0, {A: asked()}, [])
    handler.on_answer(7)
    assert not handler.is_full
    assert handler.build({}, is_all=False) == (7, 1, {}, [])


def test_only_what_changed_is_said(handler):
    said = handler.build({A: asked(5), B: asked()}, is_all=True)
    assert said == (7, 1, {A: asked(5)}, [])
    handler.on_answer(7)
    assert handler.build({A: asked(5, 5)}, is_all=False) == (7, 2, {A: asked(5, 5)}, [])


def test_partitions_leave_by_name_or_by_not_being_among_all(handler):
    assert handler.build({A: None}, is_all=False) == (7, 1, {}, [A])
    handler.on_answer(7)
    assert handler.build({C: asked()}, is_all=True) == (7, 2, {C: asked()}, [B])
    handler.on_answer(7)
    assert handler.build({A: asked(), B: None}, is_all=False) == (7, 3, {A: asked()}, [])


def test_a_session_without_partitions_is_told(handler):
    assert not handler.is_empty
    handler.build({A: None, B: None}, is_all=True)
    assert handler.is_empty


def test_an_unknown_outcome_begins_anew_and_names_the_session_that_goes(handler):
    handler.build({A: asked(5)}, is_all=False)
    handler.reset()
    assert handler.is_full
    said = handler.build({A: asked(5), B: asked()}, is_all=True)
    assert said == (7, 0, {A: asked(5), B: asked()}, [])


@pytest.mark.parametrize("answered", [0, 8])
def test_a_leader_without_the_session_is_told_everything_again(handler, answered):
    handler.build({}, is_all=False)
    handler.on_answer(answered)
    assert handler.is_full
    assert handler.build({A: asked()}, is_all=True) == (0, 0, {A: asked()}, [])


def test_a_leader_that_opens_none_is_told_everything_each_time():
    handler = FetchSessionHandler()
    for _ in range(2):
        assert handler.build({A: asked()}, is_all=True) == (0, 0, {A: asked()}, [])
        handler.on_answer(0)


def test_epochs_begin_with_1_again_after_the_last(handler):
    handler._epoch = EPOCH_MAX
    assert handler.build({}, is_all=False).epoch == EPOCH_MAX
    handler.on_answer(7)
    assert handler.build({}, is_all=False).epoch == 1
