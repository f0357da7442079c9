"""Groups under churn: members that come, go, die and are late (USERS: "rebalance under churn").

After every event the harness checks the group's invariants, and that a second shard that has
replayed the log agrees. Here the tests add what must hold over time.
"""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.group.classic.states import GroupState
from kafkalite.wire.errors import ErrorCode
from tests.group.classic.consumer import PARTITIONS, Consumer, run
from tests.group.harness import MINUTE, SECOND, SESSION_MS, Client, GroupHarness

ALIVE_MS = 5 * MINUTE
"""Enough for sessions to expire, phases to end, and the group to settle."""


def assert_settled(harness, consumers):
    """Everybody is in, and every partition is read by exactly one."""
    assert harness.state is GroupState.STABLE
    assert len(harness.group.members) == len(consumers)
    owned = [partition for consumer in consumers for partition in consumer.partitions]
    assert sorted(owned) == list(range(PARTITIONS))
    assert {c.client.generation for c in consumers} == {harness.group.generation}


def assert_everything_is_answered(harness):
    assert set(harness.answers) == set(range(1, harness.tickets_used + 1))


@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize("version", [0, 5, 9])
@pytest.mark.parametrize("delay_ms", [0, 3 * SECOND])
def test_consumers_that_start_together_settle(count, version, delay_ms):
    harness = GroupHarness(delay_ms=delay_ms)
    consumers = [Consumer(harness, version=version) for _ in range(count)]
    run(consumers, harness, MINUTE)
    assert_settled(harness, consumers)


def test_consumers_that_come_one_after_another_settle():
    harness = GroupHarness()
    consumers = []
    for _ in range(PARTITIONS):
        consumers.append(Consumer(harness))
        run(consumers, harness, 10 * SECOND)
        assert_settled(harness, consumers)


def test_rolling_restart_of_dynamic_members():
    """Each leaves and comes back as somebody else."""
    harness = GroupHarness()
    consumers = [Consumer(harness) for _ in range(3)]
    run(consumers, harness, MINUTE)
    for number in range(3):
        harness.leave(consumers[number].client)
        consumers[number] = Consumer(harness)
        run(consumers, harness, MINUTE)
        assert_settled(harness, consumers)


def test_rolling_restart_of_static_members_does_not_rebalance():
    """KIP-345: they neither leave nor lose what they own."""
    harness = GroupHarness()
    consumers = [Consumer(harness, Client(instance_id=f"i{n}")) for n in range(3)]
    run(consumers, harness, MINUTE)
    generation = harness.group.generation
    before = [consumer.partitions for consumer in consumers]
    for number in range(3):
        consumers[number] = Consumer(harness, Client(instance_id=f"i{number}"))
        run(consumers, harness, 10 * SECOND)
    assert harness.group.generation == generation
    assert [consumer.partitions for consumer in consumers] == before
    assert_settled(harness, consumers)


def test_killed_consumers_are_replaced_when_their_session_is_over():
    harness = GroupHarness()
    consumers = [Consumer(harness) for _ in range(4)]
    run(consumers, harness, MINUTE)
    survivors = consumers[:2]
    run(survivors, harness, SESSION_MS + 10 * SECOND)
    assert_settled(harness, survivors)


def test_death_of_the_leader_in_every_phase():
    for steps in range(1, 8):
        harness = GroupHarness()
        consumers = [Consumer(harness) for _ in range(3)]
        for _ in range(steps):
            for consumer in consumers:
                consumer.step()
        leader_id = harness.group.leader_id
        survivors = [c for c in consumers if c.client.member_id != leader_id]
        run(survivors, harness, ALIVE_MS)
        assert_settled(harness, survivors)


def test_failover_in_every_phase():
    """The coordinator moves; what it knew of a rebalance is lost, the members are not."""
    for steps in range(1, 10):
        harness = GroupHarness()
        consumers = [Consumer(harness) for _ in range(3)]
        for _ in range(steps):
            for consumer in consumers:
                consumer.step()
        harness = harness.restarted()
        for consumer in consumers:
            consumer.moved_to(harness)
        run(consumers, harness, ALIVE_MS)
        assert_settled(harness, consumers)


def test_commits_under_churn_are_accepted_or_refused_but_never_unanswered():
    """A refused commit is one of the codes that clients know what to do about."""
    chance = random.Random(1)
    harness = GroupHarness()
    consumers = [Consumer(harness) for _ in range(3)]
    accepted = 0
    for _ in range(200):
        if chance.random() < 0.1:
            consumers[chance.randrange(3)] = Consumer(harness)
        for consumer in consumers:
            consumer.step()
            if consumer.client.generation >= 0:
                ticket = consumer.commit()
                answer = harness.answers[ticket]
                if hasattr(answer, "topics"):
                    accepted += 1
                else:
                    assert answer.code in (
                        ErrorCode.REBALANCE_IN_PROGRESS,
                        ErrorCode.ILLEGAL_GENERATION,
                        ErrorCode.UNKNOWN_MEMBER_ID,
                    )
        harness.advance(500)
    assert accepted > 50


ACTIONS = st.sampled_from(
    [
        "step", "step", "step", "step", "new", "new static", "die", "leave", "commit", "rejoin",
        "short time", "time", "long time", "restart", "refuse", "disconnect", "stale sync",
        "hand out", "commit alone", "transaction", "end transaction", "delete",
    ]
)  # fmt: skip


class Storm:
    """Everything that may happen to a group, in any order."""

    def __init__(self, *, delay_ms, max_size):
        self.harness = GroupHarness(delay_ms=delay_ms, group_max_size=max_size)
        self.consumers = [Consumer(self.harness)]
        self.generation = 0
        self.max_size = max_size

    def act(self, action, number):
        harness = self.harness
        consumer = self.consumers[number % len(self.consumers)] if self.consumers else None
        if action == "new":
            version = (0, 3, 4, 9)[number % 4]
            client = Client(connection_id=number, topics=(("topic",), ("other",))[number % 2])
            self.consumers.append(Consumer(harness, client, version=version))
        elif action == "new static":
            self.consumers.append(Consumer(harness, Client(instance_id=f"i{number % 3}")))
        elif action in ("short time", "time", "long time"):
            harness.advance({"short time": 100, "time": 5 * SECOND, "long time": MINUTE}[action])
        elif action == "restart":
            self.harness = harness.restarted(group_initial_rebalance_delay_ms=0)
            self.generation = 0
            for one in self.consumers:
                one.moved_to(self.harness)
        elif action == "refuse":
            is_on = harness.refuse_appends_with is not None
            harness.refuse_appends_with = None if is_on else ErrorCode.NOT_ENOUGH_REPLICAS
        elif action == "disconnect":
            harness.disconnect(number)
        elif action == "hand out":
            harness.hand_out_quietly(Client(connection_id=number))
        elif action == "commit alone":
            harness.commit({("topic", number % 3): number})
        elif action == "transaction":
            harness.commit_in_transaction({("topic", number % 3): number}, producer_id=number % 2)
        elif action == "end transaction":
            harness.end_transaction(number % 2, committed=number % 4 < 2)
        elif action == "delete":
            harness.delete_group()
        elif consumer is not None:
            self.act_as(consumer, action)
        self.check()

    def act_as(self, consumer, action):
        if action == "step":
            consumer.step()
        elif action == "die":
            self.consumers.remove(consumer)
        elif action == "leave":
            self.harness.leave(consumer.client)
            consumer.begin_again(ErrorCode.UNKNOWN_MEMBER_ID)
        elif action == "commit":
            consumer.commit()
        elif action == "rejoin":
            consumer.join()
        else:
            assert action == "stale sync"
            stale = replace(consumer.client, generation=consumer.client.generation - 1)
            self.harness.sync(stale, {stale.member_id: b"stale"})

    def check(self):
        group = self.harness.group
        if group is None:
            self.generation = 0
            return
        assert group.generation >= self.generation
        self.generation = group.generation

    def calm_down(self):
        """Let everybody behave for a while; the dead stay dead."""
        self.harness.refuse_appends_with = None
        self.consumers = [c for c in self.consumers if not c.fenced]
        run(self.consumers, self.harness, 3 * ALIVE_MS, every=5 * SECOND)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(ACTIONS, st.integers(0, 11)), max_size=60),
    st.sampled_from([0, 3 * SECOND]),
    st.sampled_from([2**31 - 1, 3]),
)
def test_storm_leaves_a_group_that_works(actions, delay_ms, max_size):
    """Whatever happened, invariants held throughout, and behaving clients settle afterwards."""
    storm = Storm(delay_ms=delay_ms, max_size=max_size)
    for action, number in actions:
        storm.act(action, number)
    storm.calm_down()
    harness = storm.harness
    consumers = [c for c in storm.consumers if not c.fenced]
    if consumers and len(consumers) <= max_size:
        assert_settled(harness, consumers)
    harness.advance(ALIVE_MS)
    assert harness.state in (GroupState.EMPTY, GroupState.DEAD)
    assert_everything_is_answered(harness)
