"""Row 1: producers."""

from functools import partial
from typing import Any

from benchmarks.compare import loads
from benchmarks.compare.brokers import KFAKE, MOCK, BrokerUnderTest
from benchmarks.compare.loads import RECORD_BYTES
from benchmarks.compare.measure import Case, Sample
from benchmarks.compare.rows.common import (
    PARTITIONS,
    fresh_topic,
    measured,
    rate_wanted,
    throughput,
)

CODECS = ("gzip", "snappy", "lz4", "zstd")


def _produce(
    broker: BrokerUnderTest,
    scale: float,
    *,
    count: int,
    size: int,
    settings: dict[str, Any],
    partitions: int = PARTITIONS,
) -> Sample:
    count = int(count * scale)
    with fresh_topic(broker, partitions, expected=count) as topic:
        load = partial(
            loads.librdkafka,
            "produce",
            bootstrap=broker.bootstrap,
            topic=topic,
            count=count,
            size=size,
            settings=settings,
        )
        done = measured(broker, load)
    return throughput(count / done["seconds"], count, size, done)


def _java_produce(
    broker: BrokerUnderTest,
    scale: float,
    *,
    count: int,
    size: int,
    settings: tuple[str, ...] = (),
) -> Sample:
    count = int(count * scale)
    with fresh_topic(broker, expected=count) as topic:
        load = partial(loads.java_producer, broker, topic, count, size, settings=settings)
        done = measured(broker, load)
    return throughput(done["rate"], count, size, done)


def producers(factor: float) -> list[Case]:
    """Row 1: `factor` scales the number of records."""
    million = int(1_000_000 * factor)

    def case(
        name: str,
        *,
        acks: Any = 1,
        batch: int = 65536,
        codec: str = "none",
        size: int = RECORD_BYTES,
        partitions: int = PARTITIONS,
        peers: tuple[str, ...] = (),
    ) -> Case:
        run = partial(
            _produce,
            count=2 * million if size == RECORD_BYTES else million // 2,
            size=size,
            settings={"acks": acks, "batch.size": batch, "compression.type": codec},
            partitions=partitions,
        )
        return Case(f"librdkafka, {name}", rate_wanted(1.2), run, peers=peers)

    java = partial(_java_produce, count=2 * million, size=RECORD_BYTES)
    java_large = partial(_java_produce, count=million, size=1024)
    one_by_one = partial(
        _java_produce,
        count=million // 5,
        size=RECORD_BYTES,
        settings=("batch.size=0", "linger.ms=0", "acks=1", "enable.idempotence=false"),
    )
    return [
        case("acks=1, 64 KiB batches", peers=(KFAKE, MOCK)),
        case("acks=1, 64 KiB batches, 1 partition", partitions=1),
        case("acks=1, 8 KiB batches", batch=8192, peers=(KFAKE, MOCK)),
        case("acks=all, 64 KiB batches", acks="all", peers=(KFAKE, MOCK)),
        *(case(f"acks=1, 64 KiB batches, {codec}", codec=codec) for codec in CODECS),
        case("acks=1, 64 KiB batches, 1 KiB records", size=1024),
        Case("Java client, its defaults (idempotent, acks=all)", rate_wanted(1.2), java),
        Case("Java client, its defaults, 1 KiB records", rate_wanted(1.2), java_large),
        Case("Java client, batch.size=0, linger.ms=0", rate_wanted(1.1), one_by_one),
    ]
