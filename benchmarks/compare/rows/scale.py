"""Row 8: the same load over more partitions, stored records, connections and groups."""

from functools import partial

from benchmarks.compare import loads
from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.compare.measure import Case, Metric, Sample
from benchmarks.compare.rows.common import (
    check_stored,
    fill,
    fresh_topic,
    of_requests,
    produce_prepared,
    rate_wanted,
    send_once,
)
from benchmarks.process import frame_of
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

BATCH_RECORDS = 150
"""16 KiB."""
OFFSET_COMMIT_VERSION = 7
_REQUESTS = (Metric("requests", "requests/s"),)


def scale(factor: float) -> list[Case]:
    """Row 8; `factor` is 1 or more for 10 GB, less for as much less."""
    seconds = 2 * factor
    spread = [
        Case(
            f"{count:,} partition{'s' if count > 1 else ''}, 16 KiB batches in turn",
            rate_wanted(None),
            partial(
                produce_prepared,
                connections=1,
                depth=5,
                seconds=seconds,
                partitions=count,
                records=BATCH_RECORDS,
            ),
        )
        for count in (1, 10, 100, 1000)
    ]
    first = Case("1,000 partitions, the first batch of each", _REQUESTS, _first_appends)
    groups = [
        Case(
            f"{count:,} group{'s' if count > 1 else ''}, commits of one offset in turn",
            _REQUESTS,
            partial(_commit, groups=count, seconds=seconds),
        )
        for count in (1, 1000)
    ]
    return [*spread, first, *groups]


def stored_sizes(factor: float) -> list[Case]:
    """Row 8, its part on one topic that grows: 16 KiB batches in, one connection, 5 in flight."""
    grown: dict[BrokerUnderTest, str] = {}
    batch = loads.prepared_batch(8_000)

    def run(broker: BrokerUnderTest, scale: float, *, gigabytes: float, seconds: float) -> Sample:
        if broker not in grown:
            grown[broker] = broker.create_topic(1)
        topic = grown[broker]
        fill(broker, topic, 1, batch, int(gigabytes * 1e9 / len(batch)) * 8_000)
        own = loads.prepared_batch(BATCH_RECORDS)
        before = broker.end_offset(topic, 1)
        frames = [loads.produce_frame(topic, 0, own)]
        done = loads.send_frames(
            broker.port, frames, connections=1, depth=5, seconds=seconds * scale
        )
        count = int(done["all_answers"]) * BATCH_RECORDS
        check_stored(broker, topic, 1, before + count)
        return of_requests(done, BATCH_RECORDS, len(own))

    share = min(1.0, factor)
    return [
        Case(
            f"{gigabytes * share:g} GB stored, 16 KiB batches",
            rate_wanted(None),
            partial(run, gigabytes=gigabytes * share, seconds=2 * factor),
            warm_up=gigabytes < 1,
        )
        for gigabytes in (0.01, 1, 10)
    ]


def _first_appends(broker: BrokerUnderTest, scale: float) -> Sample:
    """Send each partition of a fresh topic one record."""
    partitions = max(1, int(1000 * scale))
    batch = loads.prepared_batch(1)
    with fresh_topic(broker, partitions, expected=partitions) as topic:
        ports = broker.ports_of(topic, partitions)
        before, seconds = broker.cpu_seconds(), 0.0
        for port in set(ports):
            led = [p for p in range(partitions) if ports[p] == port]
            seconds += send_once(port, [loads.produce_frame(topic, p, batch) for p in led])
        used = broker.cpu_seconds() - before
    return Sample({"requests": partitions / seconds}, seconds=seconds, broker_cpu=used)


def _commit(broker: BrokerUnderTest, scale: float, *, groups: int, seconds: float) -> Sample:
    """Commit for groups without members, one after another, four requests in flight."""
    with fresh_topic(broker, 1) as topic:
        frames = [_commit_frame(f"measured-{number}", topic) for number in range(groups)]
        done = loads.send_frames(
            broker.port, frames, connections=1, depth=4, seconds=seconds * scale
        )
    return of_requests(done, 1, 0)


def _commit_frame(group: str, topic: str) -> bytes:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    return frame_of(OFFSET_COMMIT, OFFSET_COMMIT_VERSION, request)
