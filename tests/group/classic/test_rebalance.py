"""The join phase: when it starts, whom it waits for, how it ends (rules 131-134, 138)."""

import pytest

from kafkalite.group.classic.states import GroupState
from kafkalite.wire.errors import ErrorCode
from tests.group.harness import REBALANCE_MS, SECOND, SESSION_MS, Client, GroupHarness


class TestInitialDelay:
    """Rule 131, KIP-134."""

    def test_first_member_waits_for_others(self):
        harness = GroupHarness(delay_ms=3 * SECOND)
        a, b = Client(), Client()
        harness.join(a)
        harness.advance(2 * SECOND)
        harness.join(b)
        assert harness.is_parked(a.join_ticket)
        assert harness.group.generation == 0

    def test_without_newcomers_it_is_over_after_the_delay(self):
        harness = GroupHarness(delay_ms=3 * SECOND)
        client = Client()
        harness.join(client)
        harness.advance(3 * SECOND - 1)
        assert harness.is_parked(client.join_ticket)
        harness.advance(1)
        assert harness.answer(client.join_ticket).generation_id == 1

    def test_newcomers_prolong_it(self):
        harness = GroupHarness(delay_ms=3 * SECOND)
        a, b = Client(), Client()
        harness.join(a)
        harness.advance(2 * SECOND)
        harness.join(b)
        harness.advance(2 * SECOND)
        assert harness.is_parked(a.join_ticket)
        harness.advance(2 * SECOND)
        assert harness.answer(b.join_ticket).generation_id == 1

    def test_it_lasts_no_longer_than_the_rebalance_timeout(self):
        harness = GroupHarness(delay_ms=3 * SECOND)
        first = Client(rebalance_ms=7 * SECOND)
        harness.join(first)
        while harness.is_parked(first.join_ticket):
            harness.advance(SECOND)
            harness.join(Client(rebalance_ms=7 * SECOND))
            assert len(harness.group.members) < 12
        # 3 s, 3 s, 1 s; the remainder is counted as Kafka counts it, one step behind.
        assert len(harness.answer(first.join_ticket).members) == 7

    def test_rebalance_timeout_below_the_delay_is_not_prolonged(self):
        harness = GroupHarness(delay_ms=3 * SECOND)
        a, b = Client(rebalance_ms=SECOND), Client(rebalance_ms=SECOND)
        harness.join(a)
        harness.join(b)
        harness.advance(3 * SECOND)
        assert harness.answer(a.join_ticket).generation_id == 1

    def test_all_having_joined_does_not_end_it(self):
        harness = GroupHarness(delay_ms=3 * SECOND)
        a, b = Client(), Client()
        harness.join(a)
        harness.join(b)
        harness.leave(b)
        assert harness.is_parked(a.join_ticket)

    def test_zero_delay_answers_at_once(self):
        harness = GroupHarness(delay_ms=0)
        client = Client()
        harness.join(client)
        assert client.generation == 1

    def test_everybody_leaving_makes_the_group_empty_again(self):
        harness = GroupHarness(delay_ms=3 * SECOND)
        client = Client()
        harness.join(client)
        harness.leave(client)
        assert harness.code(client.join_ticket) is ErrorCode.UNKNOWN_MEMBER_ID
        harness.advance(3 * SECOND)
        assert harness.state is GroupState.EMPTY


class TestJoinPhase:
    def test_it_ends_when_all_have_rejoined(self):
        """Rule 132."""
        harness = GroupHarness()
        a, b = harness.stable_group(Client(), Client())
        harness.join(a)
        assert harness.is_parked(a.join_ticket)
        harness.join(b)
        assert harness.answer(a.join_ticket).generation_id == 3

    def test_absent_dynamic_members_are_removed_at_the_rebalance_timeout(self):
        """Rule 132."""
        harness = GroupHarness()
        a, b = harness.stable_group(Client(session_ms=REBALANCE_MS * 2), Client())
        b.topics = ("another",)
        harness.join(b)
        harness.advance(REBALANCE_MS)
        assert set(harness.group.members) == {b.member_id}
        assert harness.answer(b.join_ticket).leader == b.member_id
        assert harness.heartbeat(a) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_absent_static_members_stay(self):
        """Rule 132: the first who joined leads instead of an absent leader."""
        harness = GroupHarness()
        a, b = harness.stable_group(
            Client(instance_id="a", session_ms=REBALANCE_MS * 2), Client(instance_id="b")
        )
        b.topics = ("another",)
        harness.join(b)
        harness.advance(REBALANCE_MS)
        answer = harness.answer(b.join_ticket)
        assert answer.leader == b.member_id
        assert [member.member_id for member in answer.members] == [a.member_id, b.member_id]

    def test_a_pending_member_is_waited_for(self):
        """Rule 132: who was handed an id is on its way."""
        harness = GroupHarness()
        (a,) = harness.stable_group(Client())
        late = harness.hand_out(Client())
        harness.join(a)
        assert harness.is_parked(a.join_ticket)
        harness.join(late)
        assert len(harness.answer(a.join_ticket).members) == 2

    def test_a_pending_member_that_does_not_come_is_waited_for_no_longer_than_its_session(self):
        harness = GroupHarness()
        (a,) = harness.stable_group(Client())
        harness.hand_out(Client(session_ms=SESSION_MS // 2))
        harness.join(a)
        harness.advance(SESSION_MS // 2)
        assert harness.answer(a.join_ticket).generation_id == 2

    def test_nobody_joining_makes_the_phase_begin_again_until_sessions_expire(self):
        harness = GroupHarness()
        (a,) = harness.stable_group(Client(instance_id="a", rebalance_ms=10 * SECOND))
        harness.join(a)
        harness.learn(a)
        # It gives up waiting for its assignment, joins anew over another connection, and dies: its
        # place in the group is all that remains.
        harness.sync(a)
        other = Client(instance_id="b", rebalance_ms=10 * SECOND)
        harness.join(other)
        harness.disconnect(1)
        harness.leave(other)
        assert harness.state is GroupState.PREPARING_REBALANCE
        harness.advance(10 * SECOND)
        assert harness.state is GroupState.PREPARING_REBALANCE
        harness.advance(SESSION_MS)
        assert harness.state is GroupState.EMPTY

    def test_last_leave_stores_an_empty_generation(self):
        """Rule 134: the number goes on."""
        harness = GroupHarness()
        (a,) = harness.stable_group(Client())
        harness.leave(a)
        assert harness.state is GroupState.EMPTY
        assert harness.group.generation == 2
        assert harness.replica.groups["g"].generation == 2
        assert harness.group.protocol_type == "consumer"

    def test_group_whose_only_hope_is_a_pending_member_is_empty_at_once(self):
        harness = GroupHarness()
        (a,) = harness.stable_group(Client())
        late = harness.hand_out(Client())
        harness.leave(a)
        harness.advance(0)
        assert harness.state is GroupState.EMPTY
        harness.join(late)
        assert late.generation == 3


class TestGeneration:
    def test_it_increases_by_one_per_join_phase(self):
        """Rule 134."""
        harness = GroupHarness()
        (a,) = harness.stable_group(Client())
        for generation in (2, 3, 4):
            harness.join(a)
            harness.learn(a)
            assert a.generation == generation
            harness.sync(a)

    def test_only_the_leader_gets_the_members_and_their_metadata(self):
        """Rule 133."""
        harness = GroupHarness()
        a, b = harness.stable_group(Client(topics=("x",)), Client(topics=("y",)))
        first, second = harness.answer(a.join_ticket), harness.answer(b.join_ticket)
        assert [m.metadata for m in first.members] == [a.protocols[0].metadata,
                                                       b.protocols[0].metadata]  # fmt: skip
        assert second.members == []
        assert second.leader == a.member_id
        assert (first.protocol_type, first.protocol_name) == ("consumer", "range")

    def test_protocol_is_the_one_with_most_votes_among_the_common_ones(self):
        """Rule 133."""
        harness = GroupHarness()
        harness.stable_group(
            Client(protocol_names=("only-mine", "x", "y")),
            Client(protocol_names=("y", "x")),
            Client(protocol_names=("y", "x")),
        )
        assert harness.group.protocol_name == "y"


class TestSyncTimer:
    """Rule 138."""

    def test_members_that_never_sync_are_removed(self):
        harness = GroupHarness()
        a, b = harness.stable_group(
            Client(rebalance_ms=10 * SECOND), Client(rebalance_ms=10 * SECOND)
        )
        harness.join(a)
        harness.join(b)
        harness.learn(a)
        harness.sync(a)
        harness.advance(10 * SECOND)
        assert set(harness.group.members) == {a.member_id}
        assert harness.state is GroupState.PREPARING_REBALANCE

    def test_leader_that_never_syncs_sends_the_others_back(self):
        harness = GroupHarness()
        a, b = harness.stable_group(
            Client(rebalance_ms=10 * SECOND), Client(rebalance_ms=10 * SECOND)
        )
        harness.join(a)
        harness.join(b)
        ticket = harness.sync(b)
        harness.advance(10 * SECOND)
        assert harness.code(ticket) is ErrorCode.REBALANCE_IN_PROGRESS
        assert harness.group.leader_id == b.member_id

    def test_nothing_happens_if_all_have_synced(self):
        harness = GroupHarness()
        (a,) = harness.stable_group(Client(rebalance_ms=10 * SECOND))
        harness.advance(10 * SECOND)
        assert harness.state is GroupState.STABLE
        del a

    def test_nobody_syncing_leaves_an_empty_group(self):
        harness = GroupHarness()
        client = Client(rebalance_ms=10 * SECOND)
        harness.join(client)
        harness.advance(10 * SECOND)
        assert harness.state is GroupState.EMPTY


class TestRefusedAppends:
    """The log refuses a record: clients are told, and the group finds its way."""

    @pytest.fixture
    def harness(self):
        return GroupHarness()

    def test_assignment_that_cannot_be_stored_is_not_handed_out(self, harness):
        a, b = Client(rebalance_ms=10 * SECOND), Client(rebalance_ms=10 * SECOND)
        harness.join(a)
        harness.join(b)
        harness.join(a)
        harness.learn(a)
        harness.learn(b)
        harness.sync(b)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.sync(a)
        for client in (a, b):
            assert harness.code(client.sync_ticket) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert harness.state is GroupState.COMPLETING_REBALANCE
        harness.refuse_appends_with = None
        harness.advance(10 * SECOND)
        assert harness.state is GroupState.PREPARING_REBALANCE

    def test_leader_may_try_again(self, harness):
        client = Client()
        harness.join(client)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.sync(client)
        harness.refuse_appends_with = None
        harness.sync(client)
        assert harness.answer(client.sync_ticket).assignment
        assert harness.state is GroupState.STABLE

    def test_empty_generation_that_cannot_be_stored_does_not_stop_newcomers(self, harness):
        (a,) = harness.stable_group(Client())
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.leave(a)
        harness.refuse_appends_with = None
        late = Client()
        harness.join(late)
        assert late.generation == 2
        harness.sync(late)
        assert harness.state is GroupState.STABLE

    def test_empty_generation_that_cannot_be_stored_is_tried_again(self, harness):
        (a,) = harness.stable_group(Client())
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.leave(a)
        harness.advance(3 * SECOND)
        assert harness.state is GroupState.PREPARING_REBALANCE
        harness.refuse_appends_with = None
        harness.advance(SECOND)
        assert harness.state is GroupState.EMPTY
        assert harness.group.generation == 2
