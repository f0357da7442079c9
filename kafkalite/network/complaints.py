"""Log lines that clients can cause, so many of each kind in a while and no more.

A client that is refused and comes back at once would fill the disk that the log is on.
"""

import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

LINES_MAX: Final = 10
PERIOD_S: Final = 60.0
"""Of each kind so many lines are written in such a time. What was left out is counted, and told by
the next line that is written."""


class Complaints:
    """A logger for what clients do wrong; lines of one template are of one kind.

    Args:
        logger: that writes them.
        now_s: a monotonic clock, in seconds.
    """

    def __init__(
        self, logger: "logging.Logger", now_s: "Callable[[], float]" = time.monotonic
    ) -> None:
        self._logger = logger
        self._now_s = now_s
        self._kinds: dict[str, _Kind] = {}

    def warning(self, template: str, *arguments: object) -> None:
        """Write a line at level WARNING, unless there were too many of its kind."""
        self._write(self._logger.warning, template, arguments)

    def error(self, template: str, *arguments: object, error: BaseException) -> None:
        """Write a line at level ERROR with the traceback of `error`, unless there were too many."""
        self._write(self._logger.error, template, arguments, exc_info=error)

    def _write(
        self,
        log: "Callable[..., None]",
        template: str,
        arguments: tuple[object, ...],
        **options: Any,
    ) -> None:
        kind = self._kinds.setdefault(template, _Kind())
        left_out = kind.admit(self._now_s())
        if left_out is None:
            return
        if left_out:
            template, arguments = (
                template + " (%d more such lines left out)",
                (
                    *arguments,
                    left_out,
                ),
            )
        log(template, *arguments, **options)


class _Kind:
    """How many lines of one template were written in this period, and left out since the last."""

    __slots__ = ("_begin_s", "_left_out", "_written")

    def __init__(self) -> None:
        self._begin_s = -PERIOD_S
        self._written = 0
        self._left_out = 0

    def admit(self, now_s: float) -> int | None:
        """Return how many lines were left out before this one; None if it is left out, too."""
        if now_s - self._begin_s >= PERIOD_S:
            self._begin_s, self._written = now_s, 0
        if self._written >= LINES_MAX:
            self._left_out += 1
            return None
        self._written += 1
        left_out, self._left_out = self._left_out, 0
        return left_out
