"""Replicas of one partition on several brokers: roles, watermarks and failover, without network."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.isr.offset_lookup import list_offset
from kafkalite.isr.partition_read import LATEST_TIMESTAMP, IsolationLevel
from kafkalite.log.validate import AppendOrigin
from kafkalite.meta.changes import BrokerUnregistered, ImageReplaced, TopicDeleted
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.isr.replica_kit import TOPIC_ID, TP, ReplicaKit, refusal
from tests.log.log_kit import NOW_MS, batch, marker

COMMITTED = IsolationLevel.READ_COMMITTED
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED


@pytest.fixture
def kit():
    return ReplicaKit(min_insync_replicas=2, replica_lag_time_max_ms=1_000)


def read(partition, offset=0, isolation=UNCOMMITTED):
    return partition.read(offset, max_bytes=1 << 20, min_one_batch=True, isolation=isolation)


class TestRoles:
    def test_one_leads_and_the_others_follow_it(self, kit):
        assert [kit[n].is_leader for n in (1, 2, 3)] == [True, False, False]
        assert [kit[n].leader_id for n in (1, 2, 3)] == [1, 1, 1]
        assert kit.members[1].replicas.find(TP) is kit[1]
        assert kit.members[2].replicas.find(TP) is None
        assert kit.members[2].replicas.partitions_of("t") == {}
        assert kit.members[2].replicas.followed(TP) is kit[2]
        assert kit.members[1].replicas.followed(TP) is None

    def test_who_does_not_lead_says_so(self, kit):
        """Rule 96."""
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        replicas = kit.members[2].replicas
        assert refusal(replicas.partition, "t", 0) is code
        assert refusal(replicas.partition_by_id, TOPIC_ID, 0) is code
        assert replicas.replica("t", 0) is replicas.replica_by_id(TOPIC_ID, 0) is kit[2]
        assert refusal(kit.append, 2, "a") is code
        assert refusal(kit[2].on_follower_fetch, 3, -1, 0, 0, 0) is code

    def test_leader_does_nothing_that_is_for_followers(self, kit):
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        leader = kit[1]
        assert refusal(leader.append_as_follower, batch("a")) is code
        assert refusal(leader.truncate_to, 0) is code
        assert refusal(leader.truncate_fully_and_start_at, 0) is code
        assert refusal(leader.advance_follower, 0, 0) is code

    def test_answer_of_an_earlier_reign_is_not_written(self, kit):
        kit.change(leader=3)
        fenced = ErrorCode.FENCED_LEADER_EPOCH
        assert refusal(kit[2].append_as_follower, batch("a"), leader_epoch=0) is fenced

    def test_fetchers_are_told_of_new_leaders(self, kit):
        told = []
        replicas = kit.members[2].replicas
        end = replicas.subscribe_following(lambda: told.extend(replicas.take_following()))
        assert list(replicas.take_following()) == [TP]
        kit.change(leader=3)
        assert told == [TP]
        assert replicas.followed(TP).leader_id == 3
        for leader_id in (-1, 2):
            kit.change(leader=leader_id)
            assert replicas.followed(TP) is None
        assert told == [TP] * 3
        end()
        kit.change(leader=1)
        assert len(told) == 3

    def test_fetchers_are_not_told_of_what_is_the_leaders_business(self, kit):
        """To look through thousands of partitions for each change of one ISR takes long."""
        told = []
        replicas = kit.members[2].replicas
        replicas.subscribe_following(lambda: told.append(1))
        assert list(replicas.take_following()) == [TP]
        kit.change(isr=(1, 2))
        assert told == []

    def test_without_leader_nobody_serves(self, kit):
        kit.change(leader=-1)
        for n in (1, 2, 3):
            assert refusal(kit.members[n].replicas.partition, "t", 0) is (
                ErrorCode.NOT_LEADER_OR_FOLLOWER
            )

    def test_state_told_twice_or_late_changes_nothing(self, kit):
        kit.append(1, "a")
        kit.catch_up(1)
        old = kit.state
        kit.change(leader=2)
        kit[2].become_follower(old)
        kit[1].become_leader(old, now_ms=0)
        assert (kit[2].is_leader, kit[1].is_leader) == (True, False)

    def test_reassignment_takes_the_replica_away_with_its_log(self, kit):
        kit.append(1, "a")
        kit.catch_up(1)
        kit.change(replicas=(1, 2), isr=(1, 2))
        assert kit[3] is None
        assert kit.members[3].logs.logs() == []
        assert refusal(kit.members[3].replicas.partition, "t", 0) is (
            ErrorCode.NOT_LEADER_OR_FOLLOWER
        )
        kit.change(replicas=(1, 2, 3))
        assert kit[3].log_end_offset == 0
        kit.catch_up(1)
        kit.answer(1)
        assert kit.state.isr == (1, 2, 3)

    def test_replica_that_was_moved_while_its_broker_was_away_is_removed(self, kit):
        kit.reachable = {1, 2}
        kit.change(replicas=(1, 2), isr=(1, 2))
        kit.members[3].restart(kit.image)
        assert kit[3] is None
        assert kit.members[3].logs.logs() == []

    def test_whole_image_is_compared(self, kit):
        kit.reachable = {1}
        kit.change(leader=2)
        kit.members[2].replicas.on_changes([ImageReplaced()], kit.image)
        assert kit[2].is_leader
        deleted = kit.image.apply([TopicDeleted(name="t", topic_id=TOPIC_ID)])
        kit.members[2].replicas.on_changes([ImageReplaced()], deleted)
        assert kit[2] is None
        assert kit.members[2].logs.logs() == []

    def test_from_one_replica_to_several_and_back(self):
        kit = ReplicaKit(2)
        kit.change(replicas=(1,), isr=(1,))
        kit.append(1, "a")
        assert kit[1].leader is None
        kit.change(replicas=(1, 2))
        kit.append(1, "b")
        assert kit[1].high_watermark == 2
        kit.catch_up(1)
        kit.answer(1)
        kit.append(1, "c")
        waiter = kit.wait(1, 3)
        assert (kit[1].high_watermark, waiter.outcome) == (2, None)
        kit.change(replicas=(1,), isr=(1,))
        assert (kit[1].high_watermark, waiter.outcome) == (3, ErrorCode.NONE)


class TestHighWatermark:
    def test_it_moves_when_all_in_sync_replicas_have_fetched(self, kit):
        """Rules 72, 73 and 169."""
        told = []
        kit[1].watch(lambda: told.append(kit[1].high_watermark))
        appended = []
        kit[1].watch_appends(lambda: appended.append(kit[1].log_end_offset))
        kit.append(1, "a", "b")
        assert (kit[1].high_watermark, told, appended) == (0, [], [2])
        assert len(read(kit[1]).region) == 0
        assert len(read(kit[1], 1).region) == len(read(kit[1], 2).region) == 0
        kit.catch_up(1, 2)
        assert kit[1].high_watermark == 0
        kit.catch_up(1, 3)
        assert (kit[1].high_watermark, told[-1]) == (2, 2)
        assert [kit[n].high_watermark for n in (2, 3)] == [0, 2]
        kit.fetch(2, 1)
        assert kit[2].high_watermark == 2
        assert len(read(kit[2]).region) == len(read(kit[1]).region) > 0

    def test_it_waits_for_no_replica_outside_the_isr_that_has_died(self, kit):
        """Not even until the next look for laggards, which may be 15 s away."""
        kit.append(1, "a")
        kit.catch_up(1)
        kit.change(isr=(1, 2))
        kit.append(1, "b")
        kit.catch_up(1, 2)
        assert kit[1].high_watermark == 1, "the third one had just caught up, and is waited for"
        died = [BrokerUnregistered(broker_id=3)]
        kit.image = kit.image.apply(died)
        kit.members[1].replicas.on_changes(died, kit.image)
        assert kit[1].high_watermark == 2

    def test_it_is_kept_over_a_restart(self, kit):
        """Rule 184."""
        kit.append(1, "a", "b")
        kit.catch_up(1)
        kit.fetch(2, 1)
        kit.append(1, "c")
        kit.catch_up(1, 2)
        kit.members[2].restart(kit.image)
        assert (kit[2].high_watermark, kit[2].log_end_offset) == (2, 3)

    def test_followers_begin_where_their_leader_does(self, kit):
        """Rule 170."""
        kit.append(1, "a", "b", "c")
        kit.catch_up(1)
        kit[1].delete_records_before(2)
        assert kit[1].low_watermark == 0
        for n in (2, 3, 2, 3):
            kit.fetch(n, 1)
        assert [kit[n].log_start_offset for n in (2, 3)] == [2, 2]
        assert kit[1].low_watermark == 2

    def test_new_leader_does_not_say_what_is_latest_until_it_knows(self, kit):
        """Rule 95."""
        kit.append(1, "a")
        kit.catch_up(1)
        kit.change(leader=2)
        assert kit[2].high_watermark < kit[2].log_end_offset
        unknown = ErrorCode.OFFSET_NOT_AVAILABLE
        for timestamp in (LATEST_TIMESTAMP, NOW_MS):
            assert refusal(list_offset, kit[2], timestamp, UNCOMMITTED) is unknown
        assert list_offset(kit[2], LATEST_TIMESTAMP, UNCOMMITTED, as_replica=True)[0] == 1
        kit.catch_up(2)
        assert list_offset(kit[2], LATEST_TIMESTAMP, UNCOMMITTED)[0] == 1
        assert list_offset(kit[2], NOW_MS, UNCOMMITTED)[0] == 0

    def test_decided_transaction_is_stable_when_its_marker_is_replicated(self, kit):
        """Rule 115."""
        records = batch("x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        kit[1].append(records, now_ms=NOW_MS)
        kit.catch_up(1)
        kit[1].append(marker(1, 0, commit=True), now_ms=0, origin=AppendOrigin.COORDINATOR)
        assert (kit[1].high_watermark, kit[1].last_stable_offset) == (1, 0)
        kit.catch_up(1)
        assert (kit[1].high_watermark, kit[1].last_stable_offset) == (2, 2)
        kit.fetch(3, 1)
        assert kit[3].last_stable_offset == 2

    def test_transaction_of_before_a_restart_is_stable_with_its_marker(self, kit):
        """Rule 115: where it began is not remembered."""
        records = batch("x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        kit[1].append(records, now_ms=NOW_MS)
        kit.catch_up(1)
        kit[1].append(marker(1, 0, commit=True), now_ms=0, origin=AppendOrigin.COORDINATOR)
        kit.members[1].restart(kit.image)
        assert (kit[1].high_watermark, kit[1].last_stable_offset) == (1, 0)
        kit.catch_up(1)
        assert (kit[1].high_watermark, kit[1].last_stable_offset) == (2, 2)

    def test_retention_and_compaction_spare_what_is_not_replicated(self, kit):
        kit.append(1, "a")
        assert kit.members[1].logs.bounds(kit[1].log) == (0, 0)
        kit.catch_up(1)
        assert kit.members[1].logs.bounds(kit[1].log) == (1, 1)


class TestAcknowledgement:
    """Rules 51 and 52."""

    def test_all_in_sync_replicas_have_it(self, kit):
        kit.append(1, "a", all_acks=True)
        waiter = kit.wait(1, 1)
        kit.catch_up(1, 2)
        assert waiter.outcome is None
        kit.catch_up(1, 3)
        assert waiter.outcome is ErrorCode.NONE
        assert kit.wait(1, 1).outcome is ErrorCode.NONE

    def test_too_few_replicas_take_nothing_but_acks_1(self, kit):
        kit.change(isr=(1,))
        refused = refusal(kit.append, 1, "a", all_acks=True)
        assert refused is ErrorCode.NOT_ENOUGH_REPLICAS
        assert kit[1].log_end_offset == 0
        assert kit.append(1, "a").first_offset == 0
        late = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert kit.wait(1, 1).outcome is late

    def test_isr_that_shrinks_too_far_ends_the_wait(self, kit):
        kit.append(1, "a", all_acks=True)
        waiter = kit.wait(1, 1, timeout_ms=60_000)
        kit.clock.now_ms += 1_001
        kit.members[1].replicas.tick()
        assert waiter.outcome is None
        kit.answer(1)
        assert kit.state.isr == (1,)
        assert waiter.outcome is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert (kit[1].log_end_offset, kit[1].high_watermark) == (1, 0)

    def test_lost_leadership_and_a_lost_replica_end_the_wait(self, kit):
        kit.append(1, "a")
        first = kit.wait(1, 1)
        kit.change(leader=2)
        assert first.outcome is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert kit.wait(1, 1).outcome is ErrorCode.NOT_LEADER_OR_FOLLOWER
        kit.append(2, "b")
        second = kit.wait(2, 1)
        kit.change(replicas=(1, 3), isr=(1, 3), leader=3)
        assert second.outcome is ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_waiters_that_nobody_asks_for_go_with_time(self, kit):
        kit.append(1, "a")
        waiter = kit.wait(1, 1, timeout_ms=100)
        kit.clock.now_ms += 100
        kit.members[1].replicas.tick()
        assert waiter.outcome is ErrorCode.REQUEST_TIMED_OUT

    def test_new_minimum_takes_effect_at_once(self, kit):
        kit.append(1, "a")
        waiter = kit.wait(1, 1)
        kit.change(isr=(1, 2))
        assert waiter.outcome is None
        core = kit[1].leader
        core.min_insync_replicas = 3
        kit[1].on_config_changed()
        assert core.min_insync_replicas == 2


class TestFailover:
    def test_epoch_without_records_leaves_no_trace_at_a_follower(self, kit):
        """Rule 99."""
        kit.append(1, "a")
        kit.catch_up(1)
        kit.change(leader=2)
        assert kit[2].log.leader_epoch == 1
        kit.change(leader=3)
        assert kit[2].fetch_position() == (1, 0, 2, 0)

    def test_what_was_not_committed_is_cut_off(self, kit):
        """Rule 171, KIP-101 and KIP-279."""
        kit.append(1, "a")
        kit.catch_up(1)
        kit.append(1, "lost")
        kit.reachable = {2, 3}
        kit.change(leader=2, isr=(2, 3))
        kit.append(2, "b")
        kit.catch_up(2, 3)
        kit.reachable = {1, 2, 3}
        kit.change()
        kit.catch_up(2)
        assert kit.members[1].records == kit.members[2].records == kit.members[3].records
        kit.answer(2)
        assert sorted(kit.state.isr) == [1, 2, 3]

    def test_fetch_of_another_history_is_no_progress(self, kit):
        """What lies before its offset is not what the leader has there."""
        kit.append(1, "a")
        kit.catch_up(1)
        kit.append(1, "lost")
        kit.change(leader=2, isr=(2, 3))
        kit.append(2, "b", "c")
        kit.fetch(1, 2)
        assert kit[2].leader.followers[1].log_end_offset == -1
        assert kit[1].log_end_offset == 1


moves = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.booleans()),
        st.tuples(st.just("fetch"), st.integers(1, 3)),
        st.tuples(st.just("elect"), st.integers(1, 3)),
        st.tuples(st.just("lose"), st.integers(1, 3)),
        st.tuples(st.just("find")),
        st.tuples(st.just("tick")),
        st.tuples(st.just("answer")),
        st.tuples(st.just("restart"), st.integers(1, 3)),
    ),
    max_size=50,
)


@settings(max_examples=150, deadline=None)
@given(moves)
def test_what_was_acknowledged_is_never_lost(moves):
    """Goal: any order of fetches, elections within the ISR, restarts and brokers out of reach."""
    kit = ReplicaKit(min_insync_replicas=2, replica_lag_time_max_ms=1_000)
    acknowledged, waiting = {}, []
    number = 0
    for move in moves:
        leader_id = kit.state.leader
        match move:
            case ("append", all_acks) if leader_id in kit.reachable:
                number += 1
                with suppress(KafkaError):  # there may be too few replicas
                    info = kit.append(leader_id, f"value{number}", all_acks=all_acks)
                    waiter = kit.wait(leader_id, info.last_offset + 1)
                    waiting.append((waiter, info.first_offset, f"value{number}"))
            case ("fetch", n) if n != leader_id and {n, leader_id} <= kit.reachable:
                kit.fetch(n, leader_id)
            case ("elect", n) if n in kit.state.isr and n in kit.reachable and n != leader_id:
                live = tuple(m for m in kit.state.isr if m in kit.reachable)
                kit.change(leader=n, isr=live)
            case ("lose", n) if len(kit.reachable) > 2:
                kit.reachable.discard(n)
            case ("find",):
                kit.reachable = {1, 2, 3}
                kit.change()
            case ("tick",):
                kit.clock.now_ms += 600
                for n in kit.reachable:
                    kit.members[n].replicas.tick()
            case ("answer",) if leader_id in kit.reachable:
                kit.answer(leader_id)
            case ("restart", n) if n in kit.reachable:
                kit.members[n].restart(kit.image)
        acknowledged |= {at: value for w, at, value in waiting if w.outcome is ErrorCode.NONE}
        waiting = [each for each in waiting if each[0].outcome is None]
        for n in (1, 2, 3):
            partition = kit[n]
            assert partition.log_start_offset <= partition.last_stable_offset
            assert partition.last_stable_offset <= partition.high_watermark
            assert partition.high_watermark <= partition.log_end_offset
        if kit.state.leader in kit.reachable:
            held = kit.members[kit.state.leader].records
            assert all(value.encode() in held for value in acknowledged.values())
    kit.reachable = {1, 2, 3}
    kit.change()
    for _ in range(3):
        kit.catch_up(kit.state.leader)
        kit.answer(kit.state.leader)
    assert len({kit.members[n].records for n in (1, 2, 3)}) == 1
    assert len({kit[n].high_watermark for n in (1, 2, 3)} - {kit[1].log_end_offset}) == 0
