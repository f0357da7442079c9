"""Row 7: batches prepared beforehand in, answers dropped unread."""

from functools import partial

from benchmarks.compare import loads
from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.compare.loads import RECORD_BYTES
from benchmarks.compare.measure import Case, Metric, Sample
from benchmarks.compare.rows.common import Stored, check_stored, fresh_topic
from kafkalite.wire.compression import Codec

LIMIT_RECORDS = 8_000
"""A batch of 100-byte records just below the 1 MiB that `max.message.bytes` allows."""
FETCH_BYTES = 4 << 20
LARGE_MAX_SECONDS = 1.5
"""Of batches of 0.9 MB, gigabytes a second: longer, and the disk is measured, not the broker."""
METRICS = (Metric("throughput", "thousand records/s"), Metric("data", "MB/s"))


def limits(factor: float) -> list[Case]:
    """Row 7."""
    seconds = 3 * factor
    stored = Stored(int(4_000_000 * max(factor, 0.5)), LIMIT_RECORDS, 1, RECORD_BYTES)
    large = partial(
        produce_limit,
        seconds=min(seconds, LARGE_MAX_SECONDS),
        codec=Codec.NONE,
        records=LIMIT_RECORDS,
    )
    small = partial(produce_limit, seconds=seconds, codec=Codec.NONE, records=150)
    packed = partial(produce_limit, seconds=seconds, codec=Codec.LZ4, records=LIMIT_RECORDS)
    out = partial(drain_limit, stored=stored, seconds=seconds)
    return [
        Case("in: batches of 8,000 records, 0.9 MB", METRICS, large),
        Case("in: the same, lz4", METRICS, packed),
        Case("in: batches of 150 records, 16 KiB", METRICS, small),
        Case("out: fetches of 4 MiB", METRICS, out),
    ]


def produce_limit(
    broker: BrokerUnderTest, scale: float, *, seconds: float, codec: Codec, records: int
) -> Sample:
    """Send the same batch to one partition, two requests in flight."""
    batch = loads.prepared_batch(records, codec)
    with fresh_topic(broker, 1) as topic:
        frames = [loads.produce_frame(topic, 0, batch)]
        done = loads.send_frames(
            broker.port, frames, connections=1, depth=2, seconds=seconds * scale
        )
        check_stored(broker, topic, 1, int(done["all_answers"]) * records)
    return limit_sample(done["answers"], records, len(batch), done)


def drain_limit(broker: BrokerUnderTest, scale: float, *, stored: Stored, seconds: float) -> Sample:
    """Fetch one partition from its beginning, again and again."""
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


def limit_sample(batches: float, records: int, size: int, done: dict[str, float]) -> Sample:
    rate = batches / done["seconds"]
    return Sample(
        {"throughput": rate * records / 1000, "data": rate * size / 1e6},
        seconds=done["seconds"],
        client_cpu=done["cpu"],
        byte_count=int(batches) * size,
    )
