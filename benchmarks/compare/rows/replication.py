"""Rows 4 and 11: three brokers on one machine, RF 3; and how long they need after a fault."""

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import Producer

from benchmarks.compare import loads
from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.compare.clusters import ClusterUnderTest
from benchmarks.compare.loads import RECORD_BYTES
from benchmarks.compare.measure import Case, Metric, Sample
from benchmarks.compare.rows.common import PARTITIONS, fresh_topic, rate_wanted, throughput

FAILOVERS, FAILOVERS_OF_PEERS = 20, 5
"""Apache Kafka needs 20 s for one, with its session timeout of 9 s."""
PROBE_SECONDS = 60
CATCH_UP_BYTES = 1_000_000_000
_PAUSE = (Metric("pause", "s", more_is_better=False),)
_CATCH_UP = (Metric("time", "s", more_is_better=False), Metric("data", "MB/s"))


def replicated(factor: float) -> list[Case]:
    """Row 4."""
    million = int(1_000_000 * factor)

    def produce(broker: BrokerUnderTest, scale: float, *, acks: Any, size: int) -> Sample:
        count = int(million * scale) // (1 if size == RECORD_BYTES else 4)
        with fresh_topic(broker, expected=count) as topic:
            done = loads.librdkafka(
                "produce",
                bootstrap=broker.bootstrap,
                topic=topic,
                count=count,
                size=size,
                settings={"acks": acks, "batch.size": 65536},
            )
        return throughput(count / done["seconds"], count, size, done)

    def java(broker: BrokerUnderTest, scale: float) -> Sample:
        count = int(million * scale)
        with fresh_topic(broker, PARTITIONS, expected=count) as topic:
            done = loads.java_producer(broker, topic, count, RECORD_BYTES)
        return throughput(done["rate"], count, RECORD_BYTES, done)

    return [
        Case(
            f"librdkafka, acks={acks}, 64 KiB batches{note}",
            rate_wanted(1.0),
            partial(produce, acks=acks, size=size),
        )
        for acks, size, note in (
            (1, RECORD_BYTES, ""),
            ("all", RECORD_BYTES, ""),
            ("all", 1024, ", 1 KiB records"),
        )
    ] + [Case("Java client, its defaults (idempotent, acks=all)", rate_wanted(1.0), java)]


def failover(factor: float) -> list[Case]:
    """Row 11."""
    topics: dict[BrokerUnderTest, str] = {}

    def topic_of(cluster: ClusterUnderTest) -> str:
        if cluster not in topics:
            topics[cluster] = cluster.create_topic(1)
            cluster.wait_in_sync(topics[cluster])
        return topics[cluster]

    def pause(cluster: ClusterUnderTest, scale: float, *, kill: bool) -> Sample:
        del scale
        topic = topic_of(cluster)
        leader = cluster.leader_of(topic, 0)
        # A clean stop returns when the process has gone, long after its partitions have moved.
        stop = partial(cluster.kill if kill else cluster.stop_one, leader)
        seconds = _pause(cluster.bootstrap, topic, stop)
        cluster.start_one(leader)
        cluster.wait_in_sync(topic)
        return Sample({"pause": seconds}, seconds=seconds)

    def catch_up(cluster: ClusterUnderTest, scale: float) -> Sample:
        count = int(CATCH_UP_BYTES * min(1.0, factor) * scale) // 1024
        topic = cluster.create_topic(1)
        leader = cluster.leader_of(topic, 0)
        cluster.wait_in_sync(topic)
        behind = next(n for n in (1, 2, 3) if n != leader)
        cluster.kill(behind)
        settings = {"acks": 1, "batch.size": 131072, "message.timeout.ms": 120_000}
        loads.librdkafka(
            "produce",
            bootstrap=cluster.bootstrap,
            topic=topic,
            count=count,
            size=1024,
            settings=settings,
        )
        began = time.perf_counter()
        cluster.start_one(behind)
        cluster.wait_in_sync(topic)
        seconds = time.perf_counter() - began
        cluster.delete_topic(topic)
        values = {"time": seconds, "data": count * 1024 / seconds / 1e6}
        return Sample(values, seconds=seconds, byte_count=count * 1024)

    size = f"{CATCH_UP_BYTES * min(1.0, factor) / 1e9:g} GB"
    faults = [
        Case(
            f"leader {what}, acks=all",
            _PAUSE,
            partial(pause, kill=kill),
            runs=FAILOVERS,
            runs_of_peers=FAILOVERS_OF_PEERS,
            warm_up=False,
        )
        for what, kill in (("killed", True), ("shut down", False))
    ]
    name = f"follower catches up {size}, with its start"
    return [*faults, Case(name, _CATCH_UP, catch_up, runs=3, warm_up=False)]


def _pause(bootstrap: str, topic: str, break_it: Callable[[], None]) -> float:
    """Return the longest time between two acknowledgements around a fault, in seconds."""
    acknowledged: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "log_level": 0,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "topic.metadata.refresh.fast.interval.ms": 20,
            "message.timeout.ms": PROBE_SECONDS * 1000,
        }
    )

    def on_delivery(error: object, _: object) -> None:
        assert error is None, error
        acknowledged.append(time.perf_counter())

    def send(until: Callable[[], bool]) -> None:
        deadline = time.perf_counter() + PROBE_SECONDS
        while not until():
            assert time.perf_counter() < deadline, "nothing is acknowledged any more"
            producer.produce(topic, b"probe", partition=0, on_delivery=on_delivery)
            producer.poll(0.005)

    send(lambda: len(acknowledged) > 20)
    fault = threading.Thread(target=break_it)
    broken_at = time.perf_counter()
    fault.start()
    send(
        lambda: (
            not fault.is_alive()
            and bool(acknowledged)
            and acknowledged[-1] > broken_at + 0.5
            and time.perf_counter() - acknowledged[-1] < 0.1
        )
    )
    producer.flush(PROBE_SECONDS)
    fault.join()
    # The last before the fault, and all after it.
    times = [t for t in acknowledged if t < broken_at][-1:]
    times += [t for t in acknowledged if t >= broken_at]
    return max(later - earlier for earlier, later in itertools.pairwise(times))
