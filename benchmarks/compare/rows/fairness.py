"""Row 12: how long everybody else waits while one client asks for very much."""

import time
from functools import partial

from benchmarks import turns
from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.compare.measure import Case, Metric, Sample

METRICS = (
    Metric("longest wait", "ms", more_is_better=False),
    Metric("answered after", "ms", more_is_better=False),
)

_prepared: set[str] = set()


def fairness(factor: float) -> list[Case]:
    """Row 12; the length of a run is that of the request."""
    del factor
    return [
        Case(f"beside {name}", METRICS, partial(_beside, name=name), warm_up=False)
        for name in turns.LOADS
    ]


def _beside(broker: BrokerUnderTest, scale: float, *, name: str) -> Sample:
    del scale
    host, _, port = broker.bootstrap.rpartition(":")
    address = (host, int(port))
    if broker.bootstrap not in _prepared:
        _prepared.add(broker.bootstrap)
        turns.prepare(address)
    began = time.perf_counter()
    tag = f"{time.monotonic_ns()}-"
    if name.startswith("DeleteTopics"):  # makes what it deletes
        turns.ask(address, turns.LOADS[name.replace("Delete", "Create")](tag))
    wait_ms, answer_ms = turns.wait_beside(address, name, tag=tag)
    values = {"longest wait": wait_ms, "answered after": answer_ms}
    return Sample(values, seconds=time.perf_counter() - began)
