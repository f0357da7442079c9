"""Serves HTTP/1.1 on one port: h11 reads and writes the messages, trio the bytes (decision 0130).

Whatever a client does costs a bounded part of memory and of the loop: headers of 16 KiB, bodies as
large as the route allows, so many connections, so much time for each step.
"""

import itertools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import h11
import trio

from kafkalite.http.access import COOKIE, AccessRules
from kafkalite.http.routing import (
    HttpError,
    HttpRequest,
    HttpResponse,
    Route,
    Router,
    json_response,
    parse_target,
)
from kafkalite.http.slices import Slices

logger = logging.getLogger("kafkalite.http")

CONNECTIONS_MAX: Final = 256
"""Browsers open six each; who comes beyond that pushes out whom nothing is being done for."""

STREAMS_MAX: Final = 128
"""Event streams among these; the rest of the connections stay free for short questions."""

HEADERS_MAX_BYTES: Final = 16 * 1024
RECEIVE_BYTES: Final = 16 * 1024
SEND_BYTES: Final = 64 * 1024

HEADERS_TIMEOUT_S: Final = 10.0
BODY_TIMEOUT_S: Final = 30.0
SEND_TIMEOUT_S: Final = 30.0
IDLE_TIMEOUT_S: Final = 60.0

LINGER_S: Final = 1.0
LINGER_MAX_BYTES: Final = 1024 * 1024

SAFETY_HEADERS: Final = (
    ("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class _Closed(Exception):
    """The client has gone, or was too slow."""


@dataclass(slots=True, frozen=True, kw_only=True)
class HttpLimits:
    """How much clients may hold; see the constants above."""

    connections: int = CONNECTIONS_MAX
    streams: int = STREAMS_MAX
    headers_timeout_s: float = HEADERS_TIMEOUT_S
    body_timeout_s: float = BODY_TIMEOUT_S
    send_timeout_s: float = SEND_TIMEOUT_S
    idle_timeout_s: float = IDLE_TIMEOUT_S


class HttpServer:
    """Answers on connections that somebody else accepts.

    Args:
        router: what is answered.
        access: who may ask.
        limits: how much clients may hold.
    """

    def __init__(
        self, router: Router, access: AccessRules, *, limits: HttpLimits | None = None
    ) -> None:
        self.router = router
        self.background: list[Callable[[], Awaitable[object]]] = []
        """What runs as long as the server does."""
        self._access = access
        self._limits = limits or HttpLimits()
        self._ids = itertools.count()
        self._open: dict[int, _Connection] = {}

    @property
    def stream_count(self) -> int:
        """Connections on which events are sent."""
        return sum(connection.is_streaming for connection in self._open.values())

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        return len(self._open)

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer on one connection until it ends; closes the stream."""
        number = next(self._ids)
        try:
            if len(self._open) >= self._limits.connections and not self._push_out_idle():
                with trio.move_on_after(LINGER_S):
                    await stream.send_all(_BUSY)
                    await _linger(stream)
                return
            with trio.CancelScope() as scope:
                connection = _Connection(self, stream, scope, self._access, self._limits)
                self._open[number] = connection
                try:
                    await connection.run()
                finally:
                    self._open.pop(number, None)
        except (_Closed, *_GONE):
            pass
        except Exception:
            logger.exception("an HTTP connection")
        finally:
            await trio.aclose_forcefully(stream)

    def _push_out_idle(self) -> bool:
        """End the connection that has had nothing to do for longest; False if there is none."""
        for number, connection in self._open.items():
            if connection.is_idle:
                connection.scope.cancel()
                del self._open[number]
                return True
        return False


_BUSY_BODY: Final = b'{"error": {"status": 503, "message": "too many connections are open"}}\n'
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    b"Connection: close\r\nRetry-After: 1\r\nContent-Length: %d\r\n\r\n" % len(_BUSY_BODY)
) + _BUSY_BODY


class _Connection:
    """One client's requests, one after another."""

    def __init__(
        self,
        server: HttpServer,
        stream: trio.SocketStream,
        scope: trio.CancelScope,
        access: AccessRules,
        limits: HttpLimits,
    ) -> None:
        self._server = server
        self._stream = stream
        self.scope = scope
        self._access = access
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADERS_MAX_BYTES)
        self.is_idle = True
        self.is_streaming = False

    async def run(self) -> None:
        limits = self._limits
        timeout_s = limits.headers_timeout_s
        while True:
            try:
                with _deadline(timeout_s):
                    event = await self._next_event()
                if not isinstance(event, h11.Request):
                    return
                self.is_idle = False
                await self._answer(event)
            except h11.RemoteProtocolError as error:
                await self._refuse_malformed(error)
                return
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                await _linger(self._stream)
                return
            self._http.start_next_cycle()
            self.is_idle = True
            timeout_s = limits.idle_timeout_s

    async def _next_event(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                await self._send(self._http.send(go_on))
            self._http.receive_data(await self._stream.receive_some(RECEIVE_BYTES))

    async def _answer(self, event: h11.Request) -> None:
        method = event.method.decode("ascii", "replace")
        try:
            response = await self._respond(method, event)
        except HttpError as error:
            response = refusal(error.status, error.message)
        try:
            if response.is_stream and self._server.stream_count >= self._limits.streams:
                busy = refusal(503, "too many event streams are open")
                await self._send_response(busy, with_body=True)
            else:
                await self._send_response(response, with_body=method != "HEAD")
        finally:
            if response.on_closed is not None:
                response.on_closed()

    async def _respond(self, method: str, event: h11.Request) -> HttpResponse:
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
        path, query = parse_target(event.target.decode("latin-1"))
        self._access.check(method, headers)
        try:
            match = self._server.router.find(method, path)
        except HttpError:
            self._access.check_token(headers, query)  # who may not ask learns nothing
            raise
        self._access.check_content_type(method, headers, match.route.content_types)
        if not match.route.is_open:
            is_in_query = self._access.check_token(headers, query)
            if is_in_query and "text/html" in headers.get("accept", ""):
                return _with_cookie(path, query)
        request = HttpRequest(
            method=method,
            path=path,
            query=query,
            headers=headers,
            parameters=match.parameters,
            body=await self._body(match.route, headers),
        )
        try:
            return await match.route.handler(request)
        except HttpError:
            raise
        except Exception:
            logger.exception("%s %s", method, path[:200])
            return refusal(500, "an error in the broker, whose log has it")

    async def _body(self, route: Route, headers: dict[str, str]) -> bytes:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > route.body_max_bytes:
            raise HttpError(413, f"the body may have {route.body_max_bytes} bytes")
        body = bytearray()
        with _deadline(self._limits.body_timeout_s):
            while True:
                event = await self._next_event()
                if isinstance(event, h11.Data):
                    body += event.data
                    if len(body) > route.body_max_bytes:
                        raise HttpError(413, f"the body may have {route.body_max_bytes} bytes")
                elif isinstance(event, h11.EndOfMessage):
                    return bytes(body)
                else:
                    raise _Closed

    async def _send_response(self, response: HttpResponse, *, with_body: bool) -> None:
        headers = [("Content-Type", response.content_type), *SAFETY_HEADERS]
        headers += response.headers.items()
        body = response.body
        if "Cache-Control" not in response.headers:
            headers.append(("Cache-Control", "no-store"))
        if isinstance(body, bytes):
            headers.append(("Content-Length", str(len(body))))
        if self._http.their_state is not h11.DONE:
            headers.append(("Connection", "close"))  # a body that nobody read is on its way
        self.is_streaming = response.is_stream
        try:
            head = h11.Response(status_code=response.status, headers=headers)
            await self._send(self._http.send(head))
            if with_body:
                if response.is_stream:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._end_with_client, nursery.cancel_scope)
                        with suppress(_Closed, *_GONE):  # a nursery would wrap them
                            await self._send_body(body)
                        nursery.cancel_scope.cancel()
                    return
                await self._send_body(body)
            await self._send(self._http.send(h11.EndOfMessage()))
        finally:
            self.is_streaming = False

    async def _end_with_client(self, scope: trio.CancelScope) -> None:
        """Notice that the reader of a stream has gone although there is nothing to send."""
        with suppress(*_GONE):
            while await self._stream.receive_some(RECEIVE_BYTES):
                pass
        scope.cancel()

    async def _send_body(self, body: bytes | Iterable[bytes] | AsyncGenerator[bytes, None]) -> None:
        if isinstance(body, bytes):
            for start in range(0, len(body), SEND_BYTES):
                await self._send_data(body[start : start + SEND_BYTES])
        elif isinstance(body, AsyncGenerator):
            async with aclosing(body):
                async for piece in body:
                    await self._send_data(piece)
        else:
            slices = Slices()
            pending = bytearray()
            for piece in body:
                pending += piece
                if len(pending) >= SEND_BYTES:
                    await self._send_data(bytes(pending))
                    pending.clear()
                await slices.breathe()
            await self._send_data(bytes(pending))

    async def _send_data(self, data: bytes) -> None:
        await self._send(self._http.send(h11.Data(data=data)))

    async def _send(self, data: bytes | None) -> None:
        if data:
            with _deadline(self._limits.send_timeout_s):
                await self._stream.send_all(data)

    async def _refuse_malformed(self, error: h11.RemoteProtocolError) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status = error.error_status_hint
            response = refusal(status, f"this is no HTTP request: {error}")
            await self._send_response(response, with_body=True)
            await _linger(self._stream)


async def _linger(stream: trio.SocketStream) -> None:
    """Read for a moment what is still on its way: a reset would take the answer away."""
    left = LINGER_MAX_BYTES
    with trio.move_on_after(LINGER_S):
        await stream.send_eof()
        while left > 0:
            data = await stream.receive_some(RECEIVE_BYTES)
            if not data:
                return
            left -= len(data)


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise _Closed if what is done in it takes longer."""
    with trio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise _Closed


def refusal(status: int, message: str) -> HttpResponse:
    """Return an answer that says in one line why it is none."""
    answer = json_response({"error": {"status": status, "message": message}}, status)
    answer.body = b"".join(answer.body)  # type: ignore[arg-type]
    if status == 401:
        answer.headers = {"WWW-Authenticate": "Bearer"}
    return answer


def _with_cookie(path: str, query: dict[str, str]) -> HttpResponse:
    """Send a browser to the same page with the token in a cookie instead of the address."""
    token = query["token"]
    rest = {name: value for name, value in query.items() if name != "token"}
    return HttpResponse(
        status=303,
        headers={
            "Location": path + (f"?{urlencode(rest)}" if rest else ""),
            "Set-Cookie": f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict",
        },
    )
