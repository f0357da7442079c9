"""A connection over an in-memory transport, with handlers of the test's own."""

import logging
from types import SimpleNamespace

import pytest
import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import NO_RESPONSE, CloseConnection, Handler, Pending
from kafkalite.server.budget import MemoryBudget
from kafkalite.server.connection import Connection
from kafkalite.server.dispatch import Dispatcher
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.framing import Framer
from kafkalite.wire.header import decode_response_header, encode_request_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsResponse
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse

MAX_FRAME_BYTES = 1_000_000


class MemoryTransport:
    """The client's side as lists: what it sent is put in, what it gets is kept."""

    local_address = ("127.0.0.1", 9092)
    peer_address = ("127.0.0.1", 50000)

    def __init__(self):
        self.send_channel, self.receive_channel = trio.open_memory_channel(100)
        self.sends = []
        self.unread = b""
        self.peer_closed = trio.Event()
        self.closed = False

    def put(self, data):
        self.send_channel.send_nowait(data)

    def put_eof(self):
        self.send_channel.close()
        self.peer_closed.set()

    async def receive_into(self, buffer):
        if not self.unread:
            try:
                self.unread = await self.receive_channel.receive()
            except trio.EndOfChannel:
                return 0
        count = min(len(buffer), len(self.unread))
        buffer[:count], self.unread = self.unread[:count], self.unread[count:]
        return count

    async def send(self, chunks):
        await trio.lowlevel.checkpoint()
        self.sends.append(b"".join(map(bytes, chunks)))

    async def wait_peer_closed(self):
        await self.peer_closed.wait()
        return True

    def close(self):
        self.closed = True


class Harness:
    def __init__(self, admit, *, budget=-1):
        self.transport = MemoryTransport()
        self.disconnected = []
        groups = SimpleNamespace(on_disconnect=self.disconnected.append)
        clock = SimpleNamespace(wall_ms=lambda: 1234)
        self.context = RequestContext(
            services=SimpleNamespace(groups=groups, clock=clock),
            connection_id=5,
            listener="PLAINTEXT",
            local_address=self.transport.local_address,
            peer_address=self.transport.peer_address,
        )
        self.seen = []
        self.budget = MemoryBudget(budget)
        handlers = (
            Handler(HEARTBEAT, lambda r, c: admit(self, r), self.refuse),
            Handler(API_VERSIONS, lambda r, c: ApiVersionsResponse(), self.refuse_versions),
        )
        self.connection = Connection(
            self.transport,
            Dispatcher(handlers),
            self.context,
            framer=Framer(MAX_FRAME_BYTES),
            budget=self.budget,
        )

    @staticmethod
    def refuse(request, error, context):
        return HeartbeatResponse(error_code=error.code)

    @staticmethod
    def refuse_versions(request, error, context):
        return ApiVersionsResponse(error_code=error.code)

    def heartbeat(self, group, *, correlation_id=1, version=4, api=HEARTBEAT):
        header = encode_request_header(api, version, correlation_id=correlation_id, client_id="me")
        body = b"".join(HEARTBEAT.encode_request(version, HeartbeatRequest(group_id=group)))
        frame = header + body
        return len(frame).to_bytes(4, "big") + frame

    def answers(self):
        """(correlation id, error code) of each Heartbeat v4 response."""
        data = b"".join(self.transport.sends)
        found = []
        while data:
            size = int.from_bytes(data[:4], "big")
            frame, data = data[4 : 4 + size], data[4 + size :]
            correlation_id, position = decode_response_header(HEARTBEAT, 4, frame)
            found.append((correlation_id, HEARTBEAT.decode_response(4, frame, position).error_code))
        return found


def accept(harness, request):
    harness.seen.append(request.group_id)
    return HeartbeatResponse()


async def test_requests_that_came_together_are_answered_together_in_order():
    harness = Harness(accept)
    harness.transport.put(b"".join(harness.heartbeat("g", correlation_id=i) for i in range(5)))
    harness.transport.put_eof()
    await harness.connection.run()
    assert len(harness.transport.sends) == 1
    assert harness.answers() == [(i, 0) for i in range(5)]
    assert harness.transport.closed
    assert harness.disconnected == [5]


async def test_next_request_waits_for_the_answer_to_the_one_before(autojump_clock):
    """Rule A9."""

    def admit(harness, request):
        harness.seen.append((request.group_id, trio.current_time()))

        async def wait():
            await trio.sleep(3)
            return HeartbeatResponse(error_code=7)

        return Pending(wait) if request.group_id == "slow" else HeartbeatResponse()

    harness = Harness(admit)
    start = trio.current_time()
    harness.transport.put(
        harness.heartbeat("slow", correlation_id=1) + harness.heartbeat("b", correlation_id=2)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.sleep(10)
        harness.transport.put_eof()
    assert harness.seen == [("slow", start), ("b", start + 3)]
    assert harness.answers() == [(1, 7), (2, 0)]


async def test_wait_ends_when_the_client_goes(autojump_clock):
    cancelled = trio.Event()

    def admit(harness, request):
        async def wait():
            try:
                await trio.sleep_forever()
            finally:
                cancelled.set()

        return Pending(wait)

    harness = Harness(admit)
    harness.transport.put(harness.heartbeat("g"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.sleep(1)
        harness.transport.put_eof()
    assert cancelled.is_set()
    assert harness.disconnected == [5]


async def test_refusal_is_answered_and_the_connection_goes_on():
    def admit(harness, request):
        if request.group_id == "bad":
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "no")
        return HeartbeatResponse()

    harness = Harness(admit)
    harness.transport.put(
        harness.heartbeat("bad", correlation_id=1) + harness.heartbeat("g", correlation_id=2)
    )
    harness.transport.put_eof()
    await harness.connection.run()
    assert harness.answers() == [(1, ErrorCode.INVALID_GROUP_ID), (2, 0)]


async def test_refusal_after_a_wait_is_answered():
    def admit(harness, request):
        async def wait():
            await trio.lowlevel.checkpoint()
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

        return Pending(wait)

    harness = Harness(admit)
    harness.transport.put(harness.heartbeat("g"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.testing.wait_all_tasks_blocked()
        harness.transport.put_eof()
    assert harness.answers() == [(1, ErrorCode.NOT_COORDINATOR)]


async def test_unexpected_error_is_answered_as_such_and_logged(caplog):
    def admit(harness, request):
        raise ZeroDivisionError

    harness = Harness(admit)
    harness.transport.put(harness.heartbeat("g"))
    harness.transport.put_eof()
    await harness.connection.run()
    assert harness.answers() == [(1, ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert "ZeroDivisionError" in caplog.text


async def test_broken_invariant_gets_out():
    def admit(harness, request):
        raise AssertionError("state is wrong")

    harness = Harness(admit)
    harness.transport.put(harness.heartbeat("g"))
    with pytest.raises(AssertionError, match="state is wrong"):
        await harness.connection.run()
    assert harness.transport.closed


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"\xff\xff\xff\xff", "-1 bytes", id="negative size"),
        pytest.param((MAX_FRAME_BYTES + 1).to_bytes(4, "big"), "1000001", id="too large"),
        pytest.param(b"\0\0\0\x03abc", "cut short", id="torn header"),
        pytest.param(b"\0\0\0\x0a\x7f\0\0\0\0\0\0\x01\xff\xff", "32512", id="unknown key"),
        pytest.param(b"\0\0\0\x0a\0\0\0\x03\0\0\0\x01\xff\xff", "PRODUCE v3", id="API not served"),
        pytest.param(
            b"\0\0\0\x0b\0\x0c\0\x63\0\0\0\x01\xff\xff\0", "HEARTBEAT v99", id="unknown version"
        ),
        pytest.param(
            b"\0\0\0\x0e\0\x0c\0\0\0\0\0\x01\xff\xff\x7f\xff\0\0", "HEARTBEAT v0", id="torn body"
        ),
    ],
)
async def test_what_is_no_request_closes_its_connection_with_one_line(data, words, caplog):
    """Rules A1 and A4: no answer, and a log line that names peer, API and version."""
    harness = Harness(accept)
    harness.transport.put(harness.heartbeat("g") + data)
    with caplog.at_level(logging.WARNING):
        await harness.connection.run()
    assert harness.transport.closed
    assert len(caplog.records) == 1
    assert words in caplog.text
    assert "127.0.0.1:50000" in caplog.text
    assert harness.seen == ["g"]


async def test_too_new_api_versions_is_answered_in_version_zero():
    """Rule A5, KIP-511."""
    harness = Harness(accept)
    header = encode_request_header(API_VERSIONS, 4, correlation_id=9, client_id="x")
    frame = header[:2] + b"\x00\x63" + header[4:] + b"unparsable"
    harness.transport.put(len(frame).to_bytes(4, "big") + frame)
    harness.transport.put_eof()
    await harness.connection.run()
    (sent,) = harness.transport.sends
    assert int.from_bytes(sent[4:8], "big") == 9
    assert int.from_bytes(sent[8:10], "big") == ErrorCode.UNSUPPORTED_VERSION


async def test_no_response_sends_nothing():
    """Rule A12."""
    harness = Harness(lambda harness, request: NO_RESPONSE)
    harness.transport.put(harness.heartbeat("g"))
    harness.transport.put_eof()
    await harness.connection.run()
    assert harness.transport.sends == []


async def test_handler_may_close_the_connection():
    """Rule A12: the only error an acks=0 producer can be told."""

    def admit(harness, request):
        raise CloseConnection("so it is")

    harness = Harness(admit)
    harness.transport.put(harness.heartbeat("g"))
    await harness.connection.run()
    assert harness.transport.closed
    assert harness.transport.sends == []


async def test_large_frame_waits_for_its_share_of_memory(autojump_clock):
    harness = Harness(accept, budget=100_000)
    await harness.budget.reserve(90_000)
    big = (500_000).to_bytes(4, "big") + bytes(500_000)
    harness.transport.put(big[:100_000])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.sleep(1)
        assert harness.budget.used_bytes == 90_000
        harness.budget.release(90_000)
        await trio.sleep(1)
        assert harness.budget.used_bytes == 500_000
        harness.transport.put(big[100_000:])
        await trio.sleep(1)
    assert harness.budget.used_bytes == 0
