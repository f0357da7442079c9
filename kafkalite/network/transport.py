"""One client's byte stream: receiving into lent buffers, sending bytes and pieces of files."""

import os
import select
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

import trio

from kafkalite.deferred import DelayedOperation
from kafkalite.log.region import FileRegion
from kafkalite.types import mypyc_attr

Chunk = bytes | bytearray | memoryview | FileRegion

SENDFILE_MIN_BYTES = 64 * 1024
"""Below this a read and one send for all cost less than a sendfile each: 29 against 149 us of loop
time for ten regions of 4 KiB, equal at about 32 KiB, half at 64 KiB and above."""

GATHER_MAX_BYTES = 256 * 1024
"""Small chunks are joined up to here. A client that reads slowly holds so much of what it was to
get in memory, and the rest stays in the files."""

PEER_CHECK_S = 5
"""How long a client may be gone unnoticed that sent more while its request waited."""

POLLRDHUP = getattr(select, "POLLRDHUP", 0)
MSG_MORE = getattr(socket, "MSG_MORE", 0)
TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", None)

Answer = TypeVar("Answer")


class PeerClosed(Exception):
    """The client closed while its request was waiting."""


class RequestSource(Protocol):
    """The connection behind a transport, which the transport calls when its socket is ready."""

    @property
    def delayed(self) -> DelayedOperation[Any] | None:
        """Operation that the connection waits for, if it can be asked for in a turn."""
        ...

    @property
    def can_accept_more(self) -> bool:
        """Whether it may be given more although it is `delayed`."""
        ...

    def buffer(self) -> memoryview:
        """Return where the next bytes go; never empty."""
        ...

    def received(self, count: int) -> bool:
        """Work on the first `count` bytes of `buffer()`, without waiting; 0 is the end of them.

        Returns:
            Whether it is done with them, but for its output, and may be given more.
        """
        ...

    def on_ready(self) -> bool:
        """Go on after something happened that `delayed` waits for; returns as `received` does."""
        ...

    def take_output(self) -> list[Chunk]:
        """Return what is to be sent, and forget it."""
        ...


class Transport(Protocol):
    """The network as a connection needs it; simulated in tests."""

    local_address: tuple[str, int]
    peer_address: tuple[str, int]
    sent_bytes: int
    """Sent so far."""

    @property
    def is_sending(self) -> bool:
        """Whether it waits for the peer to read; never known in memory."""
        ...

    async def receive_into(self, buffer: memoryview) -> int:
        """Wait for bytes and put some into `buffer`; return how many, 0 when the peer is done."""
        ...

    async def receive_all(self, buffer: memoryview) -> bool:
        """Wait until all of `buffer` is filled, which may be at once; False if the peer is done."""
        ...

    async def send(self, chunks: Sequence[Chunk]) -> None:
        """Send all of `chunks` in order; raises OSError when the peer is gone or a file short."""
        ...

    async def serve(self, served: RequestSource) -> None:
        """Hand received bytes to `served` and send its output, while `received` returns True.

        Returns when it returned False: output that is left, and what is `delayed` for too long,
        are the caller's. Its exceptions are raised here.
        """
        ...

    async def while_connected(self, wait: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return what `wait` returns; what the peer sends meanwhile is left to be received.

        Raises:
            PeerClosed: the peer went away first, and `wait` was cancelled.
        """
        ...

    def reset_on_close(self) -> None:
        """Let `close` end the connection with a TCP reset."""
        ...

    def close(self) -> None:
        """Close at once; waiting calls end with an error."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingTransport:
    """The part of a `Transport` that follows from the rest of it, by waiting in the caller's task.

    For transports in memory, and for systems without epoll.
    """

    @property
    def is_sending(self) -> bool:
        """Whether it waits for the peer to read; never known in memory."""
        return False

    def reset_on_close(self) -> None:
        """Nothing: there is no TCP in memory."""

    async def receive_into(self, buffer: memoryview) -> int:
        """Wait for bytes and put some into `buffer`; return how many, 0 when the peer is done."""
        raise NotImplementedError

    async def receive_all(self, buffer: memoryview) -> bool:
        """Wait until all of `buffer` is filled; False if the peer is done before."""
        while buffer:
            count = await self.receive_into(buffer)
            if not count:
                return False
            buffer = buffer[count:]
        return True

    async def send(self, chunks: Sequence[Chunk]) -> None:
        """Send all of `chunks` in order."""
        raise NotImplementedError

    async def wait_peer_closed(self) -> None:
        """Return when the peer has gone; what it sends meanwhile is left to be received."""
        raise NotImplementedError

    async def serve(self, served: RequestSource) -> None:
        """Hand received bytes to `served` and send its output, while `received` returns True."""
        while served.received(await self.receive_into(served.buffer())):
            output = served.take_output()
            if output:
                await self.send(output)

    async def while_connected(self, wait: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return what `wait` returns.

        Raises:
            PeerClosed: the peer went away first, and `wait` was cancelled.
        """
        outcome: Answer | None = None
        failure: Exception | None = None
        is_done = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_when_closed, nursery.cancel_scope)
            try:
                outcome = await wait()
                is_done = True
            except Exception as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if not is_done:
            raise PeerClosed
        return cast("Answer", outcome)

    async def _cancel_when_closed(self, waiting: trio.CancelScope) -> None:
        await self.wait_peer_closed()
        waiting.cancel()


@mypyc_attr(allow_interpreted_subclasses=True)
class SocketTransport(WaitingTransport):
    """A TCP connection: non-blocking system calls first, waiting only where they would block."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        if TCP_NOTSENT_LOWAT is not None:
            # trio lets 16 KiB wait unsent. sendfile corks what is not its last 64 KiB, finds that
            # more is waiting than may, and nothing moves until the kernel's timer after 200 ms.
            with suppress(OSError):  # not a TCP socket
                sock.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0)
        self.local_address: tuple[str, int] = sock.getsockname()[:2]
        self.peer_address: tuple[str, int] = sock.getpeername()[:2]
        self.sent_bytes = 0
        self._sending: Iterator[None] | None = None
        """The rest of what is being sent, while the kernel takes no more of it."""

    async def receive_into(self, buffer: memoryview) -> int:
        """Wait for bytes and put some into `buffer`; return how many, 0 when the peer is done.

        Always lets other tasks run once: this is where connections take turns.
        """
        sock = self._socket
        while True:
            await trio.lowlevel.wait_readable(sock)
            try:
                return sock.recv_into(buffer)
            except (BlockingIOError, InterruptedError):
                continue

    async def receive_all(self, buffer: memoryview) -> bool:
        """Wait until all of `buffer` is filled, which may be at once; False if the peer is done."""
        while buffer:
            try:
                count = self._socket.recv_into(buffer)
            except (BlockingIOError, InterruptedError):
                await trio.lowlevel.wait_readable(self._socket)
                continue
            if not count:
                return False
            buffer = buffer[count:]
        return True

    async def send(self, chunks: Sequence[Chunk]) -> None:
        """Send all of `chunks` in order, small ones in one system call, large regions by sendfile.

        Raises:
            OSError: the peer is gone, or a file is shorter than its region said: half an answer
                went out and the connection is of no more use.
        """
        if not self._send_now(chunks):
            await self._drain()

    @property
    def is_sending(self) -> bool:
        """Whether it waits for the peer to read."""
        return self._sending is not None

    async def wait_peer_closed(self) -> None:
        """Return when the peer has gone; what it sends meanwhile is left to be received.

        Behind unread bytes the end of the stream wakes nobody, so it is looked for now and then.
        """
        sock = self._socket
        while True:
            await trio.lowlevel.wait_readable(sock)
            try:
                if not sock.recv(1, socket.MSG_PEEK):
                    return
            except (BlockingIOError, InterruptedError):
                continue
            except OSError:
                return
            if self._has_hung_up():
                return
            await trio.sleep(PEER_CHECK_S)

    def _has_hung_up(self) -> bool:
        """Whether nothing will come after the unread bytes; on Linux, elsewhere nobody knows."""
        poll = select.poll()
        poll.register(self._socket, POLLRDHUP)
        return bool(poll.poll(0))

    def reset_on_close(self) -> None:
        """Let `close` end the connection with a TCP reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        """Close at once; waiting calls end with an error."""
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()

    def _send_now(self, chunks: Sequence[Chunk]) -> bool:
        """Send what the kernel takes at once; False if some is left for `_drain`."""
        assert self._sending is None
        if len(chunks) == 1 and isinstance(chunks[0], bytes):
            self._sending = self._send_bytes(chunks[0], 0)
        else:
            self._sending = self._send_steps(chunks)
        return self._go_on()

    async def _drain(self) -> None:
        while self._sending is not None:
            await trio.lowlevel.wait_writable(self._socket)
            self._go_on()

    def _go_on(self) -> bool:
        assert self._sending is not None
        for _ in self._sending:
            return False
        self._sending = None
        return True

    def _send_steps(self, chunks: Sequence[Chunk]) -> Iterator[None]:
        """Send, and yield wherever the kernel must first be waited for."""
        small: list[bytes | bytearray | memoryview] = []
        small_bytes = 0
        for chunk in chunks:
            size = len(chunk)
            is_large_region = isinstance(chunk, FileRegion) and size >= SENDFILE_MIN_BYTES
            if small and (is_large_region or small_bytes + size > GATHER_MAX_BYTES):
                yield from self._send_bytes(b"".join(small), MSG_MORE)
                small.clear()
                small_bytes = 0
            if not isinstance(chunk, FileRegion):
                small.append(chunk)
            elif is_large_region:
                yield from self._send_file(chunk)
                continue
            else:
                small.append(chunk.read())
            small_bytes += size
        if small:
            yield from self._send_bytes(small[0] if len(small) == 1 else b"".join(small), 0)

    def _send_bytes(self, data: bytes | bytearray | memoryview, flags: int) -> Iterator[None]:
        sock = self._socket
        while True:
            try:
                sent = sock.send(data, flags)
            except (BlockingIOError, InterruptedError):
                yield
                continue
            self.sent_bytes += sent
            if sent == len(data):
                return
            data = memoryview(data)[sent:]

    def _send_file(self, region: FileRegion) -> Iterator[None]:
        sock = self._socket
        source, target = region.fileno(), sock.fileno()
        position, remaining = region.position, len(region)
        while remaining:
            try:
                sent = os.sendfile(target, source, position, remaining)
            except (BlockingIOError, InterruptedError):
                yield
                continue
            except OSError as error:
                region.note_error(error)
                raise
            if not sent:
                raise OSError(f"{region} ends {remaining} bytes early")
            self.sent_bytes += sent
            position += sent
            remaining -= sent
