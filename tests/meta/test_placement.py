from hypothesis import given
from hypothesis import strategies as st

from kafkalite.meta.placement import place_replicas


def test_one_broker_gets_everything():
    assert place_replicas({7: None}, first=0, count=3, replication_factor=1, start=5) == [
        (7,),
        (7,),
        (7,),
    ]


def test_leaders_go_around_the_brokers():
    placed = place_replicas(
        {1: None, 2: None, 3: None}, first=0, count=4, replication_factor=2, start=1
    )
    assert placed == [(2, 3), (3, 1), (1, 2), (2, 1)]


def test_who_takes_over_from_a_dead_leader_is_not_always_its_neighbour():
    """As Kafka's AdminUtils: the second replica moves on with each round."""
    racks = dict.fromkeys(range(4))
    placed = place_replicas(racks, first=0, count=12, replication_factor=2, start=0)
    assert {second for first, second in placed if first == 0} == {1, 2, 3}


def test_replicas_lie_on_different_racks():
    """KIP-36."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    for replicas in place_replicas(racks, first=0, count=8, replication_factor=2, start=0):
        assert {racks[broker] for broker in replicas} == {"a", "b"}


def test_more_replicas_than_racks_fill_the_racks_in_turn():
    racks = {1: "a", 2: "a", 3: "a", 4: "b"}
    (replicas,) = place_replicas(racks, first=0, count=1, replication_factor=3, start=0)
    assert len(set(replicas)) == 3
    assert 4 in replicas


def test_brokers_get_equally_many_replicas():
    """As of Kafka's StripedReplicaPlacer, wherever the leaders begin."""
    racks = {0: "a", 1: "a", 2: "b", 3: "b"}
    for start in range(12):
        placed = place_replicas(racks, first=0, count=8, replication_factor=2, start=start)
        replicas = [broker for partition in placed for broker in partition]
        assert [replicas.count(broker) for broker in racks] == [4, 4, 4, 4]


def test_more_partitions_go_on_where_the_topic_ends():
    racks = dict.fromkeys(range(4))
    whole = place_replicas(racks, first=0, count=30, replication_factor=2, start=7)
    rest = place_replicas(racks, first=11, count=19, replication_factor=2, start=7)
    assert whole[11:] == rest


@given(
    racks=st.dictionaries(
        st.integers(0, 20), st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8
    ),
    data=st.data(),
)
def test_placement_is_always_valid_and_spreads_leaders(racks, data):
    replication_factor = data.draw(st.integers(1, len(racks)))
    start = data.draw(st.integers(0, 2**128))
    placed = place_replicas(
        racks,
        first=0,
        count=2 * len(racks),
        replication_factor=replication_factor,
        start=start,
    )
    leaders = [replicas[0] for replicas in placed]
    assert all(leaders.count(broker) == 2 for broker in racks)
    named = set(racks.values()) - {None}
    for replicas in placed:
        assert len(replicas) == len(set(replicas)) == replication_factor
        used = {racks[broker] for broker in replicas} - {None}
        if None not in racks.values():
            assert len(used) == min(len(named), replication_factor)
