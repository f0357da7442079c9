"""A broker without sockets: real logs on a simulated disk, real coordinators, real handlers.

Requests go through the codec of their version, both ways. A crash is a new broker on the disk as
it was after any change to it.
"""

import dataclasses
from types import SimpleNamespace
from uuid import UUID

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from kafkalite.api import (
    api_versions,
    describe_producers,
    describe_transactions,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    offset_commit,
    produce,
    transactions,
    txn_offset_commit,
    write_txn_markers,
)
from kafkalite.api.client_metrics import ClientMetrics
from kafkalite.api.context import RequestContext, Services
from kafkalite.api.fetch_session import FetchSessions
from kafkalite.api.share_session import ShareSessions
from kafkalite.config import load_config
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.deferred import Deferred
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.settings import GroupSettings
from kafkalite.group.shards import GroupShards
from kafkalite.isr.partition import Partition
from kafkalite.isr.traffic import Traffic
from kafkalite.log.log import Log
from kafkalite.log.recovery import open_log
from kafkalite.log.sequence_hold import SequenceHold
from kafkalite.log_config import LogConfig
from kafkalite.meta.deleted_topics import DeletedTopics
from kafkalite.meta.group_configs import GroupConfigs
from kafkalite.meta.image import BrokerImage, Image, PartitionImage, TopicImage
from kafkalite.txn.coordinator import TransactionCoordinator
from kafkalite.txn.settings import TransactionSettings
from kafkalite.txn.shards import TransactionShards
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.log_kit import FakeClock, NotingListener
from tests.log.sim_disk import SimDisk

TOPICS = {"in": 1, "out": 2, CONSUMER_OFFSETS_TOPIC: 2, TRANSACTION_STATE_TOPIC: 2}
BROKER_ID = 1

HANDLERS = {
    handler.api.key.name: handler
    for module in (
        api_versions,
        fetch,
        find_coordinator,
        list_offsets,
        offset_commit,
        produce,
        init_producer_id,
        describe_producers,
        transactions,
        describe_transactions,
        write_txn_markers,
        txn_offset_commit,
    )
    for handler in module.HANDLERS
}


class FakeMetadata:
    """Topics that are there, and ids of producers in blocks."""

    def __init__(self, first_producer_id, block=1000):
        broker = BrokerImage(broker_id=BROKER_ID, endpoints={"PLAINTEXT": ("", 9092)})
        self.image = Image(brokers={BROKER_ID: broker})
        self.next_producer_id = first_producer_id
        self.block = block
        self.left = block

    def add(self, name, count):
        topic = TopicImage(
            name=name,
            topic_id=UUID(int=len(self.image.topics) + 1),
            partitions=(PartitionImage((BROKER_ID,), (BROKER_ID,), BROKER_ID),) * count,
        )
        topics = {**self.image.topics, name: topic}
        names = {topic.topic_id: name for topic in topics.values()}
        self.image = dataclasses.replace(self.image, topics=topics, topic_names=names)

    def remove(self, name):
        topics = {key: value for key, value in self.image.topics.items() if key != name}
        self.image = dataclasses.replace(self.image, topics=topics)

    def next_nowait(self):
        if self.left == 0:
            return None
        self.left -= 1
        self.next_producer_id += 1
        return self.next_producer_id - 1

    async def next(self):
        await trio.lowlevel.checkpoint()
        self.left = self.left or self.block
        return self.next_nowait()


class FakeReplicas:
    def __init__(self):
        self.traffic = Traffic()
        self.all = {}

    def find(self, topic_partition):
        return self.all.get(topic_partition)

    def partition(self, topic, index):
        found = self.all.get((topic, index))
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{index}")
        return found

    def replica(self, topic, index):
        return self.partition(topic, index)

    def partitions_of(self, topic):
        return {index: p for (name, index), p in self.all.items() if name == topic}


class InProcessBroker:
    """`ask` is synchronous: it fails if an answer would have to be waited for."""

    def __init__(
        self,
        disk=None,
        *,
        clock=None,
        leader_epoch=0,
        first_producer_id=1000,
        topics=None,
        transactions=None,
        config=None,
    ):
        self.disk = disk or SimDisk()
        self.clock = clock or FakeClock()
        self.leader_epoch = leader_epoch
        self.topics = topics or TOPICS
        self.metadata = FakeMetadata(first_producer_id)
        self.topic_creation = SimpleNamespace()
        self.replicas = FakeReplicas()
        self.settings = transactions or TransactionSettings()
        self.runtime = CoordinatorRuntime(
            [GroupShards(GroupSettings()), TransactionShards(self.settings)],
            self.clock,
            perform=lambda effect: self.transactions.perform(effect),
        )
        self.sequence_hold = SequenceHold()
        self.transactions = TransactionCoordinator(
            self.runtime,
            self.clock,
            sequence_hold=self.sequence_hold,
            find_partition=self.replicas.find,
            exists=lambda tp: self.metadata.image.partition(*tp) is not None,
        )
        for name, count in self.topics.items():
            self.create(name, count)
        broker_config = load_config(overrides=config or {})
        services = Services(
            config=broker_config,
            clock=self.clock,
            logs=SimpleNamespace(),
            metadata=self.metadata,
            topic_creation=self.topic_creation,
            producer_ids=self.metadata,
            replicas=self.replicas,
            coordinators=self.runtime,
            group_metadata=GroupMetadata(),
            transactions=self.transactions,
            sequence_hold=self.sequence_hold,
            fetch_sessions=FetchSessions(max_sessions=10, first_id=1),
            deleted_topics=DeletedTopics(),
            client_metrics=ClientMetrics(telemetry_max_bytes=1 << 20),
            group_configs=GroupConfigs(broker_config, lambda: self.metadata.image),
            background_topics=SimpleNamespace(),
            share_on_demand=SimpleNamespace(),
            share_sessions=ShareSessions(max_sessions=10),
            fetch_max_bytes=1 << 20,
        )
        self.context = RequestContext(
            services=services,
            connection_id=1,
            listener="PLAINTEXT",
            local_address=("10.0.0.1", 9092),
            peer_address=("10.0.0.2", 5000),
            client_id="test",
        )
        self._lead()
        self.settle()

    # --- Machinery

    def create(self, name, count):
        self.metadata.add(name, count)
        for index in range(count):
            topic_partition = TopicPartition(name, index)
            log = self._open(topic_partition)
            self.replicas.all[topic_partition] = Partition(log, leader_epoch=self.leader_epoch)

    def delete(self, name):
        self.metadata.remove(name)
        for key in [key for key in self.replicas.all if key[0] == name]:
            self.replicas.all.pop(key).close()

    def _open(self, topic_partition):
        directory = f"/data/{topic_partition}"
        self.disk.make_directory(directory)
        config = LogConfig()
        state = open_log(
            self.disk,
            directory,
            config,
            clean=False,
            log_start_offset=0,
            recovery_point=0,
            now_ms=self.clock.wall_ms(),
        )
        return Log(
            self.disk,
            directory,
            topic_partition,
            UUID(int=7),
            config,
            state,
            clock=self.clock,
            listener=NotingListener(),
        )

    def _lead(self):
        for name in (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
            self.runtime.set_leaderships(
                name, self.topics.get(name, 0), self.replicas.partitions_of(name)
            )

    def settle(self, *, for_ms=0):
        """Let the broker's own tasks load shards and deliver markers."""

        async def main():
            async with trio.open_nursery() as nursery:
                await nursery.start(self.runtime.run)
                await nursery.start(self.transactions.run)
                await wait_all_tasks_blocked()
                if for_ms:
                    await trio.sleep(for_ms / 1000)
                with trio.fail_after(60):  # a shard that could not write is loaded after a pause
                    while self.runtime.is_loading():  # noqa: ASYNC110
                        await trio.sleep(0.1)
                nursery.cancel_scope.cancel()

        if self.runtime.is_loading() or self.transactions.unfinished() or for_ms:
            trio.run(main, clock=MockClock(autojump_threshold=0))

    def advance(self, milliseconds):
        """Let time pass, firing timers at their times."""
        end_ms = self.clock.now_ms + milliseconds
        while True:
            offset_ms = self.clock.now_ms - self.clock.monotonic_ms()
            due_ms = self.runtime.tick()
            self.settle()
            if due_ms is None or due_ms + offset_ms > end_ms:
                break
            self.clock.now_ms = max(due_ms + offset_ms, self.clock.now_ms)
        self.clock.now_ms = end_ms

    def crashed(self, *, changes=None, torn=None, **options):
        """Another broker, on the disk as it was after so many changes; by default after all."""
        disk = (
            self.disk.copy() if changes is None else SimDisk.replay(self.disk.trace, changes, torn)
        )
        clock = FakeClock(self.clock.now_ms)
        return InProcessBroker(
            disk,
            clock=clock,
            leader_epoch=self.leader_epoch + 1,
            first_producer_id=self.metadata.next_producer_id + 1000,
            topics=self.topics,
            transactions=self.settings,
            **options,
        )

    # --- Requests

    def ask(self, name, version, request):
        """Return the answer to a request, which must come at once."""
        handler = HANDLERS[name]
        data = bytearray(b"".join(handler.api.encode_request(version, request)))
        decoded = handler.api.decode_request(version, memoryview(data))
        self.context.api_version = version
        self.context.now_ms = self.clock.wall_ms()
        try:
            answer = handler.handle(decoded, self.context)
            assert not isinstance(answer, Deferred), f"{name} would have to wait"
        except KafkaError as error:
            answer = handler.refuse(decoded, error, self.context)
        return self._transferred(handler, version, answer)

    def wait(self, name, version, request):
        """Return the answer to a request, which may take its time."""
        handler = HANDLERS[name]
        self.context.api_version = version
        self.context.now_ms = self.clock.wall_ms()

        async def main():
            try:
                answer = handler.handle(request, self.context)
                return await answer.wait() if isinstance(answer, Deferred) else answer
            except KafkaError as error:
                return handler.refuse(request, error, self.context)

        answer = trio.run(main, clock=MockClock(autojump_threshold=0))
        return self._transferred(handler, version, answer)

    def _transferred(self, handler, version, answer):
        chunks = handler.api.encode_response(version, answer)
        encoded = b"".join(
            c if isinstance(c, bytes | bytearray | memoryview) else c.read() for c in chunks
        )
        return handler.api.decode_response(version, memoryview(encoded))

    # --- What there is

    def partition(self, topic, index=0):
        return self.replicas.all[topic, index]

    def appends(self):
        """How many batches were written to any log."""
        return sum(
            operation[0] == "append" and operation[1] is not None and operation[1].endswith(".log")
            for operation in self.disk.trace
        )
