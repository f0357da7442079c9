"""What too few in-sync replicas mean to clients; replicas are the same bytes (rule 52)."""

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from kafkalite.testing import Cluster
from tests.cluster.audit import check_replicas

pytestmark = pytest.mark.slow

TOPIC = "orders"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(3, links=False) as cluster:
        cluster.create_topic(TOPIC, partitions=1, config={"min.insync.replicas": "2"})
        yield cluster


def produce(cluster, *, acks, count=1):
    """Send records and return how they were answered."""
    answers = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": acks,
            "retries": 0,
            "log_level": 0,
            "message.timeout.ms": 10_000,
        }
    )
    for number in range(count):
        producer.produce(
            TOPIC,
            f"{acks}-{number}",
            partition=0,
            on_delivery=lambda error, _: answers.append(error),
        )
    assert producer.flush(20) == 0
    return answers


def test_acks_all_is_refused_below_the_minimum_and_acks_1_goes_on(cluster):
    leader = cluster.leader_of(TOPIC)
    followers = [n for n in cluster.brokers if n != leader]
    assert produce(cluster, acks="all", count=100) == [None] * 100
    for follower in followers:
        cluster.kill(follower)
    cluster.wait_until(lambda: len(cluster.partition(TOPIC).isr_nodes) == 1, "an ISR of one")
    assert cluster.leader_of(TOPIC) == leader

    (refused,) = produce(cluster, acks="all")
    assert refused.code() == KafkaError.NOT_ENOUGH_REPLICAS
    assert produce(cluster, acks=1, count=100) == [None] * 100

    for follower in followers:
        cluster.restart(follower)
    cluster.wait_in_sync(TOPIC)
    assert produce(cluster, acks="all", count=100) == [None] * 100
    wait_same_end(cluster)
    assert check_replicas([Path(broker.data_dir) for broker in cluster.brokers.values()]) == []


def test_a_paused_follower_leaves_the_isr_and_comes_back(cluster):
    leader = cluster.leader_of(TOPIC)
    follower = next(n for n in cluster.brokers if n != leader)
    cluster.pause(follower)
    try:
        answers = produce(cluster, acks="all", count=10)
        cluster.wait_until(
            lambda: follower not in cluster.partition(TOPIC).isr_nodes, "a smaller ISR"
        )
    finally:
        cluster.resume(follower)
    assert answers == [None] * 10, "an acks=all write waits until the ISR is smaller"
    cluster.wait_in_sync(TOPIC)


def wait_same_end(cluster):
    """Wait until followers have what the leader has: the last Fetch may still be under way."""
    folders = [Path(broker.data_dir) / f"{TOPIC}-0" for broker in cluster.brokers.values()]
    deadline = time.monotonic() + 10
    while len({sum(p.stat().st_size for p in f.glob("*.log")) for f in folders}) > 1:
        assert time.monotonic() < deadline, "the replicas do not get to the same size"
        time.sleep(0.05)
