"""Row 9: start, idle memory, restart with data."""

import time

from benchmarks.compare.brokers import Apache, BrokerUnderTest, Kafkalite
from benchmarks.compare.measure import Case, Metric, Outcome, Sample
from benchmarks.compare.rows import Stored

_STARTED = (Metric("start", "s", more_is_better=False, target=0.2),)
_IDLE = (Metric("resident memory", "MB", more_is_better=False, target=1 / 6),)
IDLE_SECONDS = 3.0


def measure(factor: float, runs: int) -> list[Outcome]:
    """Start both in turn: with an empty data directory formatted before, then with data."""
    row = "9"
    start = Outcome(row, Case("start to first Metadata reply", _STARTED, _never))
    idle = Outcome(row, Case("idle, three seconds after the start", _IDLE, _never))
    gigabytes = 1.0 * factor if factor < 1 else 5.0
    clean = Outcome(row, Case(f"restart after a clean stop, {gigabytes:.1f} GB", _STARTED, _never))
    unclean = Outcome(row, Case(f"restart after SIGKILL, {gigabytes:.1f} GB", _STARTED, _never))
    stored = Stored(int(gigabytes * 1e7), 1_000, 6, 100)
    with Kafkalite() as ours, Apache() as theirs:
        brokers = (ours, theirs)
        for broker in brokers:
            broker.stop()
        for _ in range(runs):
            for broker in brokers:
                _add(start, broker, _restart(broker))
                time.sleep(IDLE_SECONDS)
                found = Sample({"resident memory": broker.resident_bytes() / 1e6})
                found.peak_bytes, found.broker_cpu = broker.peak_bytes(), broker.cpu_seconds()
                _add(idle, broker, found)
                broker.stop()
        for broker in brokers:
            broker.start()
            stored.topic(broker)
            for outcome, kill in ((clean, False), (unclean, True)):
                broker.stop(kill=kill)
                _add(outcome, broker, _restart(broker))
            broker.stop()
    return [start, idle, clean, unclean]


def _restart(broker: BrokerUnderTest) -> Sample:
    seconds = broker.start_seconds()
    return Sample(
        {"start": seconds},
        seconds=seconds,
        broker_cpu=broker.cpu_seconds(),
        peak_bytes=broker.peak_bytes(),
    )


def _add(outcome: Outcome, broker: BrokerUnderTest, sample: Sample) -> None:
    outcome.samples.setdefault(broker.name, []).append(sample)


def _never(broker: BrokerUnderTest, scale: float) -> Sample:
    raise AssertionError("the row runs its cases itself")
