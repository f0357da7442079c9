"""The HTTP port's routes, put together; imported when somebody first connects to it.

Each part has a method `routes` that returns a plain list; another capability adds its own to
`broker_routes`, or to `cluster_routes` if it asks by Kafka's requests alone.
"""

from typing import TYPE_CHECKING, Any

from kafkalite.http.access import AccessRules
from kafkalite.http.routing import Router
from kafkalite.http.server import HttpServer
from kafkalite.observe.api_cluster import ClusterRoutes
from kafkalite.observe.api_configs import ConfigRoutes
from kafkalite.observe.api_groups import GroupRoutes
from kafkalite.observe.api_live import LiveRoutes
from kafkalite.observe.api_messages import MessageRoutes
from kafkalite.observe.api_security import SecurityRoutes
from kafkalite.observe.api_topics import TopicRoutes
from kafkalite.observe.health import Health
from kafkalite.observe.history import History
from kafkalite.observe.inside import BrokerParts, InsideCluster
from kafkalite.observe.lag import RecordTimes
from kafkalite.observe.metrics import Metrics
from kafkalite.observe.pages import page_routes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafkalite.http.routing import Route
    from kafkalite.observe.cluster import Cluster
    from kafkalite.registry.rest import RegistryApi
    from kafkalite.types import TopicPartition


def broker_server(parts: BrokerParts, *, token: str | None) -> HttpServer:
    """Return the server of a broker's port; `token` is asked of everybody if there is one."""
    cluster = InsideCluster(parts)
    history = History(cluster)
    router = Router()
    for routes in broker_routes(cluster, history):
        router.add(routes)
    if parts.services.registry is not None:
        for routes in _registry_routes(cluster, parts.services.registry):
            router.add(routes)
    hosts = parts.services.config.list("kafkalite.http.allowed.hosts")
    server = HttpServer(router, AccessRules.of(hosts, token))
    server.background.append(history.run)
    return server


def broker_routes(cluster: InsideCluster, history: History) -> "Iterator[list[Route]]":
    """Yield the routes of each capability of a broker."""
    parts = cluster.parts
    clock = parts.services.clock
    started_ms = clock.monotonic_ms()
    times = RecordTimes()

    def age_ms(place: "TopicPartition", offset: int) -> int | None:
        partition = parts.services.replicas.find(place)
        timestamp = None if partition is None else times.timestamp_at(partition, offset)
        return None if timestamp is None or timestamp < 0 else max(0, clock.wall_ms() - timestamp)

    def facts() -> dict[str, Any]:
        config = parts.services.config
        return {
            "is_broker": True,
            "profile": config.profile,
            "bootstrap": parts.bootstrap,
            "node_id": config.node_id,
            "uptime_ms": clock.monotonic_ms() - started_ms,
            "has_journal": parts.requests.max_bytes > 0,
            "has_control": parts.control.is_allowed,
            "has_registry": parts.services.registry is not None,
        }

    yield Health(cluster).routes()
    yield Metrics(cluster).routes()
    yield LiveRoutes(cluster).routes()
    yield history.routes()
    yield from cluster_routes(cluster, facts, now_ms=clock.wall_ms, age_ms=age_ms)
    yield from optional_routes(parts)


def optional_routes(parts: BrokerParts) -> "Iterator[list[Route]]":
    """Yield the routes of what this broker has by its settings: control."""
    if parts.control.is_allowed:
        from kafkalite.faults.control import ControlApi

        yield ControlApi(parts.control, parts.services.metadata).routes()


def _registry_routes(cluster: InsideCluster, registry: "RegistryApi") -> "Iterator[list[Route]]":
    """Yield the schema registry's routes, and let records be shown by its schemas."""
    # Only who wants a registry pays for the import.
    from kafkalite.registry.lookup import SchemaLookup

    cluster.schemas = SchemaLookup(registry.registry.schema)
    yield registry.routes()


def cluster_routes(
    cluster: "Cluster",
    facts: "Callable[[], dict[str, Any]]",
    *,
    now_ms: "Callable[[], int]",
    age_ms: "Callable[[TopicPartition, int], int | None] | None" = None,
) -> "Iterator[list[Route]]":
    """Yield the routes that any Kafka has answers for.

    Args:
        cluster: whom to ask.
        facts: what else `/cluster` tells.
        now_ms: wall clock.
        age_ms: tells how old the first record from an offset on is, where that is known.
    """
    yield ClusterRoutes(cluster, facts).routes()
    yield TopicRoutes(cluster).routes()
    yield ConfigRoutes(cluster).routes()
    yield MessageRoutes(cluster, now_ms).routes()
    yield GroupRoutes(cluster, age_ms).routes()
    yield SecurityRoutes(cluster).routes()
    yield page_routes()
