"""JoinGroup: who may join, and what follows (rules 126-136, 143, 144)."""

import pytest

from kafkalite.group.classic.states import GroupState
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.group.harness import MINUTE, SECOND, SESSION_MS, Client, GroupHarness


def two_members(**settings):
    harness = GroupHarness(**settings)
    return harness, *harness.stable_group(Client(), Client())


class TestMemberIds:
    def test_dynamic_member_is_given_an_id_and_asked_to_come_again(self):
        """Rule 128 (KIP-394)."""
        harness = GroupHarness()
        client = Client(client_id="reader")
        harness.join(client)
        first, second = harness.answers[1], harness.answer(client.join_ticket)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert first.member_id.startswith("reader-")
        assert second.member_id == first.member_id
        assert second.error_code == ErrorCode.NONE

    def test_id_that_was_handed_out_is_taken_back_after_the_session_timeout(self):
        """Rule 128."""
        harness = GroupHarness()
        abandoned = harness.hand_out(Client())
        assert harness.group.pending_joins
        harness.advance(SESSION_MS)
        assert not harness.group.pending_joins
        assert harness.code(harness.join(abandoned)) is ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("version", [0, 3])
    def test_old_versions_join_without_an_id(self, version):
        """Rule 128: MEMBER_ID_REQUIRED is known from v4 on."""
        harness = GroupHarness()
        client = Client()
        harness.join(client, version=version)
        assert harness.code(client.join_ticket) is ErrorCode.NONE
        assert client.generation == 1

    def test_version_0_uses_the_session_timeout_as_rebalance_timeout(self):
        """Rule 127."""
        harness = GroupHarness()
        client = Client(rebalance_ms=-1)
        harness.join(client, version=0)
        assert harness.group.members[client.member_id].rebalance_timeout_ms == client.session_ms

    def test_unknown_id_is_refused_in_a_known_group(self):
        """Rule 129."""
        harness, *_ = two_members()
        assert harness.code(harness.join(Client(member_id="x"))) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_unknown_group_with_an_id_is_refused_and_not_made(self):
        """Rule 129."""
        harness = GroupHarness()
        assert harness.code(harness.join(Client(member_id="x"))) is ErrorCode.UNKNOWN_MEMBER_ID
        assert harness.group is None

    def test_known_id_in_an_empty_group_is_refused(self):
        """Rule 129: everybody has left since."""
        harness, a, b = two_members()
        harness.leave(a)
        harness.leave(b)
        assert harness.state is GroupState.EMPTY
        assert harness.code(harness.join(a)) is ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
    def test_session_timeout_out_of_bounds_is_refused(self, session_ms):
        """Rule 127."""
        harness = GroupHarness()
        ticket = harness.join(Client(session_ms=session_ms))
        assert harness.code(ticket) is ErrorCode.INVALID_SESSION_TIMEOUT
        assert harness.group is None


class TestProtocols:
    def test_another_protocol_type_is_refused(self):
        """Rule 130."""
        harness, *_ = two_members()
        ticket = harness.join(Client(protocol_type="connect"))
        assert harness.code(ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_no_protocol_in_common_is_refused(self):
        """Rule 130."""
        harness, *_ = two_members()
        ticket = harness.join(Client(protocol_names=("sticky",)))
        assert harness.code(ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    @pytest.mark.parametrize("changes", [{"protocol_type": ""}, {"protocol_names": ()}])
    def test_empty_type_or_list_is_refused_by_an_empty_group_too(self, changes):
        """Rule 130."""
        harness = GroupHarness()
        ticket = harness.join(Client(**changes))
        assert harness.code(ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert harness.group is None

    def test_refusal_names_the_protocols_it_is_about(self):
        harness, *_ = two_members()
        with pytest.raises(KafkaError, match=r"sticky"):
            harness.answer(harness.join(Client(protocol_names=("sticky",))))


class TestRejoin:
    def test_follower_with_unchanged_metadata_gets_the_current_generation(self):
        """Rule 135."""
        harness, _, follower = two_members()
        harness.join(follower)
        answer = harness.answer(follower.join_ticket)
        assert (answer.generation_id, answer.members) == (2, [])
        assert harness.state is GroupState.STABLE

    def test_leader_forces_a_rebalance(self):
        """Rule 135: something that metadata does not show has changed."""
        harness, leader, _ = two_members()
        assert harness.is_parked(harness.join(leader))
        assert harness.state is GroupState.PREPARING_REBALANCE

    def test_follower_with_changed_metadata_forces_a_rebalance(self):
        """Rule 135."""
        harness, _, follower = two_members()
        follower.topics = ("another",)
        assert harness.is_parked(harness.join(follower))
        assert harness.state is GroupState.PREPARING_REBALANCE

    def test_lost_answer_is_given_again_while_the_assignment_is_awaited(self):
        """Rule 135: to leader and followers."""
        harness, leader, follower = two_members()
        harness.join(leader)
        harness.join(follower)
        assert harness.state is GroupState.COMPLETING_REBALANCE
        for client in (leader, follower):
            harness.join(client)
            answer = harness.answer(client.join_ticket)
            assert answer.generation_id == 3
            assert len(answer.members) == (2 if client is leader else 0)
        assert harness.state is GroupState.COMPLETING_REBALANCE

    def test_changed_metadata_while_the_assignment_is_awaited_starts_again(self):
        """Rule 135."""
        harness, leader, follower = two_members()
        harness.join(leader)
        harness.join(follower)
        parked = harness.sync(follower)
        leader.topics = ("another",)
        harness.join(leader)
        assert harness.state is GroupState.PREPARING_REBALANCE
        assert harness.code(parked) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_second_join_on_another_connection_replaces_the_first(self):
        """A client that lost its connection while it was waiting; nobody is left unanswered."""
        harness, leader, _ = two_members()
        first = harness.join(leader)
        second = harness.join(leader)
        assert harness.code(first) is ErrorCode.REBALANCE_IN_PROGRESS
        assert harness.is_parked(second)


class TestStaticMembers:
    """KIP-345, KIP-814, rule 143."""

    def static_group(self):
        harness = GroupHarness()
        a, b = Client(instance_id="a"), Client(instance_id="b")
        return harness, *harness.stable_group(a, b)

    def test_static_member_needs_no_second_request(self):
        harness = GroupHarness()
        client = Client(instance_id="a")
        harness.join(client)
        assert client.member_id.startswith("a-")
        assert harness.code(client.join_ticket) is ErrorCode.NONE

    def test_restarted_follower_gets_a_new_id_without_a_rebalance(self):
        harness, leader, follower = self.static_group()
        restarted = Client(instance_id="b")
        answer = harness.answer(harness.join(restarted))
        assert harness.state is GroupState.STABLE
        assert restarted.member_id not in ("", follower.member_id)
        assert (answer.leader, answer.skip_assignment) == (leader.member_id, False)
        harness.sync(restarted)
        assert harness.answer(restarted.sync_ticket).assignment == follower.assignment

    def test_old_id_is_fenced(self):
        harness, _, follower = self.static_group()
        harness.join(Client(instance_id="b"))
        assert harness.heartbeat(follower) is ErrorCode.FENCED_INSTANCE_ID
        assert harness.code(harness.sync(follower)) is ErrorCode.FENCED_INSTANCE_ID
        assert harness.code(harness.join(follower)) is ErrorCode.FENCED_INSTANCE_ID

    def test_restarted_leader_is_told_to_skip_the_assignment(self):
        """KIP-814, v9."""
        harness, *_ = self.static_group()
        restarted = Client(instance_id="a")
        answer = harness.answer(harness.join(restarted, version=9))
        assert answer.leader == restarted.member_id
        assert answer.skip_assignment is True
        assert len(answer.members) == 2

    def test_restarted_leader_of_an_older_version_is_told_the_old_leader(self):
        """So that it does not assign, which nobody waits for."""
        harness, leader, _ = self.static_group()
        restarted = Client(instance_id="a")
        answer = harness.answer(harness.join(restarted, version=8))
        assert (answer.leader, answer.members) == (leader.member_id, [])

    def test_restart_with_another_choice_of_protocol_rebalances(self):
        harness = GroupHarness()
        both = ("range", "sticky")
        a, b = harness.stable_group(
            Client(instance_id="a", protocol_names=both),
            Client(instance_id="b", protocol_names=both),
        )
        harness.join(Client(instance_id="a", protocol_names=("sticky",)))
        assert harness.state is GroupState.PREPARING_REBALANCE
        assert harness.heartbeat(b) is ErrorCode.REBALANCE_IN_PROGRESS
        del a

    def test_restart_while_the_assignment_is_awaited_starts_again(self):
        """The leader may be assigning to the old id already."""
        harness, leader, follower = self.static_group()
        harness.join(leader)
        harness.join(follower)
        assert harness.state is GroupState.COMPLETING_REBALANCE
        parked = harness.sync(follower)
        harness.join(Client(instance_id="b"))
        assert harness.state is GroupState.PREPARING_REBALANCE
        assert harness.code(parked) is ErrorCode.FENCED_INSTANCE_ID

    def test_restart_while_the_group_rebalances_takes_the_old_ones_place(self):
        harness, leader, follower = self.static_group()
        parked = harness.join(leader)
        restarted = Client(instance_id="a")
        again = harness.join(restarted)
        assert harness.code(parked) is ErrorCode.FENCED_INSTANCE_ID
        harness.join(follower)
        answer = harness.answer(again)
        assert answer.leader == answer.member_id != leader.member_id

    def test_restart_before_the_first_sync_inherits_that_it_must_sync(self):
        """Rule 138 holds for who takes its place."""
        harness, leader, follower = self.static_group()
        harness.join(leader)
        harness.learn(leader)
        harness.join(follower)
        harness.learn(leader)
        harness.sync(leader)
        assert harness.state is GroupState.STABLE
        restarted = Client(instance_id="b")
        harness.join(restarted)
        assert restarted.member_id in harness.group.pending_syncs

    def test_known_id_with_an_unknown_instance_is_refused(self):
        harness, leader, _ = self.static_group()
        leader.instance_id = "nobody"
        assert harness.code(harness.join(leader)) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_handed_out_id_does_not_serve_a_static_member(self):
        harness = GroupHarness()
        client = Client()
        harness.hand_out(client)
        client.instance_id = "a"
        assert harness.code(harness.join(client)) is ErrorCode.UNKNOWN_MEMBER_ID


class TestGroupMaxSize:
    """Rule 144."""

    def test_new_member_of_a_full_group_is_turned_away(self):
        harness = GroupHarness(group_max_size=2)
        harness.stable_group(Client(), Client())
        ticket = harness.join(Client())
        assert harness.code(ticket) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert harness.answer(ticket).member_id == ""
        assert harness.state is GroupState.STABLE

    def test_members_of_a_full_group_may_rejoin(self):
        harness = GroupHarness(group_max_size=2)
        leader, follower = harness.stable_group(Client(), Client())
        assert harness.is_parked(harness.join(leader))
        harness.join(follower)
        assert harness.state is GroupState.COMPLETING_REBALANCE

    def test_lowered_limit_turns_the_last_ones_away_after_a_reload(self):
        harness = GroupHarness()
        a, b, c = harness.stable_group(Client(), Client(), Client())
        other = harness.restarted(group_max_size=2)
        assert other.state is GroupState.PREPARING_REBALANCE
        other.join(a)
        other.join(b)
        assert other.code(other.join(c)) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert other.state is GroupState.COMPLETING_REBALANCE
        assert set(other.group.members) == {a.member_id, b.member_id}

    def test_member_that_already_waits_is_not_turned_away(self):
        harness = GroupHarness(group_max_size=2)
        a, b = harness.stable_group(Client(), Client())
        harness.join(a)
        assert harness.is_parked(harness.join(a))
        del b

    def test_handed_out_id_is_taken_back_when_there_is_no_room(self):
        harness = GroupHarness(group_max_size=1, delay_ms=3 * SECOND)
        late = Client()
        harness.hand_out(late)
        harness.join(Client())
        assert harness.code(harness.join(late)) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert not harness.group.pending_joins


def test_member_that_was_never_answered_is_dropped_after_five_minutes():
    """Rule 136: its client gave up, and does not know the id."""
    harness, leader, follower = two_members()
    leader.rebalance_ms = 60 * MINUTE
    harness.join(leader)  # its long rebalance timeout counts in the next phase
    harness.join(follower)
    harness.learn(leader)
    harness.learn(follower)
    harness.sync(leader)
    ticket = harness.join(Client(), version=3)
    for _ in range(30):
        harness.advance(10 * SECOND)
        for client in (leader, follower):
            assert harness.heartbeat(client) is ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.code(ticket) is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(harness.group.members) == 2
