from hypothesis import given
from hypothesis import strategies as st

from kafkalite.meta.election import elect
from kafkalite.meta.image import NO_LEADER, PartitionImage

PARTITION = PartitionImage((1, 2, 3), (1, 2), 1, leader_epoch=5, partition_epoch=9)


def test_a_living_leader_stays_and_nothing_changes():
    assert elect(PARTITION, {1, 2, 3}, unclean=False) is PARTITION


def test_the_first_live_in_sync_replica_follows_a_dead_leader():
    """Rule I178 and I180."""
    assert elect(PARTITION, {2, 3}, unclean=False) == PartitionImage((1, 2, 3), (2,), 2, 6, 10)


def test_a_dead_follower_leaves_the_in_sync_replicas():
    """Rule I179."""
    assert elect(PARTITION, {1, 3}, unclean=False) == PartitionImage((1, 2, 3), (1,), 1, 6, 10)


def test_without_a_live_in_sync_replica_nobody_leads_and_they_are_remembered():
    """Rule I178."""
    elected = elect(PARTITION, {3}, unclean=False)
    assert elected == PartitionImage((1, 2, 3), (1, 2), NO_LEADER, 6, 10)
    assert elect(elected, {3}, unclean=False) is elected
    assert elect(elected, {2, 3}, unclean=False).leader == 2


def test_an_unclean_election_takes_a_replica_that_lacks_records():
    """Rule I178."""
    assert elect(PARTITION, {3}, unclean=True) == PartitionImage((1, 2, 3), (3,), 3, 6, 10)
    assert elect(PARTITION, set(), unclean=True).leader == NO_LEADER


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
    elected = elect(before, live, unclean=unclean)
    assert elected.isr
    assert set(elected.isr) <= set(replicas)
    assert elected.leader == NO_LEADER or elected.leader in elected.isr
    assert elected.leader == NO_LEADER or elected.leader in live
    assert elect(elected, live, unclean=unclean) is elected
