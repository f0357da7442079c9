from hypothesis import given
from hypothesis import strategies as st

from kafkalite.meta.election import (
    elect_for_reassignment,
    elect_for_shutdown,
    elect_offline,
    elect_preferred,
)
from kafkalite.meta.image import NO_LEADER, PartitionImage

PARTITION = PartitionImage((1, 2, 3), (1, 2), 1, leader_epoch=5, partition_epoch=9)


def test_a_living_leader_stays_and_nothing_changes():
    assert elect_offline(PARTITION, {1, 2, 3}, unclean=False) is PARTITION


def test_the_first_live_in_sync_replica_follows_a_dead_leader():
    """Rule 178 and 180."""
    assert elect_offline(PARTITION, {2, 3}, unclean=False) == PartitionImage(
        (1, 2, 3), (2,), 2, 6, 10
    )


def test_a_dead_follower_leaves_the_in_sync_replicas():
    """Rule 179."""
    assert elect_offline(PARTITION, {1, 3}, unclean=False) == PartitionImage(
        (1, 2, 3), (1,), 1, 6, 10
    )


def test_without_a_live_in_sync_replica_nobody_leads_and_they_are_remembered():
    """Rule 178."""
    elected = elect_offline(PARTITION, {3}, unclean=False)
    assert elected == PartitionImage((1, 2, 3), (1, 2), NO_LEADER, 6, 10)
    assert elect_offline(elected, {3}, unclean=False) is elected
    assert elect_offline(elected, {2, 3}, unclean=False).leader == 2


def test_an_unclean_election_takes_a_replica_that_lacks_records():
    """Rule 178."""
    assert elect_offline(PARTITION, {3}, unclean=True) == PartitionImage((1, 2, 3), (3,), 3, 6, 10)
    assert elect_offline(PARTITION, set(), unclean=True).leader == NO_LEADER


@given(
    replicas=st.permutations([1, 2, 3, 4]),
    isr_count=st.integers(1, 4),
    live=st.sets(st.integers(1, 5)),
    unclean=st.booleans(),
)
def test_the_leader_is_in_sync_and_the_in_sync_replicas_are_replicas(
    replicas, isr_count, live, unclean
):
    isr = tuple(replicas[:isr_count])
    before = PartitionImage(tuple(replicas), isr, isr[0])
    elected = elect_offline(before, live, unclean=unclean)
    assert elected.isr
    assert set(elected.isr) <= set(replicas)
    assert elected.leader == NO_LEADER or elected.leader in elected.isr
    assert elected.leader == NO_LEADER or elected.leader in live
    assert elect_offline(elected, live, unclean=unclean) is elected


def test_who_is_shutting_down_keeps_its_leaderships_and_gets_none():
    """Rules 182 and 183."""
    assert elect_offline(PARTITION, {1, 2}, unclean=False, shutting_down={1}) is PARTITION
    elected = elect_offline(PARTITION, {2, 3}, unclean=False, shutting_down={2})
    assert elected.leader == NO_LEADER
    elected = elect_offline(PARTITION, {2, 3}, unclean=True, shutting_down={2})
    assert elected == PartitionImage((1, 2, 3), (3,), 3, 6, 10)


def test_the_preferred_replica_leads_if_it_is_in_sync_and_lives():
    """Rule 181."""
    away = PartitionImage((1, 2, 3), (2, 1), 2, 5, 9)
    assert elect_preferred(away, {1, 2}) == PartitionImage((1, 2, 3), (2, 1), 1, 6, 10)
    assert elect_preferred(away, {2}) is away
    lagging = PartitionImage((1, 2, 3), (2,), 2)
    assert elect_preferred(lagging, {1, 2}) is lagging
    assert elect_preferred(PARTITION, {1, 2}) is PARTITION


def test_who_is_about_to_stop_is_replaced_if_that_is_possible():
    """Rule 182 and 183."""
    assert elect_for_shutdown(PARTITION, 1, {2, 3}) == PartitionImage((1, 2, 3), (2,), 2, 6, 10)
    assert elect_for_shutdown(PARTITION, 2, {1, 3}) == PartitionImage((1, 2, 3), (1,), 1, 6, 10)
    assert elect_for_shutdown(PARTITION, 3, {1, 2}) is PARTITION
    assert elect_for_shutdown(PARTITION, 1, {3}) is PARTITION
    sole = PartitionImage((1,), (1,), 1)
    assert elect_for_shutdown(sole, 1, {2}) is sole
    nobody = PartitionImage((1, 2), (1,), NO_LEADER)
    assert elect_for_shutdown(nobody, 1, {2}) is nobody


def test_a_reassigned_partition_is_led_by_one_that_stays():
    """KIP-455."""
    moving = PartitionImage((3, 2, 1), (1, 2, 3), 1, adding=(3,), removing=(1,))
    assert elect_for_reassignment(moving, {1, 2, 3}) == 3
    assert elect_for_reassignment(moving, {1, 2}) == 2
    assert elect_for_reassignment(moving, {1}) == NO_LEADER
    staying = PartitionImage((3, 1, 2), (1, 2, 3), 1, adding=(3,), removing=(2,))
    assert elect_for_reassignment(staying, {3}) == 1
