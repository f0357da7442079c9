"""Level 2: no seed breaks an invariant, planted bugs do, and a seed is one run in any process."""

import contextlib
import os
import subprocess
import sys

import pytest

from kafkalite.group import new_target
from kafkalite.group.consumer import reconcile
from kafkalite.group.consumer.group import ConsumerGroup
from kafkalite.group.consumer.reconcile import FREE
from kafkalite.group.kinds import ANY_PARTITION
from kafkalite.group.streams.group import StreamsGroup
from kafkalite.group.streams.member import TaskHolders
from kafkalite.log.producer_state import ProducerStates
from kafkalite.log.sequence_hold import SequenceHold
from kafkalite.share import partition, shard
from kafkalite.share.acknowledgement import AcknowledgeType
from kafkalite.share.batches import RecordState
from kafkalite.share.inflight import InFlightState
from kafkalite.share.partition import SharePartition
from kafkalite.sim import level2
from kafkalite.sim.faults import NO_FAULTS, Faults
from kafkalite.sim.invariants import InvariantBroken
from kafkalite.sim.level2 import Shape
from kafkalite.sim.traces import Trace
from tests.sim.test_level1 import (
    acknowledge_before_the_high_watermark,
    commit_what_only_the_leader_has,
    elect_outside_the_isr,
    truncate_to_the_high_watermark,
)

SHORT = Shape(faulty_s=10)
LONE = Shape(brokers=1, faulty_s=10)
SEEDS_UNTIL_CAUGHT_MAX = 60

MANY_FAULTS = Faults(
    crash=0.1,
    power_loss=0.1,
    partition=0.06,
    pause=0.06,
    session_loss=0.05,
    controller_loss=0.06,
    slow_link=0.03,
    drop=0.01,
)


@pytest.mark.parametrize("seed", range(6))
def test_cluster_keeps_its_promises(seed):
    level2.run(seed, shape=SHORT)


@pytest.mark.parametrize("seed", [3, 8])
def test_targets_that_are_computed_in_slices_keep_them_too(seed, monkeypatch):
    """Decision 0082: one step is a slice, one record a batch, so that groups change meanwhile."""
    monkeypatch.setattr(new_target, "AT_ONCE_UNITS", 0)
    monkeypatch.setattr(new_target, "SLICE_UNITS", 1)
    written = []
    real = new_target.NewTarget.next_records

    def next_records(new, wall_ms):
        written.append(new)
        return real(new, wall_ms)

    monkeypatch.setattr(new_target.NewTarget, "next_records", next_records)
    level2.run(seed, shape=SHORT)
    assert written


@pytest.mark.parametrize("seed", range(4))
def test_lone_broker_keeps_its_promises(seed):
    level2.run(seed, shape=LONE)


def test_without_faults_everything_that_is_written_is_read():
    outcome = level2.run(1, NO_FAULTS, shape=Shape(faulty_s=3))
    assert outcome.faults == {}
    assert outcome.acknowledged > 20
    assert outcome.committed > 0


PROGRAM = """
from kafkalite.sim import level2
from kafkalite.sim.level2 import Shape
print(level2.run(5, shape=Shape(faulty_s=5)).digest)
"""


def test_a_seed_is_one_run_whatever_the_order_of_hashes():
    """Also that trio's scheduler can still be seeded."""

    def digest(hash_seed):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return found.stdout.strip()

    assert digest("1") == digest("2") == level2.run(5, shape=Shape(faulty_s=5)).digest
    assert level2.run(6, shape=Shape(faulty_s=5)).digest != digest("1")


def test_a_trace_tells_what_happened():
    trace = Trace(kept=1_000_000)
    outcome = level2.run(2, shape=SHORT, trace=trace)
    injected = [line for line in trace.lines if " FAULT " in line]
    assert len(injected) == sum(outcome.faults.values())
    assert outcome.digest == trace.digest()


@contextlib.contextmanager
def give_away_what_others_still_have():
    """A task becomes active here while another member has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskHolders, "is_unreleased_active", lambda *_: False)
        yield


@contextlib.contextmanager
def let_anybody_commit():
    """A commit by who was a member once is taken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamsGroup, "check_commit", lambda *_: ANY_PARTITION)
        yield


@contextlib.contextmanager
def give_partitions_that_others_still_have():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConsumerGroup, "partition_epoch", lambda *_: FREE)
        yield


@contextlib.contextmanager
def wait_for_nobody_to_give_up():
    """A member is thought to have given up what it was told to, whatever it says that it owns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconcile, "owns_any", lambda *_: False)
        yield


@contextlib.contextmanager
def let_any_consumer_commit():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConsumerGroup, "check_commit", lambda *_: ANY_PARTITION)
        yield


@contextlib.contextmanager
def take_back_what_is_accepted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(partition.STATE_AFTER, AcknowledgeType.ACCEPT, RecordState.AVAILABLE)
        yield


@contextlib.contextmanager
def store_no_acknowledgement():
    """What is acknowledged is known to the leader alone, and forgotten with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard, "combine", lambda *_: [])
        patch.setattr(SharePartition, "_move_start", lambda *_: False)
        yield


@contextlib.contextmanager
def never_look_back():
    """What is released, or not acknowledged in time, comes never again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SharePartition, "next_fetch_offset", next_new_offset)
        yield


def next_new_offset(core):
    is_empty = not core.batches or core.start_offset > core.batches[-1].last_offset
    return core.end_offset + (not is_empty)


@contextlib.contextmanager
def count_no_delivery():
    def acquire(state, member_id, lock_end_ms):
        state.state, state.member_id, state.lock_end_ms = (
            RecordState.ACQUIRED,
            member_id,
            lock_end_ms,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InFlightState, "acquire", acquire)
        yield


CRASHES = Faults(crash=0.2)


def seeds_from(first):
    """Seeds to try: `first` is one that noticed once, and saves the search as long as it does."""
    return range(first, first + SEEDS_UNTIL_CAUGHT_MAX)


@pytest.mark.parametrize(
    ("bug", "words", "faults", "first_seed"),
    [
        (give_away_what_others_still_have, "group streams: ", NO_FAULTS, 0),
        (let_anybody_commit, "was committed for", NO_FAULTS, 0),
        (give_partitions_that_others_still_have, "group consumers: ", NO_FAULTS, 3),
        (wait_for_nobody_to_give_up, "group consumers: ", NO_FAULTS, 9),
        (let_any_consumer_commit, "group consumers: ", NO_FAULTS, 9),
        (take_back_what_is_accepted, "delivered again", NO_FAULTS, 0),
        (store_no_acknowledgement, "delivered again", CRASHES, 0),
        (never_look_back, "lost to the share group", NO_FAULTS, 0),
        (count_no_delivery, "has delivery count", NO_FAULTS, 0),
    ],
    ids=lambda bug: getattr(bug, "__name__", ""),
)
def test_planted_bug_of_groups_is_caught(bug, words, faults, first_seed):
    with bug():
        for seed in seeds_from(first_seed):
            try:
                level2.run(seed, faults, shape=LONE)
            except InvariantBroken as error:
                found = str(error)
                break
        else:
            pytest.fail(f"{SEEDS_UNTIL_CAUGHT_MAX} seeds did not notice")
    assert words in found
    level2.run(seed, faults, shape=LONE)


@contextlib.contextmanager
def let_later_batches_overtake():
    """As in Kafka: what was refused is not waited for, and any first sequence is taken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SequenceHold, "note", lambda *_: None)
        patch.setattr(ProducerStates, "has_whole_history", Never())
        yield


class Never:
    """An attribute that is False, whatever it is set to."""

    def __get__(self, of, owner):
        return False

    def __set__(self, of, value):
        pass


@pytest.mark.parametrize("seed", [3, 4])
def test_what_is_acknowledged_is_on_partitions_that_come_into_being(seed):
    """Decision 0050; also with faults."""
    growing = Shape(brokers=1, faulty_s=5, grows=True)
    with let_later_batches_overtake(), pytest.raises(InvariantBroken, match="lost in grown-"):
        level2.run(seed, NO_FAULTS, shape=growing)
    assert level2.run(seed, NO_FAULTS, shape=growing).acknowledged > 100
    level2.run(seed, shape=Shape(faulty_s=5, grows=True))


@pytest.mark.parametrize(
    ("bug", "first_seed"),
    [
        (acknowledge_before_the_high_watermark, 0),
        # in a compiled module
        pytest.param(commit_what_only_the_leader_has, 0, marks=pytest.mark.pure),
        (elect_outside_the_isr, 1),
        (truncate_to_the_high_watermark, 39),
    ],
    ids=lambda bug: getattr(bug, "__name__", ""),
)
def test_planted_bug_is_caught(bug, first_seed):
    with bug():
        for seed in seeds_from(first_seed):
            try:
                level2.run(seed, MANY_FAULTS, shape=SHORT)
            except Exception as error:
                caught = error
                break
        else:
            pytest.fail(f"{SEEDS_UNTIL_CAUGHT_MAX} seeds did not notice")
    assert isinstance(caught, InvariantBroken) or "OFFSET_OUT_OF_RANGE" in str(caught)
    level2.run(seed, MANY_FAULTS, shape=SHORT)
