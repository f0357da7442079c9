"""Time, as an argument: the one place that reads the system's clocks."""

import math
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import trio

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

STEPS_MAX: Final = 500
"""Most steps of one `advance`. A step ends at the next deadline; those of a long way are longer, so
that ten years take seconds, and what is done every five minutes is done 500 times in them."""

SETTLE_MAX_S: Final = 0.05
"""Real seconds that a step of `advance` waits for the tasks it woke, if clients keep them busy."""

THREADS_MAX_S: Final = 5.0
"""Real seconds that `advance` waits in all for work in threads, such as deleting segments."""


REAL_PAUSE_S: Final = 0.05
"""How long a thread may go on sleeping after nobody waits for it any more."""


class Clock(Protocol):
    """Source of time for everything that decides by time; simulated in tests."""

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back; for deadlines and ages."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch; for record timestamps and retention."""
        ...

    def real_monotonic_ms(self) -> int:
        """Return milliseconds that pass as they do for clients, whatever a test does to the clock.

        For what concerns connections alone: how long one is silent, how long a turn is.
        """
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back."""
        return time.monotonic_ns() // NS_PER_MS

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // NS_PER_MS

    def real_monotonic_ms(self) -> int:
        """Return the same as `monotonic_ms`."""
        return time.monotonic_ns() // NS_PER_MS


class AdjustableClock:
    """The machine's clocks, until somebody advances, freezes, sets or speeds them up.

    One object moves everything in an event loop: the broker asks it for the time, and trio, run
    with `TrioClock(clock)`, has its deadlines by it. To be changed in the event loop's thread.

    Invariant: `monotonic_ms` never goes back.
    """

    def __init__(self) -> None:
        self._real_ns = time.monotonic_ns()
        self._monotonic_ns = self._real_ns
        self._shift_ns = 0
        """What the wall clock is ahead of the machine's, over what monotonic time is ahead."""
        self._rate = 1.0
        self._rate_before = 1.0
        self._is_own = False
        """Whether it ever differed from the machine's."""

    # --- Time ------------------------------------------------------------------------------------

    def monotonic_ns(self) -> int:
        """Return nanoseconds that never go back."""
        if not self._is_own:
            return time.monotonic_ns()
        return self._monotonic_ns + int((time.monotonic_ns() - self._real_ns) * self._rate)

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back."""
        return self.monotonic_ns() // NS_PER_MS

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        if not self._is_own:
            return time.time_ns() // NS_PER_MS
        ahead_ns = self.monotonic_ns() - time.monotonic_ns()
        return (time.time_ns() + ahead_ns + self._shift_ns) // NS_PER_MS

    def real_monotonic_ms(self) -> int:
        """Return milliseconds of the machine's clock."""
        return time.monotonic_ns() // NS_PER_MS

    # --- Changes ---------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """How many seconds pass in one second; 0 while it is frozen."""
        return self._rate

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still."""
        return not self._rate

    @property
    def ahead_s(self) -> float:
        """How many seconds the wall clock is ahead of the machine's."""
        return self.wall_ms() / 1_000 - time.time() if self._is_own else 0.0

    def set_rate(self, rate: float) -> None:
        """Let so many seconds pass in each second; 0 freezes.

        Raises:
            ValueError: it is negative, or no number.
        """
        if not 0 <= rate < math.inf:
            raise ValueError(f"a clock's rate is 0 or more, not {rate}")
        self._rebase()
        if rate:
            self._rate_before = rate
        self._rate = rate

    def freeze(self) -> None:
        """Stand still: no deadline comes nearer. Requests are served all the same."""
        self.set_rate(0)

    def resume(self) -> None:
        """Go on at the rate before `freeze`; nothing if it is not frozen."""
        if self.is_frozen:
            self.set_rate(self._rate_before)

    def jump(self, seconds: float) -> None:
        """Be later at once, for deadlines and timestamps.

        Raises:
            ValueError: it is negative, or no number.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a clock is advanced by 0 seconds or more, not {seconds}")
        self._rebase()
        self._monotonic_ns += int(seconds * NS_PER_S)

    def set_wall_ms(self, wall_ms: int) -> None:
        """Set the wall clock, forward or back, without a deadline coming nearer."""
        self._rebase()
        self._shift_ns += (wall_ms - self.wall_ms()) * NS_PER_MS

    def restore(self) -> None:
        """Set rate and wall clock as the machine's; what monotonic time is ahead stays so."""
        self.set_rate(1.0)
        self._shift_ns = time.monotonic_ns() - self.monotonic_ns()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass, from deadline to deadline; return when what was due has been done.

        Raises:
            ValueError: as `jump`.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a clock is advanced by 0 seconds or more, not {seconds}")
        step_s_min = seconds / STEPS_MAX
        threads_until_s = time.monotonic() + THREADS_MAX_S
        remaining_s = seconds
        await _let_tasks_run(threads_until_s)
        while remaining_s > 0:
            next_s = trio.lowlevel.current_statistics().seconds_to_next_deadline
            step_s = min(remaining_s, max(next_s, step_s_min, 0.001))
            self.jump(step_s)
            remaining_s -= step_s
            await _let_tasks_run(threads_until_s)

    def _rebase(self) -> None:
        """Begin anew from now: what changes next holds from here on."""
        now_ns = self.monotonic_ns()
        self._real_ns = time.monotonic_ns()
        self._monotonic_ns = now_ns
        self._is_own = True


class TrioClock(trio.abc.Clock):
    """An adjustable clock as trio wants it: `trio.run(main, clock=TrioClock(clock))`.

    After a change from another thread the loop must be woken, as by `run_sync_soon`.
    """

    def __init__(self, clock: AdjustableClock) -> None:
        self._clock = clock

    def start_clock(self) -> None:
        """Nothing needs to be started."""

    def current_time(self) -> float:
        """Return seconds."""
        return self._clock.monotonic_ns() / NS_PER_S

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Return the real seconds until a deadline; infinite while frozen, if it is not over."""
        remaining_s = deadline - self.current_time()
        if remaining_s <= 0:
            return 0
        rate = self._clock.rate
        return remaining_s / rate if rate else math.inf


async def within_real_time(seconds: float, wait: Callable[[], Awaitable[None]]) -> bool:
    """Return whether `wait` returned within so many real seconds; if not, it was cancelled."""
    is_done = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_after_real_time, nursery.cancel_scope, seconds)
        await wait()
        is_done = True
        nursery.cancel_scope.cancel()
    return is_done


async def _cancel_after_real_time(scope: trio.CancelScope, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    limiter = trio.CapacityLimiter(1)  # `advance` does not wait for this thread
    while (left_s := end_s - time.monotonic()) > 0:
        await trio.to_thread.run_sync(time.sleep, min(left_s, REAL_PAUSE_S), limiter=limiter)
    scope.cancel()


async def _let_tasks_run(threads_until_s: float) -> None:
    """Return when all tasks wait for something, and no thread works for them; bounded."""
    limiter = trio.to_thread.current_default_thread_limiter()
    settle_until_s = time.monotonic() + SETTLE_MAX_S
    while True:
        # Checkpoints, not wait_all_tasks_blocked: clients may never let all tasks be blocked.
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        statistics = trio.lowlevel.current_statistics()
        now_s = time.monotonic()
        if limiter.borrowed_tokens:
            if now_s >= threads_until_s:
                return
            await trio.to_thread.run_sync(time.sleep, 0.001, limiter=trio.CapacityLimiter(1))
        elif statistics.tasks_runnable <= 1 or now_s >= settle_until_s:
            return
