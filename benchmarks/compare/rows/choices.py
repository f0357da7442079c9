"""Row 10: what each choice of the design is worth, with kafkalite and with bare loops."""

from functools import partial

from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.compare.loads import RECORD_BYTES
from benchmarks.compare.measure import Case, Sample
from benchmarks.compare.rows.common import Stored, drop_from_page_cache
from benchmarks.compare.rows.limits import LIMIT_RECORDS, METRICS, drain_limit, produce_limit
from kafkalite.wire.compression import Codec

BATCH_SIZES = (1, 10, 100, 1_000, 8_000)
"""Records in a batch; 8,000 of 100 bytes are as many as `max.message.bytes` allows."""


def choices(factor: float) -> list[Case]:
    """Row 10."""
    seconds = 2 * factor
    stored = Stored(int(4_000_000 * max(factor, 0.5)), LIMIT_RECORDS, 1, RECORD_BYTES)

    def drain(broker: BrokerUnderTest, scale: float, *, restart: bool, cold: bool) -> Sample:
        stored.topic(broker)
        if restart:
            broker.stop()
        if cold:
            drop_from_page_cache(broker)
        if restart:
            broker.start_seconds()
        # Once through the file, and not again: what was read is in the page cache.
        return drain_limit(broker, scale, stored=stored, seconds=0.2)

    sizes = [
        Case(
            f"in: {records:,} record{'s' if records > 1 else ''} a batch",
            METRICS,
            partial(produce_limit, seconds=seconds, codec=Codec.NONE, records=records),
        )
        for records in BATCH_SIZES
    ]
    codecs = [
        Case(
            f"in: 1,000 records a batch, {codec.name.lower()}",
            METRICS,
            partial(produce_limit, seconds=seconds, codec=codec, records=1_000),
        )
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
    ]
    return [
        *sizes,
        *codecs,
        Case("out: from the page cache", METRICS, partial(drain, restart=False, cold=False)),
        Case("out: after a restart", METRICS, partial(drain, restart=True, cold=False)),
        Case("out: from the disk", METRICS, partial(drain, restart=False, cold=True)),
    ]
