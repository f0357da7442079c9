from dataclasses import replace

import pytest

from kafkalite.meta.changes import PartitionChanged
from kafkalite.meta.controller import decide
from kafkalite.meta.events import CreatePartitions, FinishReassignments, Reassign
from kafkalite.meta.image import NO_LEADER, PartitionImage
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import after, proposal, refusal, rules, shutting_down, with_partitions

BROKERS = (1, 2, 3, 4, 5)
STATE = PartitionImage((1, 2, 3), (1, 2, 3), 1, leader_epoch=5, partition_epoch=9)


def cluster(state=STATE, brokers=BROKERS):
    return with_partitions(state, brokers=brokers)


def only(of_image):
    (state,) = of_image.topics["a"].partitions
    return state


def to(*replicas, **attributes):
    return Reassign(topic="a", index=0, replicas=replicas, **attributes)


CANCEL = Reassign(topic="a", index=0, replicas=None)


def test_new_replicas_are_added_and_the_old_ones_stay_meanwhile():
    """KIP-455."""
    begun = only(after(to(3, 4, 5), cluster()))
    assert begun == PartitionImage(
        (3, 4, 5, 1, 2), (1, 2, 3), 1, 6, 10, adding=(4, 5), removing=(1, 2)
    )
    assert begun.target == (3, 4, 5)
    assert set(begun.origin) == {1, 2, 3}


def test_it_is_complete_when_all_that_stay_are_in_sync():
    """KIP-455: the leader goes to one of them, and the others are dropped."""
    begun = after(to(3, 4, 5), cluster())
    nearly = after(proposal(begun, "a", 0, [1, 2, 3, 4]), begun)
    assert only(nearly).is_reassigned
    last = proposal(nearly, "a", 0, [1, 2, 3, 4, 5])
    changes = decide(last, nearly, rules())
    assert [type(change) for change in changes] == [PartitionChanged] * 2
    done = only(nearly.apply(changes))
    assert done == PartitionImage((3, 4, 5), (3, 4, 5), 3, 7, 13)


def test_a_leader_that_stays_goes_on_leading():
    begun = after(to(4, 1), cluster())
    done = only(after(proposal(begun, "a", 0, [1, 4]), begun))
    assert (done.replicas, done.leader, set(done.isr)) == ((4, 1), 1, {1, 4})
    assert not done.is_reassigned


def test_fewer_replicas_are_complete_at_once():
    fewer = only(after(to(2, 3), cluster()))
    assert fewer == PartitionImage((2, 3), (2, 3), 2, 6, 10)


def test_another_order_is_only_that():
    turned = only(after(to(3, 2, 1), cluster()))
    assert (turned.replicas, set(turned.isr), turned.leader) == ((3, 2, 1), {1, 2, 3}, 1)
    assert not turned.is_reassigned
    assert decide(to(1, 2, 3), cluster(), rules()) == []


def test_it_can_be_cancelled():
    """KIP-455."""
    begun = after(to(3, 4, 5), cluster())
    joined = after(proposal(begun, "a", 0, [1, 2, 3, 4]), begun)
    back = only(after(CANCEL, joined))
    assert set(back.replicas) == set(back.isr) == {1, 2, 3}
    assert (back.leader, back.is_reassigned) == (1, False)
    assert back.leader_epoch > only(joined).leader_epoch


def test_a_leader_that_is_dropped_by_the_cancellation_hands_over():
    state = PartitionImage((4, 1, 2), (4, 1), 4, 5, 9, adding=(4,), removing=(2,))
    back = only(after(CANCEL, cluster(state)))
    assert back == PartitionImage((1, 2), (1,), 1, 6, 10)


def test_it_cannot_be_cancelled_where_nobody_would_be_in_sync():
    state = PartitionImage((4, 1, 2), (4,), 4, 5, 9, adding=(4,), removing=(2,))
    assert refusal(CANCEL, cluster(state)).code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_it_can_be_replaced_by_another():
    """What the first had added, and the second does not want, is dropped at once."""
    begun = after(to(1, 4, 5), cluster())
    joined = after(proposal(begun, "a", 0, [1, 2, 4]), begun)
    other = only(after(to(1, 2, 5), joined))
    assert other == PartitionImage((1, 2, 5, 3), (1, 2), 1, 7, 12, (5,), (3,))


def test_the_same_again_changes_nothing():
    begun = after(to(3, 4, 5), cluster())
    assert decide(to(3, 4, 5), begun, rules()) == []


def test_it_waits_for_one_that_can_lead():
    """A broker that is shutting down gets no leadership (rule 183)."""
    begun = after(to(2), cluster(PartitionImage((1, 2), (1,), 1)))
    waiting = after(proposal(begun, "a", 0, [1, 2]), begun)
    assert only(waiting).replicas == (2,)
    stopping = shutting_down(cluster(PartitionImage((1, 2), (1, 2), 1)), 2)
    stuck = after(to(2), stopping)
    assert only(stuck).is_reassigned
    assert only(stuck).leader == 1
    assert decide(FinishReassignments(), stuck, rules()) == []
    begun_state = only(stuck)
    done = only(after(FinishReassignments(), cluster(begun_state)))
    assert (done.replicas, done.isr, done.leader) == ((2,), (2,), 2)


def test_a_partition_without_a_leader_stays_without_one():
    state = PartitionImage((1, 2), (1,), NO_LEADER)
    begun = only(after(to(2, 3), cluster(state, brokers=(2, 3))))
    assert (begun.leader, begun.isr, begun.is_reassigned) == (NO_LEADER, (1,), True)


def test_a_dropped_leader_without_a_live_heir_leaves_nobody():
    state = PartitionImage((4, 1, 2), (4, 1), 4, 5, 9, adding=(4,), removing=(2,))
    back = only(after(CANCEL, cluster(state, brokers=(2, 4))))
    assert (back.leader, back.isr, back.replicas) == (NO_LEADER, (1,), (1, 2))


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (replace(to(1), topic="b"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (replace(to(1), index=1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (replace(CANCEL, index=-1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (CANCEL, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (to(), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (to(1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (to(1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (to(1, allow_replication_factor_change=False), ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_refuses(event, code):
    """KIP-455, KIP-860."""
    assert refusal(event, cluster()).code is code


def test_a_dead_replica_may_stay_or_go():
    """As Kafka: only those that are added have to live."""
    before = cluster(PartitionImage((1, 2, 3), (1, 2), 1), brokers=(1, 2, 4))
    assert only(after(to(1, 3, 4), before)).adding == (4,)
    assert only(after(to(1, 2, 4), before)).removing == (3,)


def test_partitions_are_not_added_meanwhile():
    """Rule 31."""
    begun = after(to(3, 4, 5), cluster())
    error = refusal(CreatePartitions(name="a", count=2), begun)
    assert error.code is ErrorCode.REASSIGNMENT_IN_PROGRESS
