"""Leaders that may have lost records hear others first (rule 234)."""

from random import Random
from types import SimpleNamespace
from uuid import UUID

import pytest
import trio

from kafkalite.isr.leader_role import IsrAccepted, ReplicationContext
from kafkalite.isr.recovering import LogEnd, Recoveries
from kafkalite.isr.state import IsrMember
from kafkalite.log.validate import AppendOrigin
from kafkalite.meta.ensemble import Ensemble
from kafkalite.meta.events import CreateTopic
from kafkalite.meta.image import NO_LEADER, PartitionImage
from kafkalite.sim.hosts import Host
from kafkalite.sim.level2 import CLUSTER_SETTINGS, DELAY_S
from kafkalite.sim.network import Fabric
from kafkalite.sim.runtime import run_deterministically
from kafkalite.sim.traces import Trace
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.log_kit import NOW_MS, batch, contents

PLACE = TopicPartition("t", 0)
ALONE = PartitionImage((1, 2, 3), (1,), 1, leader_epoch=7, partition_epoch=9)
LAG_MS = 1_000


class Doubt:
    """One partition of broker 1, whose log ends at (3, 100) since the machine lost power."""

    def __init__(self, doubtful=(PLACE,)):
        self.proposing = []
        replication = ReplicationContext(
            broker_id=1, lag_ms_max=LAG_MS, on_isr_change=self.proposing.append
        )
        self.recoveries = Recoveries(doubtful, replication)
        self.partition = SimpleNamespace(
            topic_partition=PLACE,
            topic_id=UUID(int=5),
            log_end_offset=100,
            log=SimpleNamespace(leader_epoch=3),
        )

    def holds(self, state=ALONE, now_ms=0):
        return self.recoveries.holds(self.partition, state, now_ms)

    def hear(self, broker_id, epoch, offset, *, leader_epoch=7, broker_epoch=50):
        member = IsrMember(broker_id, broker_epoch)
        self.recoveries.on_follower(PLACE, leader_epoch, member, LogEnd(epoch, offset))

    def decided(self, now_ms=0):
        return self.recoveries.take_decided(now_ms)


@pytest.fixture
def doubt():
    return Doubt()


class TestWaiting:
    def test_others_are_heard_before_it_leads(self, doubt):
        assert doubt.holds()
        assert doubt.decided() == []
        doubt.hear(2, 3, 90)
        assert doubt.decided() == []
        doubt.hear(3, 3, 100)
        assert doubt.decided() == [PLACE]
        assert not doubt.recoveries
        assert not doubt.holds()

    def test_those_who_are_not_heard_are_waited_for_so_long(self, doubt):
        assert doubt.holds(now_ms=10)
        assert doubt.decided(LAG_MS + 9) == []
        assert doubt.decided(LAG_MS + 10) == [PLACE]

    def test_what_was_said_in_another_reign_does_not_count(self, doubt):
        assert doubt.holds()
        doubt.hear(2, 3, 90, leader_epoch=6)
        doubt.hear(3, 3, 90, leader_epoch=6)
        assert doubt.decided() == []

    def test_next_reign_is_waited_for_anew(self, doubt):
        assert doubt.holds()
        doubt.hear(2, 3, 90)
        later = PartitionImage((1, 2, 3), (1,), 1, leader_epoch=8, partition_epoch=10)
        assert doubt.holds(later)
        doubt.hear(3, 3, 90, leader_epoch=8)
        assert doubt.decided() == []

    @pytest.mark.parametrize(
        ("state", "in_sync"),
        [
            (PartitionImage((1,), (1,), 1, leader_epoch=7), True),  # nobody to ask
            (PartitionImage((1, 2), (1, 2), 1, leader_epoch=7), True),
            (PartitionImage((1, 2), (2,), 2, leader_epoch=7), False),
            (PartitionImage((1, 2), (2, 1), 2, leader_epoch=7), True),
            (PartitionImage((1, 2), (1,), NO_LEADER, leader_epoch=7), True),
        ],
    )
    def test_other_states_need_no_waiting(self, doubt, state, in_sync):
        """Who is in sync behind another leader has got what it had lost."""
        assert not doubt.holds(state)
        assert doubt.holds() is not in_sync

    def test_log_that_lost_nothing_leads_at_once(self):
        assert not Doubt(doubtful=()).holds()

    def test_partition_that_went_is_forgotten(self, doubt):
        assert doubt.holds()
        doubt.recoveries.forget(PLACE)
        assert not doubt.recoveries
        assert not doubt.holds()


class TestHandingOver:
    def ahead(self, doubt, *heard):
        assert doubt.holds()
        for broker_id, epoch, offset in heard:
            doubt.hear(broker_id, epoch, offset)
        assert doubt.decided() == []
        (recovering,) = doubt.proposing
        return recovering

    @pytest.mark.parametrize(
        ("heard", "best"),
        [
            ([(2, 3, 101), (3, 3, 100)], 2),
            ([(2, 3, 101), (3, 3, 102)], 3),
            ([(2, 4, 5), (3, 3, 102)], 2),
            ([(2, 3, 101), (3, 3, 101)], 2),
        ],
    )
    def test_replica_with_the_most_is_to_lead(self, doubt, heard, best):
        """The later leader's records count for more, as in KIP-966."""
        proposal = self.ahead(doubt, *heard).take_isr_change()
        assert proposal.isr == (IsrMember(best, 50),)
        assert (proposal.leader_epoch, proposal.partition_epoch) == (7, 9)

    def test_it_is_asked_once_and_the_metadata_say_the_rest(self, doubt):
        recovering = self.ahead(doubt, (2, 3, 101), (3, 3, 1))
        proposal = recovering.take_isr_change()
        accepted = IsrAccepted(leader_epoch=8, partition_epoch=10, isr=(2,))
        recovering.on_isr_answer(proposal, accepted)
        assert doubt.decided(9 * LAG_MS) == []
        assert doubt.proposing == [recovering]
        assert not doubt.holds(PartitionImage((1, 2, 3), (2,), 2, 8, partition_epoch=10))
        assert not doubt.recoveries

    def test_who_was_refused_is_heard_again(self, doubt):
        recovering = self.ahead(doubt, (2, 3, 101), (3, 3, 1))
        recovering.on_isr_answer(recovering.take_isr_change(), ErrorCode.INELIGIBLE_REPLICA)
        doubt.hear(2, 3, 101, broker_epoch=51)
        assert doubt.decided() == []
        assert recovering.take_isr_change().isr == (IsrMember(2, 51),)

    def test_who_is_refused_and_gone_is_not_waited_for(self, doubt):
        recovering = self.ahead(doubt, (2, 3, 101), (3, 3, 1))
        recovering.on_isr_answer(recovering.take_isr_change(), ErrorCode.INELIGIBLE_REPLICA)
        assert doubt.decided() == [PLACE]


# --- Whole brokers -------------------------------------------------------------------------------


class World:
    """Three simulated machines with one topic, of which the first one leads."""

    def __init__(self, nursery):
        self.failures = []
        self.nursery = nursery
        self.ensemble = Ensemble(session_timeout_s=2.0)
        fabric = Fabric(Random(1), DELAY_S, Trace())
        settings = {**CLUSTER_SETTINGS, "min.insync.replicas": "1"}
        self.hosts = [
            Host(
                broker_id,
                fabric,
                self.ensemble,
                settings,
                random=Random(broker_id),
                on_failure=self.failures.append,
            )
            for broker_id in (1, 2, 3)
        ]

    def start(self, *broker_ids):
        for broker_id in broker_ids:
            self.nursery.start_soon(self.hosts[broker_id - 1].run)

    def lose_power(self, broker_id):
        """All that was not synced is gone."""
        host = self.hosts[broker_id - 1]
        host.crash(loses_data=True)
        for path, content in host.disk.files.items():
            if path.startswith("/data/t-0/") and path.endswith(".log"):
                content.data.clear()
                content.synced_size = 0

    def replica(self, broker_id):
        return self.hosts[broker_id - 1].broker.services.replicas.hosted(PLACE)

    @property
    def state(self):
        return self.ensemble.image.partition(*PLACE)

    async def until(self, predicate):
        with trio.fail_after(60):
            while not predicate():  # noqa: ASYNC110
                await trio.sleep(0.05)

    async def create(self):
        for host in self.hosts:
            runner = host.broker.services.metadata
            if runner.is_controller:
                event = CreateTopic(
                    name="t",
                    topic_id=UUID(int=77),
                    assignments=[(0, (1, 2, 3))],
                    configs={"min.insync.replicas": "1"},
                )
                await runner.submit(event)


def in_world(scenario):
    async def main():
        async with trio.open_nursery() as nursery:
            world = World(nursery)
            world.start(1, 2, 3)
            await world.until(lambda: all(host.broker for host in world.hosts))
            await world.create()
            await world.until(lambda: world.state and len(world.state.isr) == 3)
            await world.until(lambda: all(world.replica(each) for each in (1, 2, 3)))
            await trio.sleep(1)
            await scenario(world)
            assert world.failures == []
            nursery.cancel_scope.cancel()

    run_deterministically(main, seed=1)


def append(world, broker_id, *values):
    world.replica(broker_id).append(
        batch(*values), now_ms=NOW_MS, origin=AppendOrigin.CLIENT, all_acks=True
    )


def values(world, broker_id):
    return [value for _, value in contents(world.replica(broker_id).log)]


@pytest.mark.slow
@pytest.mark.parametrize("loses_power", [True, False])
def test_last_in_sync_replica_that_lost_records_gets_them_back(loses_power):
    """Apache Kafka has it lead at once, and the others cut off what it lost."""

    async def scenario(world):
        append(world, 1, "a", "b")
        await world.until(lambda: world.replica(3).high_watermark == 2)
        for broker_id in (2, 3):
            world.hosts[broker_id - 1].crash(loses_data=False)
        await world.until(lambda: world.state.isr == (1,))
        if not loses_power:
            append(world, 1, "c")
            world.hosts[0].crash(loses_data=False)
        else:
            world.lose_power(1)
        await trio.sleep(3)  # the session ends
        world.start(1)
        await world.until(lambda: world.hosts[0].broker is not None)
        assert world.replica(1).is_leader is not loses_power
        if loses_power:
            replicas = world.hosts[0].broker.services.replicas
            with pytest.raises(KafkaError) as refused:
                replicas.partition(*PLACE)
            assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        world.start(2, 3)
        await world.until(lambda: len(world.state.isr) == 3)
        wanted = ["a", "b"] if loses_power else ["a", "b", "c"]
        for broker_id in (1, 2, 3):
            await world.until(lambda each=broker_id: values(world, each) == wanted)
        assert world.state.leader == (2 if loses_power else 1)

    in_world(scenario)


@pytest.mark.slow
def test_others_are_not_waited_for_for_ever():
    async def scenario(world):
        append(world, 1, "a")
        for broker_id in (2, 3):
            world.hosts[broker_id - 1].crash(loses_data=False)
        await world.until(lambda: world.state.isr == (1,))
        world.lose_power(1)
        await trio.sleep(3)  # the session ends
        world.start(1)
        await world.until(lambda: world.hosts[0].broker is not None)
        await world.until(lambda: world.replica(1).is_leader)
        append(world, 1, "b")

    in_world(scenario)
