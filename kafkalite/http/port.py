"""The port itself: it is taken when the broker starts, what answers on it is loaded when asked.

So a broker whose port nobody uses pays for an open socket and nothing else.
"""

import errno
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkalite.http.server import HttpServer

DEFAULT_PORT: Final = 9080
LOOPBACK: Final = "127.0.0.1"
AUTO: Final = "auto"

NEXT_PORTS: Final = 20
"""So many ports from the default on are tried before any free one is taken."""


class HttpPortError(Exception):
    """An address that cannot be listened on; the message is one line and names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """Address to listen on.

    Attributes:
        port: 0 takes any free one.
        may_move: takes the next free port where this one is taken.
    """

    host: str
    port: int
    may_move: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether it is for this machine alone."""
        return self.host == "localhost" or self.host.startswith("127.") or self.host == "::1"


def parse_http_address(text: str, *, is_ephemeral: bool) -> HttpAddress | None:
    """Return the address that `kafkalite.http.listener` means; None for none.

    Args:
        text: `HOST:PORT`, `auto`, or nothing.
        is_ephemeral: the broker takes any free port for its clients, so `auto` does too.

    Raises:
        ValueError: it is no address.
    """
    if not text:
        return None
    if text == AUTO:
        port = 0 if is_ephemeral else DEFAULT_PORT
        return HttpAddress(host=LOOPBACK, port=port, may_move=True)
    host, colon, port_text = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_number = port_text.isascii() and port_text.isdigit() and int(port_text) < 65_536
    if not colon or not is_number or (":" in bare) != (host == f"[{bare}]"):
        raise ValueError(f"{text!r} is no address; write HOST:PORT or auto")
    return HttpAddress(host=bare or "0.0.0.0", port=int(port_text))


class HttpPort:
    """Listens, and hands connections to a server that is made for the first of them.

    Args:
        address: where to listen.
        module: what the server needs to be imported, by a thread, so that nobody waits for it.
        make_server: called after that, once.
    """

    def __init__(
        self, address: HttpAddress, *, module: str, make_server: "Callable[[], HttpServer]"
    ) -> None:
        self._address = address
        self._module = module
        self._make_server = make_server
        self._listeners: list[trio.SocketListener] = []
        self._server: HttpServer | None = None
        self._loading = trio.Lock()
        self.port = 0

    @property
    def url(self) -> str:
        """URL for a browser on this machine, without a slash at the end."""
        host = self._address.host
        if host in ("0.0.0.0", "::", ""):
            host = LOOPBACK
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    async def bind(self) -> None:
        """Take the port.

        Raises:
            HttpPortError: it is taken, or the address is none of this machine's.
        """
        address = self._address
        ports = [address.port]
        if address.may_move and address.port:
            ports += [*range(address.port + 1, address.port + NEXT_PORTS), 0]
        for port in ports:
            try:
                self._listeners = await trio.open_tcp_listeners(port, host=address.host)
            except OSError as error:
                if error.errno == errno.EADDRINUSE and port != ports[-1]:
                    continue
                reason = error.__cause__ or error
                raise HttpPortError(
                    f"kafkalite.http.listener: cannot listen on {address.host}:{port}: {reason}"
                ) from error
            self.port = self._listeners[0].socket.getsockname()[1]
            return

    def close(self) -> None:
        """Stop listening; not needed after `run`."""
        for listener in self._listeners:
            listener.socket.close()

    async def run(self, *, task_status: "trio.TaskStatus[Any]" = trio.TASK_STATUS_IGNORED) -> None:
        """Accept and answer until cancelled."""
        async with trio.open_nursery() as nursery:
            serve = partial(self._serve, nursery)
            await trio.serve_listeners(serve, self._listeners, task_status=task_status)

    async def _serve(self, nursery: trio.Nursery, stream: trio.SocketStream) -> None:
        if self._server is None:
            async with self._loading:
                if self._server is None:
                    await trio.to_thread.run_sync(import_module, self._module)
                    self._server = self._make_server()
                    for task in self._server.background:
                        nursery.start_soon(task)  # until `run` is cancelled
        with suppress(OSError):
            await self._server.serve(stream)
