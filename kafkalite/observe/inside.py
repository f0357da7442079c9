"""The broker that this runs in, asked without a connection, and what only it knows of itself."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import trio

from kafkalite.api.authorizer import OPERATOR
from kafkalite.api.context import ANONYMOUS, RequestContext, Services
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.wire.api import Api
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.schema import Structure
from kafkalite.wire.versions import VERSION_CAPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkalite.faults.parts import Control
    from kafkalite.isr.fetcher import ReplicaFetcherManager
    from kafkalite.meta.zookeeper.session import Session
    from kafkalite.network.dispatch import Dispatcher
    from kafkalite.network.listeners import ConnectionServer
    from kafkalite.observe.requests import Requests
    from kafkalite.peers.clients import PeerClients
    from kafkalite.registry.lookup import SchemaLookup
    from kafkalite.wire.api import ApiKey

Request = TypeVar("Request", bound=Structure)
Response = TypeVar("Response", bound=Structure)

CLIENT_ID: Final = "__admin_client"
"""The one client id that may write to internal topics (rule 23)."""

CHANNEL: Final = "http"
"""Connections to other brokers: nobody else waits for what is asked here."""

TIMEOUT_MS: Final = 30_000


@dataclass(slots=True, kw_only=True)
class BrokerParts:
    """A running broker, for those who look at it from within; `ports` by listener."""

    services: Services
    dispatcher: "Dispatcher"
    connections: "ConnectionServer"
    requests: "Requests"
    peers: "PeerClients | None"
    ports: "Mapping[str, int]"
    bootstrap: str
    control: "Control"
    fetchers: "ReplicaFetcherManager | None" = None
    session: "Session | None" = None


class InsideCluster:
    """Asks this broker by plain calls of its handlers, other brokers as their peer."""

    def __init__(self, parts: BrokerParts) -> None:
        self.parts = parts
        self.can_write = True
        self.schemas: SchemaLookup | None = None
        listener = parts.services.config.listeners[0]
        host = "127.0.0.1" if listener.host in ("", "0.0.0.0", "::") else listener.host
        self._context = RequestContext(
            services=parts.services,
            connection_id=0,
            listener=listener.name,
            is_inter_broker=False,
            local_address=(host, parts.ports.get(listener.name, listener.port)),
            peer_address=(host, 0),
            principal=ANONYMOUS if parts.services.authorizer is None else OPERATOR,
            client_id=CLIENT_ID,
        )

    async def ask(
        self, api: Api[Request, Response], message: Request, *, broker: int | None = None
    ) -> Response:
        """Ask a broker; see `Cluster.ask`."""
        peers, own_id = self.parts.peers, self.parts.services.config.node_id
        if broker is not None and broker != own_id:
            if peers is None:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {broker}")
            return await peers.request(
                broker, _capped(api), message, timeout_ms=TIMEOUT_MS, channel=CHANNEL
            )
        return cast("Response", await self._ask_here(self._handler(api.key), message))

    async def ask_controller(self, api: Api[Request, Response], message: Request) -> Response:
        """Ask the controller; see `Cluster.ask_controller`."""
        metadata = self.parts.services.metadata
        controller = None if metadata.is_controller else metadata.image.controller_id
        return await self.ask(api, message, broker=controller)

    async def topic_names(self) -> list[str]:
        """Return the names of all topics, sorted."""
        return sorted(self.parts.services.metadata.image.topics)

    async def supports(self, api: Api[Any, Any]) -> bool:
        """Whether this broker answers it."""
        return self.parts.dispatcher.find(api.key) is not None

    def _handler(self, key: "ApiKey") -> Handler:
        handler = self.parts.dispatcher.find(key)
        if handler is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{key.name} is not served here")
        return handler

    async def _ask_here(self, handler: Handler, message: Any) -> Any:
        context = self._context_of(handler.api)
        result = handler.handle(message, context)
        if isinstance(result, Deferred):
            with trio.fail_after(TIMEOUT_MS / 1_000):
                result = await result.wait()
        else:
            await trio.lowlevel.checkpoint()
        return result

    def _context_of(self, api: Api[Any, Any]) -> RequestContext:
        context = self._context
        return RequestContext(
            services=context.services,
            connection_id=context.connection_id,
            listener=context.listener,
            is_inter_broker=False,
            local_address=context.local_address,
            peer_address=context.peer_address,
            principal=context.principal,
            api_version=min(api.versions[1], VERSION_CAPS.get(api.key, api.versions[1])),
            client_id=context.client_id,
            now_ms=context.services.clock.wall_ms(),
        )


def _capped(api: Api[Request, Response]) -> Api[Request, Response]:
    """Return the same API without the versions that name topics by their ids."""
    cap = VERSION_CAPS.get(api.key)
    if cap is None or cap >= api.versions[1]:
        return api
    capped = object.__new__(type(api))
    capped.__dict__.update(api.__dict__)
    capped.versions = (api.versions[0], cap)
    return capped
