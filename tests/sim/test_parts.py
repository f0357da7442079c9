"""Small parts of the simulator: queue, envelope, invariants, log, faults, command line."""

from random import Random
from uuid import UUID

import pytest
import trio
from click.testing import CliRunner

from kafkalite.cli.sim import sim
from kafkalite.log_config import LogConfig
from kafkalite.meta.changes import BrokerRegistered, PartitionChanged, TopicCreated
from kafkalite.meta.image import BrokerImage, Image, PartitionImage
from kafkalite.sim import campaign
from kafkalite.sim.campaign import Plan, Summary, run_seeds
from kafkalite.sim.envelope import Envelope
from kafkalite.sim.events import EventQueue
from kafkalite.sim.faults import USUAL, Faults
from kafkalite.sim.invariants import InvariantBroken, Invariants
from kafkalite.sim.level1 import Outcome
from kafkalite.sim.model_log import ModelLog
from kafkalite.sim.traces import Trace
from kafkalite.sim.workload import Workload
from kafkalite.testing.history import History
from kafkalite.types import TopicPartition

T0 = TopicPartition("t", 0)


def image(isr=(1, 2, 3), leader=1, *, epochs=None):
    state = PartitionImage((1, 2, 3), isr, leader)
    changes = [TopicCreated(name="t", topic_id=UUID(int=1), partitions=(state,))]
    changes += [
        BrokerRegistered.of(BrokerImage(broker_id=id_, endpoints={}, broker_epoch=epoch))
        for id_, epoch in (epochs or {1: 1, 2: 2, 3: 3}).items()
    ]
    return Image().apply(changes)


def test_events_happen_in_the_order_of_their_times():
    queue, seen = EventQueue(), []
    queue.after(5, seen.append, "b")
    queue.after(5, seen.append, "c")
    queue.after(1, seen.append, "a")
    queue.after(9, seen.append, "late")
    while queue.run_next(9):
        pass
    assert (seen, queue.now_ms, queue.count) == (["a", "b", "c"], 9, 3)


class TestEnvelope:
    def test_last_one_who_has_it_all_may_not_lose_data(self):
        envelope = Envelope()
        assert envelope.allows_power_loss(1, image(), healthy={1, 2, 3})
        assert not envelope.allows_power_loss(1, image(), healthy={1})
        assert not envelope.allows_power_loss(1, image(isr=(1,)), healthy={1, 2, 3})
        envelope.on_power_loss(2, image(), image().brokers)
        assert envelope.allows_power_loss(1, image(), healthy={1, 2, 3})
        assert not envelope.allows_power_loss(1, image(isr=(1, 2)), healthy={1, 2, 3})

    def test_nobody_loses_data_while_a_leader_is_putting_others_out_of_sync(self):
        """Seed 606 of level 1: it was in sync alone when its last request arrived."""
        envelope = Envelope()
        assert not envelope.allows_power_loss(1, image(), healthy={1, 2, 3}, shrinking={T0})

    def test_the_others_are_spared_until_it_is_out_of_sync_and_known_to_have_failed(self):
        envelope = Envelope()
        envelope.on_power_loss(2, image(), image().brokers)
        assert envelope.spared(image()) == {1, 3}
        # What it told before may still let it in.
        envelope.on_commit(image(isr=(1, 3)), image().brokers)
        assert envelope.spared(image()) == {1, 3}
        failed = image(isr=(1, 3), epochs={1: 1, 2: 9, 3: 3})
        envelope.on_commit(failed, failed.brokers)
        assert envelope.spared(failed) == set()

    def test_a_registration_that_the_controller_has_not_seen_is_as_old_as_the_loss(self):
        """Seed 305834 of level 1: its request from before let it in, under that very epoch."""
        envelope = Envelope()
        before, live = image(isr=(1, 3)), image(epochs={1: 1, 2: 8, 3: 3}).brokers
        envelope.on_power_loss(2, before, live)
        seen = image(isr=(1, 3), epochs={1: 1, 2: 8, 3: 3})
        envelope.on_commit(seen, live)
        assert envelope.spared(seen) == {1, 3}


class TestInvariants:
    def changed(self, before, **state):
        new = PartitionImage((1, 2, 3), **state)
        return before.apply([PartitionChanged(name="t", topic_id=UUID(int=1), index=0, state=new)])

    @pytest.mark.parametrize(
        ("state", "what"),
        [
            ({"isr": (1, 4), "leader": 1}, "of replicas"),
            ({"isr": (1, 2), "leader": 3}, "not in the ISR"),
            ({"isr": (1, 2), "leader": 2, "partition_epoch": 1}, "two leaders"),
            (
                {"isr": (3,), "leader": 3, "leader_epoch": 1, "partition_epoch": 1},
                "was not in sync",
            ),
        ],
    )
    def test_metadata(self, state, what):
        before = image(isr=(1, 2))
        with pytest.raises(InvariantBroken, match=what):
            Invariants().on_metadata(before, self.changed(before, **state))

    def test_epochs_do_not_go_back(self):
        before = image()
        after = self.changed(before, isr=(1,), leader=1, leader_epoch=1, partition_epoch=1)
        with pytest.raises(InvariantBroken, match="go back"):
            Invariants().on_metadata(after, before)

    def test_replicas(self):
        invariants = Invariants()
        invariants.on_lead(T0, 1, 5)
        with pytest.raises(InvariantBroken, match="lead in epoch 5"):
            invariants.on_lead(T0, 2, 5)
        invariants.on_high_watermark(T0, 1, 5, 10)
        with pytest.raises(InvariantBroken, match="falls from 10 to 9"):
            invariants.on_high_watermark(T0, 1, 5, 9)
        with pytest.raises(InvariantBroken, match="last stable offset 3"):
            invariants.on_bounds(
                T0, log_start_offset=0, last_stable_offset=3, high_watermark=2, log_end_offset=4
            )
        invariants.on_write(T0, 0, 5, "a")
        with pytest.raises(InvariantBroken, match="is a and b"):
            invariants.on_write(T0, 0, 5, "b")
        invariants.on_committed(T0, 0, "a")
        with pytest.raises(InvariantBroken, match="was committed as a"):
            invariants.on_committed(T0, 0, "b")
        with pytest.raises(InvariantBroken, match="nobody knows 1"):
            invariants.on_committed(T0, 2, "c")


def test_log_loses_only_what_was_not_synced():
    log = ModelLog(T0, LogConfig(), lambda *_: None)
    log.append_as_leader([1, 2], leader_epoch=0, now_ms=0, origin=None)
    log.sync()
    log.append_as_leader([3, 4, 5], leader_epoch=2, now_ms=0, origin=None)
    log.lose_unsynced(Random(3))
    log.recover()
    assert 2 <= log.log_end_offset < 5
    assert log.end_offset_for(0)[1] == 2


def test_faults_differ_from_seed_to_seed():
    drawn = [Faults.of(Random(seed)) for seed in range(50)]
    assert any(faults.crash == 0 for faults in drawn)
    assert any(faults.crash > USUAL["crash"] for faults in drawn)
    assert len(set(drawn)) > 40


class TestCommand:
    def run(self, *arguments):
        return CliRunner().invoke(sim, arguments, standalone_mode=False)

    def test_one_seed_tells_what_it_did(self):
        result = self.run("--seed", "3")
        assert result.return_value == 0
        assert result.output.startswith("seed 3: ")
        assert "records acknowledged" in result.output

    def test_a_range_is_summed_up(self):
        result = self.run("--seeds", "3..4")
        assert result.return_value == 0
        assert result.output.startswith("2 runs in ")

    def test_a_failure_says_how_to_repeat_it(self, monkeypatch):
        def broken(seed, *, trace=None):
            if trace is not None:
                trace.note("what led to it")
            raise InvariantBroken("planted")

        monkeypatch.setattr(campaign.level1, "run", broken)
        for arguments in (("--seed", "8"), ("--seeds", "8..9")):
            result = self.run(*arguments)
            assert result.return_value == 1
            assert "InvariantBroken: planted" in result.output
            assert "python -m kafkalite sim --level 1 --seed 8" in result.output
            assert "commit " in result.output

    @pytest.mark.parametrize("wrong", ["5", "9..1", "a..b"])
    def test_a_range_that_is_none_is_refused(self, wrong):
        assert "is no range" in str(self.run("--seeds", wrong).exception)

    def test_seed_and_seeds_exclude_each_other(self):
        assert "exclude" in str(self.run("--seed", "1", "--seeds", "1..2").exception)


def test_campaign_ends_with_its_time_or_its_failures(monkeypatch):
    monkeypatch.setattr(campaign.level1, "run", lambda seed, *, trace=None: Outcome(seed))
    assert run_seeds(Plan(), range(5)).runs == 5
    assert run_seeds(Plan(), range(5), end_s=0).runs == 0

    def broken(seed, *, trace=None):
        raise InvariantBroken("planted")

    monkeypatch.setattr(campaign.level1, "run", broken)
    summary = run_seeds(Plan(level=1), range(50), failures_max=3)
    assert len(summary.failures) == 3
    assert "seed 2: InvariantBroken: planted" in summary.lines()


def test_summaries_add_up():
    total = Summary(runs=1, faults={"crash": 2})
    faults = {"crash": 1, "cut": 1}
    total.add(Summary(runs=3, events=5, acknowledged=7, elapsed_s=0.5, faults=faults))
    total.add(Summary.of(Outcome(1)))
    assert (total.runs, total.events, total.acknowledged, total.elapsed_s) == (5, 5, 7, 0.5)
    assert total.faults == {"crash": 3, "cut": 1}


def test_trace_is_kept_to_its_end():
    written = []
    trace = Trace(written.append, kept=2)
    for line in "abc":
        trace.note(line)
    assert (list(trace.lines), written, trace.count) == (["b", "c"], ["a", "b", "c"], 3)
    off = Trace(is_on=False)
    off.note("x")
    assert off.count == 0


async def test_what_a_group_member_may_have_lost_already_is_no_finding():
    """It was told late what to give up, and removed meanwhile (seed 2000018 of level 2)."""
    work = Workload(Random(1), History(), [T0], [])
    now = trio.current_time()
    coordinator = ("broker-1", 9092)
    work.on_owned("g", "a", [T0], coordinator=coordinator, until=now - 1)
    work.on_owned("g", "b", [T0], coordinator=coordinator, until=now + 9)
    work.on_owned("g", "a", [T0], coordinator=coordinator, until=now - 1)
    with pytest.raises(InvariantBroken, match="is active in b and in a"):
        work.on_owned("g", "a", [T0], coordinator=coordinator, until=now + 1)
