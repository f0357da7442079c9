"""Frames out of a byte stream: an int32 size, then that many bytes (rule 1)."""

import struct
from typing import Final

from kafkalite.wire.errors import MalformedMessage

SIZE_PREFIX: Final = struct.Struct(">i")
API_KEY: Final = struct.Struct(">h")

SMALL_BUFFER_SIZE: Final = 4 * 1024
"""What a connection begins with: thousands of idle clients should not cost 64 KiB each."""

TLS_BEGINNINGS: Final = range(0x160301, 0x160304)
"""First three bytes of a TLS handshake, by version; as a frame's size more than 350 MB."""

BUFFER_SIZE: Final = 64 * 1024
"""What a busy connection receives into. A frame that does not fit is received into a buffer of its
own, which is 2.5 times as fast for frames of 1 MiB as copying it together."""

GROWTH_SIZE: Final = 1024 * 1024
"""A frame's own buffer begins with this and doubles as it fills, so that a client which announces
100 MiB and sends nothing holds 1 MiB."""


class Framer:
    """Collects received bytes and gives out whole frames.

    Use: receive into `buffer()`, tell `received(count)`, then take `next_frame()` until it is
    None, and only then receive again.
    """

    def __init__(self, max_frame_bytes: int) -> None:
        """Take the largest size allowed: `socket.request.max.bytes`."""
        self.max_frame_bytes = max_frame_bytes
        """May be changed between two frames."""
        self._shared = bytearray(SMALL_BUFFER_SIZE)
        self._view = memoryview(self._shared)
        """Of all of `_shared`; made once, for it is what nearly every receive gets."""
        self._start = 0
        self._end = 0
        """Bytes of `_shared` from `_start` to `_end` (exclusive) are received but not given out."""
        self._own: bytearray | None = None
        """The frame in progress, if it does not fit the shared buffer; never given out before it
        is complete, so it may still be resized."""
        self._own_size = 0
        self._own_filled = 0
        self._lent: memoryview | None = None

    @property
    def large_frame_bytes(self) -> int:
        """Size of the frame in progress, if it has a buffer of its own; else 0."""
        return 0 if self._own is None else self._own_size

    @property
    def is_empty(self) -> bool:
        """Whether nothing is here of a frame that was not given out."""
        return self._start == self._end and self._own is None

    @property
    def held_bytes(self) -> int:
        """Memory of the frame in progress, if it has a buffer of its own; else 0."""
        return 0 if self._own is None else len(self._own)

    def buffer(self) -> memoryview:
        """Return where the next bytes go; never empty; valid until `received`."""
        if self._own is not None:
            lent = self._rest_of_own(self._own)
        elif self._start == self._end:
            self._start = self._end = 0
            lent = self._view
        else:
            lent = self._view[self._end :]
        assert len(lent) > 0, "frames must be taken before more is received"
        self._lent = lent
        return lent

    def received(self, count: int) -> None:
        """Note that the first `count` bytes of `buffer()` are filled."""
        lent = self._lent
        assert lent is not None, "nothing was lent to receive into"
        assert 0 <= count <= len(lent), "more received than was lent"
        if self._own is not None:
            self._own_filled += count
            self._take_back()
            return
        self._end += count
        is_full = count == len(lent)
        if lent is not self._view:
            lent.release()
        self._lent = None
        if is_full and len(self._shared) < BUFFER_SIZE:
            self._grow()

    def next_api_key(self) -> int | None:
        """Return the first int16 of the next frame, None if it is not here yet."""
        if self._own is not None:
            data, start, end = self._own, 0, self._own_filled
        else:
            data, start, end = self._shared, self._start + SIZE_PREFIX.size, self._end
        if start + API_KEY.size > end:
            return None
        key: int = API_KEY.unpack_from(data, start)[0]
        return key

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its size, None if more must be received.

        The frame is writable and has memory of its own: it stays as it is whatever is received
        later.

        Raises:
            MalformedMessage: the size is negative or too large; the stream cannot be followed any
                further.
        """
        if self._own is not None:
            return self._complete_own()
        body = self._start + SIZE_PREFIX.size
        if body > self._end:
            self._make_room(SIZE_PREFIX.size)
            return None
        (size,) = SIZE_PREFIX.unpack_from(self._shared, self._start)
        if not 0 <= size <= self.max_frame_bytes:
            if size >> 8 in TLS_BEGINNINGS:
                raise MalformedMessage("a client that speaks TLS, where none is expected")
            raise MalformedMessage(
                f"frame of {size} bytes is not within 0 and "
                f"socket.request.max.bytes={self.max_frame_bytes} "
                "(before a login sasl.server.max.receive.size)"
            )
        end: int = body + size
        if end <= self._end:
            self._start = end
            return memoryview(self._shared[body:end])
        if size + SIZE_PREFIX.size > BUFFER_SIZE:
            self._begin_own(size, body)
        else:
            self._make_room(size + SIZE_PREFIX.size)
        return None

    def _take_back(self) -> None:
        if self._lent is not None:
            if self._lent is not self._view:
                self._lent.release()
            self._lent = None

    def _grow(self) -> None:
        """Make the shared buffer as large as it gets; no view of it may be in use."""
        self._take_back()
        self._view.release()
        self._shared += bytes(BUFFER_SIZE - len(self._shared))
        self._view = memoryview(self._shared)

    def _rest_of_own(self, own: bytearray) -> memoryview:
        self._take_back()
        if self._own_filled == len(own):
            own += bytes(min(len(own), self._own_size - self._own_filled))
        return memoryview(own)[self._own_filled :]

    def _complete_own(self) -> memoryview | None:
        if self._own_filled < self._own_size:
            return None
        self._take_back()
        frame, self._own = self._own, None
        assert frame is not None
        return memoryview(frame)

    def _begin_own(self, size: int, body: int) -> None:
        """Move what has come of a large frame into a buffer of its own."""
        self._own_filled = self._end - body
        self._own_size = size
        self._own = bytearray(min(size, max(GROWTH_SIZE, self._own_filled)))
        self._own[: self._own_filled] = self._shared[body : self._end]
        self._start = self._end = 0

    def _make_room(self, needed: int) -> None:
        """Make the shared buffer hold `needed` bytes from where the next frame starts."""
        if self._start + needed <= len(self._shared):
            return
        rest = self._shared[self._start : self._end]
        if needed > len(self._shared):
            self._grow()
        self._shared[: len(rest)] = rest
        self._start, self._end = 0, len(rest)
