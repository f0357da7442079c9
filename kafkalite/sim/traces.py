"""Trace of a run, in order: a hash to compare runs by, and the last lines to read."""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

KEPT_LINES: Final = 400
"""Lines that a failure shows at most; what led to it is rarely farther back."""


class Trace:
    """Every message, fault and step of a run.

    Args:
        write: where each line goes as it happens (`--verbose`).
        kept: how many of the last lines are kept.
        is_on: False drops everything. A run that fails can be had again with all its lines.
    """

    def __init__(
        self,
        write: Callable[[str], object] | None = None,
        *,
        kept: int = KEPT_LINES,
        is_on: bool = True,
    ) -> None:
        self.is_on = is_on
        self._write = write
        self._hash = blake2b(digest_size=8)
        self.count = 0
        self.lines: deque[str] = deque(maxlen=kept)

    def note(self, line: str) -> None:
        """Add a line."""
        if not self.is_on:
            return
        self.count += 1
        self._hash.update(line.encode())
        self.lines.append(line)
        if self._write is not None:
            self._write(line)

    def digest(self) -> str:
        """Return the hash of all lines: equal for equal runs."""
        return self._hash.hexdigest()
