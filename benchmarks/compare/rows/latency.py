"""Row 5: from `produce` to the consumer, librdkafka on both ends."""

import time
from functools import partial
from typing import Any

from benchmarks.compare import loads
from benchmarks.compare.brokers import KFAKE, BrokerUnderTest
from benchmarks.compare.loads import RECORD_BYTES
from benchmarks.compare.measure import Case, Metric, Sample
from benchmarks.compare.rows.common import fresh_topic

QUANTILES = ("p50", "p99", "p999")
_LATENCY = tuple(Metric(name, "ms", more_is_better=False, target=1.0) for name in QUANTILES)


def latency(factor: float) -> list[Case]:
    """Row 5."""

    def run(broker: BrokerUnderTest, scale: float, *, acks: Any, rate: float, count: int) -> Sample:
        began = time.perf_counter()
        with fresh_topic(broker, 1) as topic:
            done = loads.librdkafka(
                "latency",
                bootstrap=broker.bootstrap,
                topic=topic,
                count=int(count * scale),
                size=RECORD_BYTES,
                rate=rate,
                settings={"acks": acks},
            )
        values = {name: done[name] for name in QUANTILES}
        return Sample(values, seconds=time.perf_counter() - began, client_cpu=done["cpu"])

    count = int(5_000 * factor)
    return [
        Case(name, _LATENCY, partial(run, acks=acks, rate=rate, count=count), peers=(KFAKE,))
        for name, acks, rate in (
            ("one at a time, acks=1", 1, 0),
            ("one at a time, acks=all", "all", 0),
            ("1,000 records/s, acks=1", 1, 1000),
            ("1,000 records/s, acks=all", "all", 1000),
        )
    ]
