"""Sockets that clients connect to, and the connections that come of them."""

import itertools
from functools import partial
from typing import TYPE_CHECKING

import trio

from kafkalite.api.context import ANONYMOUS, RequestContext
from kafkalite.network.budget import MemoryBudget
from kafkalite.network.connection import Connection
from kafkalite.network.sockets import TcpNetwork
from kafkalite.settings.cluster import INT_MAX
from kafkalite.wire.framing import Framer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkalite.api.context import Services
    from kafkalite.config.listeners import Listener
    from kafkalite.network.dispatch import Dispatcher
    from kafkalite.network.entrance import Entrance
    from kafkalite.network.login import Login
    from kafkalite.network.sockets import Acceptor, Network
    from kafkalite.network.transport import Transport
    from kafkalite.quota.connections import ConnectionRates

RATE_SETTING = "max.connection.creation.rate"
"""Connections a second that a listener, and a broker, takes."""

IDLE_CHECKS_PER_LIMIT = 4
"""An idle connection lives at most a quarter longer than connections.max.idle.ms."""


class BindError(Exception):
    """An address that cannot be listened on; the message is one line and names it."""


class ConnectionServer:
    """Accepts clients on all listeners, within the limits that the settings give."""

    def __init__(
        self,
        services: "Services",
        dispatcher: "Dispatcher",
        *,
        network: "Network | None" = None,
        is_alone: bool = False,
    ) -> None:
        """Make a server that listens once `bind` was called.

        Args:
            services: for the handlers.
            dispatcher: of the requests.
            network: where connections come from.
            is_alone: there are no other brokers, so what only brokers may ask is refused.
        """
        self._services = services
        self._dispatcher = dispatcher
        self._network = network or TcpNetwork()
        self._is_alone = is_alone
        config = services.config
        self._max_frame_bytes = config.int("socket.request.max.bytes")
        self._max_idle_ms = config.int("connections.max.idle.ms")
        self._budget = MemoryBudget(config.int("queued.max.request.bytes"))
        self._ids = itertools.count(1)
        self._opened_count = 0
        self._open: dict[int, tuple[Connection, str, trio.CancelScope]] = {}
        self._logins: dict[int, Login] = {}
        """Of the connections that have one, by their ids."""
        self._entrances: dict[str, Entrance] = {}
        """Of the listeners that are not open to everybody, by their names."""
        self.rates: ConnectionRates | None = None
        """What connections are counted by; None where nothing limits how often they come."""
        self.acceptors: dict[Listener, Acceptor] = {}
        """What it listens on."""

    async def bind(self, listeners: "Sequence[Listener]") -> dict[str, int]:
        """Take the addresses; return the port that each listener got, by its name.

        Raises:
            BindError: an address is taken, or is none of this machine's.
            SettingError: a listener cannot work with its settings.
        """
        if any(listener.protocol != "PLAINTEXT" for listener in listeners):
            self._entrances = _entrances(listeners, self._services)
        try:
            for listener in listeners:
                self.acceptors[listener] = await self._listen(listener)
        except BaseException:
            self.close()
            raise
        return {listener.name: one.port for listener, one in self.acceptors.items()}

    def logins(self) -> "list[Login]":
        """Return the logins of all who are connected by listeners that want one."""
        return list(self._logins.values())

    def open_connections(self) -> "list[Connection]":
        """Return the connections that are open now, the oldest first."""
        return [connection for connection, _, _ in self._open.values()]

    def disconnect(self, connection_id: int) -> bool:
        """Close a connection; False if there is none of this id."""
        found = self._open.get(connection_id)
        if found is not None:
            found[2].cancel()
        return found is not None

    @property
    def opened_count(self) -> int:
        """Connections that were ever opened."""
        return self._opened_count

    def close(self) -> None:
        """Stop listening. Not needed after `run`."""
        for acceptor in self.acceptors.values():
            acceptor.close()
        self.acceptors.clear()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Accept and serve until cancelled."""
        async with trio.open_nursery() as nursery:
            for listener, acceptor in self.acceptors.items():
                acceptor.pace = partial(self._pace, listener)
                await nursery.start(acceptor.run, partial(self._serve, listener))
            for entrance in self._entrances.values():
                nursery.start_soon(entrance.run)
            if self._max_idle_ms > 0:
                nursery.start_soon(self._close_idle)
            task_status.started()

    async def _listen(self, listener: "Listener") -> "Acceptor":
        entrance = self._entrances.get(listener.name)
        make_context = None if entrance is None else entrance.make_context
        try:
            return await self._network.listen(listener.host, listener.port, tls=make_context)
        except OSError as error:
            reason = error.__cause__ or error
            raise BindError(
                f"listeners: cannot listen on {listener.host}:{listener.port}: {reason}"
            ) from error

    def _pace(self, listener: "Listener") -> float:
        """Count a connection; return the seconds until it is served, and those behind it."""
        if self.rates is None:
            return 0.0
        config = self._services.config
        throttle_ms = self.rates.record(
            listener.name,
            self._services.clock.monotonic_ms(),
            broker_limit=None if self._is_protected(listener) else _limit(config.int(RATE_SETTING)),
            listener_limit=_limit(config.for_listener(listener.name).number(RATE_SETTING)),
        )
        return throttle_ms / 1_000

    async def _serve(self, listener: "Listener", transport: "Transport") -> None:
        if self.rates is not None:
            now_ms = self._services.clock.monotonic_ms()
            host = transport.peer_address[0]
            throttle_ms = self.rates.record_address(listener.name, host, now_ms)
            if throttle_ms:  # who is left waiting does not come again meanwhile
                await trio.sleep(throttle_ms / 1_000)
                transport.close()
                return
        if not self._admits(transport.peer_address[0], listener):
            self._dispatcher.complaints.warning(
                "refusing %s:%d: too many connections", *transport.peer_address
            )
            transport.close()
            return
        principal = ANONYMOUS
        if listener.is_encrypted:
            try:
                known = await self._entrances[listener.name].shake_hands(transport)
            except BaseException:
                transport.close()
                raise
            if known is None:
                transport.close()
                return
            principal = known
        connection_id = self._opened_count = next(self._ids)
        context = RequestContext(
            services=self._services,
            connection_id=connection_id,
            listener=listener.name,
            is_inter_broker=listener.is_inter_broker and not self._is_alone,
            local_address=transport.local_address,
            peer_address=transport.peer_address,
            principal=principal,
            now_ms=self._services.clock.wall_ms(),
        )
        framer = Framer(self._max_frame_bytes)
        if listener.is_authenticated:
            context.login = login = self._entrances[listener.name].login(context, framer)
            self._logins[connection_id] = login
        connection = Connection(
            transport,
            self._dispatcher,
            context,
            framer=framer,
            budget=self._budget,
        )
        with trio.CancelScope() as scope:
            self._open[connection_id] = (connection, transport.peer_address[0], scope)
            try:
                await connection.run()
            finally:
                del self._open[connection_id]
                self._logins.pop(connection_id, None)

    def _admits(self, host: str, listener: "Listener") -> bool:
        config = self._services.config
        if len(self._open) >= config.int("max.connections") and not self._is_protected(listener):
            return False
        overrides = config.str("max.connections.per.ip.overrides")
        per_host = _limits_by_host(overrides).get(host, config.int("max.connections.per.ip"))
        if per_host > len(self._open):
            return True
        return sum(peer == host for _, peer, _ in self._open.values()) < per_host

    def _is_protected(self, listener: "Listener") -> bool:
        """Tell whether it is for brokers alone, so that no client keeps them out (KIP-402)."""
        return listener.is_inter_broker and not all(each.is_inter_broker for each in self.acceptors)

    async def _close_idle(self) -> None:
        """Close connections that were silent for connections.max.idle.ms (rule 15)."""
        while True:
            await trio.sleep(self._max_idle_ms / 1000 / IDLE_CHECKS_PER_LIMIT)
            now_ms = self._services.clock.real_monotonic_ms()
            oldest_ms = now_ms - self._max_idle_ms
            for connection, _, scope in list(self._open.values()):
                if connection.active_ms(now_ms) < oldest_ms and not connection.is_busy:
                    scope.cancel()


def _limit(rate: int) -> float | None:
    return None if rate == INT_MAX else float(rate)


def _entrances(listeners: "Sequence[Listener]", services: "Services") -> "dict[str, Entrance]":
    from kafkalite.network.entrance import Complaints, Entrance
    from kafkalite.security.logins import StoredUsers

    complaints = Complaints()
    users = StoredUsers(lambda: services.metadata.image)
    return {
        listener.name: Entrance(listener, services, users=users, complaints=complaints)
        for listener in listeners
        if listener.protocol != "PLAINTEXT"
    }


def _limits_by_host(overrides: str) -> dict[str, int]:
    """Read `address:count,...`; an IPv6 address has colons of its own."""
    pairs = (pair.rpartition(":") for pair in overrides.split(",") if pair)
    return {address.strip(): int(count) for address, _, count in pairs}
