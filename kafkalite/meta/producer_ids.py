"""The producer ids that this broker may give away: a block at a time (rule 64)."""

import trio

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import ProducerIdsAllocated
from kafkalite.meta.controller_requests import producer_id_block
from kafkalite.meta.events import AllocateProducerIds
from kafkalite.meta.peers import ControllerChannel
from kafkalite.meta.runner import MetadataRunner


class ProducerIdManager:
    """Gives away each id once, also over crashes: what is left of a block is then lost.

    Args:
        config: the broker's settings.
        metadata: gives blocks while this broker is the controller.
        channel: to the controller, which gives them else; None on a lone broker.
    """

    def __init__(
        self, config: BrokerConfig, metadata: MetadataRunner, channel: ControllerChannel | None
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._channel = channel
        self._allocating = trio.Lock()
        # Ids of the block that are left: from, to (exclusive).
        self._next = 0
        self._end = 0

    def next_nowait(self) -> int | None:
        """Return an id that was never given before, None if a new block is needed."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    async def next(self) -> int:
        """Return an id that was never given before, also not before a crash.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, or the controller is not reached.
        """
        while (producer_id := self.next_nowait()) is None:
            async with self._allocating:
                if self._next == self._end:
                    first, count = await self._new_block()
                    self._next, self._end = first, first + count
        return producer_id

    async def _new_block(self) -> tuple[int, int]:
        """Return the first id of a block that nobody has, and how many there are."""
        if self._channel is not None and not self._metadata.is_controller:
            return await producer_id_block(
                self._channel,
                broker_id=self._config.node_id,
                broker_epoch=self._metadata.broker_epoch,
                timeout_ms=self._config.int("controller.socket.timeout.ms"),
            )
        event = AllocateProducerIds(broker_id=self._config.node_id)
        (change,) = [
            each
            for each in await self._metadata.submit(event)
            if isinstance(each, ProducerIdsAllocated)
        ]
        return change.next_producer_id - event.count, event.count
