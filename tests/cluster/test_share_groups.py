"""Share groups in a cluster: what was acknowledged outlives leaders and share coordinators."""

import time
from uuid import uuid4

import pytest

from kafkalite.client.producer import Producer
from kafkalite.coordinator.shard import partition_for
from kafkalite.share.batches import SharePartitionKey
from kafkalite.testing import Cluster
from kafkalite.types import SHARE_GROUP_STATE_TOPIC
from kafkalite.wire.errors import ErrorCode
from tests.share.probe import Probe, acquired

pytestmark = pytest.mark.slow

GROUP, TOPIC = "g", "q"
ACCEPT, RELEASE, REJECT = 1, 2, 3
STATE_PARTITIONS = 4
SETTINGS = {
    "group.share.assignment.interval.ms": 0,
    "share.coordinator.state.topic.num.partitions": STATE_PARTITIONS,
    "offsets.topic.num.partitions": 4,
    "min.insync.replicas": 2,
}
PATIENCE_S = 60


@pytest.fixture(scope="module")
def cluster():
    with Cluster(3, config=SETTINGS, links=False) as running:
        yield running


@pytest.fixture
def probe_of(cluster):
    made = []

    def make(number, member="M"):
        made.append(Probe(cluster.brokers[number].port, group=GROUP, member=member))
        return made[-1]

    yield make
    for probe in made:
        probe.client.close()


def until(ask, is_good):
    deadline = time.monotonic() + PATIENCE_S
    while not is_good(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)
    return answer


def join(probe_of):
    """Be a member until the topic's partition is assigned."""
    found = until(
        lambda: probe_of(1).find_coordinator(GROUP, key_type=0).coordinators[0],
        lambda each: not each.error_code,
    )
    coordinator = probe_of(found.node_id)
    epoch = 0

    def beat():
        nonlocal epoch
        answer = coordinator.heartbeat(epoch, [TOPIC])
        if not answer.error_code:
            epoch = answer.member_epoch
        return answer

    until(beat, lambda each: not each.error_code and each.assignment.topic_partitions)


def fetched(probe, topic_id):
    """Open a session, as often as it needs, and return what is acquired by it."""

    def fetch():
        probe.epoch = 0
        return acquired(probe.fetch(topic_id))

    return until(fetch, bool)


def test_what_is_acknowledged_outlives_leaders_and_share_coordinators(cluster, probe_of):
    cluster.create_topic(TOPIC, partitions=1, replication_factor=3)
    cluster.wait_in_sync(TOPIC)
    probe = probe_of(1)
    probe.set_group(share_auto_offset_reset="earliest")
    with cluster.client() as client:
        producer = Producer(client, TOPIC)
        for number in range(30):
            producer.send(b"%d" % number, partition=0)
        producer.flush()
    topic_id = cluster.metadata([TOPIC]).topics[0].topic_id
    join(probe_of)
    key = SharePartitionKey(GROUP, topic_id, 0).coordinator_key
    state_index = partition_for(key, STATE_PARTITIONS)
    coordinator = cluster.leader_of(SHARE_GROUP_STATE_TOPIC, state_index)
    leader = next(number for number in (1, 2, 3) if number != coordinator)
    cluster.move_leader(TOPIC, 0, leader)

    first = probe_of(leader)
    assert [each[2] for each in fetched(first, topic_id)] == [1]
    answer = first.acknowledge(topic_id, (0, 9, ACCEPT), (10, 14, RELEASE), (15, 19, REJECT))
    assert not answer.responses[0].partitions[0].error_code

    # The leader dies: what it had been told is known, what was acquired comes again.
    cluster.kill(leader)
    second_leader = cluster.wait_leader(TOPIC, other_than=leader, timeout_s=PATIENCE_S)
    second = probe_of(second_leader)
    assert fetched(second, topic_id) == [(10, 14, 2), (20, 29, 1)]
    cluster.restart(leader)
    cluster.wait_in_sync(timeout_s=PATIENCE_S)

    # The share coordinator dies: an acknowledgement waits for the next one.
    coordinator = cluster.leader_of(SHARE_GROUP_STATE_TOPIC, state_index)
    if coordinator == second_leader:
        other = next(number for number in (1, 2, 3) if number != second_leader)
        cluster.move_leader(SHARE_GROUP_STATE_TOPIC, state_index, other)
        coordinator = other
    cluster.kill(coordinator)
    answer = second.acknowledge(topic_id, (10, 14, ACCEPT), (20, 24, ACCEPT), (25, 29, RELEASE))
    assert not answer.responses[0].partitions[0].error_code, answer
    cluster.restart(coordinator)
    cluster.wait_in_sync(timeout_s=PATIENCE_S)

    # A leader that is moved gives everything on.
    third_leader = next(number for number in (1, 2, 3) if number != second_leader)
    cluster.move_leader(TOPIC, 0, third_leader)
    third = probe_of(third_leader)
    assert fetched(third, topic_id) == [(25, 29, 2)]
    lost = second.fetch(topic_id, max_wait_ms=0)
    assert lost.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert lost.responses[0].partitions[0].current_leader.leader_id == third_leader


def test_clients_may_not_ask_share_coordinators(cluster, probe_of):
    probe = probe_of(1)
    assert probe.initialize(uuid4()) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
