"""An HTTP server in the test's own loop, and clients that send it bytes."""

from contextlib import asynccontextmanager

import trio

from kafkalite.http.access import AccessRules
from kafkalite.http.routing import HttpResponse, Route, Router, json_response
from kafkalite.http.server import HttpLimits, HttpServer
from kafkalite.http.streams import Subscriber, stream_response


class Site:
    """Some routes, and the streams that are open on them."""

    def __init__(self):
        self.subscribers = []

    def routes(self):
        return [
            Route(method="GET", path="/hello", handler=self._hello),
            Route(method="GET", path="/open", handler=self._hello, is_open=True),
            Route(method="POST", path="/things/{thing}", handler=self._post, body_max_bytes=1000),
            Route(method="GET", path="/many", handler=self._many),
            Route(method="GET", path="/bug", handler=self._bug),
            Route(method="GET", path="/events", handler=self._events),
        ]

    async def _hello(self, request):
        return HttpResponse(body=b"hello " + request.text("name", "you").encode())

    async def _post(self, request):
        return json_response({"thing": request.parameters["thing"], "got": request.json()}, 201)

    async def _many(self, request):
        return json_response({"items": [{"n": n} for n in range(request.number("n", 1000))]})

    async def _bug(self, request):
        raise ZeroDivisionError

    async def _events(self, request):
        subscriber = Subscriber()
        self.subscribers.append(subscriber)
        return stream_response(subscriber, lambda: self.subscribers.remove(subscriber))


class Served:
    """A server that listens."""

    def __init__(self, site, server, port):
        self.site, self.server, self.port = site, server, port

    async def connect(self):
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def send(self, data):
        """Return all that comes back until the server closes."""
        async with await self.connect() as stream:
            await stream.send_all(data)
            received = b""
            async for piece in stream:
                received += piece
            return received

    async def ask(self, method="GET", path="/hello", *, body=b"", **headers):
        """Return (status, body) of one request."""
        named = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        if body:
            named["Content-Length"] = str(len(body))
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in named.items() if v)]
        answer = await self.send("\r\n".join([*lines, "", ""]).encode() + body)
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), rest


@asynccontextmanager
async def serving(*, token=None, hosts=(), **limits):
    site = Site()
    server = HttpServer(
        Router(site.routes()), AccessRules.of(hosts, token), limits=HttpLimits(**limits)
    )
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield Served(site, server, listener.socket.getsockname()[1])
        nursery.cancel_scope.cancel()
