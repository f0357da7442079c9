"""Several brokers without sockets or replicas: each partition has one log, which changes hands.

Replication is a delay: what is appended is below the high watermark a little later, or when a test
says so. Who gets a leadership gets the log without what was above the high watermark, the worst
that can happen. Requests between brokers go through their codecs and may be lost on either way.
"""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import trio
from trio.testing import MockClock

from kafkalite.api.context import RequestContext
from kafkalite.config import load_config
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.coordinator.shard import partition_for
from kafkalite.deferred import Deferred
from kafkalite.group.settings import GroupSettings
from kafkalite.group.shards import GroupShards
from kafkalite.isr.partition import Partition
from kafkalite.isr.traffic import Traffic
from kafkalite.log.sequence_hold import SequenceHold
from kafkalite.txn.coordinator import TransactionCoordinator
from kafkalite.txn.settings import TransactionSettings
from kafkalite.txn.shards import TransactionShards
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.offset_fetch import OffsetFetchRequestTopics
from kafkalite.wire.records import iterate_records, read_batch_header
from tests.coordinator.toy import TrioClock
from tests.log.sim_disk import SimDisk
from tests.txn.inprocess import HANDLERS, FakeMetadata, InProcessBroker

REPLICATION_MS = 5
NETWORK_MS = 1
TOPICS = {"in": 1, "out": 3, CONSUMER_OFFSETS_TOPIC: 1, TRANSACTION_STATE_TOPIC: 1}
SHARD = TopicPartition(TRANSACTION_STATE_TOPIC, 0)
GROUP = TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)
RETRIABLE = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}


class HeldPartition(Partition):
    """A leader whose high watermark is moved by hand."""

    def __init__(self, log, *, leader_epoch, on_append):
        super().__init__(log, leader_epoch=leader_epoch)
        self.held = log.log_end_offset
        self.refusal = None
        self.is_deposed = False
        self.on_append = on_append

    @property
    def is_leader(self):
        return not self.is_deposed

    @property
    def high_watermark(self):
        return self.held

    @property
    def last_stable_offset(self):
        unstable = self.log.first_unstable_offset
        return self.held if unstable is None else min(unstable, self.held)

    def append(self, records, *, now_ms, all_acks=False, **options):
        if self.is_deposed:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "deposed")
        if self.refusal is not None and all_acks:
            raise KafkaError(self.refusal, "told to")
        info = self.log.append_as_leader(
            records, leader_epoch=self.leader_epoch, now_ms=now_ms, **options
        )
        self.on_append(self)
        return info

    def read_batches(self, offset):
        return self.log.read_batches(offset, self.held)

    def replicate(self, up_to=None):
        if not self.is_deposed:
            self.held = self.log_end_offset if up_to is None else up_to
            self.wake_all()

    def depose(self):
        self.is_deposed = True
        self.wake_all()


class Node:
    """One broker of a cluster; satisfies `Peers` for itself."""

    def __init__(self, cluster, broker_id, **settings):
        self.traffic = Traffic()
        self.cluster = cluster
        self.broker_id = broker_id
        self.clock = TrioClock()
        self.runtime = CoordinatorRuntime(
            [GroupShards(GroupSettings()), TransactionShards(TransactionSettings(**settings))],
            self.clock,
            perform=lambda effect: self.transactions.perform(effect),
        )
        sequence_hold = SequenceHold()
        self.transactions = TransactionCoordinator(
            self.runtime,
            self.clock,
            sequence_hold=sequence_hold,
            broker_id=broker_id,
            find_partition=self.find,
            exists=lambda tp: cluster.metadata.image.partition(*tp) is not None,
            leader_of=cluster.leaders.get,
            peers=self,
        )
        self.services = SimpleNamespace(
            authorizer=None,
            quotas=None,
            config=load_config(),
            clock=self.clock,
            metadata=cluster.metadata,
            producer_ids=cluster.metadata,
            replicas=self,
            coordinators=self.runtime,
            transactions=self.transactions,
            sequence_hold=sequence_hold,
        )

    # --- As ReplicaManager

    def find(self, topic_partition):
        is_led = self.cluster.leaders.get(topic_partition) == self.broker_id
        return self.cluster.partitions[topic_partition] if is_led else None

    def partition(self, topic, index):
        found = self.find(TopicPartition(topic, index))
        if found is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index}")
        return found

    def lead(self):
        for topic in (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
            led = {
                index: self.cluster.partitions[topic, index]
                for index in range(TOPICS[topic])
                if self.cluster.leaders.get(TopicPartition(topic, index)) == self.broker_id
            }
            self.runtime.set_leaderships(topic, TOPICS[topic], led)

    # --- As Peers, and for clients

    async def request(self, broker_id, api, message, *, timeout_ms, channel="control"):
        cluster = self.cluster
        cluster.requests.append((self.broker_id, broker_id, api.key.name, message))
        assert channel != "control"
        version = api.versions[1]
        data = bytearray(b"".join(api.encode_request(version, message)))
        with trio.move_on_after(timeout_ms / 1000):
            await trio.sleep(NETWORK_MS / 1000)
            if cluster.loses("request", self.broker_id, broker_id):
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "cut")
            decoded = api.decode_request(version, memoryview(data))
            answer = await cluster.nodes[broker_id].serve(api.key.name, version, decoded)
            if cluster.loses("answer", self.broker_id, broker_id):
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "cut")
            encoded = b"".join(map(bytes, api.encode_response(version, answer)))
            return api.decode_response(version, memoryview(encoded))
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "timeout")

    async def serve(self, name, version, request):
        handler = HANDLERS[name]
        context = RequestContext(
            services=self.services,
            connection_id=1,
            listener="PLAINTEXT",
            local_address=("10.0.0.1", 9092),
            peer_address=("10.0.0.2", 5000),
            api_version=version,
            client_id="test",
            now_ms=self.clock.wall_ms(),
        )
        try:
            answer = handler.handle(request, context)
            return await answer.wait() if isinstance(answer, Deferred) else answer
        except KafkaError as error:
            return handler.refuse(request, error, context)


class Cluster:
    """Nodes 1 to 3. `leaders` says who leads what; a partition that is not in it has no leader."""

    def __init__(self, leaders=None, **settings):
        self.metadata = FakeMetadata(1000)
        self.disk = SimDisk()
        self.clock = TrioClock()
        self.partitions = {}
        self.leaders = {}
        self.requests = []
        self.cut = set()
        self.lost = []
        self.stalled = set()
        self.appends = 0
        self.watching = {}
        self._nursery = None
        for name, count in TOPICS.items():
            self.metadata.add(name, count)
            for index in range(count):
                place = TopicPartition(name, index)
                log = InProcessBroker._open(self, place)
                self.partitions[place] = self._partition(log, 0)
                self.leaders[place] = (leaders or {}).get(place, 1)
        self.nodes = {number: Node(self, number, **settings) for number in (1, 2, 3)}

    def _partition(self, log, leader_epoch):
        return HeldPartition(log, leader_epoch=leader_epoch, on_append=self._on_append)

    def _on_append(self, partition):
        self.appends += 1
        event = self.watching.get(self.appends)
        if event is not None:
            event.set()
        if partition.topic_partition not in self.stalled:
            self._nursery.start_soon(self._replicate, partition, partition.log_end_offset)

    async def _replicate(self, partition, end_offset):
        await trio.sleep(REPLICATION_MS / 1000)
        if end_offset > partition.high_watermark:
            partition.replicate(end_offset)

    def loses(self, way, source, target):
        if (way, source, target) in self.lost:
            self.lost.remove((way, source, target))
            return True
        return (source, target) in self.cut

    @asynccontextmanager
    async def running(self):
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for node in self.nodes.values():
                node.lead()
                await nursery.start(node.runtime.run)
                await nursery.start(node.transactions.run)
            yield self
            nursery.cancel_scope.cancel()

    # --- Leadership

    def take_away(self, place):
        """Let a partition have no leader; what was not replicated is lost."""
        old = self.partitions[place]
        self.leaders.pop(place, None)
        old.depose()
        if old.high_watermark < old.log_end_offset:
            old.log.truncate_to(old.high_watermark)
        self._tell()

    def give(self, place, broker_id):
        old = self.partitions[place]
        self.partitions[place] = self._partition(old.log, old.leader_epoch + 1)
        self.leaders[place] = broker_id
        self._tell()

    def move(self, place, broker_id=None):
        old = self.leaders.get(place, 0)
        self.take_away(place)
        self.give(place, broker_id or old % 3 + 1)

    def begin_epoch(self, place):
        """The leader stays, in another epoch."""
        self.partitions[place].leader_epoch += 1
        self._tell()

    def _tell(self):
        for node in self.nodes.values():
            node.lead()

    # --- What there is

    def node_of(self, place):
        return self.nodes.get(self.leaders.get(place))

    def transaction(self, name="tx"):
        shard = self.node_of(SHARD).runtime.shard_of(TRANSACTION_STATE_TOPIC, name)
        return shard._completed(name, SimpleNamespace(wall_ms=0))[0]

    def markers(self, place):
        """(epoch, coordinator epoch, commits?) of the markers in a log."""
        found = []
        for batch in self.partitions[place].log.read_batches(0):
            header = read_batch_header(batch)
            if header.is_control:
                value = next(iter(iterate_records(batch)))
                found.append((header.producer_epoch, value.value[5], value.key[3] == 1))
        return found

    def committed(self, place):
        """The values of committed transactions, and whether readers reach the end."""
        partition = self.partitions[place]
        open_values, values = {}, []
        for batch in partition.log.read_batches(0):
            header = read_batch_header(batch)
            if not header.is_control:
                mine = open_values.setdefault(header.producer_id, [])
                mine += [record.value.decode() for record in iterate_records(batch)]
                continue
            mine = open_values.pop(header.producer_id, [])
            if next(iter(iterate_records(batch))).key[3] == 1:
                values += mine
        is_stable = partition.last_stable_offset == partition.log_end_offset
        return values, is_stable

    def offset(self, group="g", topic="in", index=0):
        """A group's committed offset; None if there is none, "pending" if that is not decided."""
        shard = self.node_of(GROUP).runtime.shard_of(CONSUMER_OFFSETS_TOPIC, group)
        assert partition_for(group, 1) == 0
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[index])]
        answer = shard.offsets.fetch(group, topics, require_stable=True)
        (found,) = answer.topics[0].partitions
        if found.error_code:
            return "pending"
        return None if found.committed_offset < 0 else found.committed_offset

    async def wait(self, condition, *, for_ms=20_000):
        """Wait until something holds."""
        with trio.fail_after(for_ms / 1000):
            while not condition():  # noqa: ASYNC110 - it is about many places
                await trio.sleep(0.01)


def run(main):
    """Run an async function in trio's time, which does not pass by itself."""
    trio.run(main, clock=MockClock(autojump_threshold=0))
