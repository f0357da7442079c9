"""A queue under load whose workers and brokers are killed, and what must hold of it then.

Nothing that was acknowledged comes again, nothing that was produced is lost, and delivery counts
never exceed the group's limit.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from compat_tests.share.worker import Worker
from kafkalite.client.errors import ClientError
from kafkalite.client.producer import Producer
from kafkalite.testing import Cluster
from kafkalite.wire.errors import KafkaError
from tests.share.probe import Probe

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 6
LIMIT = 10
CLUSTER_SETTINGS = {
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.record.lock.duration.ms": 6_000,
    "group.share.delivery.count.limit": LIMIT,
    "group.share.assignment.interval.ms": 0,
    "group.share.min.session.timeout.ms": 6_000,
    "group.share.session.timeout.ms": 6_000,
    "group.share.min.heartbeat.interval.ms": 1_000,
    "group.share.heartbeat.interval.ms": 1_000,
    "share.coordinator.state.topic.num.partitions": 4,
    "share.coordinator.snapshot.update.records.per.snapshot": 50,
    "offsets.topic.num.partitions": 4,
    "min.insync.replicas": 2,
}
"""Times as short as the bounds allow: a run waits for locks and sessions of the dead."""


class Load(threading.Thread):
    """Produces numbered records until it is stopped; those whose answer was lost count as maybe."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._topic = topic
        self._is_over = threading.Event()
        self.sent: list[str] = []
        self.failures = 0

    def run(self) -> None:
        for number in self._numbers():
            values = [f"{number}-{index}" for index in range(5 * PARTITIONS)]
            try:
                with self._cluster.client() as client:
                    producer = Producer(client, self._topic)
                    for index, value in enumerate(values):
                        producer.send(value.encode(), partition=index % PARTITIONS)
                    producer.flush()
            except (KafkaError, ClientError, OSError):
                self.failures += 1
            else:
                self.sent += values

    def stop(self) -> None:
        self._is_over.set()
        self.join()

    def _numbers(self) -> Iterator[int]:
        number = 0
        while not self._is_over.wait(0.15):
            yield number
            number += 1


def run_chain(*, seed: int, faults: int, pause_s: float = 5.0) -> Counter[str]:
    """Run a queue with faults, check what must hold, and return what happened."""
    rng = random.Random(seed)
    workers: list[Worker] = []
    with Cluster(3, config=CLUSTER_SETTINGS, links=False) as cluster:
        cluster.create_topic("q", partitions=PARTITIONS, replication_factor=3)
        cluster.wait_in_sync("q")

        probe = Probe(int(cluster.bootstrap.split(",")[0].rpartition(":")[2]), group="g")
        probe.set_group(share_auto_offset_reset="earliest")
        probe.client.close()

        def start(mode: str) -> Worker:
            worker = Worker(cluster.bootstrap, "g", "q", mode=mode, idle_s=25)
            workers.append(worker)
            return worker

        living = [start("explicit"), start("releasing"), start("explicit")]
        load = Load(cluster, "q")
        load.start()
        happened: Counter[str] = Counter()
        for _ in range(faults):
            time.sleep(pause_s)
            if rng.random() < 0.4:
                victim = living.pop(rng.randrange(len(living)))
                victim.kill()
                living.append(start(rng.choice(("explicit", "releasing"))))
                happened["worker killed"] += 1
            else:
                number = rng.randint(1, 3)
                cluster.kill(number)
                time.sleep(pause_s)
                cluster.restart(number)
                cluster.wait_in_sync("q", timeout_s=60)
                happened["broker killed"] += 1
        time.sleep(pause_s)
        load.stop()
        for worker in living:
            worker.wait(240)
    _check(workers, load, happened)
    return happened


def _check(workers: list[Worker], load: Load, happened: Counter[str]) -> None:
    accepted: dict[tuple[int, int], float] = {}
    values = set()
    for worker in workers:
        for at_s, said in worker.timed("accepted"):
            place = (said.partition, said.offset)
            assert place not in accepted, f"{place} was accepted twice"
            accepted[place] = at_s
            values.add(said.value)
    for worker in workers:
        for at_s, said in worker.timed("got"):
            assert 1 <= said.count <= LIMIT, said
            done_s = accepted.get((said.partition, said.offset))
            # A second for what is under way in pipes: a lock lasts six.
            assert done_s is None or at_s < done_s + 1, f"{said} came after it was accepted"
            happened["redelivered"] += said.count > 1
    missing = [value for value in load.sent if value not in values]
    # What a worker had accepted when it was killed may be accepted without its saying so.
    got = {said.value for worker in workers for said in worker.said("got")}
    assert not [value for value in missing if value not in got], missing[:20]
    killed = [worker for worker in workers if worker.is_killed]
    unsaid = {said.value for worker in killed for said in worker.said("got")}
    unsaid |= {said.value for worker in workers for said in worker.unanswered()}
    assert not [value for value in missing if value not in unsaid], missing[:20]
    happened["sent"] += len(load.sent)
    happened["accepted"] += len(accepted)
    happened["unsaid"] += len(missing)
