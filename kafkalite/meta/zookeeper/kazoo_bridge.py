"""ZooKeeper's client: the way from its threads to trio, what failed, and how it ends."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

import trio
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from kafkalite.meta.store import MetadataStoreError
from kafkalite.meta.zookeeper.znodes import NotKafka

NOT_REACHED = (
    ConnectionClosedError,
    ConnectionLoss,
    KazooTimeoutError,
    OperationTimeoutError,
    SessionExpiredError,
)
"""ZooKeeper could not be asked, or its answer was lost."""


class KazooTrioBridge:
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


def first_error(results: Sequence[object]) -> KazooException | None:
    """Return why a transaction failed; None if it did not."""
    errors = [result for result in results if isinstance(result, KazooException)]
    causes = [e for e in errors if not isinstance(e, RolledBackError | RuntimeInconsistency)]
    return (causes or errors or [None])[0]


@contextlib.contextmanager
def node_errors(connect: str) -> Iterator[None]:
    """Name the server where a node holds what it should not, which no retry ends.

    Raises:
        MetadataStoreError: with this address, and what is wrong.
    """
    try:
        yield
    except NotKafka as error:
        raise MetadataStoreError(f"ZooKeeper at {connect}: {error}") from error


async def make_missing(
    nodes: Iterable[tuple[str, bytes]], create: Callable[[str, bytes], Awaitable[object]]
) -> bool:
    """Make those nodes that are not there; tell whether any was not."""
    is_made = False
    for path, data in nodes:
        with contextlib.suppress(NodeExistsError):
            await create(path, data)
            is_made = True
    return is_made
