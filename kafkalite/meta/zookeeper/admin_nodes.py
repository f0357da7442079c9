"""Requests of others to the controller, by nodes: as tools made them before there was a protocol.

Apache Kafka 3.9's controller does what they say: topics to delete, partitions to move, preferred
leaders to elect (rule 192), and topics that are only half made (rule 256).
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from kazoo.exceptions import NoNodeError

from kafkalite.meta.events import DeleteTopic, ElectLeader, Event, Reassign
from kafkalite.meta.image import Image
from kafkalite.meta.zookeeper import znodes
from kafkalite.wire.errors import KafkaError

logger = logging.getLogger("kafkalite.meta")

AT_ONCE: Final = 1_000
"""Topics to delete that are taken up at a time."""


class AdminNodes:
    """The nodes by which something is asked for.

    Args:
        client: of ZooKeeper.
        one: waits for one of its requests.
    """

    def __init__(self, client: Any, one: Callable[[Any], Awaitable[Any]]) -> None:
        self._client = client
        self._one = one

    async def follow(self, watch: Callable[[object], None]) -> bool:
        """Tell whether something is asked for.

        Args:
            watch: called when there may be something new.
        """
        client = self._client
        try:
            names = await self._one(client.get_children_async(znodes.DELETE_TOPICS, watch=watch))
        except NoNodeError:  # somebody removed it; it is made again at the next start
            names = []
        found = [
            await self._one(client.exists_async(path, watch=watch))
            for path in (znodes.REASSIGN, znodes.ELECT)
        ]
        return bool(names) or any(stat is not None for stat in found)

    async def read(self, image: Image) -> list[tuple[str, list[Event]]]:
        """Return the nodes, and what each asks for; nothing where that makes no sense."""
        asked: list[tuple[str, list[Event]]] = []
        try:
            names = await self._one(self._client.get_children_async(znodes.DELETE_TOPICS))
        except NoNodeError:
            names = []
        for name in sorted(names)[:AT_ONCE]:
            events: list[Event] = [DeleteTopic(name=name)] if name in image.topics else []
            asked.append((f"{znodes.DELETE_TOPICS}/{name}", events))
        for path, event_of in ((znodes.REASSIGN, _reassign), (znodes.ELECT, _elect)):
            try:
                data, _ = await self._one(self._client.get_async(path))
                asked.append((path, [event_of(each) for each in znodes.read_asked(path, data)]))
            except NoNodeError:
                continue
            except znodes.NotKafka as error:
                logger.warning("ZooKeeper: %s", error)
                asked.append((path, []))
        return asked

    async def answer(self, path: str, results: Sequence[object]) -> None:
        """Remove a node whose events were decided; what was refused is told to the operator."""
        for result in results:
            if isinstance(result, KafkaError):
                logger.warning("ZooKeeper: %s: %s", path, result.message)
        try:
            await self._one(self._client.delete_async(path))
        except NoNodeError:
            return


def _reassign(asked: znodes.Asked) -> Event:
    return Reassign(topic=asked.topic, index=asked.partition, replicas=asked.replicas)


def _elect(asked: znodes.Asked) -> Event:
    return ElectLeader(topic=asked.topic, index=asked.partition)
