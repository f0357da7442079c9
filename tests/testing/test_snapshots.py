"""A broker that goes back to where it was."""

import time

import pytest
from confluent_kafka import Consumer, Producer

from kafkalite.testing import Broker


@pytest.fixture
def broker():
    with Broker(http=True, config={"log.segment.bytes": 1_048_576}) as broker:
        yield broker


def values(broker, topic="orders"):
    return [record.value for record in broker.records(topic)]


def test_everything_is_as_it_was_at_the_same_address(broker):
    broker.create_topic("orders", partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for _ in range(5_000):
        producer.produce("orders", b"x" * 500)
    assert producer.flush(20) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    consumer.commit(consumer.poll(20), asynchronous=False)
    consumer.close()
    before = values(broker)
    address, url = broker.bootstrap, broker.http_url
    snapshot = broker.snapshot()
    for number in range(2):
        broker.produce("orders", b"later")
        broker.create_topic("new")
        broker.clock.advance(60)
        began_s = time.perf_counter()
        broker.restore(snapshot)
        print(f"restored in {1_000 * (time.perf_counter() - began_s):.1f} ms")
        assert broker.topics() == ["orders"]
        assert values(broker) == before
        assert (broker.bootstrap, broker.http_url) == (address, url)
        broker.wait_committed("g", "orders", offset=1)
        producer.produce("orders", f"still connected {number}".encode())
        assert producer.flush(20) == 0
    assert values(broker)[-1] == b"still connected 1"
    assert broker.requests("Produce")
    assert len([*snapshot.path.glob("orders-0/*.log")]) > 1


def test_old_segments_are_linked_and_the_active_one_is_not(broker):
    broker.create_topic("orders")
    for _ in range(3):
        broker.produce("orders", b"x" * 700_000)
    snapshot = broker.snapshot()
    links = {path.name: path.stat().st_nlink for path in snapshot.path.glob("orders-0/*.log")}
    assert sorted(links.values()) == [1, 2, 2]


def test_a_snapshot_is_of_a_broker_that_runs():
    with Broker() as broker:
        snapshot = broker.snapshot()
        assert "snapshot in" in repr(snapshot)
    with pytest.raises(RuntimeError, match="not running"):
        broker.snapshot()


def test_a_broker_with_users_is_restored_too():
    with Broker(users={"alice": "secret"}) as broker:
        broker.create_topic("orders")
        snapshot = broker.snapshot()
        broker.delete_topic("orders")
        broker.restore(snapshot)
        assert broker.topics() == ["orders"]
