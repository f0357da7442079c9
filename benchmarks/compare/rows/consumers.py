"""Rows 2 and 3: consumers, from a warm page cache and from a cold one, and beside a producer."""

from functools import partial
from typing import Any

from benchmarks.compare import loads
from benchmarks.compare.brokers import KFAKE, BrokerUnderTest
from benchmarks.compare.loads import RECORD_BYTES
from benchmarks.compare.measure import Case, Sample
from benchmarks.compare.rows.common import (
    PARTITIONS,
    Stored,
    drop_from_page_cache,
    fresh_topic,
    rate_wanted,
    throughput,
)

GROUP_MEMBERS = 3


def consumers(factor: float) -> list[Case]:
    """Row 2."""
    stored = Stored(int(3_000_000 * factor), 600, PARTITIONS, RECORD_BYTES)

    def run(
        broker: BrokerUnderTest, scale: float, settings: dict[str, Any], *, cold: bool = False
    ) -> Sample:
        topic, count = stored.topic(broker), int(stored.count * scale)
        if cold:
            drop_from_page_cache(broker)
        done = loads.librdkafka(
            "consume",
            bootstrap=broker.bootstrap,
            topic=topic,
            partitions=stored.partitions,
            count=count,
            settings=settings,
        )
        return throughput(done["count"] / done["seconds"], count, stored.size, done)

    def group(broker: BrokerUnderTest, scale: float) -> Sample:
        count = stored.count
        done = loads.librdkafka(
            "consume_in_group",
            bootstrap=broker.bootstrap,
            topic=stored.topic(broker),
            members=GROUP_MEMBERS,
            count=count,
            settings={},
        )
        return throughput(count / done["seconds"], count, stored.size, done)

    def java(broker: BrokerUnderTest, scale: float) -> Sample:
        count = int(stored.count * scale)
        done = loads.java_consumer(broker, stored.topic(broker), count)
        return throughput(done["rate"], count, stored.size, done)

    committed = {"isolation.level": "read_committed"}
    uncommitted = {"isolation.level": "read_uncommitted"}
    wanted = rate_wanted(1.2)
    return [
        Case(
            "librdkafka, read_uncommitted",
            wanted,
            partial(run, settings=uncommitted),
            peers=(KFAKE,),
        ),
        Case("librdkafka, read_committed", wanted, partial(run, settings=committed)),
        Case("librdkafka, cold page cache", wanted, partial(run, settings=uncommitted, cold=True)),
        Case("librdkafka, 3 consumers in a group", wanted, group),
        Case("Java client", wanted, java),
    ]


def together(factor: float) -> list[Case]:
    """Row 3: one process produces and consumes."""

    def run(broker: BrokerUnderTest, scale: float) -> Sample:
        count = int(1_500_000 * factor * scale)
        with fresh_topic(broker) as topic:
            done = loads.librdkafka(
                "both",
                bootstrap=broker.bootstrap,
                topic=topic,
                partitions=PARTITIONS,
                count=count,
                size=RECORD_BYTES,
                settings={"acks": 1, "batch.size": 65536},
            )
        return throughput(count / done["seconds"], count, RECORD_BYTES, done)

    name = "librdkafka, one producer and one consumer"
    return [Case(name, rate_wanted(1.2), run, peers=(KFAKE,))]
