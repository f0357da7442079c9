"""A broker's own metrics, by the names of jmx_exporter's rules (family A).

Values that Kafka has and this broker knows by another way are counted as Kafka's documentation
describes them; what cannot happen here (message conversions) is 0, so that dashboards have a line.
"""

import gc
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import kafkalite
from kafkalite.isr.partition import Partition
from kafkalite.isr.traffic import TopicTraffic
from kafkalite.observe.buckets import QUANTILES, Buckets, merged, quantile, upper_bound
from kafkalite.observe.exposition import COUNTER, GAUGE, HISTOGRAM, SUMMARY, Family, place_labels
from kafkalite.observe.inside import BrokerParts
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.observe.requests import ApiCounts

PARTITIONS_MAX: Final = 1_000
"""Beyond so many partitions none has series of its own."""

TRAFFIC: Final[tuple[tuple[str, str, Callable[[TopicTraffic], int]], ...]] = (
    ("messagesin", "Records that producers appended", lambda t: t.messages_in),
    ("bytesin", "Bytes of batches that producers appended", lambda t: t.bytes_in),
    ("bytesout", "Bytes of batches sent to consumers", lambda t: t.bytes_out),
    (
        "replicationbytesout",
        "Bytes of batches sent to other brokers",
        lambda t: t.replication_bytes_out,
    ),
    ("totalproducerequests", "Produce requests, by partition", lambda t: t.produce_requests),
    ("totalfetchrequests", "Fetches that returned records", lambda t: t.fetch_requests),
    (
        "failedproducerequests",
        "Produce requests refused, by partition",
        lambda t: t.failed_produce_requests,
    ),
    ("failedfetchrequests", "Fetches refused, by partition", lambda t: t.failed_fetch_requests),
    ("bytesrejected", "Bytes refused as too large", lambda t: t.bytes_rejected),
)

NEVER: Final = (
    ("producemessageconversions", "Always 0: nothing is converted"),
    ("fetchmessageconversions", "Always 0: nothing is converted"),
)

BUCKET_ENDS_S: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip


def traffic(parts: BrokerParts) -> Iterator[Family]:
    """Yield what clients write and read: of all topics, and of each that had any traffic."""
    counts = parts.services.replicas.traffic
    total = counts.total()
    total.failed_produce_requests += counts.refused_produce_requests
    busy = {
        name: each
        for name, each in sorted(counts.topics.items())
        if each.produce_requests or each.fetch_requests or each.replication_bytes_out
    }
    for name, text, value in TRAFFIC:
        family = Family(f"kafka_server_brokertopicmetrics_{name}_total", COUNTER, text)
        family.add(value(total))
        for topic, each in busy.items():
            family.add(value(each), topic=topic)
        yield family
    for name, text in NEVER:
        yield Family(f"kafka_server_brokertopicmetrics_{name}_total", COUNTER, text).add(0)


def requests(parts: BrokerParts) -> Iterator[Family]:
    """Yield how many requests there were, how long they took, and what was answered."""
    counts = Family("kafka_network_requestmetrics_requests_total", COUNTER, "Requests by API")
    errors = Family("kafka_network_requestmetrics_errors_total", COUNTER, "Answers by error")
    sizes = Family("kafka_network_requestmetrics_requestbytes", SUMMARY, "Bytes of requests")
    totals = Family(
        "kafka_network_requestmetrics_totaltimems",
        SUMMARY,
        "Milliseconds from a whole request to its answer, of the last minute",
    )
    local = Family(
        "kafka_network_requestmetrics_localtimems",
        SUMMARY,
        "Milliseconds in the handler: without what a request waited for",
    )
    remote = Family(
        "kafka_network_requestmetrics_remotetimems",
        SUMMARY,
        "Milliseconds that requests waited for records, replicas, members or other brokers",
    )
    histogram = Family(
        "kafkalite_request_duration_seconds",
        HISTOGRAM,
        "From a whole request to its answer; alert on a high p99 of Produce",
    )
    by_name: dict[str, list[ApiCounts]] = {}
    throttled_ms: dict[str, int] = {}
    quotas = parts.services.quotas
    by_api = {} if quotas is None else quotas.throttled_ms_by_api
    for (key, _, is_follower), each in parts.requests.apis.items():
        by_name.setdefault(each.name, []).append(each)
        throttled_ms[each.name] = 0 if is_follower else by_api.get(key, 0)
    for name, apis in sorted(by_name.items()):
        total = merged([api.total for api in apis])
        for api in sorted(apis, key=lambda api: api.version):
            counts.add(api.count, request=name, version=api.version)
        by_code: dict[int, int] = {}
        for api in apis:
            for code, count in api.errors.items():
                by_code[code] = by_code.get(code, 0) + count
        failed = sum(by_code.values())
        errors.add(sum(api.count for api in apis) - failed, request=name, error="NONE")
        for code, count in sorted(by_code.items()):
            errors.add(count, request=name, error=_error_name(code))
        sizes.add(sum(api.request_bytes for api in apis), "_sum", request=name)
        sizes.add(sum(api.count for api in apis), "_count", request=name)
        _summary(totals, total, request=name)
        _summary(local, merged([api.local for api in apis]), request=name)
        _summary(remote, merged([api.waited for api in apis]), request=name)
        _histogram(histogram, total, request=name)
    yield from (counts, errors, sizes, totals, local, remote, histogram)
    throttled = Family(
        "kafka_network_requestmetrics_throttletimems",
        SUMMARY,
        "Milliseconds that quotas told clients to wait",
    )
    for name, apis in sorted(by_name.items()):
        throttled.add(sum(api.count for api in apis), "_count", request=name)
        throttled.add(throttled_ms[name], "_sum", request=name)
    yield throttled
    for name, text in (
        ("requestqueuetimems", "Always 0: requests are taken from their connections in turn"),
        ("responsequeuetimems", "Always 0: answers are sent when they are made"),
        ("responsesendtimems", "Always 0: sending is not timed by itself"),
    ):
        family = Family(f"kafka_network_requestmetrics_{name}", SUMMARY, text)
        for request, apis in sorted(by_name.items()):
            family.add(0, request=request, quantile="0.99")
            family.add(sum(api.count for api in apis), "_count", request=request)
        yield family


def _error_name(code: int) -> str:
    with suppress(ValueError):
        return ErrorCode(code).name
    return str(code)


def _summary(family: Family, buckets: Buckets, **labels: object) -> None:
    recent = buckets.recent()
    for text, share in QUANTILES:
        family.add(quantile(recent, share), **labels, quantile=text)
    family.add(buckets.count, "_count", **labels)
    family.add(buckets.sum_us / 1_000, "_sum", **labels)


def _histogram(family: Family, buckets: Buckets, **labels: object) -> None:
    counts, seen, bucket = buckets.counts, 0, 0
    for end_s in BUCKET_ENDS_S:
        while bucket < len(counts) and upper_bound(bucket) <= end_s * 1e6:
            seen += counts[bucket]
            bucket += 1
        family.add(seen, "_bucket", **labels, le=repr(end_s))
    family.add(buckets.count, "_bucket", **labels, le="+Inf")
    family.add(buckets.count, "_count", **labels)
    family.add(buckets.sum_us / 1e6, "_sum", **labels)


def network(parts: BrokerParts, idle: float, rates: Mapping[str, float]) -> Iterator[Family]:
    """Yield connections and how busy the broker is.

    Args:
        parts: of the broker.
        idle: share of time without work, from 0 to 1.
        rates: connections a second, by `creation` and `close`.
    """
    text = "Share of time without work, 0 to 1; the broker is at its limit below 0.1"
    for name in (
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    ):
        yield Family(name, GAUGE, text).add(idle)
    connections = parts.connections.open_connections()
    by_listener: dict[str, int] = dict.fromkeys(parts.ports, 0)
    by_software: dict[tuple[str, str], int] = {}
    for connection in connections:
        context = connection.context
        by_listener[context.listener] = by_listener.get(context.listener, 0) + 1
        software = context.client_software or ("unknown", "unknown")
        by_software[software] = by_software.get(software, 0) + 1
    count = Family(
        "kafka_server_socket_server_metrics_connection_count", GAUGE, "Connections that are open"
    )
    for listener, number in by_listener.items():
        count.add(number, listener=listener, networkprocessor="0")
    yield count
    opened = parts.connections.opened_count
    name = "kafka_server_socket_server_metrics_connection"
    first = next(iter(by_listener), "")
    for word in ("creation", "close"):
        yield Family(f"{name}_{word}_rate", GAUGE, f"Connections a second: {word}").add(
            rates[word], listener=first, networkprocessor="0"
        )
    yield Family("kafka_network_acceptor_acceptorblockedpercent", GAUGE, "Always 0").add(
        0, listener=first
    )
    yield Family(f"{name}_creation_total", COUNTER, "Connections opened").add(
        opened, listener=first, networkprocessor="0"
    )
    yield Family(f"{name}_close_total", COUNTER, "Connections closed").add(
        opened - len(connections), listener=first, networkprocessor="0"
    )
    clients = Family(
        "kafka_server_socket_server_metrics_connections", GAUGE, "Connections by client software"
    )
    for (software_name, version), number in sorted(by_software.items()):
        clients.add(number, client_software_name=software_name, client_software_version=version)
    yield clients
    parked = [each.handler.api.key.name for one in connections for each in one.waiting]
    family = Family(
        "kafka_server_delayedoperationpurgatory_purgatorysize", GAUGE, "Requests that wait"
    )
    for operation, key in (("Fetch", "FETCH"), ("Produce", "PRODUCE"), ("Rebalance", "JOIN_GROUP")):
        family.add(parked.count(key), delayedoperation=operation)
    yield family
    for queue in ("requestqueuesize", "responsequeuesize"):
        yield Family(
            f"kafka_network_requestchannel_{queue}", GAUGE, "Always 0: there is no such queue"
        ).add(0)


def replication(parts: BrokerParts) -> Iterator[Family]:
    """Yield where partitions are and how their replicas are."""
    services = parts.services
    hosted = list(services.replicas.partitions())
    led = [each for each in hosted if each.is_leader]
    image = services.metadata.image
    node_id = services.config.node_id
    under, at_min, under_min, reassigning = 0, 0, 0, 0
    for each in led:
        state = image.partition(*each.topic_partition)
        if state is None:
            continue
        min_isr = min(each.log.config.min_insync_replicas, len(state.replicas))
        under += len(state.isr) < len(state.replicas)
        under_min += len(state.isr) < min_isr
        at_min += len(state.isr) == min_isr and len(state.replicas) > 1
        reassigning += state.is_reassigned
    offline = sum(each.log.failure is not None for each in hosted)
    for name, value, text in (
        ("leadercount", len(led), "Partitions led here"),
        ("partitioncount", len(hosted), "Partitions with a replica here"),
        (
            "underreplicatedpartitions",
            under,
            "Led here with fewer in sync than replicas; alert > 0",
        ),
        ("underminisrpartitioncount", under_min, "Below min.insync.replicas; alert > 0"),
        ("atminisrpartitioncount", at_min, "At min.insync.replicas: one failure from refusals"),
        ("offlinereplicacount", offline, "Replicas whose disk failed; alert > 0"),
        ("reassigningpartitions", reassigning, "Led here and being moved"),
    ):
        yield Family(f"kafka_server_replicamanager_{name}", GAUGE, text).add(value)
    is_controller = image.controller_id == node_id
    topics = image.topics.values() if is_controller else ()
    leaderless = imbalanced = partition_count = 0
    for topic in topics:
        for state in topic.partitions:
            partition_count += 1
            leaderless += state.leader < 0
            imbalanced += state.leader != state.replicas[0]
    for name, value, text in (
        ("activecontrollercount", int(is_controller), "1 on the controller; alert if not 1 in all"),
        ("offlinepartitionscount", leaderless, "Partitions without a leader; alert > 0"),
        ("preferredreplicaimbalancecount", imbalanced, "Not led by the preferred replica"),
        ("globaltopiccount", len(list(topics)), "Topics of the cluster"),
        ("globalpartitioncount", partition_count, "Partitions of the cluster"),
        ("activebrokercount", len(image.brokers) if is_controller else 0, "Living brokers"),
        ("fencedbrokercount", 0, "Always 0: brokers live or are gone"),
    ):
        yield Family(f"kafka_controller_kafkacontroller_{name}", GAUGE, text).add(value)
    yield Family(
        "kafka_server_kafkaserver_brokerstate", GAUGE, "3 is running, 7 is shutting down"
    ).add(3)


def partition_families() -> dict[str, Family]:
    """Return the families with a sample for each partition, those of leaders last; no samples."""
    listed = (
        ("kafka_log_log_size", "Bytes on disk"),
        ("kafka_log_log_logendoffset", "Offset of the next record"),
        ("kafka_log_log_logstartoffset", "First offset kept"),
        ("kafka_log_log_numlogsegments", "Segments on disk"),
        ("kafka_cluster_partition_replicascount", "Replicas"),
        ("kafka_cluster_partition_insyncreplicascount", "Replicas in sync"),
        ("kafka_cluster_partition_underreplicated", "1 if a replica is out of sync"),
        ("kafka_cluster_partition_underminisr", "1 if below min.insync.replicas"),
        ("kafka_cluster_partition_atminisr", "1 if at min.insync.replicas"),
        ("kafka_cluster_partition_laststableoffsetlag", "High watermark - last stable offset"),
    )
    return {name: Family(name, GAUGE, text) for name, text in listed}


def add_partition(families: dict[str, Family], parts: BrokerParts, partition: Partition) -> None:
    """Add the samples of one partition, in the order of `partition_families`."""
    topic, index = partition.topic_partition
    log = partition.log
    values = [
        log.size_bytes,
        partition.log_end_offset,
        partition.log_start_offset,
        len(log.segments),
    ]
    state = parts.services.metadata.image.partition(topic, index)
    if state is not None and partition.is_leader:
        replicas, in_sync = len(state.replicas), len(state.isr)
        min_isr = min(log.config.min_insync_replicas, replicas)
        values += [
            replicas,
            in_sync,
            int(in_sync < replicas),
            int(in_sync < min_isr),
            int(in_sync == min_isr and replicas > 1),
            partition.high_watermark - partition.last_stable_offset,
        ]
    labels = place_labels(topic, index)
    for family, value in zip(families.values(), values, strict=False):
        family.add_to(labels, value)


def process(parts: BrokerParts) -> Iterator[Family]:
    """Yield what the operating system and Python tell of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield Family("process_cpu_seconds_total", COUNTER, "Processor time").add(
        usage.ru_utime + usage.ru_stime
    )
    memory = resident_bytes()
    if memory:
        yield Family("process_resident_memory_bytes", GAUGE, "Memory in use").add(memory)
    with suppress(OSError):
        yield Family("process_open_fds", GAUGE, "Open files and sockets").add(
            len(os.listdir("/proc/self/fd"))
        )
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield Family("process_max_fds", GAUGE, "Limit of open files").add(limit)
    collections = Family("python_gc_collections_total", COUNTER, "Garbage collections")
    for generation, counted in enumerate(gc.get_stats()):
        collections.add(counted["collections"], generation=generation)
    yield collections
    config = parts.services.config
    yield Family("kafkalite_build_info", GAUGE, "Always 1").add(
        1,
        version=kafkalite.__version__,
        profile=config.profile,
        python=".".join(map(str, sys.version_info[:3])),
    )
    yield Family("kafkalite_journal_bytes", GAUGE, "Memory of the journal").add(
        parts.requests.held_bytes
    )
    yield Family(
        "kafkalite_slow_requests_total", COUNTER, "Requests slower than kafkalite.slow.request.ms"
    ).add(parts.requests.slow_count)


def resident_bytes() -> int:
    """Return the memory that this process has; 0 where that cannot be told."""
    with (
        suppress(OSError, ValueError, IndexError),
        open("/proc/self/statm", encoding="ascii") as file,
    ):
        return int(file.read().split()[1]) * resource.getpagesize()
    return 0
