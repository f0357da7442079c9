"""Brokers that copy from each other, without sockets: logs on simulated disks, in trio's time."""

from collections import Counter
from types import SimpleNamespace
from uuid import UUID

import trio

from kafkalite.api import fetch, list_offsets, offset_for_leader_epoch
from kafkalite.api.context import RequestContext
from kafkalite.api.fetch_session import FetchSessions
from kafkalite.config import load_config
from kafkalite.deferred import Deferred
from kafkalite.isr.fetcher import ReplicaFetcherManager
from kafkalite.isr.replicas import ReplicaManager
from kafkalite.log.manager import LogManager
from kafkalite.log.region import FileRegion
from kafkalite.meta.changes import PartitionChanged
from kafkalite.meta.image import BrokerImage, Image, PartitionImage, TopicImage
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.log_kit import NOW_MS, batch
from tests.log.sim_disk import SimDisk

TOPIC_ID = UUID(int=77)
HANDLERS = {
    handler.api.key: handler
    for handler in (*fetch.HANDLERS, *offset_for_leader_epoch.HANDLERS, *list_offsets.HANDLERS)
}


class TrioClock:
    """Shows trio's time, which tests wind on."""

    def monotonic_ms(self):
        return round(trio.current_time() * 1_000)

    def real_monotonic_ms(self):
        return self.monotonic_ms()

    def wall_ms(self):
        return NOW_MS + self.monotonic_ms()


class Node:
    """One broker's replicas, and what it answers."""

    def __init__(self, cluster, broker_id, **settings):
        self.cluster = cluster
        self.broker_id = broker_id
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = load_config(overrides={"node.id": str(broker_id), **named})
        disk = SimDisk()
        disk.make_directory("/data")
        self.disk = disk
        self.clock = TrioClock()
        self.logs = LogManager(["/data"], disk, self.clock)
        self.logs.claim(node_id=broker_id)
        self.logs.load(lambda tp: self.config.log_config({}))
        self.replicas = ReplicaManager(broker_id, self.logs, self.config)
        self.replicas.load(cluster.image)
        self.sessions = FetchSessions(max_sessions=10, first_id=7)
        self.fetchers = ReplicaFetcherManager(
            self.replicas,
            cluster,
            self.config,
            self.clock,
            image=lambda: cluster.image,
            broker_epoch=lambda: broker_id,
        )

    def replica(self, index=0):
        return self.replicas.replica("t", index)

    def append(self, *values, index=0):
        partition = self.replicas.partition("t", index)
        return partition.append(batch(*values), now_ms=self.clock.wall_ms())

    def contents(self, index=0):
        """Return all batches of a log, as they lie there."""
        log = self.replica(index).log
        return [bytes(one) for one in log.read_batches(log.log_start_offset)]

    async def answer(self, api, message):
        """Answer as the broker would, over encoded requests and responses."""
        handler, version = HANDLERS[api.key], api.versions[1]
        sent = bytearray().join(map(bytes, api.encode_request(version, message)))
        request = api.decode_request(version, memoryview(sent))
        context = RequestContext(
            services=SimpleNamespace(
                authorizer=None,
                quotas=None,
                config=self.config,
                clock=self.clock,
                metadata=SimpleNamespace(image=self.cluster.image),
                logs=self.logs,
                replicas=self.replicas,
                fetch_sessions=self.sessions,
                fetch_max_bytes=self.config.int("fetch.max.bytes"),
            ),
            connection_id=1,
            listener="PLAINTEXT",
            local_address=("127.0.0.1", 1),
            peer_address=("127.0.0.1", 2),
            api_version=version,
            now_ms=self.clock.wall_ms(),
        )
        try:
            response = handler.handle(request, context)
            if isinstance(response, Deferred):
                response = await response.wait()
        except KafkaError as error:
            response = handler.refuse(request, error, context)
        chunks = api.encode_response(version, response)
        try:
            received = bytearray().join(
                one.read() if isinstance(one, FileRegion) else bytes(one) for one in chunks
            )
        except OSError as error:  # in the midst of an answer: the connection is of no more use
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        return api.decode_response(version, memoryview(received))


class Cluster:
    """Two or more nodes with one topic; satisfies `Peers` among them.

    Attributes:
        asked: requests by broker and API.
        spoil: called with (broker id, request, response); may change the response, or raise.
        unreachable: brokers that do not answer.
    """

    def __init__(self, brokers=2, partitions=1, isr=None, **settings):
        ids = range(1, brokers + 1)
        state = PartitionImage(tuple(ids), isr or tuple(ids), 1)
        self._set_image((state,) * partitions, ids, {})
        self.asked = Counter()
        self.requests = []
        self.spoil = lambda broker_id, request, response: None
        self.unreachable = set()
        self.nodes = {broker_id: Node(self, broker_id, **settings) for broker_id in ids}

    def _set_image(self, partitions, ids, configs):
        topic = TopicImage(name="t", topic_id=TOPIC_ID, partitions=partitions, configs=configs)
        self.image = Image(
            brokers={
                i: BrokerImage(broker_id=i, endpoints={"PLAINTEXT": ("h", i)}, broker_epoch=i)
                for i in ids
            },
            topics={"t": topic},
            topic_names={TOPIC_ID: "t"},
            controller_id=1,
        )

    def configure(self, **configs):
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self._set_image(self.image.topics["t"].partitions, list(self.image.brokers), named)

    def lead(self, leader, *, index=0, tell=None, isr=None):
        """Let another broker lead; tell the nodes, the new leader last."""
        partitions = list(self.image.topics["t"].partitions)
        old = partitions[index]
        state = partitions[index] = PartitionImage(
            old.replicas,
            isr or old.isr,
            leader,
            leader_epoch=old.leader_epoch + 1,
            partition_epoch=old.partition_epoch + 1,
        )
        self._set_image(tuple(partitions), list(self.image.brokers), {})
        change = PartitionChanged(name="t", topic_id=TOPIC_ID, index=index, state=state)
        for broker_id in tell or sorted(self.nodes, key=lambda each: each == leader):
            self.nodes[broker_id].replicas.on_changes([change], self.image)

    async def request(self, broker_id, api, message, *, timeout_ms, channel="control"):
        self.asked[broker_id, api.key.name] += 1
        self.requests.append(message)
        await trio.sleep(0.001)
        if broker_id in self.unreachable:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "unreachable")
        response = await self.nodes[broker_id].answer(api, message)
        self.spoil(broker_id, message, response)
        return response
