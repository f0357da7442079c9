"""The network as brokers see it: addresses to listen on, and connections to other brokers.

Everything that a broker sends or receives goes through a `Network`, so that a simulation can put
something in memory in its place. Pieces of files are sent with `FileRegion.read` where there is no
socket to send them from.
"""

import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio

from kafkalite.log.disk import open_files_limit, reserved_files
from kafkalite.network.complaints import Complaints
from kafkalite.network.poller import HAS_EPOLL, Poller, ReadyQueue
from kafkalite.network.transport import SocketTransport, Transport

if TYPE_CHECKING:
    import ssl

    from kafkalite.config import BrokerConfig
    from kafkalite.network.tls import TlsTransport

MakeContext = Callable[[], "ssl.SSLContext"]
"""Gives what OpenSSL needs for a new connection, of the certificates of the moment."""

logger = logging.getLogger("kafkalite.server")

CAPACITY_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""What `accept` fails with where there is room for no more sockets."""

ACCEPT_PAUSE_S = 0.1
"""Pause after such an error; connections wait in the backlog meanwhile."""

FREE_PORT_TRIALS = 20
"""A port that is free on one address is rarely taken on another."""

Serve = Callable[[Transport], Awaitable[object]]


def at_once() -> float:
    """Return that a connection is served at once."""
    return 0.0


class Acceptor(Protocol):
    """An address that is listened on.

    Attributes:
        port: the one that was taken, where any free one was asked for.
        pace: called for each connection, gives the seconds until it and those behind it are served.
    """

    port: int
    pace: "Callable[[], float]"

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
    """The network that connections come from and go to."""

    async def listen(self, host: str, port: int, *, tls: MakeContext | None = None) -> Acceptor:
        """Take an address; an empty host means all interfaces, port 0 any free port.

        Args:
            host: name or address.
            port: number.
            tls: for connections that are encrypted; those are to be `establish`ed first.

        Raises:
            OSError: the address is taken, or is none of this machine's.
        """
        ...

    async def connect(self, host: str, port: int, *, tls: MakeContext | None = None) -> Transport:
        """Return a connection to an address; the caller limits how long that may take.

        Raises:
            OSError: nobody answers there, or not by TLS if that is wanted.
        """
        ...


@dataclass(frozen=True, slots=True)
class SocketSettings:
    """Options of clients' sockets; -1 leaves a buffer's size to the kernel.

    Its own send buffers grow to megabytes. Through 100 KiB, which stay in the processor's cache, a
    reader on the same machine gets twice as much, and a slow one holds less memory.

    Attributes:
        stays_awake: for clients that ask again at once. Brokers of a cluster that share a machine
            would keep its processors from each other.
    """

    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    backlog: int | None = None
    stays_awake: bool = True

    @staticmethod
    def of(config: "BrokerConfig") -> "SocketSettings":
        """Return what the broker's configuration says; the default of receiving is the kernel's."""
        receive_buffer = "socket.receive.buffer.bytes"
        is_set = receive_buffer in config.static
        return SocketSettings(
            send_buffer_bytes=config.int("socket.send.buffer.bytes"),
            receive_buffer_bytes=config.int(receive_buffer) if is_set else -1,
            backlog=config.int("socket.listen.backlog.size"),
            stays_awake=config.is_alone,
        )


class TcpNetwork:
    """TCP, with the kernel's own sockets."""

    def __init__(self, settings: SocketSettings | None = None) -> None:
        self._settings = settings or SocketSettings()
        self._woken = ReadyQueue()

    def on_pause(self, call: Callable[[], object]) -> None:
        """Have something called whenever all requests that came have been answered."""
        self._woken.on_pause = call

    async def listen(self, host: str, port: int, *, tls: MakeContext | None = None) -> Acceptor:
        """Take all addresses of the host, all with the same port.

        Raises:
            OSError: it cannot be had.
        """
        interface = "127.0.0.1" if host == "localhost" else host or None
        for _ in range(FREE_PORT_TRIALS):
            bound = await self._open(port, interface)
            ports = {one.socket.getsockname()[1] for one in bound}
            if len(ports) == 1:
                return self._acceptor(bound, tls)
            # Any free port was asked for, and each address has another one.
            for one in bound:
                one.socket.close()
            with suppress(OSError):
                return self._acceptor(await self._open(ports.pop(), interface), tls)
        raise OSError("no port is free on all addresses")

    async def connect(self, host: str, port: int, *, tls: MakeContext | None = None) -> Transport:
        """Return a connection that notices in time when the other machine is gone.

        Raises:
            OSError: nobody answers there.
        """
        stream = await trio.open_tcp_stream(host, port)  # without Nagle's delay
        with suppress(OSError):
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock = _taken_over(stream)
        try:
            return SocketTransport(sock) if tls is None else await _connect_tls(sock, tls(), host)
        except BaseException:
            sock.close()
            raise

    def _acceptor(self, bound: list[trio.SocketListener], tls: MakeContext | None) -> "TcpAcceptor":
        poller = Poller(self._woken, stays_awake=self._settings.stays_awake) if HAS_EPOLL else None
        return TcpAcceptor(bound, _wrapper(poller, tls), poller)

    async def _open(self, port: int, host: str | None) -> list[trio.SocketListener]:
        settings = self._settings
        bound = await trio.open_tcp_listeners(port, host=host, backlog=settings.backlog)
        for one in bound:  # what it accepts inherits these
            for option, size in (
                (socket.SO_SNDBUF, settings.send_buffer_bytes),
                (socket.SO_RCVBUF, settings.receive_buffer_bytes),
            ):
                if size >= 0:
                    one.socket.setsockopt(socket.SOL_SOCKET, option, size)
        return bound


class TcpAcceptor:
    """The sockets of one listener, all with the same port."""

    def __init__(
        self, listeners: list[trio.SocketListener], wrap: "Wrap", poller: Poller | None
    ) -> None:
        self._listeners = listeners
        self._wrap = wrap
        self._poller = poller
        self._complaints = Complaints(logger)
        self.port: int = listeners[0].socket.getsockname()[1]
        self.pace: Callable[[], float] = at_once

    async def run(
        self, serve: Serve, *, task_status: "trio.TaskStatus[Any]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Call `serve` in a task of its own for each connection, until cancelled; then close."""
        try:
            async with trio.open_nursery() as nursery:
                if self._poller is not None:
                    nursery.start_soon(self._poller.run)
                for listener in self._listeners:
                    nursery.start_soon(self._accept_all, listener, serve, nursery)
                task_status.started()
                await trio.sleep_forever()
        finally:
            self.close()

    async def _accept_all(
        self, listener: trio.SocketListener, serve: Serve, nursery: trio.Nursery
    ) -> None:
        """Accept until cancelled, whatever there is no room for at the moment (rule 253).

        The tasks of connections are cancelled with the listener's.
        """
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in CAPACITY_ERRORS:
                    raise
                self._complaints.warning(
                    "connections to port %d wait: %s", self.port, os.strerror(error.errno)
                )
                await trio.sleep(ACCEPT_PAUSE_S)
                continue
            sock = _taken_over(stream)
            limit = open_files_limit()
            if sock.fileno() >= limit - reserved_files(limit):
                self._complaints.warning(
                    "refusing a connection to port %d: this process may have %d files open "
                    "(ulimit -n), and the last of them are kept for logs",
                    self.port,
                    limit,
                )
                sock.close()
                continue
            pause_s = self.pace()
            if pause_s:
                await trio.sleep(pause_s)
            nursery.start_soon(_accept, serve, self._wrap, sock)

    def close(self) -> None:
        """Stop listening; not needed after `run`."""
        for one in self._listeners:
            one.socket.close()
        if self._poller is not None:
            self._poller.close()


Wrap = Callable[[socket.socket], Transport]
"""Makes a transport of a client's socket; raises OSError if it is gone already."""


def _wrapper(poller: Poller | None, tls: MakeContext | None) -> Wrap:
    if tls is None:
        return SocketTransport if poller is None else poller.add
    # A broker without such a listener does not pay for the import.
    from kafkalite.network.tls import PolledTlsTransport, TlsSocket, TlsTransport

    def wrap(sock: socket.socket) -> "TlsTransport | PolledTlsTransport":
        secured = TlsSocket(sock, tls(), server_side=True)
        if poller is None:
            return TlsTransport(secured)
        transport = poller.add(sock, partial(PolledTlsTransport, tls=secured))
        assert isinstance(transport, PolledTlsTransport)
        return transport

    return wrap


async def _connect_tls(
    sock: socket.socket, context: "ssl.SSLContext", server_name: str
) -> Transport:
    from kafkalite.network.tls import HandshakeFailed, TlsSocket, TlsTransport

    secured = TlsSocket(sock, context, server_side=False, server_name=server_name)
    transport = TlsTransport(secured)
    try:
        await transport.establish(trio.CapacityLimiter(1))
    except HandshakeFailed as error:
        raise OSError(f"no TLS connection: {error}") from error
    return transport


async def _accept(serve: Serve, wrap: Wrap, sock: socket.socket) -> None:
    try:
        transport = wrap(sock)
    except OSError:  # gone before it was looked at
        sock.close()
        return
    await serve(transport)


def _taken_over(stream: trio.SocketStream) -> socket.socket:
    """Return the socket of a stream, which is of no more use itself."""
    theirs = stream.socket
    return socket.socket(theirs.family, theirs.type, theirs.proto, theirs.detach())
