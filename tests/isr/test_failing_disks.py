"""Brokers whose disks fail or are full do not keep partitions from those who could serve them.

Rule 185.
"""

import errno
from functools import partial
from uuid import UUID

import pytest
import trio

from kafkalite.isr.partition_read import IsolationLevel
from kafkalite.isr.state import CommittedIsr
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from tests.isr.replica_kit import TOPIC_ID, TP, ReplicaKit, refusal
from tests.isr.replication_kit import Cluster
from tests.log.log_kit import batch

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def kit():
    return ReplicaKit(replica_lag_time_max_ms=1_000)


def asked(kit, leader_id=1):
    """Return the ISRs that a leader asks for."""
    proposals = kit.members[leader_id].replicas.take_isr_changes()
    return [tuple(member.broker_id for member in proposal.isr) for _, proposal in proposals]


class TestLeader:
    def test_full_disk_makes_it_resign(self, kit):
        kit.members[1].disk.capacity = 0
        assert refusal(kit.append, 1, "a") is STORAGE
        assert kit[1].log.failure is None
        assert asked(kit) == [(2, 3)]

    def test_it_resigns_once_however_much_is_refused(self, kit):
        kit.members[1].disk.capacity = 0
        for _ in range(3):
            assert refusal(kit.append, 1, "a") is STORAGE
        assert asked(kit) == [(2, 3)]
        assert refusal(kit.append, 1, "a") is STORAGE
        assert asked(kit) == []

    def test_what_is_refused_for_another_reason_does_not(self, kit):
        kit.change(isr=(1, 2))
        assert refusal(kit[1].append, bytearray(100), now_ms=1) is not STORAGE
        assert asked(kit) == []

    def test_a_log_that_fails_at_other_times_makes_it_resign_at_once(self, kit):
        """A flush that fails is noted by housekeeping, when nobody writes."""
        kit.append(1, "a")
        kit.members[1].disk.fail("sync")
        assert refusal(kit[1].log.flush_now) is STORAGE
        assert kit[1].log.failure
        assert asked(kit) == [(2, 3)]

    def test_one_elected_with_a_failed_log_resigns(self, kit):
        kit[2].log.failure = "gone"
        kit.change(leader=2)
        assert asked(kit, 2) == [(1, 3)]

    def test_one_that_nobody_could_relieve_asks_again_in_time(self, kit):
        kit.change(isr=(1,))
        kit[1].log.failure = "gone"
        kit[1].tick(0)
        assert asked(kit) == []
        kit.change(isr=(1, 3))
        kit[1].tick(0)
        assert asked(kit) == [(3,)]

    def test_a_lone_replica_goes_on(self):
        kit = ReplicaKit(1)
        kit.members[1].disk.capacity = 0
        assert refusal(kit.append, 1, "a") is STORAGE
        assert asked(kit) == []
        kit.members[1].disk.capacity = None
        kit.append(1, "a")

    def test_who_waits_is_told_that_another_leads(self, kit):
        kit.append(1, "a")
        waiter = kit.wait(1, 1)
        kit.members[1].disk.capacity = 0
        assert refusal(kit.append, 1, "b") is STORAGE
        assert waiter.outcome is None
        kit.change(leader=2, isr=(2, 3))
        assert waiter.outcome is ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_its_disk_may_be_full_when_it_becomes_a_follower(self, kit):
        """What only it has is cut off without a byte to spare."""
        kit.append(1, "a")
        kit.catch_up(1, 2, 3)
        kit.append(1, "b")
        kit.members[1].disk.capacity = 0
        refusal(kit.append, 1, "c")
        kit.change(leader=2, isr=(2, 3))
        kit.append(2, "d")
        assert kit.fetch(1, 2)
        assert kit[1].log_end_offset == 1
        assert kit[1].log.failure is None
        kit.members[1].disk.capacity = None
        kit.catch_up(2, 1)
        assert kit.members[1].records == kit.members[2].records
        kit.members[1].restart(kit.image)
        assert kit.members[1].records == kit.members[2].records


class TestOfflineAtStart:
    def offline(self, kit, broker_id=1):
        member = kit.members[broker_id]
        member.logs.close()
        member.disk.fail("list", str(TP))
        member.open()
        assert member.logs.offline
        member.replicas.load(kit.image)
        return member

    def test_a_leader_that_cannot_open_its_log_resigns(self, kit):
        member = self.offline(kit)
        ((replica, proposal),) = member.replicas.take_isr_changes()
        assert [each.broker_id for each in proposal.isr] == [2, 3]
        assert (proposal.leader_epoch, proposal.partition_epoch) == (0, 0)
        assert (replica.topic_id, replica.topic_partition) == (TOPIC_ID, TP)
        assert refusal(member.replicas.partition, *TP) is STORAGE
        replica.on_isr_answer(proposal, ErrorCode.NEW_LEADER_ELECTED)
        member.replicas.tick()
        assert asked(kit) == []

    def test_it_asks_again_where_the_outcome_is_unknown(self, kit):
        member = self.offline(kit)
        ((replica, proposal),) = member.replicas.take_isr_changes()
        replica.on_isr_answer(proposal, ErrorCode.NETWORK_EXCEPTION)
        assert asked(kit) == [(2, 3)]

    def test_a_follower_says_nothing_until_it_is_elected(self, kit):
        self.offline(kit, 2)
        assert asked(kit, 2) == []
        kit.change(leader=2)
        assert asked(kit, 2) == [(1, 3)]

    def test_alone_in_the_isr_it_waits_for_others(self, kit):
        kit.change(isr=(1,))
        member = self.offline(kit)
        assert asked(kit) == []
        kit.change(isr=(1, 2))
        assert asked(kit) == [(2,)]
        assert member.replicas.hosted(TP) is None

    def test_a_log_that_could_not_be_made_is_made_when_there_is_room(self):
        kit = ReplicaKit(2)
        member = kit.members[2]
        kit.members[2].logs.delete(TP)
        member.logs.close()
        member.open()
        member.disk.capacity = 0
        member.replicas.load(kit.image)
        assert member.partition is None
        member.replicas.tick()
        assert member.partition is None
        member.disk.capacity = None
        member.replicas.tick()
        assert not member.partition.is_leader
        assert member.replicas.followed(TP).leader_id == 1


async def test_one_that_has_resigned_fetches_when_it_can_write_again(autojump_clock):
    """It has everything, and would hold up all acknowledgements as soon as there is more."""
    cluster = Cluster(3)
    first = cluster.nodes[1]
    first.disk.capacity = 0
    assert refusal(first.append, b"x") is STORAGE
    cluster.lead(2, isr=(2, 3))
    async with trio.open_nursery() as nursery:
        await nursery.start(first.fetchers.run)
        await trio.sleep(10)
        assert cluster.asked[2, "FETCH"] == 0
        first.disk.capacity = None
        await trio.sleep(2)
        assert cluster.asked[2, "FETCH"] > 0
        cluster.nodes[2].append(b"y")
        await trio.sleep(2)
        nursery.cancel_scope.cancel()
    assert first.contents() == cluster.nodes[2].contents()
    assert cluster.nodes[2].replica().leader.state != CommittedIsr((2, 3))


async def test_log_that_cannot_be_read_keeps_no_others_out_of_the_isr(autojump_clock):
    """One Fetch carries them all, and the page that is gone breaks the answer each time."""
    cluster = Cluster(2, partitions=3)
    leader, follower = cluster.nodes.values()
    leader.disk.fail("pread", "t-1/")
    async with trio.open_nursery() as nursery:
        await nursery.start(follower.fetchers.run)
        for index in range(3):
            leader.append(b"x", index=index)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    led = [leader.replicas.hosted(TopicPartition("t", index)) for index in range(3)]
    assert [partition.high_watermark for partition in led] == [1, 0, 1]
    assert [follower.replica(index).log_end_offset for index in range(3)] == [1, 0, 1]
    ((partition, proposal),) = leader.replicas.take_isr_changes()
    assert partition is led[1]
    assert [member.broker_id for member in proposal.isr] == [2]


def test_leader_that_cannot_look_up_an_offset_resigns(kit):
    kit.append(1, "a")
    log = kit[1].log
    log.local_log._hints.clear()
    kit.members[1].disk.fail("pread")
    region = {"max_bytes": 1, "min_one_batch": True, "upper": log.log_end_position}
    assert refusal(log.read, 0, **region) is STORAGE
    assert log.failure
    assert asked(kit) == [(2, 3)]


def test_logs_are_told_to_have_failed(kit):
    told = []
    kit.members[1].logs.on_failed = told.append
    kit.members[1].disk.fail("append", error=errno.ENOSPC)
    refusal(kit.append, 1, "a")
    assert told == []


def test_a_log_that_could_not_begin_anew_leaves_the_others_alone(kit):
    """Its files are gone and it has no new one, be it for want of descriptors."""
    kit.append(1, "a", "b")
    kit.catch_up(1)
    kit.catch_up(1)
    member = kit.members[2]
    other = member.logs.create(TopicPartition("other", 0), UUID(int=8), kit.config.log_config())
    member.logs.write_all_checkpoints()
    member.disk.fail("create", str(TP), error=errno.EMFILE, times=1)
    assert refusal(kit[2].truncate_fully_and_start_at, 1) is STORAGE
    assert kit[2].log.failure
    for as_replica in (False, True):
        read = partial(kit[2].read, 1, isolation=IsolationLevel.READ_UNCOMMITTED)
        code = refusal(read, max_bytes=100, min_one_batch=True, as_replica=as_replica)
        assert code is STORAGE
    other.append_as_leader(batch("x"), leader_epoch=0, now_ms=kit.clock.wall_ms())
    other.flush_now()
    member.logs.write_all_checkpoints()
    member.restart(kit.image)
    assert member.logs.get(other.topic_partition).log_end_offset == 1
    kit.catch_up(1, 2)
    assert member.records == kit.members[1].records
