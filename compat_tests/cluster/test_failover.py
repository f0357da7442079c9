"""Producers of several languages with acks=all while leaders die: nothing is lost or doubled."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Self

import pytest

from compat_tests.clients import Client, all_clients
from compat_tests.driver import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.conftest import Drivers
    from compat_tests.driver import ConsumedRecord, Driver
    from kafkalite.testing import Cluster

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.xdist_group("compat-cluster"),
]

PARTITIONS = 3
BATCH = 300
READ_AT_ONCE = 5_000
"""Records of one answer of a driver, which is one line of JSON."""
NAMES = ("Java-4.3.1", "confluent-kafka-2.16.1", "franz-go-1.22.2", "sarama-1.61.1")


@pytest.fixture(params=[one for one in all_clients() if one.id in NAMES], ids=lambda one: one.id)
def client(request: pytest.FixtureRequest) -> Client:
    """A client whose producer is idempotent and sends again what failed."""
    found: Client = request.param
    return found


class Load:
    """Sends numbered records without an end, and notes what was acknowledged.

    A driver has a new producer for each batch, so the order that is promised is that within one.
    """

    def __init__(self, driver: Driver, topic: str, *, batch: int = BATCH, digits: int = 1) -> None:
        self.driver = driver
        self.topic = topic
        self._batch = batch
        self._digits = digits
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.errors: list[str] = []
        self.sent = 0
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(90)
        assert not self._thread.is_alive(), self.driver.log_tail()
        if self._failure is not None:
            raise self._failure

    def wait_more(self, count: int = 2 * BATCH, timeout_s: float = 60) -> None:
        """Return when so many more records are acknowledged."""
        wanted = len(self.acknowledged) + count
        deadline = time.monotonic() + timeout_s
        while len(self.acknowledged) < wanted:
            assert self._thread.is_alive(), self._failure
            assert time.monotonic() < deadline, f"nothing is acknowledged; {self.errors[-3:]}"
            time.sleep(0.05)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._send_batch()
        except BaseException as error:
            self._failure = error

    def _send_batch(self) -> None:
        first = self.sent
        self.sent += self._batch
        values = [b"%0*d" % (self._digits, number) for number in range(first, self.sent)]
        records = [
            {"partition": number % PARTITIONS, "value": value}
            for number, value in enumerate(values)
        ]
        done = self.driver.produce(self.topic, records, acks="all", idempotence=True)
        for value, result in zip(values, done, strict=True):
            if result.error is not None:
                self.errors.append(f"{result.error}: {result.message}")
                continue
            place = (result.partition, result.offset)
            assert place not in self.acknowledged, f"{place} was acknowledged twice"
            self.acknowledged[place] = value


def kill_leader(cluster: Cluster, topic: str) -> Callable[[], None]:
    leader = cluster.leader_of(topic, 0)
    cluster.kill(leader)
    return lambda: cluster.restart(leader)


def stop_leader(cluster: Cluster, topic: str) -> Callable[[], None]:
    leader = cluster.leader_of(topic, 1)
    cluster.stop(leader)
    return lambda: cluster.restart(leader)


def pause_leader(cluster: Cluster, topic: str) -> Callable[[], None]:
    leader = cluster.leader_of(topic, 2)
    cluster.pause(leader)
    cluster.wait_leader(topic, 2, other_than=leader)
    # Clients wait for an answer of the old leader for longer than they are given here. When it goes
    # on it has to find out that it leads no more, with their requests in its socket.
    cluster.resume(leader)
    return lambda: None


def kill_controller(cluster: Cluster, topic: str) -> Callable[[], None]:
    del topic
    controller = cluster.controller()
    cluster.kill(controller)
    return lambda: cluster.restart(controller)


def move_leaders(cluster: Cluster, topic: str) -> Callable[[], None]:
    for partition in range(PARTITIONS):
        _, *followers = cluster.partition(topic, partition).replica_nodes
        cluster.move_leader(topic, partition, followers[0])
    return lambda: None


FAULTS = (kill_leader, stop_leader, pause_leader, kill_controller, move_leaders)


def test_nothing_acknowledged_is_lost_or_doubled(
    client: Client, cluster: Cluster, cluster_drivers: Drivers
) -> None:
    topic = f"failover-{uuid.uuid4().hex[:8]}"
    two = {"min.insync.replicas": 2}
    cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=3, config=two)
    driver = cluster_drivers.of(client)
    with Load(driver, topic) as load:
        load.wait_more()
        for fault in FAULTS:
            mend = fault(cluster, topic)
            load.wait_more()
            mend()
            cluster.wait_in_sync(topic)
            load.wait_more()
    # A client may give up what it could not send in its time; none of this takes so long.
    assert load.errors == []
    check(load, driver)


def test_a_rolling_restart_doubles_nothing(
    client: Client, cluster: Cluster, cluster_drivers: Drivers
) -> None:
    """Each producer has several batches under way when its leaders stop in order (rule 232)."""
    topic = f"rolling-{uuid.uuid4().hex[:8]}"
    two = {"min.insync.replicas": 2}
    cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=3, config=two)
    driver = cluster_drivers.of(client)
    with Load(driver, topic, batch=5_000, digits=500) as load:
        load.wait_more()
        for broker_id in sorted(cluster.brokers):
            cluster.stop(broker_id)
            load.wait_more()
            cluster.restart(broker_id)
            cluster.wait_in_sync(topic)
    assert load.errors == []
    check(load, driver)


def check(load: Load, reader: Driver) -> None:
    """Read everything, and compare it with what was acknowledged."""
    counts = Counter(partition for partition, _ in load.acknowledged)
    read: list[ConsumedRecord] = []
    try:
        for partition, count in counts.items():
            for start in range(0, count, READ_AT_ONCE):
                size = min(READ_AT_ONCE, count - start)
                read += reader.consume(load.topic, {partition: start}, size)
    except ClientError as error:
        raise AssertionError(f"{len(load.acknowledged)} were acknowledged") from error
    stored = {(record.partition, record.offset): record.value for record in read}
    assert stored == load.acknowledged
    assert len(set(stored.values())) == len(stored) == load.sent
    for partition in range(PARTITIONS):
        numbers = [int(stored[place] or b"") for place in sorted(stored) if place[0] == partition]
        assert numbers == sorted(numbers)
