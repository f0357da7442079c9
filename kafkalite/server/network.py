"""The network as brokers see it: addresses to listen on, and connections to other brokers.

Everything that a broker sends or receives goes through a `Network`, so that a simulation can put
something in memory in its place. Pieces of files are sent with `FileRegion.read` where there is no
socket to send them from.
"""

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import trio

from kafkalite.server.poller import HAS_EPOLL, Poller
from kafkalite.server.transport import SocketTransport, Transport

FREE_PORT_TRIALS = 20
"""A port that is free on one address is rarely taken on another."""

Serve = Callable[[Transport], Awaitable[object]]


class Acceptor(Protocol):
    """An address that is listened on.

    Attributes:
        port: the one that was taken, where any free one was asked for.
    """

    port: int

    async def run(
        self, serve: Serve, *, task_status: "trio.TaskStatus[Any]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Call `serve` in a task of its own for each connection, until cancelled; then close.

        `serve` closes the transport it was given.
        """
        ...

    def close(self) -> None:
        """Stop listening; not needed after `run`."""
        ...


class Network(Protocol):
    """Where connections come from and go to."""

    async def listen(self, host: str, port: int) -> Acceptor:
        """Take an address; an empty host means all interfaces, port 0 any free port.

        Raises:
            OSError: the address is taken, or is none of this machine's.
        """
        ...

    async def connect(self, host: str, port: int) -> Transport:
        """Return a connection to an address; the caller limits how long that may take.

        Raises:
            OSError: nobody answers there.
        """
        ...


class TcpNetwork:
    """TCP, with the kernel's own sockets."""

    async def listen(self, host: str, port: int) -> Acceptor:
        """Take all addresses of the host, all with the same port.

        Raises:
            OSError: it cannot be had.
        """
        interface = "127.0.0.1" if host == "localhost" else host or None
        for _ in range(FREE_PORT_TRIALS):
            bound = await trio.open_tcp_listeners(port, host=interface)
            ports = {one.socket.getsockname()[1] for one in bound}
            if len(ports) == 1:
                return TcpAcceptor(bound)
            # Any free port was asked for, and each address has another one.
            for one in bound:
                one.socket.close()
            with suppress(OSError):
                return TcpAcceptor(await trio.open_tcp_listeners(ports.pop(), host=interface))
        raise OSError("no port is free on all addresses")

    async def connect(self, host: str, port: int) -> Transport:
        """Return a connection that notices in time when the other machine is gone.

        Raises:
            OSError: nobody answers there.
        """
        stream = await trio.open_tcp_stream(host, port)  # without Nagle's delay
        with suppress(OSError):
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock = _taken_over(stream)
        try:
            return SocketTransport(sock)
        except OSError:
            sock.close()
            raise


class TcpAcceptor:
    """The sockets of one listener, all with the same port."""

    def __init__(self, listeners: list[trio.SocketListener]) -> None:
        self._listeners = listeners
        self.port: int = listeners[0].socket.getsockname()[1]

    async def run(
        self, serve: Serve, *, task_status: "trio.TaskStatus[Any]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Call `serve` in a task of its own for each connection, until cancelled; then close."""
        poller = Poller() if HAS_EPOLL else None
        accept = partial(_accept, serve, poller)
        try:
            async with trio.open_nursery() as nursery:
                if poller is not None:
                    nursery.start_soon(poller.run)
                await trio.serve_listeners(accept, self._listeners, task_status=task_status)
        finally:
            if poller is not None:
                poller.close()

    def close(self) -> None:
        """Stop listening; not needed after `run`."""
        for one in self._listeners:
            one.socket.close()


async def _accept(serve: Serve, poller: Poller | None, stream: trio.SocketStream) -> None:
    sock = _taken_over(stream)
    try:
        transport = SocketTransport(sock) if poller is None else poller.add(sock)
    except OSError:  # gone before it was looked at
        sock.close()
        return
    await serve(transport)


def _taken_over(stream: trio.SocketStream) -> socket.socket:
    """Return the socket of a stream, which is of no more use itself."""
    theirs = stream.socket
    return socket.socket(theirs.family, theirs.type, theirs.proto, theirs.detach())
