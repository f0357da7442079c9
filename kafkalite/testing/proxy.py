"""Links between the processes of a cluster that can be cut, made slow, and healed.

Each process advertises the address of a proxy in place of its own; the proxies run in a thread of
the test. A link that is cut behaves like a network that drops packets: connections stay open and
nothing passes, new connections get no answer, and what was under way arrives after the healing.

One of the modules that may start threads: links work while the test's thread blocks in its client.
"""

import re
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Self, TypeVar

import trio

Result = TypeVar("Result")

CHUNK_BYTES: Final = 256 * 1024
START_TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 5.0

UNKNOWN: Final = "?"
"""The source of a connection that has not told who it is."""

_REQUEST_START: Final = struct.Struct(">ihhih")  # size, API, version, correlation id, client id
_TLS: Final = b"\x16\x03"
_BROKER: Final = re.compile(rb"broker-(\d+)")


class Links:
    """All links of a cluster: `with Links() as links:`. Nodes have names of the test's choice.

    Traffic from one node to another is one direction; each may be cut or slowed down by itself.
    All methods may be called from any thread.

    Args:
        owner_of: returns the name of the node that has a connection from this port of its own, None
            if it does not know. It is asked where nothing can be read, as with TLS.
    """

    def __init__(self, owner_of: Callable[[int], str | None] | None = None) -> None:
        self._owner_of = owner_of
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        self._cut: set[tuple[str, str]] = set()
        self._delay_s: dict[tuple[str, str], float] = {}
        self._healed = trio.Event()
        self._open: dict[int, tuple[str, str, trio.CancelScope]] = {}
        self._count = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start the thread."""
        self._thread = threading.Thread(
            target=trio.run, args=[self._main], name="kafkalite-links", daemon=True
        )
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise TimeoutError("the thread of the links did not start")
        return self

    def stop(self) -> None:
        """Close all connections and the thread; nothing if it does not run."""
        thread, token, nursery = self._thread, self._token, self._nursery
        self._token = None
        if thread is not None and token is not None and nursery is not None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(nursery.cancel_scope.cancel)
            thread.join()

    def listen(self, destination: str, host: str, port: int, *, source: str | None = None) -> int:
        """Open a proxy in front of a node; return its port on loopback.

        Args:
            destination: the node's name.
            host: where it listens.
            port: where it listens, now or later.
            source: the name of whoever connects to this proxy. If None, the first request tells:
                brokers' client ids start with `broker-<id>`, and their name is the id.
        """
        target = (host, port)

        async def open_proxy() -> int:
            assert self._nursery is not None
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            serve = partial(self._serve, destination, target, source)
            self._nursery.start_soon(trio.serve_listeners, serve, [listener])
            found: int = listener.socket.getsockname()[1]
            return found

        return trio.from_thread.run(open_proxy, trio_token=self._running())

    def cut(self, source: str, destination: str, *, both_ways: bool = True) -> None:
        """Let nothing pass from a node to another, and back if `both_ways`."""

        def cut() -> None:
            self._cut |= _directions(source, destination, both_ways)

        self._in_loop(cut)

    def delay(
        self, source: str, destination: str, delay_s: float, *, both_ways: bool = True
    ) -> None:
        """Hold each piece (of at most 256 KiB) back for a time; 0 ends it."""

        def delay() -> None:
            for direction in _directions(source, destination, both_ways):
                self._delay_s[direction] = delay_s

        self._in_loop(delay)

    def heal(self, node: str | None = None) -> None:
        """End all cuts and delays of a node, or of all nodes."""

        def heal() -> None:
            for direction in {*self._cut, *self._delay_s}:
                if node is None or node in direction:
                    self._cut.discard(direction)
                    self._delay_s.pop(direction, None)
            self._healed.set()
            self._healed = trio.Event()

        self._in_loop(heal)

    def disconnect(self, one: str, other: str) -> int:
        """Close the connections between two nodes; return how many. They may connect anew."""

        def disconnect() -> int:
            count = 0
            for source, destination, scope in list(self._open.values()):
                if {source, destination} == {one, other}:
                    scope.cancel()
                    count += 1
            return count

        return self._in_loop(disconnect)

    def connections(self) -> list[tuple[str, str]]:
        """Return (source, destination) of each open connection, sorted."""
        return self._in_loop(
            lambda: sorted((source, target) for source, target, _ in self._open.values())
        )

    # --- In the links' thread --------------------------------------------------------------------

    async def _main(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._token = trio.lowlevel.current_trio_token()
            self._started.set()
            await trio.sleep_forever()

    async def _serve(
        self,
        destination: str,
        target: tuple[str, int],
        source: str | None,
        near: trio.SocketStream,
    ) -> None:
        self._count += 1
        number = self._count
        gone = (trio.BrokenResourceError, trio.TooSlowError, OSError)
        with trio.CancelScope() as scope, suppress(*gone):
            self._open[number] = (source or UNKNOWN, destination, scope)
            try:
                async with near:
                    first = b""
                    if source is None:
                        source, first = await self._introduction(near)
                        self._open[number] = (source, destination, scope)
                    await self._pass(source, destination)
                    await self._join(near, target, (source, destination), first)
            finally:
                del self._open[number]

    async def _introduction(self, near: trio.SocketStream) -> tuple[str, bytes]:
        """Return who has connected, and the first bytes."""
        source, first = await _introduction(near)
        if source == UNKNOWN and self._owner_of is not None:
            source = self._owner_of(near.socket.getpeername()[1]) or UNKNOWN
        return source, first

    async def _join(
        self,
        near: trio.SocketStream,
        target: tuple[str, int],
        direction: tuple[str, str],
        first: bytes,
    ) -> None:
        """Connect to the node, and pass bytes both ways until one side closes."""
        with trio.fail_after(CONNECT_TIMEOUT_S):
            far = await trio.open_tcp_stream(*target)
        async with far, trio.open_nursery() as nursery:
            end = nursery.cancel_scope.cancel
            nursery.start_soon(self._pump, far, near, direction[::-1], b"", end)
            nursery.start_soon(self._pump, near, far, direction, first, end)

    async def _pump(
        self,
        reader: trio.SocketStream,
        writer: trio.SocketStream,
        direction: tuple[str, str],
        data: bytes,
        end: Callable[[], None],
    ) -> None:
        """Pass bytes one way, `data` first. When it ends, all that the sender sent is passed on."""
        with suppress(trio.BrokenResourceError):
            await writer.send_all(data)
            while True:
                data = await reader.receive_some(CHUNK_BYTES)
                await self._pass(*direction)
                if not data:
                    break
                await writer.send_all(data)
        end()

    async def _pass(self, source: str, destination: str) -> None:
        """Return when something may pass this way."""
        delay_s = self._delay_s.get((source, destination), 0)
        if delay_s:
            await trio.sleep(delay_s)
        while (source, destination) in self._cut:
            await self._healed.wait()

    def _running(self) -> trio.lowlevel.TrioToken:
        if self._token is None:
            raise RuntimeError("these links are not running")
        return self._token

    def _in_loop(self, function: Callable[[], Result]) -> Result:
        return trio.from_thread.run_sync(function, trio_token=self._running())


async def _introduction(stream: trio.SocketStream) -> tuple[str, bytes]:
    """Return who sends a first Kafka request, and its first bytes."""
    data = b""
    size = _REQUEST_START.size
    while len(data) < size:
        more = await stream.receive_some(CHUNK_BYTES)
        data += more
        if not more:
            return UNKNOWN, data
        if data.startswith(_TLS):
            return UNKNOWN, data
        if len(data) >= _REQUEST_START.size:
            size = _REQUEST_START.size + max(_REQUEST_START.unpack_from(data)[4], 0)
    match = _BROKER.match(data[_REQUEST_START.size : size])
    return (match[1].decode() if match else UNKNOWN), data


def _directions(source: str, destination: str, both_ways: bool) -> set[tuple[str, str]]:
    there = {(source, destination)}
    return there | {(destination, source)} if both_ways else there
