"""Remains in ZooKeeper of topics whose nodes are too many for one transaction."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from kazoo.exceptions import NoNodeError

from kafkalite.meta.zookeeper import znodes
from kafkalite.meta.zookeeper.kazoo_bridge import first_error
from kafkalite.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafkalite.meta")

AT_ONCE: Final = 500
"""Requests under way at a time."""


class Deletions:
    """Removes the nodes of topics that are noted as deleted.

    Each removal checks that the controller is still the same (rule 188): the name may be another
    topic's soon.

    Args:
        client: of ZooKeeper.
        one: waits for one of its requests.
    """

    def __init__(self, client: Any, one: Callable[[Any], Awaitable[Any]]) -> None:
        self._client = client
        self._one = one
        self.is_due = False
        """Some are left, as ZooKeeper was not reached: no topic can have their names."""

    async def finish(self, controller_epoch_version: int) -> None:
        """Remove all that is noted, or leave it to a later time."""
        self.is_due = True
        try:
            for name in await self._one(self._client.get_children_async(znodes.DELETED_TOPICS)):
                for paths in await self._paths(name):
                    await self._delete(paths, controller_epoch_version)
        except KafkaError as error:
            logger.info("nodes of deleted topics are left: %s", error.message)
        else:
            self.is_due = False

    async def _paths(self, name: str) -> list[list[str]]:
        """Return what is to be removed, children before parents, the note last."""
        path, note = znodes.topic_path(name), f"{znodes.DELETED_TOPICS}/{name}"
        try:
            data, _ = await self._one(self._client.get_async(path))
            if data:  # another topic of that name, made since
                return [[note]]
            children = await self._one(self._client.get_children_async(f"{path}/partitions"))
        except NoNodeError:
            children = []
        nodes = [f"{path}/partitions/{index}" for index in children]
        return [[f"{node}/state" for node in nodes], nodes, [f"{path}/partitions"], [path], [note]]

    async def _delete(self, paths: Sequence[str], controller_epoch_version: int) -> None:
        for start in range(0, len(paths), AT_ONCE):
            pending = []
            for path in paths[start : start + AT_ONCE]:
                transaction = self._client.transaction()
                transaction.check(znodes.CONTROLLER_EPOCH, controller_epoch_version)
                transaction.delete(path)
                pending.append(transaction.commit_async())
            for request in pending:
                failure = first_error(await self._one(request))
                if failure is not None and not isinstance(failure, NoNodeError):
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, repr(failure))
