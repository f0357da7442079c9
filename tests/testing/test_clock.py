"""A broker's clock, turned under real clients."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafkalite.testing import Broker


@pytest.fixture(scope="module")
def shared_broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared_broker):
    shared_broker.reset()
    return shared_broker


def test_records_are_stamped_by_it(broker):
    broker.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    broker.clock.advance(timedelta(hours=2))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("t", b"by a client")
    producer.flush()
    broker.produce("t", b"by the test")
    for record in broker.records("t"):
        assert 7_190 < record.timestamp / 1_000 - time.time() < 7_260
    assert broker.clock.ahead_s > 7_190
    broker.clock.reset()
    assert abs(broker.clock.ahead_s) < 1


def test_retention_deletes_what_is_old_by_it(broker):
    broker.create_topic("t", config={"retention.ms": 3_600_000, "segment.ms": 600_000})
    broker.produce("t", b"old")
    broker.clock.advance(11 * 60)
    broker.produce("t", b"younger")
    assert len(broker.records("t")) == 2
    broker.clock.advance(3_600 - 120)
    assert [r.value for r in broker.records("t")] == [b"younger"]
    broker.clock.advance(timedelta(days=1))
    assert broker.records("t") == []


def test_a_transaction_times_out_without_anybody_waiting(broker):
    broker.create_topic("t")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "tx"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("t", b"never seen")
    producer.flush()
    assert broker.records("t", read_committed=True) == []
    broker.clock.advance(71)
    with pytest.raises(KafkaException) as failure:
        producer.commit_transaction()
    assert failure.value.args[0].fatal() or failure.value.args[0].txn_requires_abort()
    assert broker.records("t", read_committed=True) == []


def test_a_member_whose_session_is_over_joins_again_and_reads_on(broker):
    broker.create_topic("t")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "session.timeout.ms": 45_000,
            "heartbeat.interval.ms": 200,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["t"])
    broker.produce("t", b"first")
    assert consumer.poll(10).value() == b"first"
    joins = len(broker.requests("JoinGroup"))
    broker.clock.advance(46)
    broker.produce("t", b"second")
    values = []
    until = time.monotonic() + 30
    while len(broker.requests("JoinGroup")) == joins or b"second" not in values:
        assert time.monotonic() < until
        message = consumer.poll(0.1)
        values += [message.value()] if message is not None else []
    consumer.close()


def test_a_paused_client_keeps_its_partitions_while_it_is_frozen(broker):
    broker.create_topic("t")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 100,
        }
    )
    consumer.subscribe(["t"])
    consumer.poll(0.5)
    broker.wait_assigned("g")
    with broker.clock.frozen():
        assert broker.clock.rate == 0
        first = broker.clock.now_ms()
        time.sleep(0.05)
        assert abs(broker.clock.now_ms() - first) <= 1
        broker.wait_assigned("g")
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    assert broker.clock.rate == 1
    consumer.close()


def test_a_wait_ends_by_real_time_whatever_the_clock_does(broker):
    with broker.clock.frozen(), pytest.raises(TimeoutError):
        broker.wait_stable("nobody", timeout_s=0.05)
    broker.clock.rate = 1_000
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        broker.wait_stable("nobody", timeout_s=0.3)
    assert time.monotonic() - begin >= 0.3


def test_set_moves_timestamps_alone(broker):
    broker.create_topic("t")
    broker.clock.set(datetime(2030, 1, 1, tzinfo=UTC))
    assert broker.clock.now().year == 2030
    broker.produce("t", b"x")
    assert datetime.fromtimestamp(broker.records("t")[0].timestamp / 1_000, UTC).year == 2030
    broker.clock.set(datetime(2001, 1, 1))
    assert broker.clock.now().year == 2001


def test_ten_years_return_and_nothing_is_left_that_expires(broker):
    broker.create_topic("t")
    broker.produce("t", b"x")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()
    broker.wait_committed("g", "t")
    broker.clock.advance(timedelta(days=3_650))
    assert broker.records("t") == []
    shard = broker.call_in_broker(
        lambda: broker.server.services.coordinators.shard_of("__consumer_offsets", "g")
    )
    assert broker.call_in_broker(lambda: shard.offsets.get("g", "t", 0)) is None
    producer.produce("t", b"still served")
    assert producer.flush(10) == 0
