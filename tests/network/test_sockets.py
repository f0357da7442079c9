"""Real sockets behind the interface that simulations have another form of."""

import socket

import pytest
import trio

from kafkalite.network.sockets import SocketSettings, TcpNetwork, _accept
from kafkalite.network.transport import SocketTransport


async def echo(transport):
    buffer = memoryview(bytearray(100))
    try:
        while count := await transport.receive_into(buffer):
            await transport.send([bytes(buffer[:count])])
    finally:
        transport.close()


async def test_what_connects_reaches_what_listens():
    network = TcpNetwork()
    acceptor = await network.listen("localhost", 0)
    async with trio.open_nursery() as nursery:
        await nursery.start(acceptor.run, echo)
        client = await network.connect("127.0.0.1", acceptor.port)
        assert client.peer_address == ("127.0.0.1", acceptor.port)
        await client.send([b"so ", bytearray(b"far")])
        buffer = memoryview(bytearray(100))
        assert await client.receive_into(buffer) == 6
        assert buffer[:6] == b"so far"
        client.close()
        nursery.cancel_scope.cancel()


async def test_connection_sends_at_once_and_notices_that_the_other_machine_is_gone():
    acceptor = await TcpNetwork().listen("127.0.0.1", 0)
    client = await TcpNetwork().connect("127.0.0.1", acceptor.port)
    assert client._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert client._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    client.close()
    acceptor.close()


async def test_nobody_answers_where_nobody_listens():
    acceptor = await TcpNetwork().listen("127.0.0.1", 0)
    acceptor.close()
    with pytest.raises(OSError, match=r"refused|all attempts"):
        await TcpNetwork().connect("127.0.0.1", acceptor.port)


async def test_client_that_is_gone_before_it_is_looked_at_is_no_trouble():
    """Not connected at all: it has no peer, as one whose peer has reset it."""
    served = []
    await _accept(served.append, SocketTransport, socket.socket())
    assert served == []


async def test_sockets_are_as_the_settings_want_them():
    settings = SocketSettings(send_buffer_bytes=20_000, receive_buffer_bytes=30_000, backlog=7)
    acceptor = await TcpNetwork(settings).listen("127.0.0.1", 0)
    sizes = []

    async def serve(transport):
        sizes.extend(
            transport._socket.getsockopt(socket.SOL_SOCKET, option)
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)
        )
        transport.close()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(acceptor.run, serve)
        async with await trio.open_tcp_stream("127.0.0.1", acceptor.port) as stream:
            await stream.receive_some()
    # Linux doubles them, for what it has to keep of each packet.
    assert sizes in ([40_000, 60_000], [20_000, 30_000])
