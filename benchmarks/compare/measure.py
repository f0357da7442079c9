"""Runs of one case on both brokers, interleaved, and what they gave."""

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.compare.brokers import APACHE, BARE, KAFKALITE, BrokerUnderTest


@dataclass(slots=True)
class Sample:
    """One run on one broker.

    Attributes:
        values: what was measured, by metric; the case's `metrics` names them.
        client_cpu: processor seconds of the load generator.
        seconds: that the load lasted.
        byte_count: of records that went through, for processor seconds per GB.
        broker_cpu: processor seconds of the broker, over the load alone; by `run_case` over the
            whole run where the load does not tell.
        peak_bytes: filled in by `run_case`.
    """

    values: dict[str, float]
    seconds: float = 0.0
    client_cpu: float = 0.0
    byte_count: int = 0
    broker_cpu: float = 0.0
    peak_bytes: int = 0
    others_share: float = 0.0
    """Of the machine's cores: what neither the broker nor the load took during the run."""


@dataclass(slots=True, frozen=True)
class Metric:
    """A measured figure: its unit, and whether more of it is better.

    `target` is the least ratio to Apache Kafka's figure wanted (the most, where less is better).
    """

    name: str
    unit: str
    more_is_better: bool = True
    target: float | None = None


@dataclass(slots=True, frozen=True)
class Case:
    """One line of load. `run(broker, scale)` does it; scale below 1 is a shorter warm-up."""

    name: str
    metrics: tuple[Metric, ...]
    run: Callable[[BrokerUnderTest, float], Sample]
    runs: int | None = None
    """Number of runs where it differs from the profile's."""
    runs_of_peers: int | None = None
    """Fewer than that for all but kafkalite, where they take long."""
    warm_up: bool = True
    peers: tuple[str, ...] = ()
    """Who takes part besides kafkalite and Apache Kafka."""
    note: str = ""


@dataclass(slots=True)
class Outcome:
    """All runs of a case: samples by the broker's name."""

    row: str
    case: Case
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failure: str = ""

    def values(self, broker: str, metric: str) -> list[float]:
        return [s.values[metric] for s in self.samples.get(broker, []) if metric in s.values]


def run_case(
    row: str, case: Case, brokers: Iterable[BrokerUnderTest], *, runs: int, warm_up_scale: float
) -> Outcome:
    """Warm both brokers up, then let them take turns; who begins changes from run to run."""
    outcome = Outcome(row, case)
    order = list(brokers)
    if case.warm_up:
        for broker in order:
            case.run(broker, warm_up_scale)
    for number in range(case.runs or runs):
        for broker in order:
            is_peer = not broker.name.startswith(KAFKALITE)
            if is_peer and number >= (case.runs_of_peers or number + 1):
                continue
            broker.forget_peak()
            cpu, busy, began = broker.cpu_seconds(), _busy_seconds(), time.perf_counter()
            sample = case.run(broker, 1.0)
            # A process that was started anew has begun to count anew.
            sample.broker_cpu = sample.broker_cpu or max(0.0, broker.cpu_seconds() - cpu)
            sample.peak_bytes = sample.peak_bytes or broker.peak_bytes()
            others = _busy_seconds() - busy - sample.broker_cpu - sample.client_cpu
            lasted = (time.perf_counter() - began) * (os.cpu_count() or 1)
            sample.others_share = max(0.0, others / lasted)
            outcome.samples.setdefault(broker.name, []).append(sample)
        order.reverse()
    return outcome


def _busy_seconds() -> float:
    """Processor seconds of the whole machine: user, nice, system, interrupts."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    used = sum(int(fields[i]) for i in (0, 1, 2, 5, 6))
    return used / os.sysconf("SC_CLK_TCK")


def summary(outcome: Outcome) -> list[dict[str, object]]:
    """One dictionary per metric and broker: median, minimum, maximum, ratio, processor, memory."""
    lines: list[dict[str, object]] = []
    for metric in outcome.case.metrics:
        medians = {
            name: statistics.median(values)
            for name in outcome.samples
            if (values := outcome.values(name, metric.name))
        }
        for name, median in medians.items():
            values, samples = outcome.values(name, metric.name), outcome.samples[name]
            peer, bare = medians.get(APACHE), medians.get(BARE)
            lines.append(
                {
                    "row": outcome.row,
                    "case": outcome.case.name,
                    "metric": metric.name,
                    "unit": metric.unit,
                    "more_is_better": metric.more_is_better,
                    "target": metric.target,
                    "broker": name,
                    "runs": len(values),
                    "median": median,
                    "minimum": min(values),
                    "maximum": max(values),
                    "ratio": median / peer if name.startswith(KAFKALITE) and peer else None,
                    "of_bare": median / bare if name != BARE and bare else None,
                    "seconds": statistics.median(s.seconds for s in samples),
                    "broker_cpu": statistics.median(s.broker_cpu for s in samples),
                    "client_cpu": statistics.median(s.client_cpu for s in samples),
                    "byte_count": statistics.median(s.byte_count for s in samples),
                    "peak_bytes": max(s.peak_bytes for s in samples),
                    "others_share": statistics.median(s.others_share for s in samples),
                    "note": outcome.case.note,
                }
            )
    return lines
