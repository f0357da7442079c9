"""When each record of a replay is due."""

from dataclasses import dataclass


@dataclass(slots=True, frozen=True, kw_only=True)
class Pace:
    """The tempo of a replay; with neither field set it is as fast as it goes.

    Attributes:
        records_per_second: a steady rate.
        speed: how many times faster than the records' own times: 1 repeats the original tempo,
            3600 plays an hour in a second.
        first_timestamp_ms: time of the first record; needed with `speed`.
    """

    records_per_second: float | None = None
    speed: float | None = None
    first_timestamp_ms: int = 0

    @property
    def is_limited(self) -> bool:
        """True if records may have to wait."""
        return self.records_per_second is not None or self.speed is not None

    def due_seconds(self, index: int, timestamp_ms: int | None) -> float:
        """Return how long after the start of the replay a record is due.

        Args:
            index: how many records come before it in the whole replay.
            timestamp_ms: its time; a record without one is due with the one before it (0.0).
        """
        if self.records_per_second is not None:
            return index / self.records_per_second
        if self.speed is not None and timestamp_ms is not None:
            return max(0.0, (timestamp_ms - self.first_timestamp_ms) / 1000 / self.speed)
        return 0.0
