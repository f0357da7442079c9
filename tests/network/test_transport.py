"""A client's byte stream over real sockets: what is sent, how, and what is left when it fails."""

import errno
import os
import socket
from itertools import pairwise

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.log.disk import OsDisk
from kafkalite.log.region import EMPTY_REGION, FileRegion
from kafkalite.network.transport import (
    GATHER_MAX_BYTES,
    MSG_MORE,
    PEER_CHECK_S,
    POLLRDHUP,
    SENDFILE_MIN_BYTES,
    SocketTransport,
)

LARGE = 4 << 20
"""More than the buffers of two sockets hold."""


@pytest.fixture
def pair():
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    listener.close()
    server.setblocking(False)
    client.setblocking(False)
    yield SocketTransport(server), trio.socket.from_stdlib_socket(client)
    server.close()
    client.close()


@pytest.fixture
def transport(pair):
    return pair[0]


@pytest.fixture
def client(pair):
    return pair[1]


@pytest.fixture
def file(tmp_path):
    path = str(tmp_path / "file")
    opened = OsDisk().open(path, create=True)
    opened.append(os.urandom(LARGE))
    yield opened
    opened.close()


async def receive_exactly(client, count):
    data = bytearray()
    while len(data) < count:
        more = await client.recv(count - len(data))
        assert more
        data += more
    return bytes(data)


async def sent_and_received(transport, client, chunks):
    expected = b"".join(c.read() if isinstance(c, FileRegion) else bytes(c) for c in chunks)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send, chunks)
        received = await receive_exactly(client, len(expected))
    assert transport.sent_bytes == len(expected)
    return expected == received


def test_as_much_may_wait_unsent_as_the_system_allows():
    # With the 16 KiB that trio sets, each large region stalled for 200 ms.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    with client, server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 2**14)
        SocketTransport(server)
        assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == 0


def test_addresses_are_those_of_both_ends(transport, client):
    assert transport.local_address == client.getpeername()
    assert transport.peer_address == client.getsockname()


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([5], id="one"),
        pytest.param([5, 0, 7], id="small ones"),
        pytest.param([LARGE], id="more than the socket holds"),
        pytest.param([10, LARGE, 10], id="large between small"),
        pytest.param([GATHER_MAX_BYTES - 1, 1, 1], id="just full"),
    ],
)
async def test_chunks_of_bytes_arrive_in_order(transport, client, sizes):
    chunks = [os.urandom(size) for size in sizes]
    assert await sent_and_received(transport, client, chunks)


async def test_regions_small_and_large_arrive_in_their_places(transport, client, file):
    small, large = SENDFILE_MIN_BYTES - 1, SENDFILE_MIN_BYTES
    chunks = [
        b"a",
        FileRegion(file, 100, small),
        FileRegion(file, 7, large),
        b"b",
        EMPTY_REGION,
        FileRegion(file, 0, LARGE),
        FileRegion(file, 5, 3),
    ]
    assert await sent_and_received(transport, client, chunks)


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_last_bytes_are_not_held_back(transport, count):
    """MSG_MORE at the end of an answer would delay it by 200 ms."""
    flags_seen = []

    class Socket:
        def send(self, data, flags):
            flags_seen.append(flags)
            return len(data)

    transport._socket = Socket()
    await transport.send([bytes(GATHER_MAX_BYTES)] * count)
    assert flags_seen == [MSG_MORE] * (count - 1) + [0]


async def test_slow_reader_holds_little_memory(transport, client, file):
    """Goal: hundreds of small regions are read as they leave, not all before the first one."""
    reads = []

    class CountedFile:
        def pread(self, size, position):
            reads.append(size)
            return file.pread(size, position)

    regions = [FileRegion(CountedFile(), 0, 60_000) for _ in range(300)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send, regions)
        await wait_all_tasks_blocked()
        assert 0 < sum(reads) - transport.sent_bytes <= 2 * GATHER_MAX_BYTES
        assert len(reads) < len(regions)
        await receive_exactly(client, 300 * 60_000)
    assert len(reads) == len(regions)


async def test_sending_is_counted_while_it_goes_on(transport, client):
    """The reader that takes some of it is not idle."""
    counts = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send, [bytes(LARGE)])
        left = LARGE
        while left:
            await wait_all_tasks_blocked()
            counts.append(transport.sent_bytes)
            left -= len(await client.recv(left))
    assert any(before < after for before, after in pairwise(counts))


@pytest.mark.parametrize("size", [1_000, LARGE])
async def test_region_that_was_cut_off_is_an_error(transport, client, file, size):
    """A truncation took the bytes: half an answer went out, and the connection is of no use."""
    region = FileRegion(file, LARGE - size, size)
    file.truncate(LARGE - 10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive_exactly, client, size - 10)
        with pytest.raises(OSError, match=r"10 bytes early|were promised"):
            await transport.send([b"head", region])
        nursery.cancel_scope.cancel()


async def test_log_is_told_of_what_its_disk_cannot_send(transport, file, monkeypatch):
    told = []

    def sendfile(*_):
        raise OSError(errno.EIO, "bad sector")

    monkeypatch.setattr(os, "sendfile", sendfile)
    with pytest.raises(OSError, match="bad sector") as raised:
        await transport.send([FileRegion(file, 0, LARGE, on_error=told.append)])
    assert told == [raised.value]


async def test_region_of_a_deleted_file_is_sent_whole(transport, client, file, tmp_path):
    region = FileRegion(file, 0, LARGE)
    os.unlink(tmp_path / "file")
    assert await sent_and_received(transport, client, [region])


@pytest.mark.parametrize("kind", ["bytes", "region"])
async def test_reader_that_is_gone_is_an_error(transport, client, file, kind):
    client.close()
    with pytest.raises(ConnectionError):
        await transport.send([bytes(LARGE)] if kind == "bytes" else [FileRegion(file, 0, LARGE)])


async def test_bytes_are_received_as_they_come_and_then_the_end(transport, client):
    buffer = memoryview(bytearray(4))
    await client.send(b"abcdef")
    assert await transport.receive_into(buffer) == 4
    assert bytes(buffer) == b"abcd"
    assert await transport.receive_into(buffer) == 2
    client.close()
    assert await transport.receive_into(buffer) == 0


async def test_receiving_waits_where_there_was_a_false_alarm(transport, client, monkeypatch):
    """A socket may be called readable and have nothing: checksums fail, others were faster."""
    real = transport._socket
    alarms = iter([BlockingIOError, InterruptedError])

    class Flaky:
        def fileno(self):
            return real.fileno()

        def recv_into(self, buffer):
            for error in alarms:
                raise error
            return real.recv_into(buffer)

    transport._socket = Flaky()
    await client.send(b"x")
    assert await transport.receive_into(memoryview(bytearray(4))) == 1
    transport._socket = real


class TestWaitingForThePeerToGo:
    @pytest.fixture
    async def gone(self, transport, nursery):
        """An event that is set when the transport says that the peer has gone."""
        event = trio.Event()

        async def watch():
            await transport.wait_peer_closed()
            event.set()

        nursery.start_soon(watch)
        await wait_all_tasks_blocked()
        return event

    async def test_peer_that_goes_is_noticed(self, client, gone):
        assert not gone.is_set()
        client.close()
        await gone.wait()

    async def test_peer_that_sends_more_is_there(self, transport, client, gone, autojump_clock):
        await client.send(b"x")
        await trio.sleep(10 * PEER_CHECK_S)
        assert not gone.is_set()
        assert transport._socket.recv(10) == b"x"

    @pytest.mark.skipif(not POLLRDHUP, reason="POLLRDHUP is Linux's")
    async def test_peer_that_sent_more_and_goes_is_noticed(self, client, gone, autojump_clock):
        """Nobody reads on while a request waits, so nobody comes to the end of the stream."""
        await client.send(b"more")
        await trio.sleep(2 * PEER_CHECK_S)
        client.close()
        with trio.fail_after(2 * PEER_CHECK_S):
            await gone.wait()

    @pytest.mark.parametrize("more", [BlockingIOError, InterruptedError])
    async def test_false_alarms_are_no_end(self, transport, client, more):
        real = transport._socket
        outcomes = iter([more, ConnectionResetError])

        class Socket:
            def fileno(self):
                return real.fileno()

            def recv(self, count, flags):
                raise next(outcomes)

        transport._socket = Socket()
        await client.send(b"x")
        await transport.wait_peer_closed()
        assert next(outcomes, None) is None
        transport._socket = real


async def test_closing_ends_what_waits(transport):
    async def wait():
        with pytest.raises(trio.ClosedResourceError):
            await transport.receive_into(memoryview(bytearray(4)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        transport.close()


class TestCancellation:
    """Each await, cancelled: the transport can still be closed, and what was counted is true."""

    @pytest.mark.parametrize("kind", ["bytes", "region"])
    async def test_while_sending(self, transport, client, file, kind):
        chunks = [b"head", bytes(LARGE) if kind == "bytes" else FileRegion(file, 0, LARGE)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.send, chunks)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        transport.close()
        received = 0
        while more := await client.recv(1 << 20):
            received += len(more)
        assert received == transport.sent_bytes < LARGE

    async def test_between_gathered_chunks(self, transport, client):
        chunks = [bytes(GATHER_MAX_BYTES)] * 40
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.send, chunks)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert transport.sent_bytes < 40 * GATHER_MAX_BYTES

    @pytest.mark.parametrize("what", ["receive_into", "wait_peer_closed"])
    async def test_while_waiting_for_the_peer(self, transport, client, what):
        arguments = [memoryview(bytearray(4))] if what == "receive_into" else []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(getattr(transport, what), *arguments)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await client.send(b"y")
        buffer = memoryview(bytearray(4))
        assert await transport.receive_into(buffer) == 1
