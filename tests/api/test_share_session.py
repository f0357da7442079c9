"""Share sessions: whose they are, their epochs and limits (rules 406 and 407)."""

from uuid import UUID

import pytest

from kafkalite.api.share_session import (
    EPOCH_MAX,
    SessionKey,
    ShareSessions,
    TopicIdPartition,
    next_epoch,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

A, B, OTHER = SessionKey("g", "a"), SessionKey("g", "b"), SessionKey("h", "a")
P0, P1 = TopicIdPartition(UUID(int=1), 0), TopicIdPartition(UUID(int=1), 1)


@pytest.fixture
def sessions():
    return ShareSessions(max_sessions=2)


def code(function, *arguments):
    with pytest.raises(KafkaError) as raised:
        function(*arguments)
    return raised.value.code


def test_partitions_are_added_and_forgotten_and_keep_their_order(sessions):
    sessions.open(A, [(P0, "t")], 1)
    session = sessions.resume(A, 1, [(P1, "t"), (P0, "t")], [])
    assert [*session.partitions] == [P0, P1]
    assert [each.must_be_told for each in session.partitions.values()] == [False, True]
    assert [*sessions.resume(A, 2, [], [P0]).partitions] == [P1]


def test_epochs_are_counted_by_both_apis_and_go_round(sessions):
    session = sessions.open(A, [], 1)
    sessions.advance(A, 1)
    sessions.resume(A, 2, [], [])
    assert code(sessions.advance, A, 2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    session.epoch = EPOCH_MAX
    sessions.advance(A, EPOCH_MAX)
    assert session.epoch == next_epoch(EPOCH_MAX) == 1


def test_a_request_that_is_refused_does_not_count(sessions):
    sessions.open(A, [], 1)
    assert code(sessions.advance, A, 7) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    sessions.advance(A, 1)


def test_there_are_so_many_sessions_and_no_more(sessions):
    sessions.open(A, [], 1)
    sessions.open(B, [], 2)
    assert code(sessions.open, OTHER, [], 3) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    sessions.open(A, [], 1)
    sessions.remove(B)
    sessions.open(OTHER, [], 3)
    assert len(sessions) == 2


def test_opening_again_forgets_the_session_before(sessions):
    first = sessions.open(A, [(P0, "t")], 1)
    second = sessions.open(A, [(P1, "t")], 1)
    assert first is not second
    assert [*sessions.find(A).partitions] == [P1]
    assert len(sessions) == 1


def test_sessions_end_with_their_connection_only(sessions):
    sessions.open(A, [], 1)
    sessions.open(A, [], 2)
    closed = sessions.on_disconnect(1)
    assert (closed.sessions, closed.groups) == ([], [])
    sessions.find(A)
    session = sessions.find(A)
    closed = sessions.on_disconnect(2)
    assert (closed.sessions, closed.groups) == ([session], ["g"])
    assert code(sessions.find, A) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_group_is_told_when_its_last_session_ends(sessions):
    sessions.open(A, [], 1)
    sessions.open(B, [], 2)
    assert sessions.on_disconnect(1).groups == []
    assert sessions.on_disconnect(2).groups == ["g"]
    assert sessions.on_disconnect(3).groups == []


def test_a_session_that_ended_before_its_connection(sessions):
    sessions.open(A, [], 1)
    assert sessions.remove(A) is not None
    assert sessions.remove(A) is None
    closed = sessions.on_disconnect(1)
    assert (closed.sessions, closed.groups) == ([], ["g"])
