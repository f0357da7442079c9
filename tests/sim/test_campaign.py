"""Many runs one after another: each of them ends, whatever it does."""

import gc
from contextlib import suppress

import pytest
import trio

from kafkalite.sim.campaign import Plan, run_seeds
from kafkalite.sim.level1 import Outcome
from kafkalite.sim.runtime import run_deterministically


class Stuck(Plan):
    """Its seeds below 0 do not end."""

    def run(self, seed, trace=None):
        if seed == -1:
            while True:
                pass
        if seed == -2:
            run_deterministically(self.turn_forever, seed=seed)
        return Outcome(seed, events=1)

    async def turn_forever(self):
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(self.swallow_everything)

    async def swallow_everything(self):
        while True:
            with suppress(Exception):  # as a broken server might do
                await trio.lowlevel.checkpoint()


@pytest.mark.filterwarnings("ignore")  # of the loop that was left as it was
@pytest.mark.parametrize("seed", [-1, -2])
def test_a_run_that_does_not_end_is_a_finding(seed):
    """By the processor's time; those after it run as ever."""
    summary = run_seeds(Stuck(), [seed, 1, 2], seed_cpu_s=0.2)
    assert (summary.runs, summary.events) == (3, 2)
    (failure,) = summary.failures
    assert failure.seed == seed
    assert "has not ended after 0.2 s" in str(failure)
    assert run_seeds(Plan(), [5]).failures == []
    del summary, failure
    gc.collect()  # what was left complains here, not in a later test
