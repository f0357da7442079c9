"""Bytes of requests in memory at one time (`queued.max.request.bytes`).

Taken before a large request's bytes are read: overload becomes TCP back-pressure, not memory.
"""

import trio


class MemoryBudget:
    """A count of bytes lent out, with a limit; -1 means no limit, as in Kafka.

    A request larger than the whole limit is let in when it is alone, so that a small limit slows
    a broker down but never stops a client for good (Kafka's memory pool does the same).
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
        """Wait until `size_bytes` fit, and take them. No deadline: the client's own runs."""
        while self._limit_bytes >= 0 and (
            self._used_bytes and self._used_bytes + size_bytes > self._limit_bytes
        ):
            await self._freed.wait()
        self._used_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        """Give back what `reserve` took, and let those who wait try again."""
        assert 0 <= size_bytes <= self._used_bytes
        self._used_bytes -= size_bytes
        if size_bytes:
            self._freed.set()
            self._freed = trio.Event()
