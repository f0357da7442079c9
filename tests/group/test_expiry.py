"""Expiry of offsets and groups (rule 151, KIP-211)."""

import pytest

from kafkalite.group.classic.states import GroupState
from tests.group.harness import MINUTE, Client, GroupHarness

DAY = 24 * 60 * MINUTE
A, OTHER = ("topic", 0), ("other", 0)


@pytest.fixture
def harness():
    return GroupHarness()


def test_offsets_without_membership_expire_by_the_time_of_commit(harness):
    harness.commit({A: 1})
    harness.advance(7 * DAY - 11 * MINUTE)
    harness.commit({OTHER: 1})
    harness.advance(20 * MINUTE)
    assert harness.fetch() == {OTHER: 1}


def test_group_without_members_goes_with_its_last_offset(harness):
    harness.commit({A: 1})
    harness.advance(7 * DAY + 10 * MINUTE)
    assert harness.group is None
    assert "g" not in harness.replica.groups


def test_offsets_of_a_group_expire_after_the_last_member_left(harness):
    (client,) = harness.stable_group(Client())
    harness.commit({A: 1}, client=client)
    harness.leave(client)
    harness.advance(6 * DAY)
    assert harness.fetch() == {A: 1}
    harness.advance(DAY + 10 * MINUTE)
    assert harness.group is None


def test_time_of_becoming_empty_survives_a_restart(harness):
    (client,) = harness.stable_group(Client())
    harness.commit({A: 1}, client=client)
    harness.leave(client)
    harness.advance(6 * DAY)
    other = harness.restarted()
    other.advance(DAY + 10 * MINUTE)
    assert other.group is None


def keep_alive(harness, client, duration):
    for _ in range(duration // (client.session_ms - 1000)):
        harness.advance(client.session_ms - 1000)
        harness.heartbeat(client)


def test_stable_group_loses_only_what_it_no_longer_reads(harness):
    harness.settings = harness.shard.settings = type(harness.settings)(
        group_initial_rebalance_delay_ms=0, offsets_retention_ms=20 * MINUTE
    )
    (client,) = harness.stable_group(Client(topics=("topic",), session_ms=25 * MINUTE))
    harness.commit({A: 1, OTHER: 1}, client=client)
    keep_alive(harness, client, 60 * MINUTE)
    assert harness.state is GroupState.STABLE
    assert harness.fetch() == {A: 1}


def test_rebalancing_group_loses_nothing(harness):
    harness.settings = harness.shard.settings = type(harness.settings)(
        group_initial_rebalance_delay_ms=0, offsets_retention_ms=1
    )
    a = Client(rebalance_ms=60 * MINUTE, session_ms=25 * MINUTE)
    b = Client(rebalance_ms=60 * MINUTE, session_ms=25 * MINUTE)
    harness.stable_group(a, b)
    harness.commit({OTHER: 1}, client=a)
    harness.join(a)
    harness.advance(20 * MINUTE)
    assert harness.state is GroupState.PREPARING_REBALANCE
    assert harness.fetch() == {OTHER: 1}


def test_members_that_are_no_consumers_keep_everything(harness):
    """What they read cannot be told."""
    harness.settings = harness.shard.settings = type(harness.settings)(
        group_initial_rebalance_delay_ms=0, offsets_retention_ms=1
    )
    (client,) = harness.stable_group(Client(protocol_type="connect", session_ms=25 * MINUTE))
    harness.commit({OTHER: 1}, client=client)
    harness.advance(20 * MINUTE)
    assert harness.fetch() == {OTHER: 1}


def test_retention_of_the_commit_itself_comes_first(harness):
    """Rule 149."""
    harness.commit({A: 1}, retention_ms=15 * MINUTE, version=2)
    harness.advance(10 * MINUTE)
    assert harness.fetch() == {A: 1}
    harness.advance(10 * MINUTE)
    assert harness.group is None


def test_records_that_do_not_say_since_when_count_from_the_commit(harness):
    """Group records before v2."""
    (client,) = harness.stable_group(Client())
    harness.commit({A: 1}, client=client)
    harness.leave(client)
    harness.group.state_timestamp_ms = -1
    harness.advance(7 * DAY + 10 * MINUTE)
    assert harness.group is None


def test_offset_that_a_transaction_may_change_is_kept(harness):
    harness.commit({A: 1})
    harness.commit_in_transaction({A: 2})
    harness.advance(8 * DAY)
    assert harness.fetch() == {A: 1}


def test_group_with_an_open_transaction_is_kept(harness):
    harness.commit_in_transaction({A: 2})
    harness.advance(8 * DAY)
    assert harness.state is GroupState.EMPTY


def test_group_that_was_only_asked_for_an_id_is_forgotten(harness):
    harness.hand_out(Client(session_ms=25 * MINUTE))
    harness.advance(20 * MINUTE)
    assert harness.group is not None
    harness.advance(10 * MINUTE)
    assert harness.group is None
