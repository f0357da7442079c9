"""Batching of requests to other brokers: one at a time to each, with all that has come."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

Item = TypeVar("Item")


class RequestBatcher(Generic[Item]):
    """Items by the broker that they are for.

    While a request is under way everything else for the same broker gathers, and leaves together
    when it is answered: the busier a broker is, the more goes into one request.
    """

    def __init__(self, send: Callable[[int, list[Item]], Awaitable[None]]) -> None:
        """Make an empty one.

        Args:
            send: sends items to a broker and deals with the answer. It raises no KafkaError, has a
                deadline of its own, and deals with its items also when it is cancelled.
        """
        self._send = send
        self._items: dict[int, list[Item]] = {}
        self._busy: set[int] = set()
        self._wakeup = trio.Event()

    def add(self, broker_id: int, item: Item) -> None:
        """Have an item sent soon."""
        self._items.setdefault(broker_id, []).append(item)
        self._wakeup.set()

    async def run(self) -> None:
        """Send, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._wakeup = trio.Event()
                for broker_id in [*self._items]:
                    if broker_id not in self._busy:
                        self._busy.add(broker_id)
                        nursery.start_soon(self._deliver, broker_id, self._items.pop(broker_id))
                await self._wakeup.wait()

    async def _deliver(self, broker_id: int, items: list[Item]) -> None:
        try:
            await self._send(broker_id, items)
        finally:
            self._busy.discard(broker_id)
            self._wakeup.set()
