"""Timers of every kind, moved by a broker's clock while clients are alive; and at random."""

import random
import threading
import time
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafkalite.cli.main import run
from kafkalite.testing import Broker
from kafkalite.testing.history import History
from tests.share.probe import Probe, acquired

pytestmark = pytest.mark.slow

DAY_S = 86_400


@pytest.fixture
def broker():
    with Broker() as broker:
        broker.create_topic("orders")
        yield broker


class Reader:
    """A consumer that polls all the time in a thread of its own."""

    def __init__(self, broker, group="alive", **config):
        self.values = []
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 100,
                "auto.commit.interval.ms": 100,
                "fetch.wait.max.ms": 50,
                **config,
            }
        )
        self._consumer.subscribe(["orders"])
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self):
        while not self._stop.is_set():
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.values.append(message.value())

    def wait(self, value):
        wait_until(lambda: value in self.values)


def wait_until(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def log_of(broker, topic="orders"):
    return broker.server.services.replicas.partition(topic, 0).log


def test_producers_are_forgotten_and_go_on(broker):
    """producer.id.expiration.ms"""
    client = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    with Reader(broker) as reader:
        client.produce("orders", b"before")
        assert client.flush(20) == 0
        assert broker.call_in_broker(lambda: len(log_of(broker).producers)) == 1
        broker.clock.advance(timedelta(days=2))
        assert broker.call_in_broker(lambda: len(log_of(broker).producers)) == 0
        client.produce("orders", b"after")
        assert client.flush(20) == 0
        reader.wait(b"after")


def test_transactional_ids_are_forgotten(broker):
    """transactional.id.expiration.ms"""
    client = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "tx"})
    client.init_transactions(20)
    client.begin_transaction()
    client.produce("orders", b"x")
    client.commit_transaction(20)

    def ids():
        shard = broker.server.services.coordinators.shard_of("__transaction_state", "tx")
        return [*shard.transactions]

    assert broker.call_in_broker(ids) == ["tx"]
    broker.clock.advance(timedelta(days=8))
    assert broker.call_in_broker(ids) == []
    client.begin_transaction()
    client.produce("orders", b"y")
    with pytest.raises(KafkaException):
        client.commit_transaction(20)
    assert [r.value for r in broker.records("orders", read_committed=True)] in ([b"x"], [])


def test_offsets_expire_when_nobody_is_there_and_stay_while_somebody_is(broker):
    """offsets.retention.minutes"""
    broker.produce("orders", b"1")
    gone = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "gone"})
    gone.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    gone.close()

    def committed(group):
        shard = broker.server.services.coordinators.shard_of("__consumer_offsets", group)
        return shard.offsets.get(group, "orders", 0) is not None

    with Reader(broker) as reader:
        reader.wait(b"1")
        broker.wait_committed("alive", "orders")
        broker.clock.advance(timedelta(days=6))
        assert broker.call_in_broker(lambda: committed("gone"))
        broker.clock.advance(timedelta(days=2))
        assert not broker.call_in_broker(lambda: committed("gone"))


def test_old_values_are_compacted_away_after_their_lag():
    """min.compaction.lag.ms, segment.ms"""
    with Broker() as broker:
        config = {
            "cleanup.policy": "compact",
            "min.compaction.lag.ms": 3_600_000,
            "segment.ms": 600_000,
            "min.cleanable.dirty.ratio": 0.01,
        }
        broker.create_topic("orders", config=config)
        for number in range(5):
            broker.produce("orders", str(number).encode(), key=b"k")
        broker.clock.advance(700)
        broker.produce("orders", b"new", key=b"other")
        assert len(broker.records("orders")) == 6
        broker.clock.advance(2 * 3_600)
        broker.produce("orders", b"newer", key=b"other")
        broker.clock.advance(600)
        left = [(r.key, r.value) for r in broker.records("orders")]
        assert (b"k", b"4") in left
        assert len([key for key, _ in left if key == b"k"]) == 1


def test_tombstones_are_there_for_their_time_and_then_gone():
    """delete.retention.ms"""
    with Broker() as broker:
        config = {
            "cleanup.policy": "compact",
            "delete.retention.ms": 3_600_000,
            "segment.ms": 600_000,
            "min.cleanable.dirty.ratio": 0.01,
        }
        broker.create_topic("orders", config=config)
        broker.produce("orders", b"value", key=b"k")
        broker.produce("orders", None, key=b"k")

        def left_after(seconds):
            """Fill another segment, so that all before it is cleaned."""
            broker.clock.advance(seconds)
            broker.produce("orders", b"more", key=b"other")
            broker.clock.advance(60)
            return [record.value for record in broker.records("orders") if record.key == b"k"]

        assert left_after(700) == [None]  # cleaned: its time begins
        assert left_after(1_800) == [None]
        assert left_after(1_800) == []


def test_a_round_goes_on_without_who_does_not_come(broker):
    """max.poll.interval.ms: the rebalance timeout of a member that is alive and does not poll"""
    idle = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "alive",
            "session.timeout.ms": 60_000,
            "max.poll.interval.ms": 60_000,
            "heartbeat.interval.ms": 100,
        }
    )
    idle.subscribe(["orders"])
    wait_until(lambda: idle.poll(0.05) or idle.assignment())
    with Reader(broker) as reader:
        wait_until(lambda: len(broker.requests("JoinGroup")) >= 3)
        broker.clock.advance(61)
        broker.produce("orders", b"x")
        reader.wait(b"x")
    idle.close()


def test_sessions_pass_at_ten_times_the_speed(broker):
    with Reader(broker, **{"session.timeout.ms": 30_000}) as reader:
        broker.clock.rate = 10
        broker.produce("orders", b"1")
        reader.wait(b"1")
        with broker.clock.frozen():
            broker.produce("orders", b"2")
            reader.wait(b"2")
        broker.wait_stable("alive")


def test_locks_of_share_groups_end():
    """group.share.record.lock.duration.ms"""
    settings = {"group.share.assignment.interval.ms": 0, "log.retention.ms": -1}
    with Broker(config=settings) as broker:
        one, other = (Probe(broker.port, group="g", member=name) for name in ("M1", "M2"))
        topic_id = one.create_topic("orders")
        one.produce("orders", 5)
        one.set_group(share_auto_offset_reset="earliest")
        one.find_coordinator("g", key_type=0)
        epoch = 0
        while not (answer := one.heartbeat(epoch, ["orders"])).assignment.topic_partitions:
            epoch = answer.member_epoch
        assert acquired(one.fetch(topic_id)) == [(0, 4, 1)]
        broker.clock.advance(29)
        assert acquired(other.fetch(topic_id)) == []
        broker.clock.advance(2)
        assert acquired(other.fetch(topic_id, max_wait_ms=30_000)) == [(0, 4, 2)]
        one.client.close()
        other.client.close()


def test_what_quotas_count_is_over(broker):
    """quota.window.size.seconds, quota.window.num"""
    quota = ["client:greedy", "producer_byte_rate=1000"]
    assert run(["quotas", "set", "-b", broker.bootstrap, *quota]) == 0

    def throttled_ms(value):
        client = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "greedy"})
        client.produce("orders", value)
        assert client.flush(20) == 0
        return broker.requests("Produce", client_id="greedy")[-1].response.throttle_time_ms

    assert throttled_ms(b"x" * 20_000) > 1_000
    broker.clock.advance(60)
    assert throttled_ms(b"x") == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_random_advances_between_random_operations_break_no_invariant(seed):
    chance = random.Random(seed)
    history = History()
    with Broker(config={"transaction.max.timeout.ms": 900_000}) as broker:
        broker.create_topic("orders", config={"retention.ms": -1})
        plain = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        transactional = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "tx"})
        transactional.init_transactions(20)

        def send(client, name, value):
            write = history.send(name, "orders", 0, value)
            outcome = []
            client.produce("orders", value, on_delivery=lambda e, m: outcome.append((e, m)))
            client.flush(20)
            error, message = outcome[0]
            if error is None:
                return write, message.offset()
            return write, None

        def produce(value):
            write, offset = send(plain, "plain", value)
            if offset is not None:
                history.acknowledge(write, offset=offset)

        def transact(value, *, ends):
            nonlocal transactional
            try:
                transactional.begin_transaction()
                write, offset = send(transactional, "tx", value)
                turn()
                if ends == "commit":
                    transactional.commit_transaction(20)
                    history.acknowledge(write, offset=offset)
                else:
                    history.fail(write)
                    transactional.abort_transaction(20)
            except KafkaException:  # its time was over: another producer takes the id
                transactional = Producer(
                    {"bootstrap.servers": broker.bootstrap, "transactional.id": "tx"}
                )
                transactional.init_transactions(20)

        def turn():
            match chance.randrange(5):
                case 0:
                    broker.clock.freeze()
                case 1:
                    broker.clock.resume()
                case 2:
                    broker.clock.rate = chance.choice([1, 10])
                case _:
                    broker.clock.advance(chance.choice([0.1, 5, 70, 3_600, 2 * DAY_S]))

        with Reader(broker) as reader:
            for number in range(25):
                operation = chance.randrange(3)
                if operation == 0:
                    produce(f"p{number}")
                elif operation == 1:
                    transact(f"c{number}", ends="commit")
                else:
                    transact(f"a{number}", ends="abort")
                if chance.random() < 0.5:
                    turn()
            broker.clock.rate = 1
            produce("last")
            broker.clock.advance(3_600)
            reader.wait(b"last")
        for record in broker.records("orders", read_committed=True):
            history.read("c", "orders", 0, offset=record.offset, value=record.value.decode())
        end = broker.call_in_broker(lambda: log_of(broker).log_end_offset)
        history.complete("orders", 0, end_offset=end)
    assert history.check() == []
