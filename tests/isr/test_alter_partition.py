"""Changes of ISRs on their way to the controller and back, and the clocks of replication."""

from contextlib import asynccontextmanager
from itertools import pairwise
from uuid import UUID

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.isr.alter_partition import AlterPartitionManager
from kafkalite.isr.state import CommittedIsr, IsrChange, IsrMember
from kafkalite.log.checkpoint import HIGH_WATERMARK_FILE
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_partition import (
    ALTER_PARTITION,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopicResult,
)
from tests.isr.replica_kit import TOPIC_ID, TP, ReplicaKit


class FakeController:
    """Answers what `answers` has, in order, then accepts everything."""

    def __init__(self, kit):
        self.kit = kit
        self.asked = []
        self.answers = []
        self.is_open = trio.Event()
        self.is_open.set()

    async def request(self, api, message, *, timeout_ms):
        assert api is ALTER_PARTITION
        assert timeout_ms == 30_000
        self.asked.append((trio.current_time(), message))
        await self.is_open.wait()
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, KafkaError):
            raise answer
        if isinstance(answer, AlterPartitionResponse):
            return answer
        topics = []
        for topic in message.topics:
            results = []
            for data in topic.partitions:
                if answer is None and topic.topic_id == TOPIC_ID:
                    isr = [member.broker_id for member in data.new_isr_with_epochs]
                    self.kit.change(isr=tuple(isr))
                state = self.kit.state
                results.append(
                    AlterPartitionResult(
                        partition_index=data.partition_index,
                        error_code=answer or ErrorCode.NONE,
                        leader_id=1,
                        leader_epoch=state.leader_epoch,
                        isr=list(state.isr),
                        partition_epoch=state.partition_epoch,
                    )
                )
            topics.append(AlterPartitionTopicResult(topic_id=topic.topic_id, partitions=results))
        return AlterPartitionResponse(topics=topics)


class OtherPartition:
    """One more that asks for a change, once."""

    topic_id = UUID(int=8)
    topic_partition = TopicPartition("other", 0)

    def __init__(self):
        self.answers = []

    def take_isr_change(self):
        return IsrChange(leader_epoch=0, partition_epoch=0, isr=(IsrMember(1, 77),))

    def on_isr_answer(self, proposal, answer):
        self.answers.append(answer)


@pytest.fixture
def kit():
    kit = ReplicaKit(replica_lag_time_max_ms=1_000)
    kit.change(isr=(1, 2))
    return kit


@asynccontextmanager
async def keeping(kit, *answers):
    controller = FakeController(kit)
    controller.answers += answers
    keeper = AlterPartitionManager(
        kit.members[1].replicas, controller, kit.config, broker_epoch=lambda: 77
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(keeper.run)
        yield controller
        nursery.cancel_scope.cancel()


async def test_proposal_is_asked_and_its_answer_taken(kit, autojump_clock):
    async with keeping(kit) as controller:
        kit.fetch(3, 1)
        await wait_all_tasks_blocked()
        assert kit[1].leader.state == CommittedIsr((1, 2, 3))
    ((_, asked),) = controller.asked
    assert (asked.broker_id, asked.broker_epoch) == (1, 77)
    (topic,) = asked.topics
    (data,) = topic.partitions
    assert topic.topic_id == TOPIC_ID
    assert (data.partition_index, data.leader_epoch, data.partition_epoch) == (0, 0, 1)
    assert [member.broker_id for member in data.new_isr_with_epochs] == [1, 2, 3]
    assert data.new_isr == [1, 2, 3]


@pytest.mark.parametrize(
    "answer",
    [
        KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        AlterPartitionResponse(topics=[]),
    ],
)
async def test_unknown_outcome_is_asked_for_again_after_a_pause(kit, autojump_clock, answer):
    """Rule 176."""
    async with keeping(kit, answer, answer) as controller:
        kit.fetch(3, 1)
        await trio.sleep(0.3)
        assert kit.state.isr == (1, 2, 3)
        assert kit[1].leader.state == CommittedIsr((1, 2, 3))
    first, second, third = [at for at, _ in controller.asked]
    assert (second - first, third - second) == pytest.approx((0.05, 0.1))


async def test_final_refusal_is_not_asked_again(kit, autojump_clock):
    """Rule 176."""
    async with keeping(kit, ErrorCode.INVALID_UPDATE_VERSION) as controller:
        kit.fetch(3, 1)
        await trio.sleep(10)
        kit.fetch(3, 1)
        await trio.sleep(10)
    assert len(controller.asked) == 1
    assert kit[1].leader.state.maximal_isr == (1, 2, 3)


async def test_refused_replica_is_proposed_anew_by_its_next_fetch(kit, autojump_clock):
    async with keeping(kit, ErrorCode.INELIGIBLE_REPLICA) as controller:
        kit.fetch(3, 1)
        await wait_all_tasks_blocked()
        assert kit[1].leader.state == CommittedIsr((1, 2))
        kit.fetch(3, 1)
        await trio.sleep(1)
        assert kit[1].leader.state == CommittedIsr((1, 2, 3))
    assert len(controller.asked) == 2


async def test_only_what_was_refused_pauses(kit, autojump_clock):
    """Others are asked for at once, however often this one was refused."""
    replicas = kit.members[1].replicas
    other = OtherPartition()
    async with keeping(kit, *[ErrorCode.UNKNOWN_SERVER_ERROR] * 5) as controller:
        kit.fetch(3, 1)
        await trio.sleep(0.8)
        assert len(controller.asked) == 5
        replicas._on_isr_change(other)
        await wait_all_tasks_blocked()
        assert len(controller.asked) == 6
        assert other.answers
        await trio.sleep(1)
        assert len(controller.asked) == 7
    assert kit[1].leader.state == CommittedIsr((1, 2, 3))
    assert kit.state.isr == (1, 2, 3)


async def test_ineligible_replica_is_not_asked_for_at_each_fetch(kit, autojump_clock):
    async with keeping(kit, *[ErrorCode.INELIGIBLE_REPLICA] * 100) as controller:
        for _ in range(100):
            kit.fetch(3, 1)
            await trio.sleep(0.005)
        assert 9 <= len(controller.asked) <= 11
        pauses = [b[0] - a[0] for a, b in pairwise(controller.asked)]
        assert max(pauses) < 0.06


async def test_final_refusal_makes_nothing_pause(kit, autojump_clock):
    async with keeping(kit, ErrorCode.INVALID_UPDATE_VERSION) as controller:
        kit.fetch(3, 1)
        await wait_all_tasks_blocked()
        kit.change(isr=(1, 2))
        kit.fetch(3, 1)
        await wait_all_tasks_blocked()
        assert [at for at, _ in controller.asked] == [0, 0]
    assert kit[1].leader.state == CommittedIsr((1, 2, 3))


async def test_one_request_at_a_time(kit, autojump_clock):
    async with keeping(kit) as controller:
        controller.is_open = trio.Event()
        kit.fetch(3, 1)
        await wait_all_tasks_blocked()
        kit[1].leader._proposal = "not sent while the first is under way"
        kit.members[1].replicas._on_isr_change(kit[1])
        await wait_all_tasks_blocked()
        assert len(controller.asked) == 1
        kit[1].leader._proposal = None
        controller.is_open.set()
        await wait_all_tasks_blocked()
    assert kit[1].leader.state == CommittedIsr((1, 2, 3))


async def test_laggards_are_looked_for_each_half_of_the_time(kit, autojump_clock):
    """Rule 165."""
    kit.fetch(2, 1)
    kit.append(1, "a")
    async with keeping(kit) as controller:
        kit.clock.now_ms += 1_001
        await trio.sleep(0.4)
        assert controller.asked == []
        await trio.sleep(0.2)
        assert kit.state.isr == (1,)
        assert kit[1].high_watermark == 1


async def test_high_watermarks_are_written_in_time_and_at_the_end(kit, autojump_clock):
    """Rule 169."""
    logs = kit.members[1].logs
    async with keeping(kit):
        kit.append(1, "a")
        kit.catch_up(1, 2)
        await trio.sleep(4.9)
        assert logs.high_watermarks() == {}
        await trio.sleep(0.2)
        assert logs.high_watermarks() == {TP: 1}
        kit.append(1, "b")
        kit.catch_up(1, 2)
    assert logs.high_watermarks()[TP] == kit[1].high_watermark
    assert kit.members[1].disk.read(f"/data/{HIGH_WATERMARK_FILE}")


async def test_full_disk_does_not_end_it(kit, autojump_clock, caplog):
    def write(offsets):
        raise OSError("full")

    kit.members[1].logs.write_high_watermarks = write
    async with keeping(kit):
        await trio.sleep(6)
    assert "high watermarks could not be written: full" in caplog.text


def test_lone_broker_writes_no_high_watermarks():
    kit = ReplicaKit(1)
    kit.append(1, "a")
    kit.members[1].replicas.write_high_watermarks()
    assert kit.members[1].logs.high_watermarks() == {}
    kit.clock.now_ms += 99_999
    kit.members[1].replicas.tick()
