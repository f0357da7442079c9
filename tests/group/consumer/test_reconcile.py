"""A member's way to its target, step by step (rules 312-316)."""

from dataclasses import replace
from uuid import UUID

import pytest

from kafkalite.group.consumer.member import ConsumerMember, MemberState
from kafkalite.group.consumer.reconcile import Surroundings, reconcile
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.consumer_group_heartbeat import TopicPartitions
from tests.group.consumer.harness import REBALANCE_MS, ConsumerHarness

A, B = UUID(int=1), UUID(int=2)
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


def member(epoch=10, state=STABLE, assigned=None, revoking=None):
    return ConsumerMember(
        member_id="m",
        member_epoch=epoch,
        previous_member_epoch=epoch,
        state=state,
        assigned=assigned or {},
        revoking=revoking or {},
    )


def step(who, target, *, epoch=11, owned=None, reads=(A, B), changed=False, held=None):
    around = Surroundings(
        target_epoch=epoch,
        target=target,
        subscribed=frozenset(reads),
        has_subscription_changed=changed,
        owned=None
        if owned is None
        else [TopicPartitions(topic_id=t, partitions=p) for t, p in owned.items()],
        partition_epoch=lambda topic, index: (held or {}).get((topic, index), -1),
    )
    return reconcile(who, around)


HAS = {A: {1: 9, 2: 10}}


class TestStable:
    def test_at_its_target_it_stays(self):
        who = member(assigned=HAS)
        assert step(who, {A: (1, 2)}, epoch=10) is who

    def test_it_gets_what_is_free_with_the_epoch_of_the_target(self):
        new = step(member(assigned=HAS), {A: (1, 2, 3), B: (0,)})
        assert (new.state, new.member_epoch, new.previous_member_epoch) == (STABLE, 11, 10)
        assert new.assigned == {A: {1: 9, 2: 10, 3: 11}, B: {0: 11}}

    def test_it_waits_for_what_others_have(self):
        new = step(member(assigned=HAS), {A: (1, 2, 3, 4)}, held={(A, 3): 9})
        assert (new.state, new.member_epoch) == (UNRELEASED, 11)
        assert new.assigned == {A: {1: 9, 2: 10, 4: 11}}
        new = step(member(assigned=HAS), {A: (1, 2, 3)}, held={(A, 3): 9})
        assert (new.state, new.member_epoch, new.assigned) == (UNRELEASED, 11, HAS)

    def test_it_keeps_its_epoch_while_it_gives_up(self):
        new = step(member(assigned=HAS), {A: (2, 3)})
        assert (new.state, new.member_epoch) == (UNREVOKED, 10)
        assert (new.assigned, new.revoking) == ({A: {2: 10}}, {A: {1: 9}})
        assert step(member(assigned=HAS), {A: (2, 3)}, owned={A: [1, 2]}) == new

    def test_it_may_have_given_up_before_it_is_told(self):
        new = step(member(assigned=HAS), {A: (2, 3)}, owned={A: [2]})
        assert (new.state, new.member_epoch) == (STABLE, 11)
        assert (new.assigned, new.revoking) == ({A: {2: 10, 3: 11}}, {})

    def test_a_target_of_topics_it_does_not_read_counts_nothing(self):
        new = step(member(assigned=HAS), {A: (1, 2), B: (0,)}, reads=(A,))
        assert (new.state, new.assigned) == (STABLE, HAS)
        new = step(member(assigned=HAS), {A: (1, 2)}, reads=(B,), owned={})
        assert (new.state, new.assigned) == (STABLE, {})


class TestSubscriptionChanged:
    def test_whole_topics_go_before_the_assignor_has_run(self):
        who = member(assigned={**HAS, B: {0: 10}})
        new = step(who, {A: (1, 2), B: (0,)}, epoch=10, reads=(A,), changed=True)
        assert (new.state, new.member_epoch) == (UNREVOKED, 10)
        assert (new.assigned, new.revoking) == (HAS, {B: {0: 10}})

    def test_what_is_given_up_already_goes_at_once(self):
        who = member(assigned={**HAS, B: {0: 10}})
        new = step(who, {}, epoch=10, reads=(A,), changed=True, owned={A: [1, 2]})
        assert (new.state, new.assigned, new.revoking) == (STABLE, HAS, {})

    def test_nothing_goes_where_all_is_still_read(self):
        who = member(assigned=HAS)
        assert step(who, {A: (1, 2)}, epoch=10, changed=True) is who

    def test_more_goes_while_something_is_given_up(self):
        who = member(state=UNREVOKED, assigned={A: {2: 10}, B: {0: 10}}, revoking={A: {1: 9}})
        new = step(who, {}, reads=(A,), changed=True)
        assert (new.state, new.assigned) == (UNREVOKED, {A: {2: 10}})
        assert new.revoking == {A: {1: 9}, B: {0: 10}}
        new = step(who, {}, reads=(), changed=True)
        assert new.revoking == {A: {1: 9, 2: 10}, B: {0: 10}}


class TestUnrevoked:
    WHO = member(state=UNREVOKED, assigned={A: {2: 10}}, revoking={A: {1: 9}})

    @pytest.mark.parametrize("owned", [None, {A: [1]}, {A: [1, 2]}])
    def test_it_stays_as_long_as_it_has_something_or_does_not_say(self, owned):
        assert step(self.WHO, {A: (2, 3)}, epoch=13, owned=owned) is self.WHO

    @pytest.mark.parametrize("owned", [{}, {A: [2]}, {B: [1]}])
    def test_it_goes_on_to_the_newest_target(self, owned):
        new = step(self.WHO, {A: (2, 3)}, epoch=13, owned=owned)
        assert (new.state, new.member_epoch) == (STABLE, 13)
        assert (new.assigned, new.revoking) == ({A: {2: 10, 3: 13}}, {})

    def test_it_may_have_to_give_up_more(self):
        new = step(self.WHO, {A: (3,)}, epoch=13, owned={A: [2]})
        assert (new.state, new.member_epoch) == (UNREVOKED, 10)
        assert (new.assigned, new.revoking) == ({}, {A: {2: 10}})

    def test_it_may_get_back_what_it_gave_up(self):
        new = step(self.WHO, {A: (1, 2)}, epoch=13, owned={A: [2]}, held={(A, 1): 10})
        assert (new.state, new.assigned) == (STABLE, {A: {1: 13, 2: 10}})


class TestUnreleased:
    WHO = member(11, UNRELEASED, {A: {2: 10}})

    def test_it_asks_again_with_every_heartbeat(self):
        new = step(self.WHO, {A: (2, 3)}, held={(A, 3): 10})
        assert (new.state, new.assigned) == (UNRELEASED, {A: {2: 10}})
        assert new == replace(self.WHO, previous_member_epoch=11)
        new = step(self.WHO, {A: (2, 3)})
        assert (new.state, new.assigned) == (STABLE, {A: {2: 10, 3: 11}})


class TestUnknown:
    def test_only_who_has_nothing_begins_again(self):
        who = member(state=MemberState.UNKNOWN, assigned=HAS)
        for owned in (None, {A: [1]}):
            with pytest.raises(KafkaError) as refused:
                step(who, {A: (1,)}, owned=owned)
            assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
        new = step(who, {A: (1,)}, owned={})
        assert (new.state, new.member_epoch, new.assigned) == (STABLE, 11, {A: {1: 9}})


class TestTwoMembers:
    """The transcript of Apache Kafka 4.3.1: one member, and another that joins."""

    @pytest.fixture
    def harness(self):
        harness = ConsumerHarness(topics={"t1": 3})
        assert harness.beat("a", 0).has == {"t1": [0, 1, 2]}
        assert harness.beat("a", 2, owned={"t1": [0, 1, 2]}).has is None
        harness.advance(100)
        joined = harness.beat("b", 0)
        assert (joined.epoch, joined.has) == (2, {}), "too soon for the assignor"
        assert harness.epochs() == (3, 2, 2, 2)
        harness.advance(1_000)
        return harness

    def test_a_partition_changes_hands_when_it_is_given_up(self, harness):
        told = harness.beat("b", 2)
        assert (told.epoch, told.has) == (3, None)
        told = harness.beat("a", 2)
        assert (told.epoch, told.has) == (2, {"t1": [0, 1]})
        assert harness.gives_up("a") == {"t1": [2]}
        assert harness.state_name == "Reconciling"
        assert harness.beat("b", 3).has is None, "not yet free"
        told = harness.beat("a", 2, owned={"t1": [0, 1]})
        assert (told.epoch, told.has) == (3, None)
        told = harness.beat("b", 3)
        assert (told.epoch, told.has) == (3, {"t1": [2]})
        assert harness.state_name == "Stable"

    def test_who_does_not_give_up_in_time_is_fenced(self, harness):
        harness.beat("b", 2)
        harness.beat("a", 2)
        for _ in range(REBALANCE_MS // 20_000):
            harness.advance(20_000)
            assert "a" in harness.group.members or harness.now_ms
            if "a" in harness.group.members:
                harness.beat("a", 2)
            harness.beat("b", harness.group.members["b"].member_epoch)
        assert harness.refused("a", 2) is ErrorCode.UNKNOWN_MEMBER_ID
        harness.advance(1_100)
        harness.beat("b", harness.group.members["b"].member_epoch)
        assert harness.has("b") == {"t1": [0, 1, 2]}

    def test_who_gives_up_in_time_is_not(self, harness):
        harness.beat("b", 2)
        harness.beat("a", 2)
        harness.beat("a", 2, owned={"t1": [0, 1]})
        for _ in range(4):
            harness.advance(20_000)
            harness.beat("a", 3)
            harness.beat("b", 3)
        assert set(harness.group.members) == {"a", "b"}

    def test_an_interval_of_its_own_lets_the_assignor_run_at_once(self, harness):
        harness.configure(consumer_assignment_interval_ms=0)
        harness.beat("a", 2)
        told = harness.beat("c", 0)
        assert told.epoch == 4
