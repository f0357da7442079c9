"""The paths that `guards` counts: what one request of each common kind goes through.

A whole broker runs beside them, so that they are what a client sets off and nothing made up.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import trio

from benchmarks.process import frame_of
from kafkalite.api.context import RequestContext
from kafkalite.clock import Clock
from kafkalite.config import load_config
from kafkalite.network.budget import MemoryBudget
from kafkalite.network.connection import Connection
from kafkalite.network.dispatch import Dispatcher
from kafkalite.observe.requests import Requests
from kafkalite.server.broker import Broker
from kafkalite.wire.framing import Framer
from kafkalite.wire.header import decode_response_header
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkalite.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafkalite.wire.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kafkalite.wire.records import Record, build_batch, read_batch_header

PARTITIONS = 100
TOGETHER = 16
"""Requests that are counted at once."""
NOW_MS = 1_700_000_000_000
VERSIONS = {
    PRODUCE: 9,
    FETCH: 12,
    METADATA: 12,
    LIST_OFFSETS: 7,
    HEARTBEAT: 4,
    JOIN_GROUP: 3,
    SYNC_GROUP: 3,
    FIND_COORDINATOR: 2,
    CREATE_TOPICS: 5,
}

Paths = dict[str, Callable[[], object]]


class StoppedClock:
    """No turn is over, however slow counting makes it."""

    def __init__(self, clock: Clock) -> None:
        self._now_ms = clock.monotonic_ms(), clock.wall_ms()

    def monotonic_ms(self) -> int:
        return self._now_ms[0]

    def wall_ms(self) -> int:
        return self._now_ms[1]

    def real_monotonic_ms(self) -> int:
        return self._now_ms[0]


class SinkTransport:
    """Where answers go to be forgotten."""

    local_address = peer_address = ("127.0.0.1", 9092)
    sent_bytes = 0


class Client:
    """A connection of the broker without a socket."""

    def __init__(self, broker: Broker, dispatcher: Dispatcher | None = None) -> None:
        services = replace(broker.services, clock=StoppedClock(broker.services.clock))
        context = RequestContext(
            services=services,
            connection_id=1_000_000,
            listener="PLAINTEXT",
            local_address=("127.0.0.1", 9092),
            peer_address=("127.0.0.1", 50_000),
            now_ms=services.clock.wall_ms(),
        )
        self._connection = Connection(
            SinkTransport(),  # type: ignore[arg-type]
            dispatcher or broker.dispatcher,
            context,
            framer=Framer(1 << 20),
            budget=MemoryBudget(-1),
        )

    def serve(self, frames: bytes) -> list[Any]:
        """Let the connection receive these bytes; return what it has to send."""
        connection = self._connection
        while frames:
            buffer = connection.buffer()
            count = min(len(buffer), len(frames))
            buffer[:count], frames = frames[:count], frames[count:]
            assert connection.received(count), "not answered at once"
        return connection.take_output()


def _batch(records: int) -> bytes:
    return bytes(build_batch([Record(i, NOW_MS, None, bytes(100)) for i in range(records)]))


def _produce(partitions: int, batch: bytes, *, topic: str = "guarded") -> ProduceRequest:
    data = [PartitionProduceData(index=p, records=batch) for p in range(partitions)]
    return ProduceRequest(
        acks=1, timeout_ms=1_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def _fetch(partitions: int, *, offset: int = 0) -> FetchRequest:
    wanted = [
        FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=1_000)
        for p in range(partitions)
    ]
    topic = FetchTopic(topic="quiet", partitions=wanted)
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[topic])


def _frame(api: Any, request: Any) -> bytes:
    return frame_of(api, VERSIONS[api], request)


def _codec_paths() -> Paths:
    paths: Paths = {}
    for name, api, request in (
        ("Produce", PRODUCE, _produce(1, _batch(1))),
        ("Fetch of 100 partitions", FETCH, _fetch(PARTITIONS)),
    ):
        version = VERSIONS[api]
        encoded = b"".join(map(bytes, api.encode_request(version, request)))
        paths[f"decode {name}"] = lambda a=api, v=version, e=encoded: a.decode_request(v, e)
        paths[f"encode {name}"] = lambda a=api, v=version, r=request: a.encode_request(v, r)
    batch = bytearray(_batch(1))
    paths["batch header"] = lambda: read_batch_header(batch)
    return paths


def _response_paths(client: Client) -> Paths:
    """Codecs of answers, with answers that the broker really gives."""
    paths: Paths = {}
    for name, api, request in (
        ("answer to Produce", PRODUCE, _produce(1, _batch(1))),
        ("answer to Fetch of 100 partitions", FETCH, _fetch(PARTITIONS)),
        ("answer to Metadata of 100 partitions", METADATA, _metadata()),
    ):
        version = VERSIONS[api]
        sent = client.serve(_frame(api, request))
        answer = b"".join(c.read() if hasattr(c, "read") else bytes(c) for c in sent)[4:]
        _, position = decode_response_header(api, version, answer)
        message = api.decode_response(version, answer, position)
        paths[f"encode {name}"] = lambda a=api, v=version, m=message: a.encode_response(v, m)
    return paths


def _metadata() -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name="guarded")])


def _served_paths(client: Client) -> Paths:
    one = _frame(PRODUCE, _produce(1, _batch(1)))
    offsets = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(
                name="guarded", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
        ]
    )
    requests = {
        "Produce": one,
        "five Produce at once": one * 5,
        "Produce of 100 partitions": _frame(PRODUCE, _produce(PARTITIONS, _batch(1))),
        "Fetch": _frame(FETCH, _fetch(1)),
        "Fetch of 100 partitions": _frame(FETCH, _fetch(PARTITIONS)),
        "Fetch of 100 partitions, nothing new": _frame(FETCH, _fetch(PARTITIONS, offset=1)),
        "Metadata of 100 partitions": _frame(METADATA, _metadata()),
        "ListOffsets": _frame(LIST_OFFSETS, offsets),
    }
    return {f"serve {name}": lambda f=frame: client.serve(f) for name, frame in requests.items()}


async def _ask(stream: trio.SocketStream, api: Any, request: Any) -> Any:
    await stream.send_all(_frame(api, request))
    data = bytearray()
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        data += await stream.receive_some()
    version, frame = VERSIONS[api], bytes(data[4:])
    _, position = decode_response_header(api, version, frame)
    return api.decode_response(version, frame, position)


async def _ask_until_done(stream: trio.SocketStream, api: Any, request: Any) -> Any:
    """Ask again while the group's topic is being made."""
    for _ in range(1_000):
        answer = await _ask(stream, api, request)
        if not answer.error_code:
            return answer
        await trio.sleep(0.01)
    raise AssertionError(answer)


async def _prepare(broker: Broker) -> bytes:
    """Make a topic and a group of one member; return that member's heartbeat."""
    host, _, port = broker.bootstrap.rpartition(":")
    topics = [
        CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        for name in ("guarded", "quiet")
    ]
    join = JoinGroupRequest(
        group_id="guarded",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        await _ask(stream, CREATE_TOPICS, CreateTopicsRequest(topics=topics, timeout_ms=60_000))
        await _ask_until_done(stream, FIND_COORDINATOR, FindCoordinatorRequest(key="guarded"))
        joined = await _ask_until_done(stream, JOIN_GROUP, join)
        member = {
            "group_id": "guarded",
            "member_id": joined.member_id,
            "generation_id": joined.generation_id,
        }
        assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
        await _ask(stream, SYNC_GROUP, SyncGroupRequest(**member, assignments=[assignment]))
        heartbeat = HeartbeatRequest(**member)
        assert (await _ask(stream, HEARTBEAT, heartbeat)).error_code == 0
    return _frame(HEARTBEAT, heartbeat)


def _counted(broker: Broker, requests: Requests) -> Client:
    """Return a client of the broker with metrics and the journal on, as one with an HTTP port."""
    counting = copy(broker.dispatcher)
    requests.on_pause()
    requests.watch(counting)
    return Client(broker, counting)


@asynccontextmanager
async def scenarios(folder: str) -> AsyncIterator[Paths]:
    """Start a broker with its data in a folder; give the paths by name."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": f"{folder}/data",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "kafkalite.http.listener": "",
        "kafkalite.metadata.flush": "false",
    }
    # What records cost by themselves is told in docs/performance.md.
    config = load_config(overrides={"kafkalite.validate.records": "false", **settings})
    async with trio.open_nursery() as nursery:
        broker = await nursery.start(Broker(config).run)
        heartbeat = await _prepare(broker)
        client = Client(broker)
        client.serve(_frame(PRODUCE, _produce(PARTITIONS, _batch(1), topic="quiet")))
        one = _frame(PRODUCE, _produce(1, _batch(1)))
        requests = Requests(max_bytes=4 * 1024 * 1024, slow_ms=1_000)
        counting = _counted(broker, requests)
        yield {
            **_codec_paths(),
            **_response_paths(client),
            **_served_paths(client),
            "serve Heartbeat of a group": lambda: client.serve(heartbeat),
            f"serve Produce {TOGETHER} times": lambda: client.serve(one * TOGETHER),
            f"serve Produce {TOGETHER} times, counted and kept": lambda: (
                counting.serve(one * TOGETHER),
                requests.on_pause(),
            ),
        }
        nursery.cancel_scope.cancel()
