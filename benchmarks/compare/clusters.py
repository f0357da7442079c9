"""Three brokers on one machine as one thing under measurement."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import NewTopic

from benchmarks.compare.brokers import (
    APACHE,
    APACHE_JVM_OPTIONS,
    APACHE_SETTINGS,
    KAFKALITE,
    READY_SECONDS,
    TOPIC_SETTINGS,
    BrokerUnderTest,
)
from compat_tests.apache_kafka import ApacheBroker, free_port
from kafkalite.testing import Cluster

BROKERS = 3
IN_SYNC_SECONDS = 300


class ClusterUnderTest(BrokerUnderTest):
    """Brokers 1 to 3; figures of the kernel are sums over them (and over ZooKeeper)."""

    min_insync_replicas = 1
    """As both have it by default."""

    @property
    def pids(self) -> list[int]:
        """Processes that run now."""
        raise NotImplementedError

    def kill(self, broker: int) -> None:
        raise NotImplementedError

    def stop_one(self, broker: int) -> None:
        """Have a broker shut down, handing its partitions over."""
        raise NotImplementedError

    def start_one(self, broker: int) -> None:
        raise NotImplementedError

    def create_topic(self, partitions: int) -> str:
        self._topics += 1
        name = f"measured-{self._topics}"
        config = {**TOPIC_SETTINGS, "min.insync.replicas": str(self.min_insync_replicas)}
        new = NewTopic(name, partitions, BROKERS, config=config)
        self.admin.create_topics([new])[name].result(60)
        self.end_offset(name, partitions)
        return name

    def leader_of(self, topic: str, partition: int) -> int:
        """Return who leads; waits for somebody who does."""
        deadline = time.monotonic() + IN_SYNC_SECONDS
        while True:
            try:
                described = self.admin.describe_topics(TopicCollection([topic]))
                leader = described[topic].result(30).partitions[partition].leader
                if leader is not None and leader.id >= 0:
                    return int(leader.id)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def wait_in_sync(self, topic: str) -> None:
        """Return when every replica of a topic is in sync."""
        deadline = time.monotonic() + IN_SYNC_SECONDS
        while True:
            try:
                described = self.admin.describe_topics(TopicCollection([topic]))
                partitions = described[topic].result(30).partitions
                if all(len(partition.isr) == BROKERS for partition in partitions):
                    return
            except KafkaException:
                pass
            assert time.monotonic() < deadline, f"the replicas of {topic} are not in sync"
            time.sleep(0.02)

    def cpu_seconds(self) -> float:
        ticks = os.sysconf("SC_CLK_TCK")
        total = 0.0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / ticks
        return total

    def forget_peak(self) -> None:
        for pid in self.pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def _status(self, name: str) -> int:
        total = 0
        for pid in self.pids:
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(f"{name}:"):
                    total += int(line.split()[1]) * 1024
        return total


class KafkaliteCluster(ClusterUnderTest):
    """`kafkalite.testing.Cluster`: three processes and ZooKeeper."""

    name = KAFKALITE

    def __init__(self) -> None:
        super().__init__()
        self._cluster: Cluster | None = None

    @property
    def cluster(self) -> Cluster:
        assert self._cluster is not None
        return self._cluster

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    @property
    def pids(self) -> list[int]:
        brokers = [broker.pid for broker in self.cluster.brokers.values() if broker.is_running]
        return [*brokers, self.cluster.zookeeper.process.pid]

    def start(self) -> Self:
        self._cluster = Cluster(BROKERS, data_dir=str(self.folder / "data"))
        self._cluster.start()
        return self

    def stop(self, *, kill: bool = False) -> None:
        del kill
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def kill(self, broker: int) -> None:
        self.cluster.kill(broker)

    def stop_one(self, broker: int) -> None:
        self.cluster.stop(broker)

    def start_one(self, broker: int) -> None:
        self.cluster.restart(broker)


class ApacheCluster(ClusterUnderTest):
    """Three KRaft nodes that are brokers and controllers, 1 GB heap each."""

    name = APACHE

    def __init__(self) -> None:
        super().__init__()
        ports = {n: free_port() for n in range(1, BROKERS + 1)}
        controllers = {n: free_port() for n in ports}
        voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in controllers.items())
        self._brokers = {
            n: ApacheBroker(
                config={
                    **APACHE_SETTINGS,
                    "node.id": n,
                    "controller.quorum.voters": voters,
                    "listeners": (
                        f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controllers[n]}"
                    ),
                    "offsets.topic.replication.factor": BROKERS,
                    "transaction.state.log.replication.factor": BROKERS,
                },
                data_dir=self.folder / f"data-{n}",
                port=port,
                jvm_options=APACHE_JVM_OPTIONS,
            )
            for n, port in ports.items()
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self._brokers.values())

    @property
    def pids(self) -> list[int]:
        processes = [broker.process for broker in self._brokers.values()]
        return [process.pid for process in processes if process is not None]

    def start(self) -> Self:
        with ThreadPoolExecutor(BROKERS) as pool:
            list(pool.map(lambda broker: broker.start(READY_SECONDS), self._brokers.values()))
        self.port = self._brokers[1].port
        return self

    def stop(self, *, kill: bool = False) -> None:
        with ThreadPoolExecutor(BROKERS) as pool:
            list(pool.map(lambda broker: broker.stop(kill=True), self._brokers.values()))

    def kill(self, broker: int) -> None:
        self._brokers[broker].stop(kill=True)

    def stop_one(self, broker: int) -> None:
        self._brokers[broker].stop()

    def start_one(self, broker: int) -> None:
        self._brokers[broker].start(READY_SECONDS)
