"""What the HTTP port answers, put together; imported when somebody first connects to it.

Each module has a function or method `routes` that returns a plain list; another capability adds
its own to `route_lists`.
"""

from typing import TYPE_CHECKING

from kafkalite.http.access import AccessRules
from kafkalite.http.routing import Route, Router
from kafkalite.http.server import HttpServer
from kafkalite.observe.health import Health
from kafkalite.observe.inside import BrokerParts, InsideCluster
from kafkalite.observe.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterable


def broker_server(parts: BrokerParts, *, token: str | None) -> HttpServer:
    """Return the server of a broker's port; `token` is asked of everybody if there is one."""
    config = parts.services.config
    hosts = config.list("kafkalite.http.allowed.hosts")
    router = Router()
    for routes in route_lists(InsideCluster(parts)):
        router.add(routes)
    return HttpServer(router, AccessRules.of(hosts, token))


def route_lists(cluster: InsideCluster) -> "Iterable[list[Route]]":
    """Return the routes of each capability of a broker."""
    yield Health(cluster).routes()
    yield Metrics(cluster).routes()
