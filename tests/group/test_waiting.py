"""Conditions that tests wait for."""

from kafkalite.group.states import GroupState
from kafkalite.group.waiting import is_assigned, is_committed, is_empty, is_stable
from tests.group.harness import Client, GroupHarness


def test_stable_means_that_everybody_knows_its_share():
    harness = GroupHarness()
    assert not is_stable("g")(harness.shard)
    a, b = harness.stable_group(Client(), Client())
    assert is_stable("g")(harness.shard)
    harness.join(a)
    assert not is_stable("g")(harness.shard)
    harness.join(b)
    harness.learn(a)
    harness.sync(a)
    assert harness.state is GroupState.STABLE
    assert not is_stable("g")(harness.shard)
    harness.sync(b)
    assert is_stable("g")(harness.shard)


def test_assigned_counts_members_that_have_been_told():
    harness = GroupHarness()
    assert not is_assigned("g", 1)(harness.shard)
    a, b = Client(), Client()
    harness.join(a)
    assert not is_assigned("g", 1)(harness.shard)
    harness.join(b)
    harness.join(a)
    for client in (a, b):
        harness.learn(client)
    harness.sync(a)
    assert is_assigned("g", 1)(harness.shard)
    assert not is_assigned("g", 2)(harness.shard)
    harness.sync(b)
    assert is_assigned("g", 2)(harness.shard)


def test_member_that_was_left_out_is_not_assigned():
    harness = GroupHarness()
    client = Client()
    harness.join(client)
    harness.sync(client, {"somebody": b"x"})
    assert not is_assigned("g", 1)(harness.shard)


def test_empty_means_nobody_is_there():
    harness = GroupHarness()
    assert is_empty("g")(harness.shard)
    (client,) = harness.stable_group(Client())
    assert not is_empty("g")(harness.shard)
    harness.leave(client)
    assert is_empty("g")(harness.shard)


def test_committed_means_this_offset_or_a_later_one():
    harness = GroupHarness()
    condition = is_committed("g", "topic", 0, 5)
    assert not condition(harness.shard)
    harness.commit({("topic", 0): 4})
    assert not condition(harness.shard)
    harness.commit({("topic", 0): 6})
    assert condition(harness.shard)
