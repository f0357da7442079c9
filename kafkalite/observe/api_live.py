"""The HTTP API's live parts: requests as they come, who waits for what, clients, rates."""

import base64
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, Final

import trio

from kafkalite.http.routing import HttpError, HttpRequest, HttpResponse, Route
from kafkalite.http.slices import Slices
from kafkalite.http.streams import EVENTS_TYPE, HEARTBEAT_S, QUEUE_MAX, event
from kafkalite.network.connection import Connection
from kafkalite.observe.answers import Routes
from kafkalite.observe.entries import Entry
from kafkalite.observe.inside import InsideCluster
from kafkalite.observe.rendering import entry_json, message_json, topics_of
from kafkalite.wire.api import ApiKey

FOLLOW_PAUSE_S: Final = 0.2
"""Requests are sent on five times a second, all that came together."""

LIMIT_MAX: Final = 1_000

SEND_BYTES: Final = 64 * 1024
"""Events of so many bytes are sent before more are made."""

TAIL_MAX_BYTES: Final = 16 * 1024 * 1024
"""Of requests that wait for one reader; the last of them is kept whatever its size."""


class Wanted:
    """Which requests somebody wants to see; each of these may be left open."""

    def __init__(self, request: HttpRequest) -> None:
        name = request.text("api").replace("_", "").lower()
        self._api = None
        if name:
            self._api = next(
                (key for key in ApiKey if key.name.replace("_", "").lower() == name), None
            )
            if self._api is None:
                raise HttpError(400, f"Kafka has no API named {request.text('api')!r}")
        self._client_id = request.text("client_id")
        self._topic = request.text("topic")
        self._failed = request.flag("failed")
        self._connection = request.number("connection", 0)

    def matches(self, entry: Entry) -> bool:
        """Whether a request is wanted."""
        if self._api is not None and entry.api is not self._api:
            return False
        if self._client_id and self._client_id not in entry.exchange.header.client_id:
            return False
        if self._connection and entry.context.connection_id != self._connection:
            return False
        if self._topic and self._topic not in topics_of(entry.request):
            return False
        return not self._failed or bool(entry_json(0, entry)["errors"])


class Tail:
    """Requests that one reader has not been sent yet; the oldest go if there are too many."""

    __slots__ = ("_changed", "_entries", "_held_bytes")

    def __init__(self) -> None:
        self._entries: deque[tuple[int, Entry]] = deque()
        self._held_bytes = 0
        self._changed = trio.Event()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, number: int, entry: Entry) -> None:
        """Have one more."""
        self._entries.append((number, entry))
        self._held_bytes += entry.held_bytes
        count = len(self._entries)
        while count > QUEUE_MAX or (self._held_bytes > TAIL_MAX_BYTES and count > 1):
            self.take()
            count -= 1
        self._changed.set()

    def take(self) -> tuple[int, Entry]:
        """Take out the oldest, with its number."""
        taken = self._entries.popleft()
        self._held_bytes -= taken[1].held_bytes
        return taken

    async def wait_filled(self, timeout_s: float) -> None:
        """Wait until there are any, but no longer than that."""
        if self._entries:
            await trio.lowlevel.checkpoint()
            return
        self._changed = trio.Event()
        with trio.move_on_after(max(0.0, timeout_s)):
            await self._changed.wait()


def _event(number: int, entry: Entry, *, whole: bool, raw: bool) -> bytes:
    """Return a request as it is sent; made once for all who follow."""
    key = (whole, raw)
    text = entry.events.get(key)
    if text is None:
        found = entry_json(number, entry, whole=whole)
        if raw and entry.raw is not None:
            found["raw"] = [base64.b64encode(each).decode() for each in entry.raw]
            found["local"] = list(entry.context.local_address[:2])
        text = entry.events[key] = event("request", found, event_id=number)
    return text


class LiveRoutes:
    """Answers about requests and clients of this broker."""

    def __init__(self, cluster: InsideCluster) -> None:
        self._cluster = cluster
        self._requests = cluster.parts.requests
        self._raw_readers = 0
        self._image = cluster.parts.services.metadata.image
        self._image_number = 0

    def routes(self) -> list[Route]:
        """Return what is answered."""
        add = Routes(self._cluster)
        add.get("/requests", self._list)
        add.get("/requests/follow", self._follow)
        add.get("/requests/{number}", self._one)
        add.get("/pulse", self._pulse)
        add.get("/waiting", self._waiting)
        add.get("/clients", self._clients)
        add.write("DELETE", "/clients/{connection}", self._disconnect)
        add.get("/client-metrics", self._metrics)
        return add.list

    async def _list(self, request: HttpRequest) -> dict[str, Any]:
        """List the latest requests, the newest first."""
        wanted = Wanted(request)
        limit = request.number("limit", 100, low=1, high=LIMIT_MAX)
        found: list[dict[str, Any]] = []
        slices = Slices()
        for number, entry in list(self._requests.latest()):
            if len(found) >= limit:
                break
            if wanted.matches(entry):
                found.append(entry_json(number, entry))
            await slices.breathe()
        return {
            "count": self._requests.count,
            "held_bytes": self._requests.held_bytes,
            "max_bytes": self._requests.max_bytes,
            "requests": found,
        }

    async def _one(self, request: HttpRequest) -> dict[str, Any]:
        text = request.parameters["number"]
        entry = self._requests.get(int(text)) if text.isdigit() and len(text) < 19 else None
        if entry is None:
            raise HttpError(404, f"request {text} is not kept")
        await trio.lowlevel.checkpoint()
        return entry_json(int(text), entry, whole=True)

    async def _follow(self, request: HttpRequest) -> HttpResponse:
        """Send requests as they are answered; `whole=true` with messages, `raw=true` as bytes."""
        if not self._requests.max_bytes:
            raise HttpError(409, "there is no journal: set kafkalite.journal.max.bytes")
        wanted = Wanted(request)
        tail = Tail()
        is_raw = request.flag("raw")
        last = request.headers.get("last-event-id", "")
        if last.isdigit():
            for number, entry in reversed(list(self._requests.latest())):
                if number > int(last):
                    tail.put(number, entry)
        end = self._requests.subscribe(tail.put)
        if is_raw:
            self._count_raw(1)

        def closed() -> None:
            end()
            if is_raw:
                self._count_raw(-1)

        return HttpResponse(
            body=self._events(tail, wanted, whole=request.flag("whole"), raw=is_raw),
            content_type=EVENTS_TYPE,
            is_stream=True,
            on_closed=closed,
        )

    def _count_raw(self, change: int) -> None:
        self._raw_readers += change
        self._requests.keeps_raw = self._raw_readers > 0

    async def _events(
        self, tail: Tail, wanted: Wanted, *, whole: bool, raw: bool
    ) -> AsyncGenerator[bytes, None]:
        yield b"retry: 1000\n\n"
        sent_s = trio.current_time()
        expected = 0
        while True:
            slices = Slices()
            pieces = bytearray()
            # What comes meanwhile is for the next time: it may come faster than this is done.
            for _ in range(len(tail)):
                if not len(tail):
                    break  # what came was too large to keep it
                number, entry = tail.take()
                if expected and number > expected:
                    pieces += event("dropped", {"dropped": number - expected})
                expected = number + 1
                if wanted.matches(entry):
                    pieces += _event(number, entry, whole=whole, raw=raw)
                    if len(pieces) >= SEND_BYTES:
                        yield bytes(pieces)
                        pieces.clear()
                        sent_s = trio.current_time()
                await slices.breathe()
            if pieces or trio.current_time() >= sent_s + HEARTBEAT_S:
                yield bytes(pieces) or b": still here\n\n"
                sent_s = trio.current_time()
            await trio.sleep(FOLLOW_PAUSE_S)
            await tail.wait_filled(sent_s + HEARTBEAT_S - trio.current_time())

    async def _pulse(self, request: HttpRequest) -> dict[str, Any]:
        """Tell by one text whether clients did anything since; null where that is not known.

        Far cheaper than to ask again for what a page shows. Of several brokers no one knows it all.
        """
        del request
        await trio.lowlevel.checkpoint()
        parts = self._cluster.parts
        image = parts.services.metadata.image
        if image is not self._image:
            self._image, self._image_number = image, self._image_number + 1
        if len(image.brokers) > 1:
            return {"pulse": None}
        open_now = parts.connections.open_connections()
        counts = (
            sum(counts.count for counts in self._requests.apis.values()),
            sum(topic.messages_in for topic in parts.services.replicas.traffic.topics.values()),
            parts.connections.opened_count,
            len(open_now),
            sum(len(connection.waiting) for connection in open_now),
            self._image_number,
        )
        return {"pulse": "-".join(map(str, counts))}

    async def _waiting(self, request: HttpRequest) -> dict[str, Any]:
        """List the requests that wait for their answers now, and what each waits for."""
        del request
        found: list[dict[str, Any]] = []
        slices = Slices()
        for connection in self._cluster.parts.connections.open_connections():
            for exchange in connection.waiting:
                key = exchange.handler.api.key
                found.append(
                    {
                        "api": key.name,
                        "client_id": exchange.header.client_id,
                        "connection_id": connection.context.connection_id,
                        "peer": "{}:{}".format(*connection.context.peer_address[:2]),
                        "waits_for": WAITS_FOR.get(key, "another broker or the disk"),
                        "request": message_json(exchange.request),
                    }
                )
            await slices.breathe()
        return {"count": len(found), "waiting": found}

    async def _clients(self, request: HttpRequest) -> dict[str, Any]:
        """List the connections."""
        del request
        used: dict[int, dict[str, int]] = {}
        slices = Slices()
        for _, entry in list(self._requests.latest()):
            apis = used.setdefault(entry.context.connection_id, {})
            name = entry.api.name
            apis[name] = apis.get(name, 0) + 1
            await slices.breathe()
        found = []
        for connection in self._cluster.parts.connections.open_connections():
            found.append(self._client_json(connection, used))
            await slices.breathe()
        return {"count": len(found), "clients": found}

    def _client_json(
        self, connection: Connection, used: dict[int, dict[str, int]]
    ) -> dict[str, Any]:
        context = connection.context
        software = context.client_software
        waiting = connection.waiting
        return {
            "connection_id": context.connection_id,
            "client_id": context.client_id,
            "software": software[0] if software else None,
            "version": software[1] if software else None,
            "peer": "{}:{}".format(*context.peer_address[:2]),
            "listener": context.listener,
            "principal": context.principal,
            "waits_in": waiting[0].handler.api.key.name if waiting else None,
            "recent": used.get(context.connection_id, {}),
        }

    async def _metrics(self, request: HttpRequest) -> dict[str, Any]:
        """List what clients push of their own metrics (KIP-714), once somebody subscribed to it."""
        del request
        found = []
        slices = Slices()
        for instance in self._cluster.parts.services.client_metrics.snapshot():
            found.append(
                {
                    "instance_id": str(instance.instance_id),
                    "connection_id": instance.connection_id,
                    "pushes": instance.pushes,
                    "pushed_bytes": instance.pushed_bytes,
                    "last_push_ms": instance.last_push_ms,
                    "metrics": instance.metrics,
                }
            )
            await slices.breathe()
        return {"count": len(found), "clients": found}

    async def _disconnect(self, request: HttpRequest) -> dict[str, Any]:
        text = request.parameters["connection"]
        number = int(text) if text.isdigit() and len(text) < 19 else 0
        await trio.lowlevel.checkpoint()
        if not self._cluster.parts.connections.disconnect(number):
            raise HttpError(404, f"there is no connection {text}")
        return {"connection_id": number}


WAITS_FOR: Final = {
    ApiKey.FETCH: "new records",
    ApiKey.PRODUCE: "in-sync replicas to have its records",
    ApiKey.JOIN_GROUP: "other members of the group to join",
    ApiKey.SYNC_GROUP: "the group's leader to assign partitions",
    ApiKey.SHARE_FETCH: "new records",
    ApiKey.END_TXN: "markers of the transaction to be written",
}
