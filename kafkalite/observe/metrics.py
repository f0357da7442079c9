"""/metrics: everything that Prometheus can have, in the text that it asks for."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

import trio

from kafkalite.http.routing import HttpRequest, HttpResponse, Route
from kafkalite.http.slices import Slices
from kafkalite.observe import collect, collect_quotas, collect_storage
from kafkalite.observe.exposition import (
    GAUGE,
    OPENMETRICS_TYPE,
    TEXT_TYPE,
    Family,
    place_labels,
    render,
)
from kafkalite.observe.groups import committed_offsets, describe_group, list_groups
from kafkalite.observe.inside import InsideCluster
from kafkalite.observe.lag import RecordTimes
from kafkalite.observe.names import JVM, in_other_names
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import KafkaError

CACHE_S: Final = 1.0
"""Who scrapes more often gets the same again."""

ROTATE_S: Final = 30.0


class Metrics:
    """Collects and renders for one broker."""

    def __init__(self, cluster: InsideCluster) -> None:
        self._cluster = cluster
        self._parts = cluster.parts
        self._turn = trio.Lock()
        self._rendered: dict[bool, tuple[float, bytes]] = {}
        self._times = RecordTimes()
        self._changes = collect_storage.ChangeCounts(cluster.parts)
        self._sampled = (time.perf_counter(), time.process_time())
        self._idle = 1.0
        self._connections = (0, 0)
        self._rates = {"creation": 0.0, "close": 0.0}
        self._rotated_s = time.perf_counter()
        config = self._parts.services.config
        self._names = config.list("kafkalite.metrics.names") or ("jmx",)
        pairs = (pair.partition("=") for pair in config.list("kafkalite.metrics.labels"))
        self._labels = {name.strip(): value.strip() for name, _, value in pairs if name.strip()}

    def routes(self) -> list[Route]:
        """Return what is answered."""
        return [Route(method="GET", path="/metrics", handler=self._answer)]

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
        body = await self.text(openmetrics=openmetrics)
        return HttpResponse(body=body, content_type=OPENMETRICS_TYPE if openmetrics else TEXT_TYPE)

    async def text(self, *, openmetrics: bool) -> bytes:
        """Return all metrics; at most a second old."""
        async with self._turn:
            made_s, text = self._rendered.get(openmetrics, (0.0, b""))
            if text and time.perf_counter() < made_s + CACHE_S:
                return text
            families = [family async for family in self.families()]
            slices = Slices()
            pieces = []
            for piece in render(families, openmetrics=openmetrics, labels=self._labels):
                pieces.append(piece)
                await slices.breathe()
            text = b"".join(pieces)
            self._rendered[openmetrics] = (time.perf_counter(), text)
            return text

    async def families(self) -> AsyncIterator[Family]:
        """Yield all families, others having their turn in between."""
        slices = Slices()
        self._sample()
        for family in in_other_names(self._broker_families(), self._names):
            yield family
            await slices.breathe()
        if not self._has_many_partitions():
            by_name = collect.partition_families()
            for partition in list(self._parts.services.replicas.partitions()):
                collect.add_partition(by_name, self._parts, partition)
                await slices.breathe()
            for family in by_name.values():
                yield family
        for family in await self._exporter_families(slices):
            yield family
        for family in await self._group_families(slices):
            yield family

    def _broker_families(self) -> Iterator[Family]:
        parts = self._parts
        yield from collect.traffic(parts)
        yield from collect.requests(parts)
        yield from collect.network(parts, self._idle, self._rates)
        yield from collect.replication(parts)
        yield from collect_storage.changes(self._changes)
        yield from collect_storage.fetching(parts)
        yield from collect_storage.storage(parts)
        yield from collect_storage.sessions(parts)
        yield from collect_quotas.quotas(parts)
        if parts.session is not None:
            yield from collect_storage.zookeeper(parts.session)
        if JVM in self._names:
            yield from collect_storage.as_java(collect.resident_bytes())
        yield from collect.process(parts)

    def _has_many_partitions(self) -> bool:
        """Whether there are too many for series of each."""
        topics = self._parts.services.metadata.image.topics.values()
        return sum(len(topic.partitions) for topic in topics) > collect.PARTITIONS_MAX

    def _sample(self) -> None:
        """Take the share of time without work since the last scrape."""
        now_s, worked_s = time.perf_counter(), time.process_time()
        before_s, worked_before_s = self._sampled
        if now_s - before_s >= CACHE_S:
            share = (worked_s - worked_before_s) / (now_s - before_s)
            self._idle = min(1.0, max(0.0, 1.0 - share))
            self._rate(now_s - before_s)
            self._sampled = (now_s, worked_s)
        if now_s - self._rotated_s >= ROTATE_S:
            self._rotated_s = now_s
            self._parts.requests.rotate()

    def _rate(self, seconds: float) -> None:
        """Take connections a second since the last scrape."""
        opened = self._parts.connections.opened_count
        closed = opened - len(self._parts.connections.open_connections())
        before, self._connections = self._connections, (opened, closed)
        self._rates = {
            "creation": (opened - before[0]) / seconds,
            "close": (closed - before[1]) / seconds,
        }

    async def _exporter_families(self, slices: Slices) -> list[Family]:
        """Return topics and partitions by the names of kafka_exporter, of all that is led here."""
        image = self._parts.services.metadata.image
        replicas = self._parts.services.replicas
        prefix = "kafka_topic_partition"
        brokers = Family("kafka_brokers", GAUGE, "Living brokers").add(len(image.brokers))
        info = Family("kafka_broker_info", GAUGE, "Always 1, for each broker")
        for broker in image.brokers.values():
            for host, port in broker.endpoints.values():
                info.add(1, id=broker.broker_id, address=f"{host or 'localhost'}:{port}")
                break
        counts = Family("kafka_topic_partitions", GAUGE, "Partitions of a topic")
        current = Family(f"{prefix}_current_offset", GAUGE, "High watermark, where led here")
        oldest = Family(f"{prefix}_oldest_offset", GAUGE, "First offset kept, where led here")
        leader = Family(f"{prefix}_leader", GAUGE, "Broker that leads, -1 for none")
        copies = Family(f"{prefix}_replicas", GAUGE, "Replicas")
        in_sync = Family(f"{prefix}_in_sync_replica", GAUGE, "Replicas in sync")
        preferred = Family(f"{prefix}_leader_is_preferred", GAUGE, "1 if the first replica leads")
        behind = Family(f"{prefix}_under_replicated_partition", GAUGE, "1 if not all are in sync")
        is_many = self._has_many_partitions()
        for name, topic in sorted(image.topics.items()):
            counts.add(len(topic.partitions), topic=name)
            for index, state in enumerate(() if is_many else topic.partitions):
                labels = place_labels(name, index)
                partition = replicas.find(TopicPartition(name, index))
                if partition is not None:
                    current.add_to(labels, partition.high_watermark)
                    oldest.add_to(labels, partition.log_start_offset)
                leader.add_to(labels, state.leader)
                copies.add_to(labels, len(state.replicas))
                in_sync.add_to(labels, len(state.isr))
                preferred.add_to(labels, int(state.leader == state.replicas[0]))
                behind.add_to(labels, int(len(state.isr) < len(state.replicas)))
            await slices.breathe()
        return [brokers, info, counts, current, oldest, leader, copies, in_sync, preferred, behind]

    async def _group_families(self, slices: Slices) -> list[Family]:
        """Return lag and members of the groups that are coordinated here."""
        prefix = "kafka_consumergroup"
        offset = Family(f"{prefix}_current_offset", GAUGE, "Committed offset")
        lag = Family(f"{prefix}_lag", GAUGE, "Records not committed, where led here")
        lag_sum = Family(f"{prefix}_lag_sum", GAUGE, "The same, of all partitions of a topic")
        offset_sum = Family(f"{prefix}_current_offset_sum", GAUGE, "Sum of committed offsets")
        seconds = Family(
            f"{prefix}_lag_seconds", GAUGE, "Age of the oldest record not committed; 0 for none"
        )
        members = Family(f"{prefix}_members", GAUGE, "Members")
        states: dict[str, int] = {}
        node_id = self._parts.services.config.node_id
        offset_count = 0
        for listed in await list_groups(self._cluster):
            if listed["coordinator"] != node_id:
                continue
            name = listed["group_id"]
            states[listed["state"]] = states.get(listed["state"], 0) + 1
            try:
                group = await describe_group(self._cluster, name)
                committed = await committed_offsets(self._cluster, name, node_id)
            except KafkaError:
                continue
            members.add(len(group.members), consumergroup=name)
            lags: dict[str, int] = {}
            sums: dict[str, int] = {}
            for place, each in sorted(committed.items()):
                offset_count += 1
                labels: dict[str, object] = {
                    "consumergroup": name,
                    "topic": place.topic,
                    "partition": place.partition,
                }
                offset.add(each.offset, **labels)
                sums[place.topic] = sums.get(place.topic, 0) + each.offset
                behind = self._behind(place, each.offset)
                if behind is not None:
                    records, age_s = behind
                    lag.add(records, **labels)
                    seconds.add(age_s, **labels)
                    lags[place.topic] = lags.get(place.topic, 0) + records
                await slices.breathe()
            for topic, total in lags.items():
                lag_sum.add(total, consumergroup=name, topic=topic)
            for topic, total in sums.items():
                offset_sum.add(total, consumergroup=name, topic=topic)
            await slices.breathe()
        manager = "kafka_coordinator_group_groupmetadatamanager"
        found = [offset, lag, lag_sum, offset_sum, seconds, members]
        found.append(
            Family(f"{manager}_numgroups", GAUGE, "Groups coordinated here").add(
                sum(states.values())
            )
        )
        found.append(
            Family(f"{manager}_numoffsets", GAUGE, "Committed offsets kept here").add(offset_count)
        )
        found += [
            Family(f"{manager}_numgroups{state.lower()}", GAUGE, f"Groups in state {state}").add(
                states.get(state, 0)
            )
            for state in ("Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead")
        ]
        return found

    def _behind(self, place: TopicPartition, committed: int) -> tuple[int, float] | None:
        """Return (records, seconds) that a group is behind; None where others lead."""
        partition = self._parts.services.replicas.find(place)
        if partition is None:
            return None
        start, end = partition.log_start_offset, partition.high_watermark
        records = max(0, end - max(committed, start))
        if not records:
            return 0, 0.0
        timestamp = self._times.timestamp_at(partition, committed)
        if timestamp is None or timestamp < 0:
            return records, 0.0
        age_ms = self._parts.services.clock.wall_ms() - timestamp
        return records, max(0, age_ms) / 1_000
