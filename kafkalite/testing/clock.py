"""The clock of a broker under test, as its test turns it.

    broker.clock.advance(3600)            an hour passes, and what is due in it is done
    with broker.clock.frozen(): ...       nobody times out while a debugger stands still
    broker.clock.set(datetime(2030, 1, 1, tzinfo=UTC))

It moves everything that the broker decides by time: sessions, rebalances, transactions, retention,
compaction, expiry of offsets and producers, LogAppendTime, long polls. It does not move clients,
which have clocks of their own, nor how long connections may be idle.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalite.clock import AdjustableClock
    from kafkalite.testing.broker import Broker


class BrokerClock:
    """Turns the clock of one broker in this process; from any thread."""

    def __init__(self, broker: "Broker", clock: "AdjustableClock") -> None:
        self._broker = broker
        self._clock = clock

    def advance(self, seconds: float | timedelta) -> None:
        """Let so much time pass; return when what was due in it has been done.

        A long way is gone in 500 steps at most, each to a deadline: after ten years nothing that
        expires is left, and the retention check ran 500 times.

        Raises:
            ValueError: the time is negative.
        """
        step_s = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
        self._broker.run_in_broker(lambda: self._clock.advance(step_s))

    def freeze(self) -> None:
        """Stand still until `resume`: clients are served, and nothing expires or times out."""
        self._change(self._clock.freeze)

    def resume(self) -> None:
        """Go on after `freeze`."""
        self._change(self._clock.resume)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stand still inside of a `with` block."""
        self.freeze()
        try:
            yield
        finally:
            self.resume()

    def set(self, at: datetime) -> None:
        """Set the wall clock, which record timestamps and retention go by; no deadline moves.

        Args:
            at: when it is, before or after now; without a time zone in UTC.
        """
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        self._change(lambda: self._clock.set_wall_ms(int(at.timestamp() * 1_000)))

    def now(self) -> datetime:
        """Return the broker's wall clock."""
        return datetime.fromtimestamp(self.now_ms() / 1_000, UTC)

    def now_ms(self) -> int:
        """Return the broker's wall clock in milliseconds since the Unix epoch."""
        return self._clock.wall_ms()

    @property
    def rate(self) -> float:
        """How many seconds pass in one second; 60 makes it a minute, 0 freezes."""
        return self._clock.rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self._change(lambda: self._clock.set_rate(rate))

    @property
    def ahead_s(self) -> float:
        """How many seconds the broker's wall clock is ahead of the machine's."""
        return self._clock.ahead_s

    def reset(self) -> None:
        """Let the wall clock be the machine's again, at its own rate."""
        self._change(self._clock.restore)

    def _change(self, change: Callable[[], None]) -> None:
        # Being called in the loop wakes it, and trio looks at its deadlines anew.
        self._broker.call_in_broker(change)
