"""Bytes of requests in memory at one time (`queued.max.request.bytes`).

Taken before a large request's bytes are read: overload becomes TCP back-pressure, not memory.
"""

import trio


class MemoryBudget:
    """A count of bytes lent out, with a limit; -1 means no limit, as in Kafka.

    A request is let in while anything is left, however large it is, so that requests of all sizes
    get their turn: the limit may be passed by one request (as in Kafka's SimpleMemoryPool).
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._freed = trio.Event()

    @property
    def used_bytes(self) -> int:
        """Bytes lent out now."""
        return self._used_bytes

    async def reserve(self, size_bytes: int) -> None:
        """Wait until anything is left, and take `size_bytes`.

        No deadline of its own: a client that waits too long is idle, and closed for that.
        """
        while not self.reserve_now(size_bytes):
            await self._freed.wait()

    def reserve_now(self, size_bytes: int) -> bool:
        """Take `size_bytes` if anything is left; say whether it was."""
        if size_bytes and 0 <= self._limit_bytes <= self._used_bytes:
            return False
        self._used_bytes += size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        """Give back what `reserve` took, and let those who wait try again."""
        assert 0 <= size_bytes <= self._used_bytes
        self._used_bytes -= size_bytes
        if size_bytes:
            self._freed.set()
            self._freed = trio.Event()
