"""Requests to the handlers of records, over real logs on a simulated disk; in trio's time."""

from contextlib import asynccontextmanager
from types import SimpleNamespace
from uuid import UUID

import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.api.context import RequestContext
from kafkalite.api.fetch_session import FetchSessions
from kafkalite.config import load_config
from kafkalite.deferred import Deferred
from kafkalite.isr.replicas import ReplicaManager
from kafkalite.log.manager import LogManager
from kafkalite.log.region import FileRegion
from kafkalite.log.sequence_hold import SequenceHold
from kafkalite.meta.events import CreatePartitions, CreateTopic, DeleteTopic
from kafkalite.meta.local import LocalStore
from kafkalite.meta.runner import MetadataRunner
from kafkalite.wire.errors import KafkaError
from tests.log.log_kit import NOW_MS, FakeClock, batch
from tests.log.sim_disk import SimDisk


class DataKit:
    """One broker without sockets: metadata, logs and replicas."""

    def __init__(self, profile="test", **settings):
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = load_config(overrides={"kafkalite.profile": profile, **named})
        self.disk = SimDisk()
        self.disk.make_directory("/data")
        self.clock = FakeClock()
        self.logs = LogManager(["/data"], self.disk, self.clock)
        self.logs.claim(node_id=1)
        self.metadata = MetadataRunner(
            self.config, LocalStore(self.disk, "/data/metadata"), cluster_id="cluster"
        )
        self.replicas = ReplicaManager(1, self.logs, self.config)
        self.sessions = FetchSessions(max_sessions=10, first_id=7)
        self.services = SimpleNamespace(
            authorizer=None,
            quotas=None,
            config=self.config,
            clock=self.clock,
            metadata=self.metadata,
            logs=self.logs,
            replicas=self.replicas,
            fetch_sessions=self.sessions,
            fetch_max_bytes=self.config.int("fetch.max.bytes"),
            transactions=None,
            sequence_hold=SequenceHold(),
        )

    async def start(self):
        await self.metadata.load()
        self.logs.load(lambda tp: self.metadata.log_config(tp.topic))
        await self.metadata.register({"PLAINTEXT": 9092})
        self.replicas.load(self.metadata.image)
        self.metadata.subscribe(self.replicas.on_changes)
        return self

    async def create(self, name, partitions=1, *, deletes=None, **configs):
        """Create a topic, and delete one in the same commit; return the new one's ID."""
        topic_id = self.metadata.new_topic_id()
        events = [] if deletes is None else [DeleteTopic(name=deletes)]
        events.append(
            CreateTopic(
                name=name,
                topic_id=topic_id,
                num_partitions=partitions,
                replication_factor=1,
                configs={key.replace("_", "."): str(value) for key, value in configs.items()},
            )
        )
        for result in await self.metadata.submit_all(events):
            assert not isinstance(result, KafkaError), result
        return topic_id

    async def delete(self, name):
        await self.metadata.submit(DeleteTopic(name=name))

    async def add_partitions(self, name, count):
        await self.metadata.submit(CreatePartitions(name=name, count=count, assignments=None))

    def partition(self, name="t", index=0):
        return self.replicas.partition(name, index)

    def append(self, *values, topic="t", index=0, **options):
        """Append one batch; return its first offset."""
        return (
            self.partition(topic, index)
            .append(batch(*values, **options), now_ms=self.clock.now_ms)
            .first_offset
        )

    def context(self, version, client_id="client"):
        return RequestContext(
            services=self.services,
            connection_id=1,
            listener="PLAINTEXT",
            local_address=("127.0.0.1", 4711),
            peer_address=("127.0.0.1", 1),
            api_version=version,
            client_id=client_id,
            now_ms=self.clock.now_ms,
        )

    def handle(self, handler, request, version=None, **context):
        """Return what the handler does with a request that came over the wire."""
        version = handler.api.versions[1] if version is None else version
        made = self.context(version, **context)
        sent = bytearray().join(map(bytes, handler.api.encode_request(version, request)))
        decoded = handler.api.decode_request(version, memoryview(sent))
        try:
            return handler.handle(decoded, made)
        except KafkaError as error:
            return handler.refuse(decoded, error, made)

    def ask(self, handler, request, version=None, **context):
        """Return the response to a request that is answered at once, as its client reads it."""
        response = self.handle(handler, request, version, **context)
        assert not isinstance(response, Deferred), "the request waits"
        return self.read(handler, response, version)

    @staticmethod
    def read(handler, response, version=None):
        version = handler.api.versions[1] if version is None else version
        chunks = handler.api.encode_response(version, response)
        answer = b"".join(c.read() if isinstance(c, FileRegion) else bytes(c) for c in chunks)
        return handler.api.decode_response(version, answer)

    @asynccontextmanager
    async def parked(self, handler, request, version=None):
        """Let a request wait; what is given to the block has `response` when it is answered."""
        pending = self.handle(handler, request, version)
        assert isinstance(pending, Deferred), "the request does not wait"
        parked = SimpleNamespace(response=None, after_s=None)
        began = trio.current_time()

        async def wait():
            answer = await pending.wait()
            parked.after_s = trio.current_time() - began
            parked.response = self.read(handler, answer, version)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            assert parked.response is None, "the request is answered already"
            yield parked
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


UNKNOWN_ID = UUID(int=0xBAD)
__all__ = ["NOW_MS", "UNKNOWN_ID", "DataKit", "batch"]
