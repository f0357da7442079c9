"""Row 6: one record a request, where an interpreted broker is weakest."""

from functools import partial

from benchmarks.compare.brokers import KFAKE
from benchmarks.compare.measure import Case, Metric
from benchmarks.compare.rows.common import produce_prepared


def small_requests(factor: float) -> list[Case]:
    """Row 6."""
    cases = []
    loads = ((1, 1, 1.0), (1, 5, 2.0), (4, 1, 1.0), (10, 1, 1.0), (50, 1, 0.9), (1000, 1, 0.9))
    for connections, depth, target in loads:
        latency = 1.0 if depth == 1 and connections <= 50 else None
        metrics = (
            Metric("requests", "requests/s", target=target),
            Metric("p50", "ms", more_is_better=False, target=latency),
            Metric("p99", "ms", more_is_better=False, target=latency),
            Metric("processor time a request", "us", more_is_better=False),
        )
        run = partial(produce_prepared, connections=connections, depth=depth, seconds=3 * factor)
        plural = "" if connections == 1 else "s"
        name = f"{connections:,} connection{plural}, {depth} in flight"
        peers = (KFAKE,) if connections <= 50 else ()
        cases.append(Case(name, metrics, run, peers=peers))
    return cases
