"""SyncGroup: handing out the leader's assignment (rules 137, 139)."""

import pytest

from kafkalite.group.classic.states import GroupState
from kafkalite.wire.errors import ErrorCode
from tests.group.harness import SECOND, SESSION_MS, Client, GroupHarness


@pytest.fixture
def waiting():
    """A harness, its leader and its follower, in CompletingRebalance."""
    harness = GroupHarness()
    leader, follower = harness.stable_group(Client(), Client())
    harness.join(leader)
    harness.join(follower)
    harness.learn(leader)
    return harness, leader, follower


class TestAssignment:
    def test_followers_wait_for_the_leader(self, waiting):
        """Rule 137."""
        harness, leader, follower = waiting
        ticket = harness.sync(follower)
        assert harness.is_parked(ticket)
        harness.sync(leader)
        answer = harness.answer(ticket)
        assert answer.assignment == follower.member_id.encode()
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")

    def test_late_follower_is_answered_at_once(self, waiting):
        """Rule 137."""
        harness, leader, follower = waiting
        harness.sync(leader)
        assert harness.state is GroupState.STABLE
        assert harness.answer(harness.sync(follower)).assignment == follower.member_id.encode()

    def test_member_that_the_leader_left_out_gets_nothing(self, waiting):
        """Rule 137."""
        harness, leader, follower = waiting
        harness.sync(leader, {leader.member_id: b"everything"})
        assert harness.answer(harness.sync(follower)).assignment == b""

    def test_assignment_for_a_stranger_is_dropped(self, waiting):
        harness, leader, _ = waiting
        harness.sync(leader, {"stranger": b"x", leader.member_id: b"y"})
        assert "stranger" not in harness.group.members

    def test_it_is_in_the_log_before_it_is_handed_out(self, waiting):
        """Rule 137."""
        harness, leader, _ = waiting
        before = len(harness.log)
        harness.sync(leader)
        assert len(harness.log) == before + 1
        stored = harness.replica.groups["g"]
        assert stored.members[leader.member_id].assignment == leader.member_id.encode()
        assert stored.leader_id == leader.member_id

    def test_handing_out_gives_everybody_a_whole_session(self, waiting):
        """A timer that fired while they waited was ignored."""
        harness, leader, follower = waiting
        harness.sync(follower)
        for _ in range(5):
            harness.advance(10 * SECOND)
            harness.heartbeat(leader)
        harness.sync(leader)
        harness.advance(SESSION_MS - 1)
        assert harness.heartbeat(follower) is ErrorCode.NONE

    def test_second_sync_on_another_connection_replaces_the_first(self, waiting):
        harness, leader, follower = waiting
        first = harness.sync(follower)
        second = harness.sync(follower)
        assert harness.code(first) is ErrorCode.REBALANCE_IN_PROGRESS
        harness.sync(leader)
        assert harness.code(second) is ErrorCode.NONE


class TestRefusals:
    def test_unknown_group(self):
        """Rule 137."""
        harness = GroupHarness()
        assert harness.code(harness.sync(Client(member_id="x"))) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_empty_group(self, waiting):
        """Rule 137."""
        harness, leader, follower = waiting
        harness.leave(leader)
        harness.leave(follower)
        assert harness.code(harness.sync(leader)) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_old_generation(self, waiting):
        harness, leader, _ = waiting
        leader.generation -= 1
        assert harness.code(harness.sync(leader)) is ErrorCode.ILLEGAL_GENERATION

    def test_rebalancing_group(self, waiting):
        """Rule 137."""
        harness, leader, _ = waiting
        harness.join(Client())
        assert harness.code(harness.sync(leader)) is ErrorCode.REBALANCE_IN_PROGRESS

    @pytest.mark.parametrize(
        "said", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}], ids=["type", "name"]
    )
    def test_another_protocol(self, waiting, said):
        """Rule 139."""
        harness, leader, _ = waiting
        ticket = harness.sync(leader, **said)
        assert harness.code(ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_the_same_protocol_is_fine(self, waiting):
        """Rule 139."""
        harness, leader, _ = waiting
        ticket = harness.sync(leader, protocol_type="consumer", protocol_name="range")
        assert harness.code(ticket) is ErrorCode.NONE
