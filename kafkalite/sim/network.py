"""A network in memory: hosts, links between them, and connections that are slow, stuck or cut.

Twin of `kafkalite.network.sockets.TcpNetwork`. Bytes of one direction of a connection arrive in
order, as TCP has it; what a blocked link holds back arrives when it is open again, unless the
connection was cut meanwhile.
"""

import errno
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, Final
from zlib import crc32

import trio

from kafkalite.log.region import FileRegion
from kafkalite.network.sockets import MakeContext, at_once
from kafkalite.network.transport import Chunk, Transport, WaitingTransport
from kafkalite.sim.traces import Trace

WINDOW_BYTES: Final = 256 * 1024
"""A sender waits when so much is on its way unread, as with the kernel's buffers."""

DEAD_HOST_CHECK_S: Final = 1

FIRST_FREE_PORT: Final = 32_768

Serve = Callable[[Transport], Awaitable[object]]


class Link:
    """One direction between two hosts.

    Attributes:
        delay_s: least and greatest delay of a message.
        is_blocked: nothing gets through; what is sent waits.
    """

    def __init__(self, delay_s: tuple[float, float]) -> None:
        self.delay_s = delay_s
        self.is_blocked = False
        self._opened = trio.Event()

    def block(self) -> None:
        """Let nothing through any more."""
        self.is_blocked = True

    def unblock(self) -> None:
        """Let through again what waits and what comes."""
        self.is_blocked = False
        opened, self._opened = self._opened, trio.Event()
        opened.set()

    async def wait_open(self) -> None:
        """Return when something gets through."""
        while self.is_blocked:
            await self._opened.wait()


class Pipe:
    """One direction of a connection: what was sent and has not been received."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.chunks: deque[tuple[float, bytes]] = deque()
        """Time of arrival and data; b"" is the end of the stream."""
        self.held_bytes = 0
        self.is_reset = False
        self.is_abandoned = False
        """Nobody reads it any more."""
        self.last_arrival_s = 0.0
        self._changed = trio.Event()

    def changed(self) -> None:
        """Wake who waits for a change."""
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def wait_changed(self) -> None:
        """Return after the next change."""
        await self._changed.wait()

    def put(self, data: bytes, delay_s: float) -> None:
        """Let data arrive after a delay, and not before what was sent earlier."""
        at = max(trio.current_time() + delay_s, self.last_arrival_s)
        self.last_arrival_s = at
        self.chunks.append((at, data))
        self.held_bytes += len(data)
        self.changed()

    def has_ended(self) -> bool:
        """Whether the end of the stream or a reset has arrived, perhaps behind unread bytes."""
        if self.link.is_blocked:
            return False
        if self.is_reset:
            return True
        if not self.chunks:
            return False
        at, data = self.chunks[-1]
        return not data and at <= trio.current_time()

    async def wait_arrival(self) -> bytes:
        """Return the first data once they have arrived; they stay in the pipe."""
        while True:
            if self.is_abandoned:
                raise trio.ClosedResourceError
            if self.link.is_blocked:
                await self._wait_open_or_changed()
                continue
            if self.is_reset:
                raise ConnectionResetError(errno.ECONNRESET, "connection reset (simulated)")
            if not self.chunks:
                await self.wait_changed()
                continue
            at, data = self.chunks[0]
            if at <= trio.current_time():
                return data
            with trio.move_on_at(at):
                await self.wait_changed()

    async def _wait_open_or_changed(self) -> None:
        """Return when the link opens, or the connection is reset meanwhile."""
        async with trio.open_nursery() as nursery:

            async def wait_open() -> None:
                await self.link.wait_open()
                nursery.cancel_scope.cancel()

            nursery.start_soon(wait_open)
            await self.wait_changed()
            nursery.cancel_scope.cancel()


class SimTransport(WaitingTransport):
    """One end of a connection."""

    def __init__(
        self,
        fabric: "Fabric",
        local: tuple[str, int],
        peer: tuple[str, int],
        outgoing: Pipe,
        incoming: Pipe,
    ) -> None:
        self.local_address = local
        self.peer_address = peer
        self.sent_bytes = 0
        self._fabric = fabric
        self._outgoing = outgoing
        self._incoming = incoming
        self.is_closed = False

    async def receive_into(self, buffer: memoryview) -> int:
        """Wait for bytes and put some into `buffer`; return how many, 0 when the peer is done."""
        await trio.lowlevel.checkpoint()
        self._check_open()
        pipe = self._incoming
        data = await pipe.wait_arrival()
        if not data:
            return 0
        at, _ = pipe.chunks.popleft()
        count = min(len(data), len(buffer))
        buffer[:count] = data[:count]
        if count < len(data):
            pipe.chunks.appendleft((at, data[count:]))
        pipe.held_bytes -= count
        pipe.changed()
        return count

    async def send(self, chunks: Sequence[Chunk]) -> None:
        """Send all of `chunks` in order."""
        await trio.lowlevel.checkpoint()
        data = b"".join(
            chunk.read() if isinstance(chunk, FileRegion) else bytes(chunk) for chunk in chunks
        )
        if not data:
            return
        pipe = self._outgoing
        while pipe.held_bytes > WINDOW_BYTES and not pipe.is_reset and not self.is_closed:
            await pipe.wait_changed()
        self._check_open()
        if pipe.is_reset:
            raise BrokenPipeError(errno.EPIPE, "connection reset (simulated)")
        self._fabric.note_sent(self, data)
        pipe.put(data, self._fabric.delay(pipe.link))
        self.sent_bytes += len(data)

    async def wait_peer_closed(self) -> None:
        """Return when the peer has gone."""
        pipe = self._incoming
        while not pipe.has_ended() and not self.is_closed:
            if pipe.link.is_blocked:
                await pipe.link.wait_open()
                continue
            # Wakes for each change, and at the end of the stream when that is on its way.
            at = pipe.chunks[-1][0] if pipe.chunks else trio.current_time()
            if at > trio.current_time():
                with trio.move_on_at(at):
                    await pipe.wait_changed()
            else:
                await pipe.wait_changed()

    def close(self) -> None:
        """Close at once; the peer is told as soon as the link lets it."""
        if self.is_closed:
            return
        self.is_closed = True
        self._fabric.forget(self)
        self._outgoing.put(b"", self._fabric.delay(self._outgoing.link))
        self._incoming.is_abandoned = True
        self._incoming.changed()

    def reset(self) -> None:
        """Cut the connection: both ends get an error, and what was on its way is gone."""
        for pipe in (self._outgoing, self._incoming):
            pipe.is_reset = True
            pipe.changed()

    def _check_open(self) -> None:
        if self.is_closed:
            raise trio.ClosedResourceError


class SimAcceptor:
    """An address that is listened on."""

    def __init__(self, fabric: "Fabric", host: str, port: int) -> None:
        self.port = port
        self.pace: Callable[[], float] = at_once
        self._fabric = fabric
        self._host = host
        self._send, self._receive = trio.open_memory_channel[SimTransport](256)

    def offer(self, transport: SimTransport) -> bool:
        """Hand over a new connection; False if too many wait."""
        try:
            self._send.send_nowait(transport)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    async def run(
        self, serve: Serve, *, task_status: "trio.TaskStatus[Any]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Call `serve` in a task of its own for each connection, until cancelled; then close."""
        try:
            async with trio.open_nursery() as nursery:
                task_status.started()
                async for transport in self._receive:
                    nursery.start_soon(serve, transport)
        finally:
            self.close()

    def close(self) -> None:
        """Stop listening."""
        self._send.close()
        self._fabric.stop_listening(self._host, self.port, self)


class HostNetwork:
    """The network as one host has it; satisfies `kafkalite.network.sockets.Network`.

    A host that restarts gets a new one, and the old one is of no more use (`Fabric.crash`).
    """

    def __init__(self, fabric: "Fabric", host: str) -> None:
        self.fabric = fabric
        self.host = host
        self.is_dead = False

    async def listen(self, host: str, port: int, *, tls: MakeContext | None = None) -> SimAcceptor:
        """Take a port of this host, whatever interface is asked for."""
        del host
        assert tls is None
        await trio.lowlevel.checkpoint()
        return self.fabric.listen(self, port)

    async def connect(
        self, host: str, port: int, *, tls: MakeContext | None = None
    ) -> SimTransport:
        """Return a connection; raises OSError if the host is there and nobody listens."""
        assert tls is None
        return await self.fabric.connect(self, host, port)


class Fabric:
    """All hosts and links.

    Args:
        random: decides delays.
        delay_s: least and greatest delay of a link, unless it has its own.
        trace: is told of every message.
    """

    def __init__(self, random: Random, delay_s: tuple[float, float], trace: Trace) -> None:
        self._random = random
        self._delay_s = delay_s
        self._trace = trace
        self._links: dict[tuple[str, str], Link] = {}
        self._acceptors: dict[tuple[str, int], SimAcceptor] = {}
        self._transports: dict[SimTransport, None] = {}
        self._down: set[str] = set()
        self._next_port = FIRST_FREE_PORT

    def host(self, name: str) -> HostNetwork:
        """Return the network of a host, which is up from now on and knows no old connection."""
        self._down.discard(name)
        self._reset_all(name)
        return HostNetwork(self, name)

    def link(self, source: str, target: str) -> Link:
        """Return one direction between two hosts."""
        link = self._links.get((source, target))
        if link is None:
            delay_s = (0.0, 0.0) if source == target else self._delay_s
            link = self._links[source, target] = Link(delay_s)
        return link

    def delay(self, link: Link) -> float:
        """Return how long the next message takes on a link."""
        return self._random.uniform(*link.delay_s)

    def crash(self, network: HostNetwork, *, silently: bool) -> None:
        """Stop a host: nothing it still does is seen by others.

        Args:
            network: of the host.
            silently: the machine is gone, and others wait in vain until it is back; otherwise the
                process is, and the machine tells them at once.
        """
        network.is_dead = True
        host = network.host
        for key in [key for key in self._acceptors if key[0] == host]:
            del self._acceptors[key]
        for transport in list(self._transports):
            if transport.local_address[0] == host:
                transport.is_closed = True  # what the dying process still sends goes nowhere
        if silently:
            self._down.add(host)
        else:
            self._reset_all(host)

    def _reset_all(self, host: str) -> None:
        for transport in list(self._transports):
            if host in (transport.local_address[0], transport.peer_address[0]):
                transport.reset()
                del self._transports[transport]

    def cut_all(self, host: str) -> None:
        """Cut every connection of a host, which goes on."""
        self._reset_all(host)

    def heal(self, delay_s: tuple[float, float]) -> None:
        """Open every link, and give it its usual delay."""
        for (source, target), link in self._links.items():
            if source != target:
                link.delay_s = delay_s
            link.unblock()

    def listen(self, network: HostNetwork, port: int) -> SimAcceptor:
        """Take a port of a host; see `HostNetwork.listen`."""
        if network.is_dead:
            raise OSError(errno.ENETDOWN, "the host is down (simulated)")
        if port == 0:
            self._next_port += 1
            port = self._next_port
        key = (network.host, port)
        if key in self._acceptors:
            raise OSError(errno.EADDRINUSE, f"{network.host}:{port} is taken (simulated)")
        acceptor = self._acceptors[key] = SimAcceptor(self, network.host, port)
        return acceptor

    def stop_listening(self, host: str, port: int, acceptor: SimAcceptor) -> None:
        """Give a port back."""
        if self._acceptors.get((host, port)) is acceptor:
            del self._acceptors[host, port]

    async def connect(self, network: HostNetwork, host: str, port: int) -> SimTransport:
        """Connect; see `HostNetwork.connect`."""
        source = network.host
        there, back = self.link(source, host), self.link(host, source)
        await trio.sleep(self.delay(there))
        await there.wait_open()
        # Nobody answers; the caller has a deadline.
        while host in self._down or network.is_dead:  # noqa: ASYNC110 - few runs get here
            await trio.sleep(DEAD_HOST_CHECK_S)
        acceptor = self._acceptors.get((host, port))
        if acceptor is None:
            await trio.sleep(self.delay(back))
            await back.wait_open()
            raise ConnectionRefusedError(
                errno.ECONNREFUSED, f"nobody listens on {host}:{port} (simulated)"
            )
        self._next_port += 1
        mine, theirs = (source, self._next_port), (host, port)
        outgoing, incoming = Pipe(there), Pipe(back)
        near = SimTransport(self, mine, theirs, outgoing, incoming)
        far = SimTransport(self, theirs, mine, incoming, outgoing)
        if not acceptor.offer(far):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "too many wait (simulated)")
        self._transports[near] = self._transports[far] = None
        try:
            await trio.sleep(self.delay(back))
            await back.wait_open()
        except BaseException:
            near.close()
            raise
        return near

    def forget(self, transport: SimTransport) -> None:
        """Take note that a transport was closed."""
        self._transports.pop(transport, None)

    def note_sent(self, transport: SimTransport, data: bytes) -> None:
        """Put a message into the trace."""
        self._trace.note(
            f"{trio.current_time():.6f} {transport.local_address[0]} > "
            f"{transport.peer_address[0]}:{transport.peer_address[1]} {len(data)} "
            f"{crc32(data):08x}"
        )
