"""Consumers that read from the replica in their rack (KIP-392).

Each broker is advertised to clients by a proxy that counts what the broker sends them, so it is
seen which broker the records came from.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import Client, all_clients
from compat_tests.conftest import Drivers
from kafkalite.client.producer import Producer
from kafkalite.testing import Cluster
from kafkalite.testing.processes import unused_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.driver import ConsumedRecord, Driver

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.xdist_group("compat-cluster")]

NAMES = ("Java-4.3.1", "confluent-kafka-2.16.1")
RECORD_BYTES = 10_000
COUNT = 50
ALL_BYTES = COUNT * RECORD_BYTES
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class CountingProxy:
    """Passes bytes between clients and a broker; `sent` is how many the broker sent."""

    def __init__(self, target: int) -> None:
        self.sent = 0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # A broker that is dead refuses, and the client is hung up on.
        with (
            client,
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._target)) as broker,
        ):
            up = threading.Thread(target=self._pump, args=(client, broker, False), daemon=True)
            up.start()
            self._pump(broker, client, True)
            up.join()

    def _pump(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                self.sent += len(chunk) if counts else 0
                target.sendall(chunk)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Racks:
    """Three brokers in the racks r1 to r3, each behind a proxy."""

    def __init__(self) -> None:
        ports = {number: (unused_port(), unused_port()) for number in (1, 2, 3)}
        self.proxies = {number: CountingProxy(ports[number][0]) for number in ports}
        self.cluster = Cluster(
            3,
            config={
                "kafkalite.profile": "dev",
                "replica.selector.class": SELECTOR,
                "zookeeper.session.timeout.ms": 8000,
            },
            broker_config={
                number: {
                    "broker.rack": f"r{number}",
                    "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.proxies[number].port},"
                    f"REPLICATION://127.0.0.1:{peers}",
                }
                for number, (_, peers) in ports.items()
            },
            ports=ports,
            links=False,
        )

    def sent(self) -> dict[int, int]:
        """Return how many bytes each broker has sent to clients."""
        return {number: proxy.sent for number, proxy in self.proxies.items()}

    def close(self) -> None:
        """End everything."""
        self.cluster.close()
        for proxy in self.proxies.values():
            proxy.close()


@pytest.fixture(scope="module")
def racks() -> Iterator[Racks]:
    """The brokers, with nothing in them."""
    made = Racks()
    with contextlib.closing(made):
        made.cluster.start()
        yield made


@pytest.fixture(scope="module")
def drivers(racks: Racks) -> Iterator[Drivers]:
    """Drivers with the addresses of the proxies."""
    made = Drivers(",".join(f"127.0.0.1:{proxy.port}" for proxy in racks.proxies.values()))
    yield made
    made.close()


@pytest.fixture(params=[one for one in all_clients() if one.id in NAMES], ids=lambda one: one.id)
def driver(request: pytest.FixtureRequest, drivers: Drivers) -> Driver:
    """A client that tells its rack."""
    client: Client = request.param
    return drivers.of(client)


def values(first: int, end: int) -> list[bytes]:
    return [(b"%d." % number).ljust(RECORD_BYTES, b"x") for number in range(first, end)]


def produce(driver: Driver, topic: str, first: int, end: int) -> None:
    records = [{"partition": 0, "value": value} for value in values(first, end)]
    done = driver.produce(topic, records, acks="all")
    assert [result.offset for result in done] == [*range(first, end)]


def assert_is_all(read: list[ConsumedRecord], end: int) -> None:
    assert [record.offset for record in read] == [*range(end)]
    assert [record.value for record in read] == values(0, end)


def test_records_come_from_the_follower_in_the_rack(racks: Racks, driver: Driver) -> None:
    topic = f"near-{uuid.uuid4().hex[:8]}"
    racks.cluster.create_topic(topic, replication_factor=3)
    leader = racks.cluster.leader_of(topic)
    produce(driver, topic, 0, COUNT)
    racks.cluster.wait_in_sync(topic)
    for near in racks.proxies:
        before = racks.sent()
        assert_is_all(driver.consume(topic, {0: "earliest"}, COUNT, rack=f"r{near}"), COUNT)
        sent = {number: end - before[number] for number, end in racks.sent().items()}
        assert sent[near] >= ALL_BYTES
        # Not one record came from elsewhere; the leader only tells where to read.
        assert all(sent[number] < RECORD_BYTES for number in sent if number != near), (leader, sent)


def test_rack_without_a_replica_reads_from_the_leader(racks: Racks, driver: Driver) -> None:
    topic = f"far-{uuid.uuid4().hex[:8]}"
    racks.cluster.create_topic(topic, replication_factor=3)
    leader = racks.cluster.leader_of(topic)
    produce(driver, topic, 0, COUNT)
    before = racks.sent()
    assert_is_all(driver.consume(topic, {0: "earliest"}, COUNT, rack="elsewhere"), COUNT)
    assert racks.sent()[leader] - before[leader] >= ALL_BYTES


def test_consumer_goes_back_to_the_leader_when_the_follower_dies(
    racks: Racks, driver: Driver
) -> None:
    topic = f"back-{uuid.uuid4().hex[:8]}"
    racks.cluster.create_topic(topic, replication_factor=3)
    leader = racks.cluster.leader_of(topic)
    near = next(number for number in racks.proxies if number != leader)
    produce(driver, topic, 0, COUNT)
    racks.cluster.wait_in_sync(topic)
    before = racks.sent()
    with ThreadPoolExecutor(1) as pool:
        options = {"rack": f"r{near}", "timeout_ms": 60_000}
        reading = pool.submit(driver.consume, topic, {0: "earliest"}, 2 * COUNT, **options)
        racks.cluster.wait_until(
            lambda: racks.proxies[near].sent - before[near] >= ALL_BYTES, "nothing was read"
        )
        assert racks.sent()[leader] - before[leader] < RECORD_BYTES
        racks.cluster.kill(near)
        try:
            # The follower's log ends before all of these.
            with racks.cluster.client() as client:
                producer = Producer(client, topic, acks=1)
                for value in values(COUNT, 2 * COUNT):
                    producer.send(value, partition=0)
                producer.flush()
            assert_is_all(reading.result(90), 2 * COUNT)
        finally:
            racks.cluster.restart(near)
    assert racks.sent()[leader] - before[leader] >= ALL_BYTES
    racks.cluster.wait_in_sync(topic)
