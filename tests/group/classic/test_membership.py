"""Heartbeats, leaves and sessions (rules 140-142)."""

import pytest

from kafkalite.group.classic.membership import LeaveGroup
from kafkalite.group.classic.states import GroupState
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.group.harness import REBALANCE_MS, SECOND, SESSION_MS, Client, GroupHarness


@pytest.fixture
def harness():
    return GroupHarness()


@pytest.fixture
def pair(harness):
    return harness.stable_group(Client(), Client())


class TestHeartbeat:
    """Rule 140."""

    def test_stable(self, harness, pair):
        assert harness.heartbeat(pair[0]) is ErrorCode.NONE

    def test_completing_rebalance(self, harness):
        client = Client()
        harness.join(client)
        assert harness.heartbeat(client) is ErrorCode.NONE

    def test_preparing_rebalance_tells_so_and_keeps_the_session(self, harness, pair):
        leader, follower = pair
        harness.join(leader)
        for _ in range(5):
            harness.advance(SESSION_MS - 1)
            if harness.state is not GroupState.PREPARING_REBALANCE:
                break
            assert harness.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
        assert harness.now_ms > SESSION_MS  # it was the rebalance timeout that ended it

    def test_wrong_generation(self, harness, pair):
        code = harness.heartbeat(pair[0], generation_id=1)
        assert code is ErrorCode.ILLEGAL_GENERATION

    def test_unknown_member(self, harness, pair):
        del pair
        assert harness.heartbeat(Client(member_id="x")) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_unknown_group(self, harness):
        assert harness.heartbeat(Client(member_id="x")) is ErrorCode.UNKNOWN_MEMBER_ID


class TestSession:
    """Rule 141."""

    def test_silent_member_is_removed_and_the_others_rebalance(self, harness, pair):
        leader, follower = pair
        harness.advance(SESSION_MS - 1)
        harness.heartbeat(leader)
        harness.advance(1)
        assert set(harness.group.members) == {leader.member_id}
        assert harness.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS
        assert harness.heartbeat(follower) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_commit_keeps_the_session(self, harness):
        (client,) = harness.stable_group(Client())
        for _ in range(5):
            harness.advance(SESSION_MS - 1)
            harness.commit({("topic", 0): 1}, client=client)
        assert harness.state is GroupState.STABLE

    def test_who_waits_in_join_does_not_expire(self, harness):
        (client,) = harness.stable_group(Client(rebalance_ms=4 * SESSION_MS))
        other = Client(rebalance_ms=4 * SESSION_MS)
        harness.join(other)
        harness.join(client)
        harness.sync(client)
        harness.hand_out(Client(session_ms=3 * SESSION_MS))
        parked = harness.join(client)
        harness.heartbeat(other)
        harness.advance(2 * SESSION_MS)
        assert harness.is_parked(parked)
        harness.advance(2 * SESSION_MS)
        assert harness.code(parked) is ErrorCode.NONE

    def test_who_waits_in_sync_does_not_expire(self, harness, pair):
        leader, follower = pair
        harness.join(leader)
        harness.join(follower)
        harness.learn(leader)
        parked = harness.sync(follower)
        for _ in range(2):
            harness.advance(SESSION_MS - 1)
            harness.heartbeat(leader)
        assert harness.is_parked(parked)

    def test_death_of_a_member_that_is_waited_for_ends_the_phase(self, harness, pair):
        leader, follower = pair
        harness.join(leader)
        harness.advance(SESSION_MS)
        assert harness.answer(leader.join_ticket).generation_id == 3
        assert follower.member_id not in harness.group.members

    def test_setting_the_wall_clock_ends_no_session(self, harness, pair):
        """Deadlines are monotonic."""
        leader, _ = pair
        harness.wall_offset_ms += 24 * 60 * 60 * SECOND
        harness.advance(SECOND)
        assert harness.heartbeat(leader) is ErrorCode.NONE
        assert len(harness.group.members) == 2


class TestLeave:
    """Rule 142."""

    @pytest.mark.parametrize("version", [0, 2, 3, 5])
    def test_dynamic_member_leaves_and_the_others_rebalance(self, harness, pair, version):
        leader, follower = pair
        assert harness.code(harness.leave(leader, version=version)) is ErrorCode.NONE
        assert harness.state is GroupState.PREPARING_REBALANCE
        assert harness.group.leader_id == follower.member_id

    def test_leaving_ends_a_phase_that_waits_for_nobody_else(self, harness, pair):
        leader, follower = pair
        harness.join(leader)
        harness.leave(follower)
        assert harness.answer(leader.join_ticket).generation_id == 3

    def test_leaving_while_waiting_answers_what_is_waited_for(self, harness, pair):
        leader, follower = pair
        parked = harness.join(leader)
        harness.leave(leader)
        assert harness.code(parked) is ErrorCode.UNKNOWN_MEMBER_ID
        harness.join(follower)
        harness.learn(follower)
        harness.join(leader := Client())
        harness.join(follower)
        parked = harness.sync(leader)
        harness.learn(leader)
        parked = harness.sync(leader)
        harness.leave(leader)
        assert harness.code(parked) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_several_members_are_answered_each(self, harness, pair):
        leader, follower = pair
        request = LeaveGroupRequest(
            group_id="g",
            members=[
                MemberIdentity(member_id=leader.member_id),
                MemberIdentity(member_id="stranger"),
                MemberIdentity(member_id=follower.member_id),
                MemberIdentity(member_id=""),
            ],
        )
        answer = harness.ask(LeaveGroup(request, 3))
        assert answer.error_code == ErrorCode.NONE
        assert [member.error_code for member in answer.members] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert harness.state is GroupState.EMPTY

    def test_static_member_is_removed_by_its_instance_id_alone(self, harness):
        """KIP-345: an operator cannot know the member id."""
        a, b = harness.stable_group(Client(instance_id="a"), Client(instance_id="b"))
        code = harness.answer(
            harness.leave(Client(instance_id="a"))
        ).members[0].error_code  # fmt: skip
        assert code == ErrorCode.NONE
        assert set(harness.group.members) == {b.member_id}
        assert harness.group.static_members == {"b": b.member_id}
        del a

    def test_static_member_with_the_wrong_id_is_fenced(self, harness):
        a, _ = harness.stable_group(Client(instance_id="a"), Client(instance_id="b"))
        harness.join(Client(instance_id="a"))
        answer = harness.answer(harness.leave(a))
        assert answer.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID

    def test_unknown_instance(self, harness):
        harness.stable_group(Client(instance_id="a"))
        answer = harness.answer(harness.leave(Client(instance_id="z")))
        assert answer.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_unknown_member_of_an_old_version_is_refused(self, harness, pair):
        del pair
        ticket = harness.leave(Client(member_id="x"), version=2)
        assert harness.code(ticket) is ErrorCode.UNKNOWN_MEMBER_ID
        assert harness.state is GroupState.STABLE

    def test_unknown_group(self, harness):
        ticket = harness.leave(Client(member_id="x"))
        assert harness.code(ticket) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_pending_member_leaves_without_a_rebalance(self, harness, pair):
        pending = harness.hand_out(Client())
        assert harness.code(harness.leave(pending)) is ErrorCode.NONE
        assert harness.state is GroupState.STABLE
        assert not harness.group.pending_joins
        del pair

    def test_pending_member_that_leaves_is_waited_for_no_longer(self, harness):
        (a,) = harness.stable_group(Client())
        pending = harness.hand_out(Client())
        harness.join(a)
        harness.leave(pending)
        assert harness.answer(a.join_ticket).generation_id == 2


class TestDisconnect:
    """Profile `test`: a killed consumer does not block its group."""

    def test_member_of_the_connection_is_removed(self, harness):
        a, b = harness.stable_group(Client(connection_id=1), Client(connection_id=2))
        harness.disconnect(2)
        assert set(harness.group.members) == {a.member_id}
        assert harness.heartbeat(a) is ErrorCode.REBALANCE_IN_PROGRESS
        del b

    def test_parked_join_goes_with_it(self, harness):
        a, b = harness.stable_group(Client(connection_id=1), Client(connection_id=2))
        harness.join(Client(connection_id=3))
        harness.disconnect(3)
        assert len(harness.group.members) == 2
        harness.join(a)
        harness.join(b)
        assert harness.code(a.join_ticket) is ErrorCode.NONE

    def test_static_member_stays(self, harness):
        """It is meant to come back."""
        (a,) = harness.stable_group(Client(instance_id="a", connection_id=5))
        harness.disconnect(5)
        assert harness.state is GroupState.STABLE
        del a

    def test_handed_out_id_is_taken_back(self, harness):
        (a,) = harness.stable_group(Client(connection_id=1))
        harness.hand_out(Client(connection_id=9))
        harness.join(a)
        assert harness.is_parked(a.join_ticket)
        harness.disconnect(9)
        assert harness.answer(a.join_ticket).generation_id == 2

    def test_strangers_connection_changes_nothing(self, harness, pair):
        harness.disconnect(77)
        assert harness.state is GroupState.STABLE
        del pair

    def test_last_member_leaves_an_empty_group(self, harness):
        harness.stable_group(Client(connection_id=5))
        harness.disconnect(5)
        assert harness.state is GroupState.EMPTY
        harness.advance(REBALANCE_MS + SECOND)
