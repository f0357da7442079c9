"""Classic and consumer members in one group, both ways (rules 334-341)."""

import pytest

from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.states import GroupState
from kafkalite.group.consumer.embedded import read_assignment
from kafkalite.group.consumer.group import ConsumerGroup
from kafkalite.group.consumer.member import MemberState
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.stored.consumer_protocol import (
    ASSIGNMENT,
    SUBSCRIPTION,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.group.consumer.harness import ConsumerHarness
from tests.group.harness import REBALANCE_MS, SESSION_MS, Client


def has(**indexes):
    return [TopicPartition(topic=name, partitions=list(found)) for name, found in indexes.items()]


class Classic(Client):
    """A consumer of the classic protocol that says what it owns, or (eager) owns nothing."""

    owned = ()
    eager = False

    @property
    def protocols(self):
        found = super().protocols
        message = ConsumerProtocolSubscription(
            topics=[*self.topics], owned_partitions=[] if self.eager else [*self.owned]
        )
        for each in found:
            each.metadata = SUBSCRIPTION.encode_versioned(1, message)
        return found


class Harness(ConsumerHarness):
    def classic(self, **said):
        client = Classic(topics=("t1",), **said)
        return client

    def stable(self, *clients, assignments=None):
        """A stable classic group whose leader has given everything to the first member."""
        for client in clients:
            self.join(client)
        for client in clients[:-1]:
            self.join(client)
        for client in clients:
            self.learn(client)
        shares = assignments or [{"t1": [0, 1, 2]}]
        message = {
            client.member_id: assignment(share)
            for client, share in zip(clients, shares, strict=False)
        }
        for client in clients:
            self.sync(client, message if client.is_leader else {})
        return clients

    def rejoin(self, client):
        """Join again and sync; return what it is assigned."""
        self.join(client)
        assert self.code(client.join_ticket) is ErrorCode.NONE
        self.sync(client, {})
        answer = self.answer(client.sync_ticket)
        client.owned = read_assignment(answer.assignment).assigned_partitions
        return {each.topic: [*each.partitions] for each in client.owned}

    def settle_classic(self, client):
        """Do what a classic client does until nobody tells it to rejoin."""
        for _ in range(20):
            self.advance(1_100)
            if self.heartbeat(client) is ErrorCode.NONE:
                return
            self.rejoin(client)
        raise AssertionError("it never settles")


def assignment(share):
    found = ConsumerProtocolAssignment(assigned_partitions=has(**share))
    return ASSIGNMENT.encode_versioned(1, found)


@pytest.fixture
def harness():
    return Harness(topics={"t1": 3, "t2": 2})


@pytest.fixture
def mixed(harness):
    """Classic member m with everything, and consumer member A that has just joined."""
    (client,) = harness.stable(harness.classic())
    client.owned = has(t1=[0, 1, 2])
    harness.beat("A", 0)
    return harness, client


class TestUpgrade:
    def test_the_first_consumer_turns_the_group(self, mixed):
        harness, client = mixed
        assert isinstance(harness.group, ConsumerGroup)
        assert harness.written == [2, 5, 3, 7, 6, 8, 5, 3, 7, 7, 6, 8]
        assert harness.epochs() == (2, 2, 1, 2)
        assert harness.has(client.member_id) == {"t1": [0, 1, 2]}
        described = {each.member_id: each for each in harness.describe_consumers().members}
        assert described[client.member_id].member_type == 0
        assert described["A"].member_type == 1

    def test_partitions_change_hands_as_the_classic_member_rejoins(self, mixed):
        """The transcript of Apache Kafka 4.3.1."""
        harness, client = mixed
        assert harness.heartbeat(client) is ErrorCode.REBALANCE_IN_PROGRESS
        assert harness.rejoin(client) == {"t1": [0, 1]}
        assert client.generation == 1
        assert harness.heartbeat(client) is ErrorCode.REBALANCE_IN_PROGRESS
        assert harness.rejoin(client) == {"t1": [0, 1]}
        assert client.generation == 2
        assert harness.heartbeat(client) is ErrorCode.NONE
        told = harness.beat("A", 2)
        assert (told.epoch, told.has) == (2, {"t1": [2]})

    def test_an_eager_member_gives_all_up_by_joining(self, mixed):
        harness, client = mixed
        client.eager = True
        harness.heartbeat(client)
        assert harness.rejoin(client) == {"t1": [0, 1]}
        assert client.generation == 2
        assert harness.beat("A", 2).has == {"t1": [2]}

    def test_who_waits_is_told_to_join_again(self, harness):
        first = harness.classic()
        harness.stable(first)
        second = harness.classic()
        harness.join(second)
        assert harness.is_parked(second.join_ticket)
        harness.beat("A", 0)
        assert harness.code(second.join_ticket) is ErrorCode.REBALANCE_IN_PROGRESS
        assert harness.group.state_name != "Empty"

    def test_who_waits_for_an_assignment_too(self, harness):
        leader, follower = harness.classic(), harness.classic()
        harness.join(leader)
        harness.join(follower)
        harness.join(leader)
        harness.learn(leader)
        harness.learn(follower)
        follower = follower if leader.is_leader else leader
        harness.sync(follower)
        harness.beat("A", 0)
        assert harness.code(follower.sync_ticket) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_sessions_of_classic_members_go_on(self, mixed):
        harness, client = mixed
        harness.advance(SESSION_MS - 1)
        assert client.member_id in harness.group.members
        harness.beat("A", 2)
        harness.advance(1)
        assert client.member_id not in harness.group.members

    @pytest.mark.parametrize("policy", ["downgrade", "disabled"])
    def test_policy_may_forbid_it(self, policy):
        harness = Harness(topics={"t1": 3}, consumer_group_migration_policy=policy)
        harness.stable(harness.classic())
        assert harness.refused("A", 0) is ErrorCode.GROUP_ID_NOT_FOUND
        assert isinstance(harness.group, ClassicGroup)

    def test_too_many_members_stay_classic(self):
        harness = Harness(topics={"t1": 3}, consumer_group_max_size=1)
        harness.stable(harness.classic(), harness.classic())
        assert harness.refused("A", 0) is ErrorCode.GROUP_ID_NOT_FOUND

    def test_other_protocols_stay_classic(self, harness):
        harness.stable_group(Client(protocol_type="connect"))
        assert harness.refused("A", 0) is ErrorCode.GROUP_ID_NOT_FOUND

    @pytest.mark.parametrize("data", [b"\xff\xff", b"\0\1\0\0\0\7", b"x"])
    def test_what_cannot_be_read_stays_classic(self, harness, data):
        client = harness.classic()
        harness.join(client)
        harness.sync(client, {client.member_id: data})
        assert harness.refused("A", 0) is ErrorCode.GROUP_ID_NOT_FOUND

    def test_custom_assignors_stay_classic(self, harness):
        client = harness.classic()
        harness.join(client)
        message = ConsumerProtocolAssignment(user_data=b"mine")
        harness.sync(client, {client.member_id: ASSIGNMENT.encode_versioned(1, message)})
        with pytest.raises(KafkaError, match="switch to a default assignor before") as refused:
            harness.beat("A", 0)
        assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        assert "malformed" not in refused.value.message

    def test_nobody_is_turned_away_for_a_refused_join(self, harness):
        harness.stable(harness.classic())
        waiting = harness.classic()
        harness.join(waiting)
        code = harness.refused("A", 0, subscribed_topic_regex="(")
        assert code is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert harness.is_parked(waiting.join_ticket)

    def test_a_static_consumer_takes_the_place_of_its_classic_self(self, harness):
        client = harness.classic(instance_id="i")
        harness.stable(client)
        told = harness.beat("A", 0, instance_id="i")
        assert told.has == {"t1": [0, 1, 2]}
        assert set(harness.group.members) == {"A"}
        assert harness.heartbeat(client) is ErrorCode.FENCED_INSTANCE_ID


class TestClassicMembers:
    def test_a_new_one_is_given_an_id_and_nothing_is_stored(self, mixed):
        harness, _ = mixed
        harness.written = []
        client = harness.classic()
        harness.join_once(client)
        assert harness.code(client.join_ticket) is ErrorCode.MEMBER_ID_REQUIRED
        assert "client" not in harness.answers[client.join_ticket].member_id
        assert harness.written == []

    def test_nobody_leads(self, mixed):
        harness, client = mixed
        harness.join(client)
        answer = harness.answer(client.join_ticket)
        assert (answer.leader, answer.members) == ("", [])
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")

    def test_policy_may_forbid_it(self):
        harness = Harness(topics={"t1": 3}, consumer_group_migration_policy="disabled")
        harness.beat("A", 0)
        client = harness.classic()
        harness.join(client)
        assert harness.code(client.join_ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_a_full_group_takes_no_more(self):
        harness = Harness(topics={"t1": 3}, consumer_group_max_size=1)
        harness.beat("A", 0)
        client = harness.classic()
        harness.join(client)
        assert harness.code(client.join_ticket) is ErrorCode.GROUP_MAX_SIZE_REACHED

    @pytest.mark.parametrize("said", [{"protocol_type": "connect"}, {"protocol_names": ("other",)}])
    def test_protocols_must_be_those_of_the_others(self, mixed, said):
        harness, _ = mixed
        client = harness.classic(**said)
        harness.join(client)
        assert harness.code(client.join_ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_a_subscription_that_cannot_be_read_is_refused(self, mixed):
        harness, _ = mixed
        broken = BrokenClient()
        harness.join(broken)
        assert harness.code(broken.join_ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_who_is_told_to_join_has_only_so_long(self, mixed):
        harness, client = mixed
        for _ in range(4):
            if client.member_id not in harness.group.members:
                break
            assert harness.heartbeat(client) is ErrorCode.REBALANCE_IN_PROGRESS
            harness.beat("A", harness.group.members["A"].member_epoch)
            harness.advance(REBALANCE_MS // 3)
        assert client.member_id not in harness.group.members

    def test_who_joined_must_sync(self, mixed):
        harness, client = mixed
        harness.join(client)
        for _ in range(3):
            harness.advance(REBALANCE_MS // 3)
            if client.member_id in harness.group.members:
                harness.heartbeat(client)
            harness.beat("A", harness.group.members["A"].member_epoch)
        assert client.member_id not in harness.group.members

    def test_sync_and_heartbeat_are_for_its_generation(self, mixed):
        harness, client = mixed
        client.generation = 7
        assert harness.heartbeat(client) is ErrorCode.ILLEGAL_GENERATION
        harness.sync(client)
        assert harness.code(client.sync_ticket) is ErrorCode.ILLEGAL_GENERATION

    def test_sync_before_a_rejoin_is_refused(self, mixed):
        harness, client = mixed
        harness.sync(client)
        assert harness.code(client.sync_ticket) is ErrorCode.REBALANCE_IN_PROGRESS

    @pytest.mark.parametrize("said", [{"protocol_type": "connect"}, {"protocol_name": "other"}])
    def test_sync_must_name_the_protocol_that_was_told(self, mixed, said):
        harness, client = mixed
        harness.join(client)
        harness.sync(client, **said)
        assert harness.code(client.sync_ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_members_of_the_other_protocol_are_unknown(self, mixed):
        harness, _ = mixed
        consumer = Client(member_id="A", generation=2)
        assert harness.heartbeat(consumer) is ErrorCode.UNKNOWN_MEMBER_ID
        harness.sync(consumer)
        assert harness.code(consumer.sync_ticket) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_commits_are_for_its_generation(self, mixed):
        harness, client = mixed
        harness.settle_classic(client)
        ticket = harness.commit({("t1", 0): 1}, client=client)
        assert harness.partition_codes(ticket) == [ErrorCode.NONE]
        client.generation = 7
        ticket = harness.commit({("t1", 0): 1}, client=client)
        assert harness.answers[ticket].code is ErrorCode.ILLEGAL_GENERATION

    def test_who_waits_for_others_is_told_when_they_are_done(self, harness):
        harness.beat("A", 0)
        client = harness.classic()
        harness.join(client)
        harness.advance(1_100)
        assert harness.rejoin(client) == {}
        assert harness.group.members[client.member_id].state is MemberState.UNRELEASED_PARTITIONS
        assert harness.heartbeat(client) is ErrorCode.NONE
        harness.beat("A", 2)
        harness.beat("A", 2, owned={"t1": [0, 1]})
        assert harness.heartbeat(client) is ErrorCode.REBALANCE_IN_PROGRESS
        assert harness.rejoin(client) == {"t1": [2]}

    def test_a_static_classic_member_is_replaced(self, harness):
        harness.beat("A", 0)
        client = harness.classic(instance_id="i")
        harness.join(client)
        harness.settle_classic(client)
        before = client.member_id
        again = harness.classic(instance_id="i")
        harness.join(again)
        assert again.member_id not in ("", before)
        assert harness.heartbeat(client) is ErrorCode.FENCED_INSTANCE_ID
        harness.settle_classic(again)
        known = harness.classic(instance_id="x", member_id="x")
        harness.join(known)
        assert harness.code(known.join_ticket) is ErrorCode.UNKNOWN_MEMBER_ID


class BrokenClient(Client):
    @property
    def protocols(self):
        found = super().protocols
        for each in found:
            each.metadata = b"\0"
        return found


class TestLeaving:
    def test_members_of_both_protocols_leave_in_one_step(self, mixed):
        harness, client = mixed
        other = Client(member_id="A")
        harness.leave(other)
        assert isinstance(harness.group, ClassicGroup), "the last consumer is gone"
        del client

    def test_operators_remove_static_members_by_their_instance(self, harness):
        harness.beat("A", 0, instance_id="i")
        harness.beat("B", 0)
        harness.written = []
        ticket = harness.leave(Client(), instance_id="i")
        assert harness.answer(ticket).members[0].error_code == ErrorCode.NONE
        assert harness.written == [-8, -7, -5, 3]
        ticket = harness.leave(Client(member_id="x"))
        assert harness.answer(ticket).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
        ticket = harness.leave(Client(member_id="B"), version=2)
        assert harness.code(ticket) is ErrorCode.NONE
        assert harness.group.is_empty

    def test_an_empty_group_knows_nobody(self, harness):
        harness.beat("A", 0)
        harness.beat("A", -1)
        assert harness.heartbeat(Client(member_id="A", generation=2)) is (
            ErrorCode.UNKNOWN_MEMBER_ID
        )


class TestDowngrade:
    @pytest.mark.parametrize("how", ["leave", "session", "operator"])
    def test_the_last_consumer_takes_the_protocol_along(self, mixed, how):
        harness, client = mixed
        harness.settle_classic(client)
        generation = harness.group.group_epoch
        harness.written = []
        if how == "leave":
            harness.beat("A", -1)
        elif how == "operator":
            harness.leave(Client(member_id="A"))
        else:
            for _ in range(4):
                harness.advance(15_000)
                harness.heartbeat(client)
        assert isinstance(harness.group, ClassicGroup)
        assert harness.group.generation == generation
        assert harness.written[-10:] == [-8, -8, -7, -7, -6, -5, -5, -4, -3, 2]
        harness.advance(1)
        assert harness.state is GroupState.PREPARING_REBALANCE
        assert harness.heartbeat(client) is ErrorCode.REBALANCE_IN_PROGRESS
        harness.join(client)
        assert harness.state is GroupState.COMPLETING_REBALANCE
        assert client.is_leader

    def test_its_members_have_sessions(self, mixed):
        harness, client = mixed
        harness.settle_classic(client)
        harness.beat("A", -1)
        harness.advance(SESSION_MS + REBALANCE_MS)
        assert harness.state is GroupState.EMPTY

    @pytest.mark.parametrize("policy", ["upgrade", "disabled"])
    def test_policy_may_forbid_it(self, mixed, policy):
        harness, _ = mixed
        harness = harness.restarted(consumer_group_migration_policy=policy)
        harness.beat("A", -1)
        assert isinstance(harness.group, ConsumerGroup)

    def test_too_many_classic_members_stay(self, mixed):
        harness, _ = mixed
        harness = harness.restarted(group_max_size=0)
        harness.beat("A", -1)
        assert isinstance(harness.group, ConsumerGroup)

    def test_a_downgrade_that_the_log_refused_is_tried_again(self, mixed):
        harness, client = mixed
        harness.settle_classic(client)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        for _ in range(4):
            harness.advance(15_000)
            harness.heartbeat(client)
        assert isinstance(harness.group, ConsumerGroup)
        harness.refuse_appends_with = None
        harness.advance(1_000)
        assert isinstance(harness.group, ClassicGroup)

    def test_a_static_member_that_goes_back_takes_the_group_along(self, harness):
        harness.beat("A", 0, instance_id="i")
        other = harness.classic()
        harness.join(other)
        for _ in range(6):
            harness.advance(1_100)
            member = harness.group.members["A"]
            harness.beat("A", member.member_epoch, owned=harness.has("A"), instance_id="i")
            if harness.heartbeat(other) is not ErrorCode.NONE:
                harness.rejoin(other)
        back = harness.classic(instance_id="i")
        harness.join(back)
        assert harness.code(back.join_ticket) is ErrorCode.NONE
        assert isinstance(harness.group, ClassicGroup)
        harness.advance(1)
        assert harness.state is GroupState.STABLE, "its assignment is up to date"
        assert harness.heartbeat(back) is ErrorCode.NONE

    def test_one_that_goes_back_for_other_topics_begins_a_rebalance(self, harness):
        harness.beat("A", 0, instance_id="i")
        back = harness.classic(instance_id="i")
        back.topics = ("t2",)
        harness.join(back)
        assert isinstance(harness.group, ClassicGroup)
        harness.advance(1)
        assert harness.state is GroupState.PREPARING_REBALANCE


class TestEmptyGroups:
    @pytest.mark.parametrize("policy", ["bidirectional", "disabled"])
    def test_an_empty_consumer_group_becomes_classic(self, policy):
        harness = Harness(topics={"t1": 3}, consumer_group_migration_policy=policy)
        harness.beat("A", 0)
        harness.beat("A", -1)
        harness.written = []
        client = harness.classic()
        harness.join(client)
        assert isinstance(harness.group, ClassicGroup)
        assert harness.written[:3] == [-6, -4, -3]
        harness.sync(client)
        assert harness.state is GroupState.STABLE

    @pytest.mark.parametrize("policy", ["bidirectional", "disabled"])
    def test_an_empty_classic_group_becomes_a_consumer_group(self, policy):
        harness = Harness(topics={"t1": 3}, consumer_group_migration_policy=policy)
        (client,) = harness.stable(harness.classic())
        harness.leave(client)
        assert harness.state is GroupState.EMPTY
        assert harness.beat("A", 0).epoch == 2
        assert harness.written == [2, 5, 3, 7, 6, 8]

    def test_who_has_an_id_is_unknown_to_an_empty_group(self, harness):
        harness.beat("A", 0)
        harness.beat("A", -1)
        client = harness.classic(member_id="A")
        harness.join(client)
        assert harness.code(client.join_ticket) is ErrorCode.UNKNOWN_MEMBER_ID
        assert isinstance(harness.group, ConsumerGroup)

    def test_a_refused_join_leaves_the_empty_group(self, harness):
        harness.beat("A", 0)
        harness.beat("A", -1)
        client = harness.classic(session_ms=1)
        harness.join(client)
        assert harness.code(client.join_ticket) is ErrorCode.INVALID_SESSION_TIMEOUT
        assert isinstance(harness.group, ConsumerGroup)


def test_a_mixed_group_goes_on_after_a_restart(mixed):
    harness, client = mixed
    harness.settle_classic(client)
    other = harness.restarted()
    assert other.heartbeat(client) is ErrorCode.NONE
    assert other.beat("A", 2).epoch == 2
    assert other.group.classic_members == 1
