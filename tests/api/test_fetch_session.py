"""Incremental fetch sessions, rules 83-91."""

from uuid import UUID

import pytest

from kafkalite.api.fetch_session import MIN_EVICTION_MS, FetchSessions
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)


def request(*partitions, session_id=0, epoch=-1, forgotten=(), topic="t", topic_id=ZERO_UUID):
    wanted = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=100)
        for index, offset in partitions
    ]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=wanted)] if wanted else [],
        forgotten_topics_data=[
            ForgottenTopic(topic=topic, topic_id=topic_id, partitions=list(forgotten))
        ]
        if forgotten
        else [],
    )


def data(index, *, high_watermark=5, records=b"", error=ErrorCode.NONE, log_start=0):
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start,
        records=records,
    )


def plan(sessions, wanted, *, by_topic_id=False, now_ms=0):
    return sessions.plan(wanted, by_topic_id=by_topic_id, now_ms=now_ms)


def answer(a_plan, **given):
    """Answer every partition of the plan; those named in `given` (p0=...) with that data."""
    results = [(c, given.get(f"p{c.partition}", data(c.partition))) for c in a_plan.partitions]
    return [cached.partition for cached, _ in a_plan.select(results)]


@pytest.fixture
def sessions():
    return FetchSessions(max_sessions=2, first_id=7)


def open_session(sessions, *partitions, now_ms=0):
    opened = plan(sessions, request(*partitions, epoch=0), now_ms=now_ms)
    answer(opened)
    return opened.session_id


def test_epoch_minus_one_fetches_without_a_session(sessions):
    """Rule 83."""
    full = plan(sessions, request((0, 1)))
    assert full.session_id == 0
    assert answer(full) == [0]
    assert len(sessions) == 0


def test_epoch_zero_opens_a_session_and_answers_everything(sessions):
    """Rule 83."""
    full = plan(sessions, request((0, 1), (1, 2), epoch=0))
    assert full.session_id == 7
    assert answer(full) == [0, 1]


def test_full_request_closes_the_session_it_names(sessions):
    """Rule 83: session N with epoch -1 or 0 closes N first."""
    session_id = open_session(sessions, (0, 0))
    plan(sessions, request((0, 0), session_id=session_id, epoch=-1))
    assert len(sessions) == 0


def test_no_free_slot_answers_full_with_session_id_zero(sessions):
    """Rule 84."""
    open_session(sessions, (0, 0))
    open_session(sessions, (0, 0))
    assert open_session(sessions, (0, 0)) == 0


def test_session_idle_for_two_minutes_gives_up_its_slot(sessions):
    """Rule 84."""
    first = open_session(sessions, (0, 0))
    open_session(sessions, (0, 0), now_ms=MIN_EVICTION_MS - 1)
    third = open_session(sessions, (0, 0), now_ms=MIN_EVICTION_MS)
    assert third != 0
    with pytest.raises(KafkaError) as refused:
        plan(sessions, request(session_id=first, epoch=1))
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_full_fetch_of_nothing_opens_no_session(sessions):
    assert plan(sessions, request(epoch=0)).session_id == 0


def test_epoch_must_be_the_expected_one(sessions):
    """Rule 85."""
    session_id = open_session(sessions, (0, 0))
    with pytest.raises(KafkaError) as refused:
        plan(sessions, request(session_id=session_id, epoch=2))
    assert refused.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    plan(sessions, request(session_id=session_id, epoch=1))
    plan(sessions, request(session_id=session_id, epoch=2))


def test_epoch_wraps_from_its_greatest_value_to_one(sessions):
    """Rule 85."""
    session_id = open_session(sessions, (0, 0))
    plan(sessions, request(session_id=session_id, epoch=1)).session.epoch = 2**31 - 1
    assert plan(sessions, request(session_id=session_id, epoch=2**31 - 1)).session.epoch == 1
    with pytest.raises(KafkaError, match="epoch"):
        plan(sessions, request(session_id=session_id, epoch=2))
    assert plan(sessions, request(session_id=session_id, epoch=1)).session.epoch == 2


def test_incremental_request_changes_only_what_it_lists(sessions):
    """Rule 86."""
    session_id = open_session(sessions, (0, 10), (1, 20))
    changed = plan(sessions, request((1, 25), (2, 30), session_id=session_id, epoch=1))
    offsets = [(c.partition, c.fetch_offset) for c in changed.partitions]
    assert offsets == [(0, 10), (1, 25), (2, 30)]


def test_forgotten_partition_leaves_the_session(sessions):
    """Rule 86."""
    session_id = open_session(sessions, (0, 0), (1, 0))
    left = plan(sessions, request(session_id=session_id, epoch=1, forgotten=[0]))
    assert [c.partition for c in left.partitions] == [1]
    assert left.session_id == session_id


def test_forgetting_all_closes_the_session(sessions):
    """Rule 86."""
    session_id = open_session(sessions, (0, 0))
    empty = plan(sessions, request(session_id=session_id, epoch=1, forgotten=[0]))
    assert empty.session_id == 0
    assert len(sessions) == 0


def test_incremental_answer_leaves_out_what_did_not_change(sessions):
    """Rule 87."""
    session_id = open_session(sessions, (0, 0), (1, 0), (2, 0), (3, 0))
    quiet = plan(sessions, request(session_id=session_id, epoch=1))
    news = answer(
        quiet,
        p0=data(0, records=b"x"),
        p1=data(1, high_watermark=6),
        p2=data(2, log_start=1),
    )
    assert news == [0, 1, 2]


def test_good_state_after_an_error_is_told_again(sessions):
    """Rule 87."""
    session_id = open_session(sessions, (0, 0))
    broken = data(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=-1)
    assert answer(plan(sessions, request(session_id=session_id, epoch=1)), p0=broken) == [0]
    assert answer(plan(sessions, request(session_id=session_id, epoch=2))) == [0]
    assert answer(plan(sessions, request(session_id=session_id, epoch=3))) == []


def test_partition_that_returned_data_goes_to_the_end(sessions):
    """Rule 88."""
    session_id = open_session(sessions, (0, 0), (1, 0))
    answer(plan(sessions, request(session_id=session_id, epoch=1)), p0=data(0, records=b"x"))
    after = plan(sessions, request(session_id=session_id, epoch=2))
    assert [c.partition for c in after.partitions] == [1, 0]


def test_session_made_by_name_cannot_go_on_by_topic_id(sessions):
    """Rule 89."""
    session_id = open_session(sessions, (0, 0))
    with pytest.raises(KafkaError) as refused:
        plan(sessions, request(session_id=session_id, epoch=1), by_topic_id=True)
    assert refused.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_session_ids_skip_zero_and_those_in_use():
    """Rule 83: zero is none."""
    sessions = FetchSessions(max_sessions=10, first_id=2**31 - 1)
    assert open_session(sessions, (0, 0)) == 2**31 - 1
    assert open_session(sessions, (0, 0)) == 1
    assert open_session(sessions, (0, 0)) == 2
    again = FetchSessions(max_sessions=10, first_id=5)
    assert open_session(again, (0, 0)) == 5
    again._next_id = 5
    assert open_session(again, (0, 0)) == 6


def test_no_slots_at_all_means_no_sessions():
    """Rule 91."""
    assert open_session(FetchSessions(max_sessions=0, first_id=1), (0, 0)) == 0


@pytest.mark.parametrize("epoch", [1, 7, -2])
def test_session_zero_is_never_found(sessions, epoch):
    with pytest.raises(KafkaError) as refused:
        plan(sessions, request((0, 0), epoch=epoch))
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_refused_request_does_not_move_the_session_on(sessions):
    """Rule 85."""
    session_id = open_session(sessions, (0, 0))
    for _ in range(2):
        with pytest.raises(KafkaError):
            plan(sessions, request((5, 0), session_id=session_id, epoch=3))
        with pytest.raises(KafkaError):
            plan(sessions, request((5, 0), session_id=session_id, epoch=1), by_topic_id=True)
    resumed = plan(sessions, request(session_id=session_id, epoch=1))
    assert [c.partition for c in resumed.partitions] == [0]


def test_session_in_use_is_not_given_up_however_old_it_is(sessions):
    """Rule 84: by last use."""
    first = open_session(sessions, (0, 0))
    second = open_session(sessions, (0, 0))
    plan(sessions, request(session_id=first, epoch=1), now_ms=MIN_EVICTION_MS)
    assert open_session(sessions, (0, 0), now_ms=MIN_EVICTION_MS) != 0
    plan(sessions, request(session_id=first, epoch=2), now_ms=MIN_EVICTION_MS)
    with pytest.raises(KafkaError):
        plan(sessions, request(session_id=second, epoch=1), now_ms=MIN_EVICTION_MS)


def test_follower_takes_the_place_of_a_consumer_but_not_of_another_follower(sessions):
    """KIP-227: followers go first."""

    def open_for(replica_id, now_ms):
        wanted = request((0, 0), epoch=0)
        wanted.replica_state = ReplicaState(replica_id=replica_id)
        return plan(sessions, wanted, now_ms=now_ms).session_id

    consumers = [open_for(-1, now_ms) for now_ms in (2, 1)]
    assert open_for(-1, 3) == 0
    follower = open_for(5, 4)
    assert follower > 0
    assert sorted(sessions._sessions) == [consumers[0], follower]
    assert open_for(6, 5) > 0
    assert open_for(7, 6) == 0
    assert open_for(7, 5 + MIN_EVICTION_MS) > 0


def test_clock_that_goes_back_evicts_nobody(sessions):
    open_session(sessions, (0, 0), now_ms=10 * MIN_EVICTION_MS)
    open_session(sessions, (0, 0), now_ms=10 * MIN_EVICTION_MS)
    assert open_session(sessions, (0, 0), now_ms=0) == 0


def test_forgetting_what_is_not_there_changes_nothing(sessions):
    session_id = open_session(sessions, (0, 0))
    same = plan(sessions, request(session_id=session_id, epoch=1, forgotten=[9]))
    assert [c.partition for c in same.partitions] == [0]


def test_partition_added_and_forgotten_at_once_is_forgotten(sessions):
    session_id = open_session(sessions, (0, 0))
    left = plan(sessions, request((1, 0), session_id=session_id, epoch=1, forgotten=[1]))
    assert [c.partition for c in left.partitions] == [0]


def test_same_partition_of_two_topics_is_two(sessions):
    """By ID all names are empty."""
    wanted = request((0, 1), epoch=0, topic="", topic_id=UUID(int=1))
    wanted.topics += request((0, 2), topic="", topic_id=UUID(int=2)).topics
    opened = plan(sessions, wanted, by_topic_id=True)
    assert [(c.topic_id.int, c.fetch_offset) for c in opened.partitions] == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    "changed",
    [
        {"preferred_read_replica": 3},
        {"diverging_epoch": EpochEndOffset(epoch=2, end_offset=1)},
    ],
)
def test_other_leader_and_other_history_are_news(sessions, changed):
    """Rule 87."""
    session_id = open_session(sessions, (0, 0), (1, 0))
    quiet = data(0)
    for name, value in changed.items():
        setattr(quiet, name, value)
    assert answer(plan(sessions, request(session_id=session_id, epoch=1)), p0=quiet) == [0]


def test_partition_forgotten_while_its_answer_was_made_is_not_taken_up_again(sessions):
    """A second connection may use the session meanwhile."""
    session_id = open_session(sessions, (0, 0), (1, 0))
    slow = plan(sessions, request(session_id=session_id, epoch=1))
    plan(sessions, request(session_id=session_id, epoch=2, forgotten=[0]))
    assert answer(slow, p0=data(0, records=b"x")) == [0]
    left = plan(sessions, request(session_id=session_id, epoch=3))
    assert [c.partition for c in left.partitions] == [1]
