"""Answers that are older than the end of the transaction they are about (KIP-890)."""

from types import SimpleNamespace

from kafkalite.txn.verification_guards import VerificationGuards
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode

A, B = TopicPartition("a", 0), TopicPartition("a", 1)


def guards_of():
    led = {A: SimpleNamespace(leader_epoch=0), B: SimpleNamespace(leader_epoch=0)}
    return VerificationGuards(led.get), led


def codes(guards, guard):
    return {place: error.code for place, error in guards.broken(guard).items()}


def test_answer_counts_if_nothing_happened():
    guards, _ = guards_of()
    guard = guards.acquire(7, [A, B])
    guards.on_marker(A, 8)
    assert guards.broken(guard) == {}


def test_marker_devalues_the_answer_for_its_partition():
    guards, _ = guards_of()
    guard = guards.acquire(7, [A, B])
    guards.on_marker(A, 7)
    assert codes(guards, guard) == {A: ErrorCode.NOT_ENOUGH_REPLICAS}


def test_epoch_that_began_meanwhile_does_too():
    """The marker may have been written by another leader."""
    guards, led = guards_of()
    guard = guards.acquire(7, [A, B])
    led[B] = SimpleNamespace(leader_epoch=2)
    del led[A]  # whose log refuses the record itself
    assert codes(guards, guard) == {B: ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_nothing_is_left_of_who_gave_up():
    guards, _ = guards_of()
    guard = guards.acquire(7, [A])
    assert len(guards) == 1
    del guard
    assert len(guards) == 0
    guards.on_marker(A, 7)
