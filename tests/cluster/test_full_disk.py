"""A full disk on one broker does not keep its partitions from the clients (rule 185)."""

import resource
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kafkalite.coordinator.shard import partition_for
from kafkalite.testing import Cluster
from tests.cluster.audit import check_replicas

pytestmark = pytest.mark.slow

TOPIC = "orders"
GROUP = "shop"
PATIENCE_MS = 10_000
"""Far below replica.lag.time.max.ms: nobody is waited for who cannot write."""

PASSING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


@contextmanager
def full_disk(broker):
    """Let no file of a broker grow meanwhile."""
    before = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, before)


def produce(cluster, count):
    """Send records to all replicas; return how they were answered."""
    answers = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "log_level": 0,
            "message.timeout.ms": PATIENCE_MS,
        }
    )
    for number in range(count):
        producer.produce(
            TOPIC, str(number), partition=0, on_delivery=lambda error, _: answers.append(error)
        )
        producer.poll(0)
        time.sleep(0.01)
    assert producer.flush(2 * PATIENCE_MS / 1_000) == 0
    return answers


def commit(cluster, offset):
    """Store an offset for a group."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, "log_level": 0})
    try:
        offsets = [TopicPartition(TOPIC, 0, offset)]

        def is_committed():
            try:
                return consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:  # a client looks for its coordinator then
                if error.args[0].code() not in PASSING:
                    raise
                return False

        cluster.wait_until(is_committed, "a commit", timeout_s=PATIENCE_MS / 1_000)
        return consumer.committed([TopicPartition(TOPIC, 0)], timeout=10)[0].offset
    finally:
        consumer.close()


def test_another_broker_leads_until_there_is_room_again():
    with Cluster(3, links=False) as cluster:
        cluster.create_topic(TOPIC, partitions=1, config={"min.insync.replicas": "2"})
        assert produce(cluster, 10) == [None] * 10
        assert commit(cluster, 5) == 5
        cluster.wait_in_sync()
        first = cluster.leader_of(TOPIC)
        with full_disk(cluster.brokers[first]):
            assert produce(cluster, 100) == [None] * 100
            second = cluster.leader_of(TOPIC)
            assert second != first
            assert first not in cluster.partition(TOPIC).isr_nodes
        cluster.wait_in_sync(timeout_s=60)

        count = len(cluster.metadata(["__consumer_offsets"]).topics[0].partitions)
        place = ("__consumer_offsets", partition_for(GROUP, count))
        coordinator = cluster.leader_of(*place)
        with full_disk(cluster.brokers[coordinator]):
            assert commit(cluster, 6) == 6
            assert cluster.leader_of(*place) != coordinator
        cluster.wait_in_sync(timeout_s=60)
        cluster.move_leader(TOPIC, 0, first)
        assert produce(cluster, 10) == [None] * 10
        assert check_replicas([Path(broker.data_dir) for broker in cluster.brokers.values()]) == []
