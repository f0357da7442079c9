"""Events to a browser (server-sent events): each subscriber has a queue with a bound."""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

import trio

from kafkalite.http.routing import HttpResponse, dump

QUEUE_MAX: Final = 1_000
"""Events that wait for a subscriber that reads slowly; the oldest go first, and it is told."""

HEARTBEAT_S: Final = 15.0
"""A comment is sent after so long without an event, so that a dead connection is noticed."""

EVENTS_TYPE: Final = "text/event-stream"


class Subscriber:
    """One reader of a stream of events."""

    __slots__ = ("_changed", "_events", "dropped_count")

    def __init__(self) -> None:
        self._events: deque[bytes] = deque()
        self._changed = trio.Event()
        self.dropped_count = 0

    def put(self, name: str, value: Any, *, event_id: int | None = None) -> None:
        """Send an event when the reader takes it."""
        if len(self._events) >= QUEUE_MAX:
            self._events.popleft()
            self.dropped_count += 1
        self._events.append(event(name, value, event_id=event_id))
        self._changed.set()

    async def take(self) -> bytes:
        """Return the events that wait, or a comment if there are none for a while."""
        if not self._events:
            self._changed = trio.Event()
            with trio.move_on_after(HEARTBEAT_S):
                await self._changed.wait()
        if not self._events:
            return b": still here\n\n"
        taken = b"".join(self._events)
        self._events.clear()
        if self.dropped_count:
            taken = event("dropped", {"dropped": self.dropped_count}) + taken
            self.dropped_count = 0
        return taken


def event(name: str, value: Any, *, event_id: int | None = None) -> bytes:
    """Return one event as it goes over the wire."""
    number = b"" if event_id is None else b"id: %d\n" % event_id
    return number + b"event: " + name.encode() + b"\ndata: " + dump(value) + b"\n\n"


def stream_response(
    subscriber: Subscriber, closed: Callable[[], object] | None = None
) -> HttpResponse:
    """Return the answer that goes on until the reader goes; `closed` is called then."""

    async def events() -> AsyncGenerator[bytes, None]:
        yield b"retry: 1000\n\n"
        while True:
            yield await subscriber.take()

    return HttpResponse(
        body=events(),
        content_type=EVENTS_TYPE,
        is_stream=True,
        on_closed=closed,
    )
