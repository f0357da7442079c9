"""The way from the threads of ZooKeeper's client to trio, and how it ends."""

import contextlib
from collections.abc import Callable
from typing import Any

import trio


class Bridge:
    """The way from kazoo's threads to trio."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have a function that cannot raise called in trio; do nothing after trio's end."""
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(function, *arguments)


def stop(client: Any) -> None:
    """End a client and free its sockets; without connection that takes a while."""
    with contextlib.suppress(Exception):
        client.stop()
        client.close()
