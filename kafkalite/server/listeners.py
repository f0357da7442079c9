"""Sockets that clients connect to, and the connections that come of them."""

import itertools
import logging
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from kafkalite.api.context import RequestContext
from kafkalite.server.budget import MemoryBudget
from kafkalite.server.connection import Connection
from kafkalite.server.transport import SocketTransport
from kafkalite.wire.framing import Framer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkalite.api.context import Services
    from kafkalite.config_listeners import Listener
    from kafkalite.server.dispatch import Dispatcher

logger = logging.getLogger("kafkalite.server")

IDLE_CHECKS_PER_LIMIT = 4
"""An idle connection lives at most a quarter longer than connections.max.idle.ms."""

FREE_PORT_TRIALS = 20
"""A port that is free on one address is rarely taken on another."""


class BindError(Exception):
    """An address that cannot be listened on; the message is one line and names it."""


class ConnectionServer:
    """Accepts clients on all listeners, within the limits that the settings give."""

    def __init__(self, services: "Services", dispatcher: "Dispatcher") -> None:
        self._services = services
        self._dispatcher = dispatcher
        config = services.config
        self._max_frame_bytes = config.int("socket.request.max.bytes")
        self._max_idle_ms = config.int("connections.max.idle.ms")
        self._budget = MemoryBudget(config.int("queued.max.request.bytes"))
        self._ids = itertools.count(1)
        self._open: dict[int, tuple[Connection, str, trio.CancelScope]] = {}
        self.sockets: list[tuple[Listener, trio.SocketListener]] = []
        """What it listens on, and for which listener."""

    async def bind(self, listeners: "Sequence[Listener]") -> dict[str, int]:
        """Take the addresses; return the port that each listener got, by its name.

        Raises:
            BindError: an address is taken, or is none of this machine's.
        """
        try:
            for listener in listeners:
                self.sockets += [(listener, one) for one in await _listen(listener)]
        except BaseException:
            self.close()
            raise
        return {listener.name: one.socket.getsockname()[1] for listener, one in self.sockets}

    def close(self) -> None:
        """Stop listening. Not needed after `run`."""
        for _, one in self.sockets:
            one.socket.close()
        self.sockets.clear()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Accept and serve until cancelled."""
        async with trio.open_nursery() as nursery:
            for listener, one in self.sockets:
                await nursery.start(
                    partial(trio.serve_listeners, partial(self._serve, listener.name), [one])
                )
            if self._max_idle_ms > 0:
                nursery.start_soon(self._close_idle)
            task_status.started()

    @property
    def connection_count(self) -> int:
        """Connections open now."""
        return len(self._open)

    async def _serve(self, listener: str, stream: trio.SocketStream) -> None:
        theirs = stream.socket
        sock = socket.socket(theirs.family, theirs.type, theirs.proto, theirs.detach())
        try:
            transport = SocketTransport(sock)
        except OSError:  # gone before it was looked at
            sock.close()
            return
        if not self._admits(transport.peer_address[0]):
            logger.warning("refusing %s:%d: too many connections", *transport.peer_address)
            transport.close()
            return
        connection_id = next(self._ids)
        context = RequestContext(
            services=self._services,
            connection_id=connection_id,
            listener=listener,
            local_address=transport.local_address,
            peer_address=transport.peer_address,
            now_ms=self._services.clock.wall_ms(),
        )
        connection = Connection(
            transport,
            self._dispatcher,
            context,
            framer=Framer(self._max_frame_bytes),
            budget=self._budget,
        )
        with trio.CancelScope() as scope:
            self._open[connection_id] = (connection, transport.peer_address[0], scope)
            try:
                await connection.run()
            finally:
                del self._open[connection_id]

    def _admits(self, host: str) -> bool:
        config = self._services.config
        if len(self._open) >= config.int("max.connections"):
            return False
        per_host = config.int("max.connections.per.ip")
        if per_host > len(self._open):
            return True
        return sum(peer == host for _, peer, _ in self._open.values()) < per_host

    async def _close_idle(self) -> None:
        """Close connections that were silent for connections.max.idle.ms (rule 15)."""
        while True:
            await trio.sleep(self._max_idle_ms / 1000 / IDLE_CHECKS_PER_LIMIT)
            now_ms = self._services.clock.monotonic_ms()
            oldest_ms = now_ms - self._max_idle_ms
            for connection, _, scope in list(self._open.values()):
                if connection.active_ms(now_ms) < oldest_ms and not connection.is_busy:
                    scope.cancel()


async def _listen(listener: "Listener") -> list[trio.SocketListener]:
    """Return a socket for each address of the listener's host, all with the same port.

    Raises:
        BindError: it cannot be had.
    """
    host = "127.0.0.1" if listener.host == "localhost" else listener.host or None
    for _ in range(FREE_PORT_TRIALS):
        try:
            bound = await trio.open_tcp_listeners(listener.port, host=host)
        except OSError as error:
            reason = error.__cause__ or error
            raise BindError(
                f"listeners: cannot listen on {listener.host}:{listener.port}: {reason}"
            ) from error
        ports = {one.socket.getsockname()[1] for one in bound}
        if len(ports) == 1:
            return bound
        # Any free port was asked for, and each address has another one.
        for one in bound:
            one.socket.close()
        with suppress(OSError):
            return await trio.open_tcp_listeners(ports.pop(), host=host)
    raise BindError(f"listeners: no port is free on all addresses of {listener.name}")
