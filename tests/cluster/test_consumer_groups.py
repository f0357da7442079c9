"""Consumer groups (KIP-848) outlive their coordinator: members go on with epochs and partitions."""

import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafkalite.coordinator.shard import partition_for
from kafkalite.testing import Cluster

pytestmark = pytest.mark.slow

TOPIC, GROUP = "orders", "shop"
PARTITIONS = 6
PATIENCE_S = 60


class Member(threading.Thread):
    """Polls and commits what it has read; notes what it is assigned and what it has committed."""

    def __init__(self, name, bootstrap):
        super().__init__(name=name, daemon=True)
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self.values, self.changes, self.committed = [], [], {}
        self.refusals = []
        self.owned = set()
        self.failure = None
        self._stopping = threading.Event()
        self.consumer.subscribe([TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, consumer, partitions):
        self.changes.append(("assigned", len(partitions)))
        self.owned |= {each.partition for each in partitions}
        consumer.incremental_assign(partitions)

    def _on_revoke(self, consumer, partitions):
        self.changes.append(("revoked", len(partitions)))
        self.owned -= {each.partition for each in partitions}
        consumer.incremental_unassign(partitions)

    def run(self):
        try:
            while not self._stopping.is_set():
                self._step()
        except BaseException as error:
            self.failure = error
        finally:
            self.consumer.close()

    def _step(self):
        for message in self.consumer.consume(200, timeout=0.1):
            if message.error() is None:
                self.values.append(message.value())
        try:
            for each in self.consumer.commit(asynchronous=False) or []:
                if each.error is None and each.offset >= 0:  # below 0: nothing new there
                    self.committed[each.partition] = each.offset
        except KafkaException as error:  # nothing new, or the coordinator is on its way
            self.refusals.append(error.args[0].name())

    def stop(self):
        self._stopping.set()
        self.join(PATIENCE_S)
        assert not self.is_alive()
        assert self.failure is None, self.failure


def produce(cluster, first, count):
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    errors = []
    for number in range(first, first + count):
        producer.produce(
            TOPIC,
            b"%d" % number,
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * count


def wait(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.05)


def test_members_go_on_when_their_coordinator_is_killed():
    with Cluster(3, links=False) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS, config={"min.insync.replicas": "2"})
        members = [Member(name, cluster.bootstrap) for name in ("a", "b")]
        for member in members:
            member.start()
        half = PARTITIONS // 2
        wait(lambda: [len(member.owned) for member in members] == [half, half], "no shares")
        total = 0
        for _ in range(2):
            produce(cluster, total, 600)
            total += 600
            wait_done(members, total)
            cluster.wait_in_sync()
            before = [[*member.changes] for member in members]
            count = len(cluster.metadata(["__consumer_offsets"]).topics[0].partitions)
            place = ("__consumer_offsets", partition_for(GROUP, count))
            killed = cluster.leader_of(*place)
            cluster.kill(killed)
            produce(cluster, total, 600)
            total += 600
            wait_done(members, total)
            assert [member.changes for member in members] == before, "nobody was fenced"
            cluster.restart(killed)
            cluster.wait_in_sync(timeout_s=PATIENCE_S)
        promised = committed(members)
        for member in members:
            member.stop()
        assert offsets(cluster) == promised
        assert sum(len(member.values) for member in members) == total, "nothing came twice"


def wait_done(members, count):
    """Return when all records are read and committed."""
    wait(lambda: read(members) == expected(count), "not all is read")
    wait(
        lambda: sum(committed(members).values()) == count,
        lambda: f"not all is committed: {[(m.committed, m.refusals[-9:]) for m in members]}",
    )


def read(members):
    return {value for member in members for value in member.values}


def expected(count):
    return {b"%d" % number for number in range(count)}


def committed(members):
    """The offsets that were acknowledged, by partition."""
    return {key: value for member in members for key, value in member.committed.items()}


def offsets(cluster):
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, "log_level": 0})
    try:
        wanted = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        return {each.partition: each.offset for each in consumer.committed(wanted, timeout=30)}
    finally:
        consumer.close()
