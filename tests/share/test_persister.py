"""How share coordinators are asked: here, elsewhere, in order, again after a while (rule 423)."""

from dataclasses import dataclass
from uuid import UUID

import trio

from kafkalite.coordinator.runtime import ShardLocation
from kafkalite.share.batches import SharePartitionKey, StateBatch
from kafkalite.share.events import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    ShareState,
    Summary,
    WriteState,
)
from kafkalite.share.persister import Persister
from kafkalite.types import SHARE_GROUP_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages import delete_share_group_state as delete
from kafkalite.wire.messages import initialize_share_group_state as initialize
from kafkalite.wire.messages import read_share_group_state as read
from kafkalite.wire.messages import read_share_group_state_summary as summary
from kafkalite.wire.messages import write_share_group_state as write
from tests.txn.cluster_kit import run

TOPIC_ID = UUID(int=5)
KEY = SharePartitionKey("g", TOPIC_ID, 0)
OTHER = SharePartitionKey("g", TOPIC_ID, 1)
NOT_COORDINATOR = KafkaError(ErrorCode.NOT_COORDINATOR)


def writing(start_offset, key=KEY):
    return WriteState(key, 2, 0, start_offset, 0, [StateBatch(start_offset, 9, 1, 2)])


class FakeRuntime:
    """A coordinator runtime whose shards answer with what `answers` holds, then with None."""

    def __init__(self, *, is_here=True, has_topic=True):
        self.place = ShardLocation(TopicPartition(SHARE_GROUP_STATE_TOPIC, 3), is_here)
        self.has_topic = has_topic
        self.answers = []
        self.asked = []

    def location_of(self, topic, key):
        assert topic == SHARE_GROUP_STATE_TOPIC
        return self.place if self.has_topic else None

    def handle(self, topic, key, event):
        assert key == event.key.coordinator_key
        if not self.place.is_here or not self.has_topic:
            raise NOT_COORDINATOR
        self.asked.append(event)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, KafkaError):
            raise answer
        return answer


class FakePeers:
    """Answers each partition with an error code, 0 after those of `codes`."""

    RESPONSES = (
        (initialize.InitializeShareGroupStateResponse, initialize.InitializeStateResult,
         initialize.PartitionResult),
        (read.ReadShareGroupStateResponse, read.ReadStateResult, read.PartitionResult),
        (write.WriteShareGroupStateResponse, write.WriteStateResult, write.PartitionResult),
        (delete.DeleteShareGroupStateResponse, delete.DeleteStateResult, delete.PartitionResult),
        (summary.ReadShareGroupStateSummaryResponse, summary.ReadStateSummaryResult,
         summary.PartitionResult),
    )  # fmt: skip

    def __init__(self, *codes):
        self.codes = [*codes]
        self.requests = []
        self.failures = 0

    async def request(self, broker_id, api, message, *, timeout_ms, channel):
        del timeout_ms, channel
        self.requests.append((broker_id, message))
        await trio.sleep(0.01)
        if self.failures:
            self.failures -= 1
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        response, topic_class, entry_class = self.RESPONSES[api.key - 83]
        code = self.codes.pop(0) if self.codes else 0
        return response(
            results=[
                topic_class(
                    topic_id=topic.topic_id,
                    partitions=[
                        entry_class(partition=each.partition, error_code=code)
                        for each in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )


@dataclass
class Kit:
    persister: Persister
    answers: list
    made: list

    def ask(self, event):
        self.answers.append([event])
        return self.persister.ask(event, self.answers[-1].append)


def asking(main, runtime, peers=None, *, leader=2):
    made = []

    async def ensure_topic(name):
        made.append(name)
        runtime.has_topic = True

    async def beside():
        async with trio.open_nursery() as nursery:
            persister = Persister(
                runtime,
                ensure_topic=ensure_topic,
                broker_id=1,
                leader_of=lambda _: leader,
                peers=peers,
            )
            await nursery.start(persister.run)
            await main(Kit(persister, [], made))
            nursery.cancel_scope.cancel()

    run(beside)


def test_what_the_shard_here_decides_is_answered_before_asking_returns():
    async def main(kit):
        kit.ask(writing(3))
        assert kit.answers == [[writing(3), None]]

    asking(main, FakeRuntime())


def test_a_refusal_that_stays_is_given_at_once():
    runtime = FakeRuntime()
    runtime.answers = [KafkaError(ErrorCode.FENCED_STATE_EPOCH)]

    async def main(kit):
        kit.ask(writing(3))
        assert kit.answers[0][1].code is ErrorCode.FENCED_STATE_EPOCH

    asking(main, runtime)


def test_writes_keep_their_order_while_the_shard_loads():
    runtime = FakeRuntime()
    runtime.answers = [KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * 2

    async def main(kit):
        for start in range(4):
            kit.ask(writing(start))
        await trio.sleep(10)
        assert [answer for _, answer in kit.answers] == [None] * 4
        assert [event.start_offset for event in runtime.asked[-4:]] == [0, 1, 2, 3]

    asking(main, runtime)


def test_the_topic_is_made_by_the_first_question():
    async def main(kit):
        kit.ask(InitializeState(KEY, 2, -1))
        await trio.sleep(1)
        assert kit.made == [SHARE_GROUP_STATE_TOPIC]
        assert kit.answers[0][1:] == [None]

    asking(main, FakeRuntime(has_topic=False))


def test_five_attempts_and_no_more():
    runtime = FakeRuntime()
    runtime.answers = [KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)] * 50

    async def main(kit):
        kit.ask(writing(0))
        await trio.sleep(14.9)
        assert len(kit.answers[0]) == 1
        await trio.sleep(1)
        assert kit.answers[0][1].code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        kit.ask(writing(1))
        runtime.answers = []
        await trio.sleep(2)
        assert kit.answers[1][1:] == [None]

    asking(main, runtime)


def test_another_broker_is_asked_for_all_share_partitions_together():
    peers = FakePeers()

    async def main(kit):
        for key in (KEY, OTHER):
            kit.ask(writing(3, key))
        await trio.sleep(1)
        assert [answer for _, answer in kit.answers] == [None, None]
        ((broker_id, message),) = peers.requests
        assert broker_id == 2
        (topic,) = message.topics
        assert sorted(each.partition for each in topic.partitions) == [0, 1]
        (batch,) = topic.partitions[0].state_batches
        assert (batch.first_offset, batch.last_offset) == (3, 9)
        assert (batch.delivery_count, batch.delivery_state) == (1, 2)

    asking(main, FakeRuntime(is_here=False), peers)


def test_writes_keep_their_order_while_another_broker_is_not_ready():
    peers = FakePeers(ErrorCode.NOT_COORDINATOR, 0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    async def main(kit):
        for start in range(4):
            kit.ask(writing(start))
        await trio.sleep(10)
        assert [answer for _, answer in kit.answers] == [None] * 4
        written = [message.topics[0].partitions[0].start_offset for _, message in peers.requests]
        assert written == [0, 0, 1, 1, 2, 3]

    asking(main, FakeRuntime(is_here=False), peers)


def test_every_question_goes_over_the_network():
    peers = FakePeers()

    async def main(kit):
        for event in (
            InitializeState(KEY, 2, -1),
            ReadState(KEY, 3),
            writing(1),
            ReadSummary(KEY),
            DeleteState(KEY),
        ):
            kit.ask(event)
        await trio.sleep(1)
        found = [answer for _, answer in kit.answers]
        assert [type(each) for each in found[:4]] == [
            type(None), ShareState, type(None), Summary
        ]  # fmt: skip
        assert found[4] is None
        assert len(peers.requests) == 5

    asking(main, FakeRuntime(is_here=False), peers)


def test_a_broker_that_moved_the_coordinator_is_asked_again_and_errors_are_told():
    peers = FakePeers(ErrorCode.NOT_COORDINATOR, ErrorCode.FENCED_LEADER_EPOCH)
    peers.failures = 1

    async def main(kit):
        kit.ask(writing(1))
        await trio.sleep(5)
        assert kit.answers[0][1].code is ErrorCode.FENCED_LEADER_EPOCH
        assert len(peers.requests) == 3

    asking(main, FakeRuntime(is_here=False), peers)


def test_without_a_leader_it_waits_for_one():
    async def main(kit):
        kit.ask(writing(1))
        await trio.sleep(20)
        assert kit.answers[0][1].code is ErrorCode.COORDINATOR_NOT_AVAILABLE

    asking(main, FakeRuntime(is_here=False), FakePeers(), leader=None)
