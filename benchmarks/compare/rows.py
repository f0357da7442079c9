"""The rows: what is run, and what is wanted of it."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.compare import loads
from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.compare.loads import RECORD_BYTES
from benchmarks.compare.measure import Case, Metric, Sample
from kafkalite.wire.compression import Codec

PARTITIONS = 6
FETCH_BYTES = 4 << 20


@contextlib.contextmanager
def fresh_topic(
    broker: BrokerUnderTest, partitions: int = PARTITIONS, *, expected: list[int] | None = None
) -> Iterator[str]:
    """A topic for one run; holds the records expected at its end, or the run does not count."""
    topic = broker.create_topic(partitions)
    try:
        yield topic
        if expected:
            stored = broker.end_offset(topic, partitions)
            assert stored == expected[0], f"{stored} records stored, {expected[0]} sent"
    finally:
        broker.delete_topic(topic)


class Stored:
    """Topics filled once per broker and read again and again: the page cache stays warm."""

    def __init__(self, count: int, batch_records: int, partitions: int, size: int) -> None:
        self.batch_records, self.partitions, self.size = batch_records, partitions, size
        self.batch = loads.prepared_batch(batch_records, size=size)
        self.batches = count // batch_records // partitions
        self._topics: dict[BrokerUnderTest, str] = {}

    @property
    def count(self) -> int:
        return self.batches * self.batch_records * self.partitions

    def topic(self, broker: BrokerUnderTest) -> str:
        if broker not in self._topics:
            topic = self._topics[broker] = broker.create_topic(self.partitions)
            wanted = self.count
            frames = [
                loads.produce_frame(topic, p, self.batch)
                for _ in range(8)
                for p in range(self.partitions)
            ]
            while broker.end_offset(topic, self.partitions) < wanted:
                loads.send_frames(broker.port, frames, connections=1, depth=4, seconds=0.2)
        return self._topics[broker]


# --- 1: producers --------------------------------------------------------------------------------


def _produce(
    broker: BrokerUnderTest, scale: float, *, count: int, size: int, settings: dict[str, Any]
) -> Sample:
    count = int(count * scale)
    with fresh_topic(broker, expected=[count]) as topic:
        done = loads.librdkafka(
            "produce",
            bootstrap=broker.bootstrap,
            topic=topic,
            count=count,
            size=size,
            settings=settings,
        )
    return _throughput(count / done["seconds"], count, size, done)


def _java_produce(broker: BrokerUnderTest, scale: float, *, count: int, size: int) -> Sample:
    count = int(count * scale)
    with fresh_topic(broker, expected=[count]) as topic:
        done = loads.java_producer(broker, topic, count, size)
    return _throughput(done["rate"], count, size, done)


def _throughput(rate: float, count: int, size: int, done: dict[str, float]) -> Sample:
    return Sample(
        {"throughput": rate / 1000, "data": rate * size / 1e6},
        seconds=done["seconds"],
        client_cpu=done["cpu"],
        byte_count=count * size,
    )


def _rate(target: float | None) -> tuple[Metric, ...]:
    return (Metric("throughput", "thousand records/s", target=target),)


def producers(factor: float) -> list[Case]:
    """Row 1: `factor` scales the number of records."""
    million = int(1_000_000 * factor)

    def case(name: str, *, acks: Any, batch: int, codec: str = "none", size: int = 100) -> Case:
        settings = {"acks": acks, "batch.size": batch, "compression.type": codec}
        count = 2 * million if size == RECORD_BYTES else million // 2
        run = partial(_produce, count=count, size=size, settings=settings)
        return Case(f"librdkafka, {name}", _rate(1.2), run)

    java = partial(_java_produce, count=2 * million, size=100)
    java_large = partial(_java_produce, count=million, size=1024)
    return [
        case("acks=1, 64 KiB batches", acks=1, batch=65536),
        case("acks=1, 8 KiB batches", acks=1, batch=8192),
        case("acks=all, 64 KiB batches", acks="all", batch=65536),
        case("acks=1, 64 KiB batches, lz4", acks=1, batch=65536, codec="lz4"),
        case("acks=1, 64 KiB batches, zstd", acks=1, batch=65536, codec="zstd"),
        case("acks=1, 64 KiB batches, 1 KiB records", acks=1, batch=65536, size=1024),
        Case("Java client, its defaults (idempotent, acks=all)", _rate(1.2), java),
        Case("Java client, its defaults, 1 KiB records", _rate(1.2), java_large),
    ]


# --- 2, 3: consumers -----------------------------------------------------------------------------


def consumers(factor: float) -> list[Case]:
    """Row 2: from a warm page cache."""
    stored = Stored(int(3_000_000 * factor), 600, PARTITIONS, RECORD_BYTES)

    def run(broker: BrokerUnderTest, scale: float, settings: dict[str, Any]) -> Sample:
        topic, count = stored.topic(broker), int(stored.count * scale)
        done = loads.librdkafka(
            "consume",
            bootstrap=broker.bootstrap,
            topic=topic,
            partitions=stored.partitions,
            count=count,
            settings=settings,
        )
        return _throughput(done["count"] / done["seconds"], count, stored.size, done)

    def java(broker: BrokerUnderTest, scale: float) -> Sample:
        count = int(stored.count * scale)
        done = loads.java_consumer(broker, stored.topic(broker), count)
        return _throughput(done["rate"], count, stored.size, done)

    committed = {"isolation.level": "read_committed"}
    uncommitted = {"isolation.level": "read_uncommitted"}
    return [
        Case("librdkafka, read_uncommitted", _rate(1.2), partial(run, settings=uncommitted)),
        Case("librdkafka, read_committed", _rate(1.2), partial(run, settings=committed)),
        Case("Java client", _rate(1.2), java),
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
        return _throughput(count / done["seconds"], count, RECORD_BYTES, done)

    return [Case("librdkafka, one producer and one consumer", _rate(1.2), run)]


# --- 5: latency ----------------------------------------------------------------------------------

_LATENCY = (
    Metric("p50", "ms", more_is_better=False, target=1.0),
    Metric("p99", "ms", more_is_better=False, target=1.0),
    Metric("p999", "ms", more_is_better=False, target=1.0),
)


def latency(factor: float) -> list[Case]:
    """Row 5: from `produce` to the consumer, librdkafka on both ends."""

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
        values = {name: done[name] for name in ("p50", "p99", "p999")}
        return Sample(values, seconds=time.perf_counter() - began, client_cpu=done["cpu"])

    count = int(5_000 * factor)
    return [
        Case(name, _LATENCY, partial(run, acks=acks, rate=rate, count=count))
        for name, acks, rate in (
            ("one at a time, acks=1", 1, 0),
            ("1,000 records/s, acks=1", 1, 1000),
            ("1,000 records/s, acks=all", "all", 1000),
        )
    ]


# --- 6: small requests ---------------------------------------------------------------------------


def _requests(
    broker: BrokerUnderTest,
    scale: float,
    *,
    connections: int,
    depth: int,
    seconds: float,
    partitions: int = PARTITIONS,
    records: int = 1,
) -> Sample:
    batch = loads.prepared_batch(records)
    with fresh_topic(broker, partitions) as topic:
        frames = [loads.produce_frame(topic, p, batch) for p in range(partitions)]
        done = loads.send_frames(
            broker.port, frames, connections=connections, depth=depth, seconds=seconds * scale
        )
        count = int(done["all_answers"]) * records
        stored = broker.end_offset(topic, partitions)
        assert stored == count, f"{stored} records stored, {count} acknowledged"
    rate = done["answers"] / done["seconds"]
    return Sample(
        {
            "requests": rate,
            "throughput": rate * records / 1000,
            "data": rate * len(batch) / 1e6,
            "p50": done["p50_us"] / 1000,
            "p99": done["p99_us"] / 1000,
        },
        seconds=done["seconds"],
        client_cpu=done["cpu"],
        byte_count=int(done["answers"]) * len(batch),
    )


def small_requests(factor: float) -> list[Case]:
    """Row 6: one record a request, acks=1."""
    cases = []
    for connections, depth, target in ((1, 1, 1.0), (1, 5, 2.0), (4, 1, 1.0), (50, 1, 1.0)):
        metrics = (
            Metric("requests", "requests/s", target=target),
            Metric("p50", "ms", more_is_better=False, target=1.0 if depth == 1 else None),
            Metric("p99", "ms", more_is_better=False, target=1.0 if depth == 1 else None),
        )
        run = partial(_requests, connections=connections, depth=depth, seconds=3 * factor)
        plural = "" if connections == 1 else "s"
        cases.append(Case(f"{connections} connection{plural}, {depth} in flight", metrics, run))
    return cases


# --- 7: limits -----------------------------------------------------------------------------------

LIMIT_RECORDS = 8_000
"""A batch of 100-byte records just below the 1 MiB that `max.message.bytes` allows."""


def limits(factor: float) -> list[Case]:
    """Row 7: batches prepared beforehand in, answers dropped unread."""
    seconds = 3 * factor

    def in_(broker: BrokerUnderTest, scale: float, *, codec: Codec, records: int) -> Sample:
        batch = loads.prepared_batch(records, codec)
        with fresh_topic(broker, 1) as topic:
            frames = [loads.produce_frame(topic, 0, batch)]
            done = loads.send_frames(
                broker.port, frames, connections=1, depth=2, seconds=seconds * scale
            )
            count = int(done["all_answers"]) * records
            stored = broker.end_offset(topic, 1)
            assert stored == count, f"{stored} records stored, {count} acknowledged"
        return limit_sample(done["answers"], records, len(batch), done)

    stored = Stored(int(4_000_000 * max(factor, 0.5)), LIMIT_RECORDS, 1, RECORD_BYTES)

    def out(broker: BrokerUnderTest, scale: float) -> Sample:
        topic = stored.topic(broker)
        done = loads.drain(
            broker.port,
            topic,
            batch=stored.batch,
            batch_records=stored.batch_records,
            end_offset=stored.count,
            max_bytes=FETCH_BYTES,
            seconds=seconds * scale,
        )
        batches = done["record_bytes_in"] / len(stored.batch)
        return limit_sample(batches, stored.batch_records, len(stored.batch), done)

    metrics = (Metric("throughput", "thousand records/s"), Metric("data", "MB/s"))
    large = partial(in_, codec=Codec.NONE, records=LIMIT_RECORDS)
    small = partial(in_, codec=Codec.NONE, records=150)
    packed = partial(in_, codec=Codec.LZ4, records=LIMIT_RECORDS)
    return [
        Case("in: batches of 8,000 records, 0.9 MB", metrics, large),
        Case("in: the same, lz4", metrics, packed),
        Case("in: batches of 150 records, 16 KiB", metrics, small),
        Case("out: fetches of 4 MiB", metrics, out),
    ]


def limit_sample(batches: float, records: int, size: int, done: dict[str, float]) -> Sample:
    rate = batches / done["seconds"]
    return Sample(
        {"throughput": rate * records / 1000, "data": rate * size / 1e6},
        seconds=done["seconds"],
        client_cpu=done["cpu"],
        byte_count=int(batches) * size,
    )


# --- 8: scale ------------------------------------------------------------------------------------


def scale(factor: float) -> list[Case]:
    """Row 8: the same load over more and more partitions and connections."""
    seconds = 2 * factor
    throughput = _rate(None)
    requests = (Metric("requests", "requests/s"),)
    spread = [
        Case(
            f"{count:,} partition{'s' if count > 1 else ''}, 16 KiB batches in turn",
            throughput,
            partial(
                _requests, connections=1, depth=5, seconds=seconds, partitions=count, records=150
            ),
        )
        for count in (1, 10, 100, 1000)
    ]
    many = [
        Case(
            f"{count:,} connection{'s' if count > 1 else ''}, one record a request",
            requests,
            partial(_requests, connections=count, depth=1, seconds=seconds),
        )
        for count in (10, 100, 1000)
    ]
    return spread + many
