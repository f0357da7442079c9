"""A program whose every run is the same: trio's scheduler, clock and all randomness by a seed.

The only place that touches trio's private switches. A test compares the traces of two runs, so that
a trio that does it another way is noticed.
"""

import logging
import os
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final, TypeVar

import trio
from trio.testing import MockClock

Result = TypeVar("Result")

EPOCH_MS: Final = 1_700_000_000_000
"""Wall clock at the beginning of every run."""


class SimClock:
    """Trio's clock, which a simulation turns; satisfies `kafkalite.clock.Clock`."""

    def monotonic_ms(self) -> int:
        """Return milliseconds since the run began."""
        return int(trio.current_time() * 1000)

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return EPOCH_MS + self.monotonic_ms()

    def real_monotonic_ms(self) -> int:
        """Return the same as `monotonic_ms`: a simulation has one time."""
        return self.monotonic_ms()


def run_deterministically(
    function: Callable[..., Awaitable[Result]], *arguments: Any, seed: int
) -> Result:
    """Return what an async function returns; time passes only where everybody waits for it."""
    with seeded(seed), quiet():
        clock = MockClock(autojump_threshold=0)
        return trio.run(function, *arguments, clock=clock)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Take all randomness from a seed: trio's order of tasks, `random`, `os.urandom` (uuid4)."""
    core: Any = trio._core._run  # noqa: SLF001 - the one place, see above
    source = Random(seed)
    before = core._ALLOW_DETERMINISTIC_SCHEDULING, core._r, os.urandom, random.getstate()  # noqa: SLF001
    core._ALLOW_DETERMINISTIC_SCHEDULING = True  # noqa: SLF001
    core._r = Random(source.random())  # noqa: SLF001
    os.urandom = Random(source.random()).randbytes
    random.seed(source.random())
    try:
        yield
    finally:
        core._ALLOW_DETERMINISTIC_SCHEDULING, core._r, os.urandom, state = before  # noqa: SLF001
        random.setstate(state)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the brokers' log lines back: warnings are what a simulation is about."""
    logger = logging.getLogger("kafkalite")
    level = logger.level
    logger.setLevel(max(level, logging.CRITICAL) if level != logging.DEBUG else level)
    try:
        yield
    finally:
        logger.setLevel(level)
