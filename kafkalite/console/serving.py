"""The console as a process of its own: the same pages and API, over a client."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from kafkalite.client.cluster import Client
from kafkalite.console.wire import WireCluster, wall_ms
from kafkalite.http.access import AccessRules
from kafkalite.http.port import HttpAddress, HttpPort
from kafkalite.http.routing import Router
from kafkalite.http.server import HttpServer
from kafkalite.observe.serving import cluster_routes

if TYPE_CHECKING:
    from kafkalite.registry.lookup import SchemaLookup


async def serve_console(
    client: Client,
    address: HttpAddress,
    *,
    can_write: bool,
    token: str | None,
    on_ready: Callable[[str], object],
    schemas: "SchemaLookup | None" = None,
) -> None:
    """Serve until cancelled; `on_ready` is told where.

    `schemas` decodes keys and values that were written with one.

    Raises:
        HttpPortError: the address cannot be listened on.
    """

    def make_server() -> HttpServer:
        cluster = WireCluster(client, can_write=can_write, schemas=schemas)
        router = Router()
        host, port = client.bootstrap[0]
        facts = {"is_broker": False, "bootstrap": f"{host}:{port}"}
        for routes in cluster_routes(cluster, lambda: facts, now_ms=wall_ms):
            router.add(routes)
        return HttpServer(router, AccessRules.of((), token))

    port = HttpPort(address, module="kafkalite.observe.serving", make_server=make_server)
    await port.bind()
    async with trio.open_nursery() as nursery:
        await nursery.start(port.run)
        on_ready(port.url)
