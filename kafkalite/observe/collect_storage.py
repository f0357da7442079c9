"""Metrics of disks, compaction and copying, by the names of jmx_exporter's rules (family A)."""

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafkalite.log.disk import FlushTimes, OsDisk
from kafkalite.meta.changes import ImageReplaced, PartitionChanged
from kafkalite.observe.buckets import QUANTILES
from kafkalite.observe.exposition import COUNTER, GAUGE, SUMMARY, Family

if TYPE_CHECKING:
    from kafkalite.meta.image import Change, Image
    from kafkalite.meta.zookeeper.session import Session
    from kafkalite.observe.inside import BrokerParts

CLIENT_ID: Final = "Replica"


class ChangeCounts:
    """Counts what becomes of partitions, from when it is made.

    Attributes:
        shrinks, expands: of ISRs of partitions that this broker leads.
        elections: new leaders, while this broker is the controller.
        unclean_elections: of them, those of a replica that was not in sync.
    """

    def __init__(self, parts: "BrokerParts") -> None:
        metadata = parts.services.metadata
        self._metadata = metadata
        self._broker_id = parts.services.config.node_id
        self._image: Image = metadata.image
        self.shrinks = self.expands = self.elections = self.unclean_elections = 0
        metadata.subscribe(self._on_changes)

    def _on_changes(self, changes: "Sequence[Change]", image: "Image") -> None:
        before, self._image = self._image, image
        for change in changes:
            if isinstance(change, ImageReplaced):
                return
            if isinstance(change, PartitionChanged):
                self._count(before, change)

    def _count(self, image: "Image", change: PartitionChanged) -> None:
        old, new = image.partition(change.name, change.index), change.state
        if old is None:
            return
        if new.leader == self._broker_id:
            self.shrinks += len(new.isr) < len(old.isr)
            self.expands += len(new.isr) > len(old.isr)
        if self._metadata.is_controller and new.leader >= 0 and new.leader != old.leader:
            self.elections += 1
            self.unclean_elections += new.leader not in old.isr


def changes(counts: ChangeCounts) -> Iterator[Family]:
    """Yield how often ISRs and leaders changed."""
    for name, value, text in (
        ("server_replicamanager_isrshrinks", counts.shrinks, "Replicas that fell out of sync"),
        ("server_replicamanager_isrexpands", counts.expands, "Replicas that caught up"),
        (
            "controller_controllerstats_uncleanleaderelections",
            counts.unclean_elections,
            "Leaders that were not in sync: records were lost; alert > 0",
        ),
    ):
        yield Family(f"kafka_{name}_total", COUNTER, f"{text}, since the first scrape").add(value)
    elections = Family(
        "kafka_controller_controllerstats_leaderelectionrateandtimems_count",
        GAUGE,
        "Leaders elected by this controller, since the first scrape",
    )
    yield elections.add(counts.elections)


def fetching(parts: "BrokerParts") -> Iterator[Family]:
    """Yield how far this broker is behind the leaders that it copies from."""
    lags = [] if parts.fetchers is None else list(parts.fetchers.lags())
    yield Family(
        "kafka_server_replicafetchermanager_maxlag", GAUGE, "Most records behind a leader"
    ).add(max((lag for _, lag in lags), default=0), clientid=CLIENT_ID)
    rates = [] if parts.fetchers is None else parts.fetchers.fetch_rates()
    yield Family(
        "kafka_server_replicafetchermanager_minfetchrate",
        GAUGE,
        "Fetches a second from the leader that is asked least",
    ).add(min(rates, default=0.0), clientid=CLIENT_ID)
    lag = Family("kafka_server_fetcherlagmetrics_consumerlag", GAUGE, "Records behind the leader")
    for place, behind in lags:
        lag.add(behind, clientid=CLIENT_ID, topic=place.topic, partition=place.partition)
    yield lag


def storage(parts: "BrokerParts") -> Iterator[Family]:
    """Yield what compaction, fsync and the disk do."""
    logs = parts.services.logs
    cleaner = logs.keeper.cleaner
    for name, value, text in (
        ("cleaner_max_clean_time_secs", cleaner.last_pass_s, "Seconds of the last pass"),
        (
            "cleaner_cleaner_recopy_percent",
            cleaner.recopied_percent,
            "Bytes kept by the last pass, in percent of those read",
        ),
        ("cleaner_max_buffer_utilization_percent", 0, "Always 0: not measured"),
        ("cleaner_deadthreadcount", 0, "Always 0: there are no cleaner threads"),
        ("cleanermanager_max_dirty_percent", cleaner.dirtiest_percent, "Of the dirtiest log"),
        (
            "cleanermanager_uncleanable_partitions_count",
            len(cleaner.uncleanable),
            "Logs that are not compacted any more, for a damage; alert > 0",
        ),
    ):
        yield Family(f"kafka_log_log{name}", GAUGE, text).add(value)
    failed = {log.directory for log in logs.logs() if log.failure is not None}
    yield Family(
        "kafka_log_logmanager_offlinelogdirectorycount", GAUGE, "Directories of logs that failed"
    ).add(len({os.path.dirname(path) for path in failed}))
    yield from _strays(logs.paths)
    disk = parts.control.disk
    flushes = disk.flushes if isinstance(disk, OsDisk) else FlushTimes()
    summary = Family(
        "kafka_log_logflushstats_logflushrateandtimems", SUMMARY, "Milliseconds of an fsync"
    )
    yield _add_times(summary, flushes.recent_s, flushes.count, flushes.sum_s)
    with suppress(OSError):
        done = _process_io()
        for word in ("read", "write"):
            yield Family(
                f"kafka_server_kafkaserver_linux_disk_{word}_bytes", GAUGE, f"Disk: {word}"
            ).add(done[f"{word}_bytes"])


def _strays(directories: Iterable[str]) -> Iterator[Family]:
    """Yield what lies in log directories and belongs to no partition of this broker."""
    count = size_bytes = 0
    for directory in directories:
        with suppress(OSError):
            for entry in os.scandir(directory):
                if entry.name.endswith("-stray"):
                    count += 1
                    size_bytes += sum(each.stat().st_size for each in os.scandir(entry.path))
    for name, value, text in (
        ("count", count, "Partitions set aside at a start, as they belong elsewhere"),
        ("totalsize", size_bytes, "Bytes of those"),
        ("misclassifiedcount", 0, "Always 0: what is in the metadata is never set aside"),
    ):
        yield Family(f"kafka_server_replicamanager_straypartitions{name}", GAUGE, text).add(value)


def _process_io() -> dict[str, int]:
    with open("/proc/self/io", encoding="ascii") as file:
        pairs = (line.split(":") for line in file)
        return {name: int(value) for name, value in pairs}


def sessions(parts: "BrokerParts") -> Iterator[Family]:
    """Yield fetch sessions."""
    cache = parts.services.fetch_sessions
    prefix = "kafka_server_fetchsessioncache"
    yield Family(f"{prefix}_numincrementalfetchsessions", GAUGE, "Fetch sessions").add(len(cache))
    yield Family(
        f"{prefix}_incrementalfetchsessionevictions_total", COUNTER, "Sessions that made room"
    ).add(cache.evicted_count)


def as_java(resident_bytes: int) -> Iterator[Family]:
    """Yield what panels about a Java virtual machine look for, in this process's own terms."""
    text = "Resident memory of this process: there is no Java"
    yield Family("jvm_memory_used_bytes", GAUGE, text).add(resident_bytes, area="heap")
    yield Family("jvm_memory_bytes_max", GAUGE, text).add(resident_bytes, area="heap")
    collected = sum(each["collections"] for each in gc.get_stats())
    name = "jvm_gc_collection_seconds"
    collections = Family(name, SUMMARY, "Collections of Python; their time is not measured")
    collections.add(collected, "_count", gc="python")
    yield collections.add(0, "_sum", gc="python")
    with suppress(OSError):
        threads = len(os.listdir("/proc/self/task"))
        yield Family("jvm_threads_current", GAUGE, "Threads").add(threads)


def zookeeper(session: "Session") -> Iterator[Family]:
    """Yield how the session with ZooKeeper is, as Kafka 3.9's SessionExpireListener tells it."""
    prefix = "kafka_server_sessionexpirelistener"
    for name, value, text in (
        ("disconnects", session.disconnects, "Times that ZooKeeper was not reached any more"),
        ("expires", session.expires, "Sessions that ended; alert > 0"),
        ("syncconnects", session.connects, "Connections made"),
    ):
        yield Family(f"{prefix}_zookeeper{name}_total", COUNTER, text).add(value)
    state = Family(f"{prefix}_sessionstate", GAUGE, "1 with the state that the session has")
    yield state.add(1, state=session.state)
    latency = Family(
        "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
        SUMMARY,
        "Milliseconds to ZooKeeper's answer; requests sent together count as one",
    )
    recent_s = tuple(session.latencies_s)
    yield _add_times(latency, recent_s, session.request_count, session.latency_sum_s)


def _add_times(family: Family, recent_s: Iterable[float], count: int, sum_s: float) -> Family:
    ordered = sorted(recent_s)
    for text, share in QUANTILES:
        at = min(len(ordered) - 1, int(share * len(ordered)))
        family.add(ordered[at] * 1_000 if ordered else 0.0, quantile=text)
    family.add(count, "_count")
    return family.add(sum_s * 1_000, "_sum")
