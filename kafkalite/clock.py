"""Time, as an argument: the one place that reads the system's clocks."""

import time
from typing import Protocol


class Clock(Protocol):
    """Source of time for everything that decides by time; simulated in tests."""

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back; for deadlines and ages."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch; for record timestamps and retention."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000
