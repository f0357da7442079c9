"""Requests behind one that waits: which are admitted meanwhile, and when they are answered."""

import math
import os

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.api.handler import CloseConnection
from kafkalite.deferred import Deferred, DelayedOperation
from kafkalite.network.connection import DELAYED_MAX
from kafkalite.network.poller import HAS_EPOLL, Poller
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.heartbeat import HeartbeatResponse
from tests.network.test_connection import Harness
from tests.network.test_poller import looked_after

VERSIONS = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x09\xff\xff"
"""ApiVersions v0, whose answer is not read."""


class Held(DelayedOperation):
    """Has a response once it is released; lets the next one in unless it is made strict."""

    def __init__(self, *, allows_pipelining=True):
        super().__init__(math.inf, allows_pipelining=allows_pipelining)
        self.response = None
        self.error = None
        self.is_closed = False

    def complete(self):
        if self.error is not None:
            raise self.error
        return self.response

    def close(self):
        self.is_closed = True

    def release(self, code=0):
        self.response = HeartbeatResponse(error_code=code)
        self.on_change()


class Line:
    """A connection and its client, in memory or with sockets."""

    def __init__(self, transport=None, client=None, **options):
        self.harness = Harness(self._handle, transport=transport, **options)
        self.held = []
        self.client = client
        if client is not None:
            self.harness.sends = []

    def _handle(self, harness, request):
        name = request.group_id
        harness.seen.append(name)
        if name == "close":
            raise CloseConnection("so it is")
        if name.startswith("release"):
            self.held[int(name[-1])].release()
            return HeartbeatResponse(error_code=7)
        if name == "refused":
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        if name == "task":
            return Deferred(trio.sleep_forever)
        if name in ("held", "strict"):
            self.held.append(Held(allows_pipelining=name == "held"))
            return self.held[-1]
        return HeartbeatResponse()

    async def put(self, *names):
        """Send requests in one piece, with their positions as correlation ids."""
        data = b"".join(
            VERSIONS if name == "versions" else self.harness.heartbeat(name, correlation_id=number)
            for number, name in enumerate(names)
        )
        await self.put_bytes(data)

    async def put_bytes(self, data):
        if self.client is None:
            self.harness.transport.put(data)
        else:
            os.write(self.client.fileno(), data)
        await wait_all_tasks_blocked()

    async def put_eof(self):
        if self.client is None:
            self.harness.transport.put_eof()
        else:
            self.client.close()
        await wait_all_tasks_blocked()

    async def answers(self, count):
        """Wait for so many answers in all, and a while for more; return (correlation id, error)."""
        await wait_all_tasks_blocked()
        if self.client is not None:
            with trio.move_on_after(1 if count else 0.01) as waiting:
                while data := await self.client.recv(1 << 16):
                    self.harness.sends.append(data)
                    if len(self.harness.answers()) >= count:
                        waiting.deadline = trio.current_time() + 0.01
        return self.harness.answers()

    @property
    def seen(self):
        return self.harness.seen


@pytest.fixture(
    params=[
        "memory",
        pytest.param("sockets", marks=pytest.mark.skipif(not HAS_EPOLL, reason="epoll is Linux's")),
    ]
)
async def connect(request, nursery):
    """Makes lines whose connection is served."""
    if request.param == "memory":

        def make(**options):
            line = Line(**options)
            nursery.start_soon(line.harness.connection.run)
            return line

        yield make
        nursery.cancel_scope.cancel()
        return
    poller = Poller()
    nursery.start_soon(poller.run)
    with looked_after(poller) as pair:

        def make(**options):
            client, transport = pair()
            line = Line(transport, client, **options)
            nursery.start_soon(line.harness.connection.run)
            return line

        yield make
        nursery.cancel_scope.cancel()
    poller.close()


async def test_they_are_admitted_and_answered_in_their_order(connect):
    line = connect()
    await line.put("held", "held", "held")
    assert line.seen == ["held"] * 3
    line.held[1].release(11)
    assert await line.answers(0) == []
    line.held[0].release(10)
    assert await line.answers(2) == [(0, 10), (1, 11)]
    line.held[2].release(12)
    assert await line.answers(3) == [(0, 10), (1, 11), (2, 12)]


@pytest.mark.parametrize(
    ("first", "second"), [("strict", "now"), ("task", "now"), ("held", "versions")]
)
async def test_others_wait_in_their_place(connect, first, second):
    """What waits for something else lets nobody in, and a Produce lets in Produces alone."""
    line = connect()
    await line.put(first, second, "last")
    assert line.seen == [first]
    if first == "task":
        return
    line.held[0].release()
    await wait_all_tasks_blocked()
    assert line.seen == [first, second, "last"]


@pytest.mark.parametrize("name", ["now", "refused", "strict", "task"])
async def test_one_that_does_not_wait_for_replicas_is_the_last_to_be_let_in(connect, name):
    line = connect()
    await line.put("held", name, "last")
    assert line.seen == ["held", name]
    line.held[0].release()
    if name in ("strict", "task"):
        assert await line.answers(1) == [(0, 0)]
        return
    code = ErrorCode.INVALID_GROUP_ID if name == "refused" else 0
    assert await line.answers(3) == [(0, 0), (1, code), (2, 0)]


async def test_there_are_not_too_many_of_them(connect):
    line = connect()
    await line.put(*["held"] * (DELAYED_MAX + 3))
    assert len(line.seen) == DELAYED_MAX
    line.held[0].release()
    assert await line.answers(1) == [(0, 0)]
    line.held[1].release()
    assert len(await line.answers(2)) == 2
    assert len(line.seen) > DELAYED_MAX
    for _ in range(2):
        for held in line.held:
            held.release()
        await wait_all_tasks_blocked()
    answers = await line.answers(DELAYED_MAX + 3)
    assert [number for number, _ in answers] == list(range(DELAYED_MAX + 3))


async def test_one_that_completes_that_before_it_is_not_the_last_to_know(connect):
    """Nobody tells: it was not waited for yet."""
    line = connect()
    await line.put("held", "release0")
    assert await line.answers(2) == [(0, 0), (1, 7)]


async def test_nor_is_one_for_which_there_was_no_room_before(connect):
    line = connect()
    await line.put(*["held"] * DELAYED_MAX, "release1")
    line.held[0].release()
    assert await line.answers(2) == [(0, 0), (1, 0)]


@pytest.mark.parametrize("end", ["close", "no frame"])
async def test_end_of_the_connection_waits_for_them(connect, end):
    line = connect()
    if end == "close":
        await line.put("held", "held", "close")
    else:
        frame = line.harness.heartbeat("held", correlation_id=0)
        await line.put_bytes(frame + line.harness.heartbeat("held") + b"\xff\xff\xff\xff")
    assert not line.harness.disconnected
    line.held[0].release()
    line.held[1].release()
    assert await line.answers(2) == [(0, 0), (1, 0)]
    assert line.harness.disconnected


async def test_client_that_goes_leaves_nothing_behind(connect):
    line = connect()
    await line.put("held", "held")
    await line.put_eof()
    assert [held.is_closed for held in line.held] == [True, True]
    assert line.harness.disconnected


async def test_unexpected_error_is_answered_and_nothing_left_behind(connect):
    line = connect()
    await line.put("held", "held")
    line.held[0].error = ZeroDivisionError()
    line.held[0].on_change()
    line.held[1].release()
    assert await line.answers(2) == [(0, ErrorCode.UNKNOWN_SERVER_ERROR), (1, 0)]
    assert line.held[0].is_closed


async def test_large_one_behind_them_waits_for_its_share_of_memory(connect):
    line = connect(budget=100_000)
    await line.harness.budget.reserve(100_000)
    held = [line.harness.heartbeat("held", correlation_id=number) for number in range(2)]
    body = line.harness.heartbeat("x" * 200_000, correlation_id=2)
    await line.put_bytes(b"".join(held) + body[:3_000])
    line.held[0].release()
    assert await line.answers(1) == [(0, 0)]
    line.held[1].release()
    assert await line.answers(2) == [(0, 0), (1, 0)]
    assert line.harness.budget.used_bytes == 100_000
    line.harness.budget.release(100_000)
    await wait_all_tasks_blocked()
    assert line.harness.budget.used_bytes == len(body) - 4


@pytest.mark.skipif(not HAS_EPOLL, reason="epoll is Linux's")
class TestComingOneByOne:
    """With sockets, they need not have come together."""

    @pytest.fixture
    async def line(self, nursery):
        poller = Poller()
        nursery.start_soon(poller.run)
        with looked_after(poller) as pair:
            client, transport = pair()
            line = Line(transport, client)
            nursery.start_soon(line.harness.connection.run)
            yield line
            nursery.cancel_scope.cancel()
        poller.close()

    async def test_they_are_admitted_as_they_come(self, line):
        for count in range(1, 4):
            await line.put("held")
            assert len(line.held) == count
        for held in line.held:
            held.release()
        assert len(await line.answers(3)) == 3
        await line.put("now")
        assert len(await line.answers(4)) == 4

    @pytest.mark.pure  # a method is put in the place of another
    async def test_one_whose_client_does_not_read_is_not_busy(self, line):
        """It may be closed for it."""
        connection = line.harness.connection
        encode = connection._dispatcher.encode
        connection._dispatcher.encode = lambda exchange: [
            bytes(16 << 20) if exchange.header.correlation_id == 0 else encode(exchange)[0]
        ]
        await line.put("strict", "strict")
        assert connection.is_busy
        line.held[0].release()
        await wait_all_tasks_blocked()
        assert line.seen == ["strict", "strict"]
        assert not connection.is_busy

    async def test_those_that_may_not_wait_in_the_socket(self, line):
        await line.put("held")
        await line.put("versions")
        await line.put("held")
        assert line.seen == ["held"]
        line.held[0].release()
        await wait_all_tasks_blocked()
        assert line.seen == ["held", "versions", "held"]
