"""A connection over an in-memory transport, with handlers of the test's own."""

import logging
from types import SimpleNamespace

import pytest
import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import NO_RESPONSE, CloseConnection, Handler
from kafkalite.deferred import Deferred, InSteps
from kafkalite.network import connection
from kafkalite.network.budget import MemoryBudget
from kafkalite.network.connection import TURN_MAX_MS, Connection
from kafkalite.network.dispatch import Dispatcher
from kafkalite.network.transport import WaitingTransport
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.framing import Framer
from kafkalite.wire.header import decode_response_header, encode_request_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsResponse
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse

MAX_FRAME_BYTES = 1_000_000


class MemoryTransport(WaitingTransport):
    """The client's side as lists: what it sent is put in, what it gets is kept."""

    local_address = ("127.0.0.1", 9092)
    peer_address = ("127.0.0.1", 50000)

    def __init__(self):
        self.send_channel, self.receive_channel = trio.open_memory_channel(100)
        self.sends = []
        self.sent_bytes = 0
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
        self.sent_bytes += len(self.sends[-1])

    async def wait_peer_closed(self):
        await self.peer_closed.wait()

    def close(self):
        self.closed = True


class Harness:
    def __init__(self, handle, *, budget=-1, transport=None):
        self.transport = transport or MemoryTransport()
        self.now_ms = 1234
        self.disconnected = []
        groups = SimpleNamespace(
            on_disconnect=lambda connection, by_client: self.disconnected.append(connection)
        )
        clock = SimpleNamespace(
            wall_ms=lambda: self.now_ms, real_monotonic_ms=lambda: self.now_ms - 1_000
        )
        self.context = RequestContext(
            services=SimpleNamespace(coordinators=groups, clock=clock),
            connection_id=5,
            listener="PLAINTEXT",
            local_address=self.transport.local_address,
            peer_address=self.transport.peer_address,
        )
        self.seen = []
        self.sends = getattr(self.transport, "sends", None)
        self.budget = MemoryBudget(budget)
        handlers = (
            Handler(HEARTBEAT, lambda r, c: handle(self, r), self.refuse),
            Handler(API_VERSIONS, self.versions, self.refuse_versions),
        )
        self.connection = Connection(
            self.transport,
            Dispatcher(handlers),
            self.context,
            framer=Framer(MAX_FRAME_BYTES),
            budget=self.budget,
        )

    def versions(self, request, context):
        self.seen.append("versions")
        return ApiVersionsResponse()

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
        data = b"".join(self.sends)
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
    """Rule 9."""

    def handle(harness, request):
        harness.seen.append((request.group_id, trio.current_time()))

        async def wait():
            await trio.sleep(3)
            return HeartbeatResponse(error_code=7)

        return Deferred(wait) if request.group_id == "slow" else HeartbeatResponse()

    harness = Harness(handle)
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

    def handle(harness, request):
        async def wait():
            try:
                await trio.sleep_forever()
            finally:
                cancelled.set()

        return Deferred(wait)

    harness = Harness(handle)
    harness.transport.put(harness.heartbeat("g"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.sleep(1)
        harness.transport.put_eof()
    assert cancelled.is_set()
    assert harness.disconnected == [5]


async def test_what_is_made_in_steps_is_answered_in_its_order():
    async def wait():
        await trio.lowlevel.checkpoint()
        return HeartbeatResponse(throttle_time_ms=7)

    def handle(harness, request):
        return InSteps(wait) if request.group_id == "large" else HeartbeatResponse()

    harness = Harness(handle)
    harness.transport.put(
        harness.heartbeat("large", correlation_id=1) + harness.heartbeat("b", correlation_id=2)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.testing.wait_all_tasks_blocked()
        harness.transport.put_eof()
    assert [number for number, _ in harness.answers()] == [1, 2]


async def test_refusal_is_answered_and_the_connection_goes_on():
    def handle(harness, request):
        if request.group_id == "bad":
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "no")
        return HeartbeatResponse()

    harness = Harness(handle)
    harness.transport.put(
        harness.heartbeat("bad", correlation_id=1) + harness.heartbeat("g", correlation_id=2)
    )
    harness.transport.put_eof()
    await harness.connection.run()
    assert harness.answers() == [(1, ErrorCode.INVALID_GROUP_ID), (2, 0)]


async def test_refusal_after_a_wait_is_answered():
    def handle(harness, request):
        async def wait():
            await trio.lowlevel.checkpoint()
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

        return Deferred(wait)

    harness = Harness(handle)
    harness.transport.put(harness.heartbeat("g"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.testing.wait_all_tasks_blocked()
        harness.transport.put_eof()
    assert harness.answers() == [(1, ErrorCode.NOT_COORDINATOR)]


async def test_unexpected_error_is_answered_as_such_and_logged(caplog):
    def handle(harness, request):
        raise ZeroDivisionError

    harness = Harness(handle)
    harness.transport.put(harness.heartbeat("g"))
    harness.transport.put_eof()
    await harness.connection.run()
    assert harness.answers() == [(1, ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert "ZeroDivisionError" in caplog.text


async def test_broken_invariant_gets_out():
    def handle(harness, request):
        raise AssertionError("state is wrong")

    harness = Harness(handle)
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
    """Rules 1 and 4: no answer, and a log line that names peer, API and version."""
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
    """Rule 5, KIP-511."""
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
    """Rule 12."""
    harness = Harness(lambda harness, request: NO_RESPONSE)
    harness.transport.put(harness.heartbeat("g"))
    harness.transport.put_eof()
    await harness.connection.run()
    assert harness.transport.sends == []


async def test_handler_may_close_the_connection():
    """Rule 12: the only error an acks=0 producer can be told."""

    def handle(harness, request):
        raise CloseConnection("so it is")

    harness = Harness(handle)
    harness.transport.put(harness.heartbeat("g"))
    await harness.connection.run()
    assert harness.transport.closed
    assert harness.transport.sends == []


async def test_large_frame_waits_for_its_share_of_memory(autojump_clock):
    harness = Harness(accept, budget=100_000)
    await harness.budget.reserve(100_000)
    big = (500_000).to_bytes(4, "big") + bytes(500_000)
    harness.transport.put(big[:100_000])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.sleep(1)
        assert harness.budget.used_bytes == 100_000
        harness.budget.release(100_000)
        await trio.sleep(1)
        assert harness.budget.used_bytes == 500_000
        harness.transport.put(big[100_000:])
        await trio.sleep(1)
    assert harness.budget.used_bytes == 0


@pytest.mark.parametrize("ends", ["bad frame", "handler"])
async def test_what_was_asked_before_a_connection_is_closed_is_answered(ends):
    """Rule 9: answers leave in the order of requests, whatever comes after them."""

    def handle(harness, request):
        if request.group_id == "last":
            raise CloseConnection("so it is")
        return HeartbeatResponse()

    harness = Harness(handle)
    last = b"\xff\xff\xff\xff" if ends == "bad frame" else harness.heartbeat("last")
    harness.transport.put(harness.heartbeat("g", correlation_id=3) + last)
    await harness.connection.run()
    assert harness.answers() == [(3, 0)]
    assert harness.transport.closed


async def test_answer_that_does_not_fit_its_version_closes_the_connection_with_one_line(caplog):
    """A name that is echoed may be longer in UTF-8 than the bytes that it was read from."""
    harness = Harness(lambda harness, request: HeartbeatResponse(error_code=1 << 20))
    harness.transport.put(harness.heartbeat("g"))
    with caplog.at_level(logging.WARNING):
        await harness.connection.run()
    assert harness.transport.sends == []
    (record,) = caplog.records
    assert "HEARTBEAT v4" in record.message
    assert "127.0.0.1:50000" in record.message
    assert record.exc_info is None


async def test_others_have_their_turn_between_requests_that_came_together():
    """Goal: no client keeps all others waiting by sending many requests in one go."""
    others_turn = []

    def handle(harness, request):
        harness.now_ms += TURN_MAX_MS
        harness.seen.append(len(others_turn))
        return HeartbeatResponse()

    async def other():
        while True:
            others_turn.append(None)
            await trio.lowlevel.checkpoint()

    harness = Harness(handle)
    harness.transport.put(b"".join(harness.heartbeat("g", correlation_id=i) for i in range(5)))
    harness.transport.put_eof()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await harness.connection.run()
        nursery.cancel_scope.cancel()
    assert sorted(set(harness.seen)) == harness.seen
    assert harness.answers() == [(i, 0) for i in range(5)]


async def test_bytes_of_a_large_frame_are_counted_before_they_come():
    """`queued.max.request.bytes`: what is announced will be sent, and then there is no way back."""
    harness = Harness(accept, budget=100_000)
    harness.transport.put((900_000).to_bytes(4, "big") + bytes(100))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.connection.run)
        await trio.testing.wait_all_tasks_blocked()
        assert harness.budget.used_bytes == 900_000
        nursery.cancel_scope.cancel()
    assert harness.budget.used_bytes == 0


class TestCancellation:
    """Each await of a connection, cancelled: it is closed, and nothing is left of it."""

    @staticmethod
    async def run_and_cancel(harness):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.connection.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert harness.transport.closed
        assert harness.disconnected == [5]
        assert harness.budget.used_bytes == 0

    async def test_while_it_waits_for_bytes(self):
        harness = Harness(accept)
        harness.transport.put(harness.heartbeat("g"))
        await self.run_and_cancel(harness)
        assert harness.answers() == [(1, 0)]

    async def test_while_it_waits_for_memory(self):
        harness = Harness(accept, budget=1)
        await harness.budget.reserve(1)
        harness.transport.put((900_000).to_bytes(4, "big") + bytes(100))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.connection.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert harness.transport.closed
        assert harness.budget.used_bytes == 1

    async def test_while_it_sends(self):
        async def send(chunks):
            await trio.sleep_forever()

        harness = Harness(accept)
        harness.transport.send = send
        harness.transport.put(harness.heartbeat("g"))
        await self.run_and_cancel(harness)
        assert harness.seen == ["g"]

    async def test_while_a_request_waits(self):
        left = []

        def handle(harness, request):
            async def wait():
                try:
                    await trio.sleep_forever()
                finally:
                    left.append(request.group_id)

            return Deferred(wait)

        harness = Harness(handle)
        harness.transport.put(harness.heartbeat("g"))
        await self.run_and_cancel(harness)
        assert left == ["g"]
        assert harness.transport.sends == []

    async def test_between_requests_that_came_together(self):
        def handle(harness, request):
            harness.seen.append(request.group_id)
            harness.now_ms += TURN_MAX_MS
            scope.cancel()
            return HeartbeatResponse()

        harness = Harness(handle)
        harness.transport.send = harness.transport.sends.append
        harness.transport.put(harness.heartbeat("a") + harness.heartbeat("b"))
        with trio.CancelScope() as scope:
            await harness.connection.run()
        assert harness.seen == ["a"]
        assert harness.transport.closed


async def test_broken_invariant_in_a_wait_gets_out():
    def handle(harness, request):
        async def wait():
            await trio.lowlevel.checkpoint()
            raise AssertionError("state is wrong")

        return Deferred(wait)

    harness = Harness(handle)
    harness.transport.put(harness.heartbeat("g"))
    with pytest.raises(AssertionError, match="state is wrong"):
        await harness.connection.run()
    assert harness.transport.closed


async def test_unexpected_error_of_the_connection_is_logged_and_closes_it(caplog):
    harness = Harness(lambda harness, request: object())  # no response, so it cannot be encoded
    harness.transport.put(harness.heartbeat("g"))
    await harness.connection.run()
    assert "AttributeError" in caplog.text
    assert harness.transport.closed


async def test_lost_connection_is_no_news(caplog):
    async def send(chunks):
        await trio.lowlevel.checkpoint()
        raise BrokenPipeError

    harness = Harness(accept)
    harness.transport.send = send
    harness.transport.put(harness.heartbeat("g"))
    with caplog.at_level(logging.INFO):
        await harness.connection.run()
    assert caplog.records == []
    assert harness.transport.closed


async def test_answers_are_sent_when_many_have_gathered(monkeypatch):
    """What waits to be sent is bounded, however much is asked at once."""
    monkeypatch.setattr(connection, "OUTPUT_MAX_BYTES", 40)
    harness = Harness(accept)
    harness.transport.put(b"".join(harness.heartbeat("g") for _ in range(10)))
    harness.transport.put_eof()
    await harness.connection.run()
    assert [len(data) for data in harness.transport.sends] == [48, 48, 48, 16]
    assert len(harness.answers()) == 10


async def test_reader_that_is_slow_is_not_idle():
    """Rule 15: bytes that leave are signs of life as well as bytes that come."""
    harness = Harness(accept)
    assert harness.connection.active_ms(10_000) == harness.now_ms - 1_000
    harness.transport.sent_bytes += 1
    assert harness.connection.active_ms(11_000) == 11_000
    assert harness.connection.active_ms(12_000) == 11_000
