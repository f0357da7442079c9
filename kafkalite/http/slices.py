"""Long work in short slices, so that Kafka's clients do not wait for who looks on."""

import time
from typing import Final

import trio

SLICE_S: Final = 0.002
"""An answer works for so long at a time, then everybody else has a turn."""


class Slices:
    """Told between two steps of some work whether others should have their turn."""

    __slots__ = ("_end_s",)

    def __init__(self) -> None:
        self._end_s = time.perf_counter() + SLICE_S

    @property
    def is_over(self) -> bool:
        """Whether this slice has taken its time."""
        return time.perf_counter() >= self._end_s

    async def breathe(self) -> None:
        """Let others have their turn if this slice is over."""
        if time.perf_counter() >= self._end_s:
            await trio.lowlevel.checkpoint()
            self._end_s = time.perf_counter() + SLICE_S
