"""An acknowledged record survives: the broker is killed under load, and its disk runs full."""

import random
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.testing.history import History, Outcome
from tests.server.broker_process import BrokerProcess

TOPIC = "orders"
PARTITIONS = 3
KILLS = 5


def create_topic(bootstrap, partitions=PARTITIONS):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, partitions)])[TOPIC].result(10)


class Load(threading.Thread):
    """An idempotent producer that notes what it was told."""

    def __init__(self, bootstrap, name):
        super().__init__(name=name)
        self.history = History()
        self.wanted = threading.Event()
        self.acknowledged = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "delivery.timeout.ms": 60_000,
                "reconnect.backoff.max.ms": 100,
            }
        )

    def run(self):
        number = 0
        while not self.wanted.is_set():
            partition = number % PARTITIONS
            value = f"{self.name}-{number}"
            write = self.history.send(f"{self.name}/{partition}", TOPIC, partition, value)

            def noted(error, message, write=write):
                if error is None:
                    self.history.acknowledge(write, offset=message.offset())
                    self.acknowledged += 1

            self._producer.produce(TOPIC, value, partition=partition, on_delivery=noted)
            number += 1
            if number % 20 == 0:
                self._producer.poll(0.002)
        assert self._producer.flush(60) == 0


def read_everything(bootstrap, history):
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "check", "enable.auto.commit": False}
    )
    try:
        for partition in range(PARTITIONS):
            place = TopicPartition(TOPIC, partition)
            start, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([TopicPartition(TOPIC, partition, start)])
            while start < end and consumer.position([place])[0].offset < end:
                for message in consumer.consume(1_000, timeout=5):
                    assert message.error() is None
                    history.read(
                        "check",
                        TOPIC,
                        partition,
                        offset=message.offset(),
                        value=message.value().decode(),
                    )
            history.complete(TOPIC, partition, end_offset=end, start_offset=start)
    finally:
        consumer.close()


@pytest.mark.slow
def test_kill_9_under_load_loses_and_doubles_nothing(tmp_path):
    """Rules 56 and 63: producer state is rebuilt, so a retried batch is known as a duplicate."""
    chance = random.Random(7)
    with BrokerProcess(tmp_path, log_segment_bytes=1 << 20) as broker:
        create_topic(broker.bootstrap)
        loads = [Load(broker.bootstrap, name) for name in ("p", "q")]
        for load in loads:
            load.start()
        for _ in range(KILLS):
            before = sum(load.acknowledged for load in loads)
            while sum(load.acknowledged for load in loads) < before + 500:
                time.sleep(0.01)
            time.sleep(chance.random() * 0.05)
            broker.kill()
            broker.start()
        for load in loads:
            load.wanted.set()
            load.join()
        history = loads[0].history
        history.merge(loads[1].history)
        read_everything(broker.bootstrap, history)
        assert history.check() == []


@pytest.mark.slow
def test_full_disk_refuses_and_loses_nothing_acknowledged(tmp_path):
    """What does not fit is refused with KAFKA_STORAGE_ERROR; after more room, all goes on."""
    # A limit on file sizes refuses writes half way, as a full disk does.
    with BrokerProcess(tmp_path, file_size_max=200_000) as broker:
        create_topic(broker.bootstrap, partitions=PARTITIONS)
        history = History()
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 1_500, "linger.ms": 0}
        )
        refused = []

        def send(number):
            write = history.send("p", TOPIC, 0, f"{number}-" + "x" * 1_000)

            def noted(error, message):
                if error is None:
                    history.acknowledge(write, offset=message.offset())
                else:
                    refused.append(error)

            producer.produce(TOPIC, write.value, partition=0, on_delivery=noted)
            producer.flush(10)
            return write

        number = 0
        while not refused:
            send(number)
            number += 1
            assert number < 1_000, "the disk never ran full"
        assert number > 100
        broker.kill()
        broker.file_size_max = None
        broker.start()
        # Another producer: the first is short of patience, and waits before it connects again.
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        after = send(number)
        assert after.outcome is Outcome.ACKNOWLEDGED
        read_everything(broker.bootstrap, history)
        assert history.check() == []


@pytest.mark.slow
def test_stop_is_clean_and_quick(tmp_path):
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.bootstrap)
        start = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - start < 2
        assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_unreachable_broker_is_not_taken_for_an_empty_one():
    """Guards the checks above: a consumer without a broker must not read nothing in silence."""
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "x"})
    with pytest.raises(KafkaException):
        consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=0.2)
    consumer.close()


KEYS = 40


class KeyedLoad(threading.Thread):
    """Writes ascending numbers under a few keys; notes the last of each that was acknowledged."""

    def __init__(self, bootstrap):
        super().__init__()
        self.wanted = threading.Event()
        self.sent = 0
        self.acknowledged = {}
        self.acknowledged_count = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "delivery.timeout.ms": 60_000,
                "reconnect.backoff.max.ms": 100,
                "log_level": 2,
            }
        )

    def run(self):
        while not self.wanted.is_set():
            key = self.sent % KEYS

            def noted(error, message, key=key, number=self.sent):
                if error is None:
                    self.acknowledged_count += 1
                    self.acknowledged[key] = max(number, self.acknowledged.get(key, -1))

            value = f"{self.sent}".ljust(4_000)
            self._producer.produce(TOPIC, value, key=f"{key}", on_delivery=noted)
            self.sent += 1
            self._producer.poll(0 if self.sent < self.acknowledged_count + 500 else 0.05)
        assert self._producer.flush(60) == 0


def read_keyed(bootstrap):
    """Return the numbers of each key in the order of their offsets."""
    found = {}
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "log_level": 2})
    place = TopicPartition(TOPIC, 0)
    _, end = reader.get_watermark_offsets(place, timeout=10)
    reader.assign([TopicPartition(TOPIC, 0, 0)])
    while reader.position([place])[0].offset < end:
        for message in reader.consume(1_000, timeout=5):
            assert message.error() is None
            found.setdefault(int(message.key()), []).append(int(message.value()))
    reader.close()
    return found


@pytest.mark.slow
def test_kill_9_while_compacting_loses_no_key_and_brings_none_back(tmp_path):
    chance = random.Random(7)
    settings = {
        "log_segment_bytes": 1 << 20,
        "log_cleaner_backoff_ms": 5,
        "log_cleaner_min_cleanable_ratio": 0.01,
        "log_cleanup_policy": "compact",
    }
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    compacted = set()
    with BrokerProcess(tmp_path, **settings) as broker:
        create_topic(broker.bootstrap, partitions=1)
        load = KeyedLoad(broker.bootstrap)
        load.start()
        for _ in range(KILLS):
            before = load.acknowledged_count
            while load.acknowledged_count < before + 600:
                time.sleep(0.01)
            time.sleep(chance.random() * 0.1)
            broker.kill()
            if checkpoint.exists():
                compacted.add(checkpoint.read_text())
            broker.start()
        load.wanted.set()
        load.join()
        found = read_keyed(broker.bootstrap)
    assert len(compacted) > 2, "it was not compacted meanwhile"
    assert sum(map(len, found.values())) < load.sent / 2
    for key in range(KEYS):
        assert found[key] == sorted(set(found[key])), "numbers ascend, each is there once"
        assert found[key][-1] == load.acknowledged[key]
        assert all(number % KEYS == key for number in found[key])
