"""A TCP proxy whose connections can be cut, wherever a request or an answer is just then."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence


class CuttingProxy:
    """Listens on a free port and passes everything on to a port of the same machine."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port: int = self._listener.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        #: Where the broker listens; to be set before anybody connects.
        self.upstream_port = 0
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Not close() alone, which would leave the accepting thread asleep.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut(1.0, random.Random())

    def cut(self, share: float, numbers: random.Random) -> None:
        """Cut so large a share of the connections: both sides see the other go."""
        with self._lock:
            chosen = [pair for pair in self._pairs if numbers.random() < share]
        for pair in chosen:
            self._cut(pair)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the listener was closed
            try:
                self._connect(client)
            except OSError:
                client.close()  # the broker is away

    def _connect(self, client: socket.socket) -> None:
        broker = socket.create_connection(("127.0.0.1", self.upstream_port))
        pair = (client, broker)
        with self._lock:
            self._pairs.add(pair)
        for source, target in (pair, pair[::-1]):
            arguments = (source, target, pair)
            threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def _pump(
        self,
        source: socket.socket,
        target: socket.socket,
        pair: tuple[socket.socket, socket.socket],
    ) -> None:
        with contextlib.suppress(OSError):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while chunk := source.recv(1 << 16):
                target.sendall(chunk)
        self._cut(pair)
        source.close()  # The other pump closes the other one.

    def _cut(self, pair: tuple[socket.socket, socket.socket]) -> None:
        with self._lock:
            self._pairs.discard(pair)
        for connection in pair:
            # Not close(), which would leave the other thread's recv asleep.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class ProxyGroup:
    """Several proxies as one: each before a broker of a cluster."""

    def __init__(self, proxies: Sequence[CuttingProxy]) -> None:
        self._proxies = proxies
        self.bootstrap = ",".join(proxy.bootstrap for proxy in proxies)

    def cut(self, share: float, numbers: random.Random) -> None:
        """Cut so large a share of the connections to all brokers."""
        for proxy in self._proxies:
            proxy.cut(share, numbers)
