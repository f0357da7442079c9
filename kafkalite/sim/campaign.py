"""Many runs one after another, and what came of them all."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from kafkalite.sim import level1, level2
from kafkalite.sim.level1 import Outcome
from kafkalite.sim.traces import Trace

LEVELS: Final = (1, 2)

SEED_CPU_S_MAX: Final = 60.0
"""Seconds of a processor after which a run that has not ended is a finding; most take two."""


class TookTooLong(BaseException):
    """A run does not end; nothing in it that catches exceptions is to catch this one."""


@contextmanager
def ended_after(cpu_s: float) -> Iterator[None]:
    """Raise TookTooLong in the block once it has used so much of a processor, until it is left.

    How long it takes by the clock, on a machine with other work, does not matter. To be used in the
    process's main thread.
    """
    took_too_long = TookTooLong(f"the run has not ended after {cpu_s:g} s of a processor")
    is_over = False

    def end(number: int, frame: object) -> None:
        nonlocal is_over
        is_over = True
        raise took_too_long

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, cpu_s, 1)
    try:
        yield
    except BaseException as error:
        if is_over:
            raise took_too_long from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass(slots=True, frozen=True, kw_only=True)
class Plan:
    """Plan of a campaign.

    Attributes:
        level: 1 or 2.
        brokers: of level 2; 1 for a broker that is alone.
        grows: of level 2; whether a topic is made and grown while producers write to it.
    """

    level: int = 1
    brokers: int = 3
    grows: bool = False

    def run(self, seed: int, trace: Trace | None = None) -> Outcome:
        """Run one seed.

        Raises:
            Exception: whatever was found.
        """
        if self.level == 1:
            return level1.run(seed, trace=trace)
        shape = level2.Shape(brokers=self.brokers, grows=self.grows)
        return level2.run(seed, trace=trace, shape=shape)

    def command(self, seed: int) -> str:
        """Return what repeats a run."""
        options = f"--level {self.level}"
        if self.level > 1 and self.brokers != Plan().brokers:
            options += f" --brokers {self.brokers}"
        if self.level > 1 and self.grows:
            options += " --grows"
        return f"python -m kafkalite sim {options} --seed {seed}"


@dataclass(slots=True, frozen=True)
class Failure:
    """A seed that found something."""

    plan: Plan
    seed: int
    error: BaseException

    def __str__(self) -> str:
        """Say what was found and how to see it again."""
        return f"seed {self.seed}: {type(self.error).__name__}: {self.error}"


@dataclass(slots=True)
class Summary:
    """Summary of all runs.

    Attributes:
        faults: how many of each kind were injected.
    """

    runs: int = 0
    events: int = 0
    acknowledged: int = 0
    elapsed_s: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @classmethod
    def of(cls, outcome: Outcome) -> "Summary":
        """Return the summary of one run, without its time."""
        return cls(
            runs=1,
            events=outcome.events,
            acknowledged=outcome.acknowledged,
            faults=dict(outcome.faults),
        )

    def add(self, other: "Summary") -> None:
        """Count what came of other runs; they took their time one after another."""
        self.runs += other.runs
        self.events += other.events
        self.acknowledged += other.acknowledged
        self.elapsed_s += other.elapsed_s
        for fault, count in other.faults.items():
            self.faults[fault] = self.faults.get(fault, 0) + count
        self.failures += other.failures

    def lines(self) -> list[str]:
        """Return the summary for people to read."""
        injected = ", ".join(f"{count:,} {fault}" for fault, count in sorted(self.faults.items()))
        return [
            f"{self.runs:,} runs in {self.elapsed_s:,.0f} s: {self.events:,} events, "
            f"{self.acknowledged:,} records acknowledged, "
            f"{sum(self.faults.values()):,} faults, {len(self.failures)} failed",
            f"faults: {injected or 'none'}",
            *map(str, self.failures),
        ]


def run_seeds(
    plan: Plan,
    seeds: Iterable[int],
    *,
    end_s: float | None = None,
    failures_max: int = 20,
    on_run: Callable[[Outcome | Failure], object] = lambda _: None,
    seed_cpu_s: float = SEED_CPU_S_MAX,
) -> Summary:
    """Run seeds until there are no more, time is up, or too many fail.

    Args:
        plan: what to run.
        seeds: of the runs.
        end_s: seconds after which no other run is begun.
        failures_max: stop after so many.
        on_run: told of each run.
        seed_cpu_s: a run that takes more of a processor has failed.
    """
    summary = Summary()
    begin = time.perf_counter()
    for seed in seeds:
        summary.elapsed_s = time.perf_counter() - begin
        if end_s is not None and summary.elapsed_s >= end_s:
            break
        try:
            with ended_after(seed_cpu_s):
                outcome = plan.run(seed)
        except (Exception, TookTooLong) as error:  # whatever it is, it is a finding
            failure = Failure(plan, seed, error)
            summary.runs += 1
            summary.failures.append(failure)
            on_run(failure)
            if len(summary.failures) >= failures_max:
                break
        else:
            summary.add(Summary.of(outcome))
            on_run(outcome)
    summary.elapsed_s = time.perf_counter() - begin
    return summary
