"""Level 1: no seed breaks an invariant, each planted bug does, and a seed is one run."""

from contextlib import ExitStack
from unittest import mock

import pytest

from kafkalite.isr.follower import Follower, TruncateTo
from kafkalite.isr.leader import Leader
from kafkalite.isr.leader_role import LeaderRole
from kafkalite.meta import brokers, partition_changes
from kafkalite.sim import level1
from kafkalite.sim.faults import NO_FAULTS
from kafkalite.sim.invariants import InvariantBroken
from kafkalite.sim.model_node import Node
from kafkalite.sim.model_store import ModelStore
from kafkalite.sim.traces import Trace
from kafkalite.wire.errors import ErrorCode

SEEDS = range(60)
SEEDS_UNTIL_CAUGHT_MAX = 400


@pytest.mark.parametrize("first", range(0, len(SEEDS), 20))
def test_no_seed_breaks_an_invariant(first):
    for seed in SEEDS[first : first + 20]:
        level1.run(seed)


def test_without_faults_everything_is_acknowledged():
    outcome = level1.run(1, NO_FAULTS)
    assert outcome.faults == {}
    assert outcome.acknowledged > 100
    assert outcome.committed >= outcome.acknowledged


def test_a_seed_is_one_run():
    def lines(seed):
        trace = Trace(kept=1_000_000)
        outcome = level1.run(seed, trace=trace)
        return outcome.digest, list(trace.lines)

    assert lines(7) == lines(7)
    assert lines(7) != lines(8)


def acknowledge_before_the_high_watermark():
    def wait(self, waiter):
        waiter.outcome = ErrorCode.NONE
        waiter.on_done(waiter)

    return mock.patch.object(LeaderRole, "add_ack_waiter", wait)


def commit_what_only_the_leader_has():
    def advance(self):
        moved = self.log_end_offset > self.high_watermark
        self.high_watermark = self.log_end_offset
        return moved

    return mock.patch.object(Leader, "_advance", advance)


def truncate_to_the_high_watermark():
    """As Kafka did before KIP-101."""
    real = Follower.begin

    def begin(self, position, *, high_watermark):
        real(self, position, high_watermark=high_watermark)
        return TruncateTo(high_watermark) if high_watermark < position.offset else None

    return mock.patch.object(Follower, "begin", begin)


def elect_outside_the_isr():
    real = brokers.elect_offline

    def elect_offline(partition, live, *, unclean, **options):
        return real(partition, live, unclean=True, **options)

    return mock.patch.object(brokers, "elect_offline", elect_offline)


def forget_the_epoch_of_a_fenced_controller():
    return mock.patch.object(ModelStore, "accepts", return_value=True)


def forget_the_epoch_of_a_fenced_leader():
    """The controller takes any leader's ISR."""
    return mock.patch.object(partition_changes, "_check_epochs", return_value=None)


def lead_on_after_a_restart():
    """Without waiting for the controller to have noticed it."""
    real = Node._apply

    def apply(self):
        self.is_admitted = True
        real(self)

    return mock.patch.object(Node, "_apply", apply)


PLANTED = [
    acknowledge_before_the_high_watermark,
    pytest.param(commit_what_only_the_leader_has, marks=pytest.mark.pure),  # in a compiled module
    truncate_to_the_high_watermark,
    elect_outside_the_isr,
    forget_the_epoch_of_a_fenced_controller,
    forget_the_epoch_of_a_fenced_leader,
    lead_on_after_a_restart,
]


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.__name__)
def test_planted_bug_is_caught(bug):
    """Some seed finds it, and the very same seed is fine without it."""
    with bug():
        for seed in range(SEEDS_UNTIL_CAUGHT_MAX):
            try:
                level1.run(seed)
            except InvariantBroken:
                break
        else:
            pytest.fail(f"{SEEDS_UNTIL_CAUGHT_MAX} seeds did not notice")
    level1.run(seed)


def test_data_show_an_election_outside_the_isr_also_where_nobody_looks_at_metadata():
    with ExitStack() as bugs:
        bugs.enter_context(elect_outside_the_isr())
        bugs.enter_context(mock.patch.object(level1.Invariants, "on_metadata", return_value=None))
        for seed in range(SEEDS_UNTIL_CAUGHT_MAX):
            try:
                level1.run(seed)
            except InvariantBroken:
                return
    pytest.fail("nothing was lost")
