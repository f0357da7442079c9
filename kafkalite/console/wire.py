"""Any Kafka as the HTTP API sees it: asked over a client, which waits in a thread."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from kafkalite.client.cluster import Client
from kafkalite.client.connection import Connection
from kafkalite.client.errors import ClientError
from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.schema import Structure

if TYPE_CHECKING:
    from kafkalite.registry.lookup import SchemaLookup

Request = TypeVar("Request", bound=Structure)
Response = TypeVar("Response", bound=Structure)
Answer = TypeVar("Answer")

WAIT_MS = 30_000


class WireCluster:
    """A cluster that is asked one question at a time.

    Args:
        client: connects to it; nobody else may use it.
        can_write: let through what changes something.
        schemas: of keys and values; None without a schema registry.
    """

    def __init__(
        self, client: Client, *, can_write: bool, schemas: "SchemaLookup | None" = None
    ) -> None:
        self._client = client
        self.can_write = can_write
        self.schemas = schemas
        self._turn = trio.Lock()

    async def ask(
        self, api: Api[Request, Response], message: Request, *, broker: int | None = None
    ) -> Response:
        """Ask a broker; see `Cluster.ask`."""

        def ask() -> Response:
            client = self._client
            connection = client.any_broker() if broker is None else client.broker(broker)
            return _request(connection, api, message)

        # Records whose answer was lost would be written twice.
        return await self._in_thread(ask, is_repeatable=api.key is not ApiKey.PRODUCE)

    async def ask_controller(self, api: Api[Request, Response], message: Request) -> Response:
        """Ask the controller; see `Cluster.ask_controller`."""
        return await self._in_thread(lambda: _request(self._client.controller(), api, message))

    async def topic_names(self) -> list[str]:
        """Return the names of all topics, sorted."""

        def ask() -> list[str]:
            return sorted(topic.name or "" for topic in self._client.fetch_metadata(None).topics)

        return await self._in_thread(ask)

    async def supports(self, api: Api[Any, Any]) -> bool:
        """Whether the brokers have it."""
        return await self._in_thread(lambda: self._client.any_broker().supports(api))

    async def _in_thread(
        self, function: Callable[[], Answer], *, is_repeatable: bool = True
    ) -> Answer:
        async with self._turn:
            try:
                return await trio.to_thread.run_sync(function)
            except ClientError as error:
                if not is_repeatable:
                    raise
                # The broker may have moved or restarted: once more, with what is known anew.
                failure = error
            try:
                return await trio.to_thread.run_sync(function)
            except ClientError:
                raise failure from None


def _request(connection: Connection, api: Api[Request, Response], message: Request) -> Response:
    if not connection.supports(api):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"these brokers do not have {api.key.name}")
    return connection.request(api, message, wait_ms=WAIT_MS)


def wall_ms() -> int:
    """Return milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000
