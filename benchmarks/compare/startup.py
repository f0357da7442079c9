"""Row 9: start, memory idle and under load, restart with data."""

import time

from benchmarks.compare import loads
from benchmarks.compare.brokers import READY_SECONDS, Apache, BrokerUnderTest, Kafkalite, ask_until
from benchmarks.compare.measure import Case, Metric, Outcome, Sample
from benchmarks.compare.rows.common import Stored

_STARTED = (Metric("start", "s", more_is_better=False, target=0.2),)
_IDLE = (Metric("resident memory", "MB", more_is_better=False, target=1 / 6),)
_LOADED = (Metric("resident memory", "MB", more_is_better=False, target=1 / 8),)
LOAD_SECONDS = 3.0
IDLE_SECONDS = 3.0


def measure(factor: float, runs: int) -> list[Outcome]:
    """Start both in turn: with an empty data directory formatted before, then with data."""
    row = "9"
    start = Outcome(row, Case("start to first Metadata reply", _STARTED, _never))
    written = Outcome(row, Case("start to first acknowledged write", _STARTED, _never))
    loaded = Outcome(row, Case("under load, 64 KiB batches", _LOADED, _never))
    idle = Outcome(row, Case("idle, three seconds after the start", _IDLE, _never))
    gigabytes = 1.0 * factor if factor < 1 else 5.0
    clean = Outcome(row, Case(f"restart after a clean stop, {gigabytes:.1f} GB", _STARTED, _never))
    unclean = Outcome(row, Case(f"restart after SIGKILL, {gigabytes:.1f} GB", _STARTED, _never))
    stored = Stored(int(gigabytes * 1e7), 1_000, 6, 100)
    with Kafkalite() as ours, Apache() as theirs:
        brokers = (ours, theirs)
        topics = {broker: broker.create_topic(6) for broker in brokers}
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
                _add(written, broker, _write_first(broker, topics[broker]))
                _add(loaded, broker, _load(broker, topics[broker]))
                broker.stop()
        for broker in brokers:
            broker.start()
            stored.topic(broker)
            for outcome, kill in ((clean, False), (unclean, True)):
                for _ in range(runs):
                    broker.stop(kill=kill)
                    _add(outcome, broker, _restart(broker))
            broker.stop()
    return [start, written, idle, loaded, clean, unclean]


def _write_first(broker: BrokerUnderTest, topic: str) -> Sample:
    """Start, and write one record as soon as it is taken."""
    frame = loads.produce_frame(topic, 0, loads.prepared_batch(1), acks=-1)
    began = time.perf_counter()
    broker.start()
    ask_until(broker.port, frame, loads.is_acknowledged, began + READY_SECONDS)
    seconds = time.perf_counter() - began
    return Sample({"start": seconds}, seconds=seconds)


def _load(broker: BrokerUnderTest, topic: str) -> Sample:
    """Return the most memory that was resident while batches of 64 KiB came in."""
    broker.forget_peak()
    batch = loads.prepared_batch(600)
    frames = [loads.produce_frame(topic, p, batch) for p in range(6)]
    loads.send_frames(broker.port, frames, connections=4, depth=2, seconds=LOAD_SECONDS)
    peak = broker.peak_bytes()
    return Sample({"resident memory": peak / 1e6}, peak_bytes=peak)


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
