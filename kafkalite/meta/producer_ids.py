"""The producer ids that this broker may give away: a block at a time (rule 64)."""

from collections.abc import Awaitable, Callable

import trio


class ProducerIds:
    """Gives away each id once, also over crashes: what is left of a block is then lost.

    Args:
        new_block: gets a block: the first id and how many there are.
    """

    def __init__(self, new_block: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        self._new_block = new_block
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
        """Return an id that was never given before.

        Raises:
            KafkaError: no block is to be had at the moment.
        """
        while (producer_id := self.next_nowait()) is None:
            async with self._allocating:
                if self._next == self._end:
                    first, count = await self._new_block()
                    self._next, self._end = first, first + count
        return producer_id
