"""One client's byte stream: receiving into lent buffers, sending bytes and pieces of files."""

import os
import select
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import trio

from kafkalite.log.region import FileRegion

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


class Transport(Protocol):
    """What a connection needs of the network; simulated in tests."""

    local_address: tuple[str, int]
    peer_address: tuple[str, int]
    sent_bytes: int
    """Sent so far."""

    async def receive_into(self, buffer: memoryview) -> int:
        """Wait for bytes and put some into `buffer`; return how many, 0 when the peer is done."""
        ...

    async def send(self, chunks: Sequence[Chunk]) -> None:
        """Send all of `chunks` in order; raises OSError when the peer is gone or a file short."""
        ...

    async def wait_peer_closed(self) -> None:
        """Return when the peer has gone; what it sends meanwhile is left to be received."""
        ...

    def close(self) -> None:
        """Close at once; waiting calls end with an error."""
        ...


class SocketTransport:
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

    async def send(self, chunks: Sequence[Chunk]) -> None:
        """Send all of `chunks` in order, small ones in one system call, large regions by sendfile.

        Raises:
            OSError: the peer is gone, or a file is shorter than its region said: half an answer
                went out and the connection is of no more use.
        """
        small: list[bytes | bytearray | memoryview] = []
        small_bytes = 0
        for chunk in chunks:
            size = len(chunk)
            is_large_region = isinstance(chunk, FileRegion) and size >= SENDFILE_MIN_BYTES
            if small and (is_large_region or small_bytes + size > GATHER_MAX_BYTES):
                await self._send_bytes(b"".join(small), MSG_MORE)
                small.clear()
                small_bytes = 0
            if not isinstance(chunk, FileRegion):
                small.append(chunk)
            elif is_large_region:
                await self._send_file(chunk)
                continue
            else:
                small.append(chunk.read())
            small_bytes += size
        if small:
            await self._send_bytes(small[0] if len(small) == 1 else b"".join(small), 0)

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

    def close(self) -> None:
        """Close at once; waiting calls end with an error."""
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()

    async def _send_bytes(self, data: bytes | bytearray | memoryview, flags: int) -> None:
        sock = self._socket
        while True:
            try:
                sent = sock.send(data, flags)
            except (BlockingIOError, InterruptedError):
                await trio.lowlevel.wait_writable(sock)
                continue
            self.sent_bytes += sent
            if sent == len(data):
                return
            data = memoryview(data)[sent:]

    async def _send_file(self, region: FileRegion) -> None:
        sock = self._socket
        source, target = region.fileno(), sock.fileno()
        position, remaining = region.position, len(region)
        while remaining:
            try:
                sent = os.sendfile(target, source, position, remaining)
            except (BlockingIOError, InterruptedError):
                await trio.lowlevel.wait_writable(sock)
                continue
            if not sent:
                raise OSError(f"{region} ends {remaining} bytes early")
            self.sent_bytes += sent
            position += sent
            remaining -= sent
