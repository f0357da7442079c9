"""A cluster for tests: everything that can be done to its brokers, and what is waited for."""

import signal

import pytest

from kafkalite.client.producer import Producer
from kafkalite.testing import Cluster
from kafkalite.testing import cluster as module
from kafkalite.testing.cluster_settings import replication_settings
from kafkalite.testing.processes import unused_port
from kafkalite.testing.zookeeper import ZooKeeper
from kafkalite.wire.errors import ErrorCode, KafkaError

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]

TOPIC = "orders"


@pytest.fixture(scope="module")
def running():
    with Cluster(3, config={"min.insync.replicas": 2}) as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        yield cluster


@pytest.fixture
def cluster(running):
    """The cluster, whole again after each test."""
    yield running
    running.heal()
    for number, broker in running.brokers.items():
        if broker.is_paused:
            running.resume(number)
        if not broker.is_running:
            running.restart(number)
    running.wait_members()
    running.wait_in_sync(TOPIC)


def other_than(cluster, *numbers):
    return next(number for number in cluster.brokers if number not in numbers)


def test_brokers_know_each_other_and_replicate(cluster):
    seen = cluster.metadata()
    told = sorted((broker.node_id, f"{broker.host}:{broker.port}") for broker in seen.brokers)
    assert told == [(n, broker.bootstrap) for n, broker in cluster.brokers.items()]
    assert cluster.bootstrap.split(",") == [address for _, address in told]
    assert cluster.controller() in cluster.brokers
    assert sorted(cluster.partition(TOPIC).isr_nodes) == [1, 2, 3]
    sources = {pair for pair in cluster.links.connections() if "?" not in pair}
    assert {source for source, _ in sources} == {"1", "2", "3"}
    assert {(str(number), "zookeeper") for number in cluster.brokers} <= sources


def test_leader_that_is_killed_is_replaced_and_catches_up(cluster):
    leader = cluster.leader_of(TOPIC)
    cluster.kill(leader)
    follower = cluster.wait_leader(TOPIC, other_than=leader)
    assert follower != leader
    cluster.restart(leader)
    cluster.wait_in_sync(TOPIC)
    assert sorted(cluster.partition(TOPIC).isr_nodes) == [1, 2, 3]


def test_leader_that_is_stopped_hands_over(cluster):
    leader = cluster.leader_of(TOPIC)
    assert cluster.stop(leader) == 0
    assert cluster.leader_of(TOPIC) not in (leader, -1)


def test_paused_broker_is_missed(cluster):
    leader = cluster.leader_of(TOPIC)
    cluster.pause(leader)
    assert cluster.wait_leader(TOPIC, other_than=leader) != leader
    cluster.resume(leader)


def test_isolated_broker_is_missed_and_comes_back(cluster):
    leader = cluster.leader_of(TOPIC)
    cluster.isolate(leader)
    assert cluster.wait_leader(TOPIC, other_than=leader) != leader
    # Clients reach it still, and it does not know better.
    assert cluster.metadata([TOPIC], of=leader).topics[0].partitions
    cluster.heal(leader)
    cluster.wait_in_sync(TOPIC)


def test_follower_that_cannot_fetch_leaves_the_in_sync_replicas(cluster):
    leader = cluster.leader_of(TOPIC)
    # The leader has to reach the controller, which is what takes replicas out.
    follower = other_than(cluster, leader, cluster.controller())
    cluster.cut(follower, leader)
    # One that has all there is stays in sync, however silent it is (as in Kafka).
    with cluster.client() as client:
        producer = Producer(client, TOPIC, acks=1)
        producer.send(b"value", partition=0)
        producer.flush()
    cluster.wait_until(
        lambda: follower not in cluster.partition(TOPIC).isr_nodes, "it did not leave"
    )
    assert cluster.leader_of(TOPIC) == leader
    cluster.heal(follower)
    cluster.wait_in_sync(TOPIC)


def test_links_can_be_slow_and_can_break(cluster):
    leader = cluster.leader_of(TOPIC)
    follower = other_than(cluster, leader)
    cluster.delay(follower, leader, 0.05)
    assert cluster.disconnect(follower, leader) > 0
    cluster.heal()
    cluster.wait_in_sync(TOPIC)


def test_controller_whose_session_expires_is_replaced(cluster):
    controller = cluster.controller()
    assert cluster.expire_session(controller)
    cluster.wait_until(lambda: cluster.controller() in cluster.brokers, "no controller")
    cluster.wait_members()
    cluster.stop(controller)
    assert not cluster.expire_session(controller)


def test_leadership_is_moved_to_any_replica(cluster):
    for number in (1, 2, 3, 3):
        cluster.move_leader(TOPIC, 1, number)
        assert cluster.leader_of(TOPIC, 1) == number
        assert cluster.partition(TOPIC, 1).replica_nodes[0] == number


def test_leadership_is_not_moved_to_a_broker_without_a_replica(cluster):
    cluster.create_topic("alone", replication_factor=1)
    leader = cluster.leader_of("alone")
    with pytest.raises(ValueError, match="has no replica"):
        cluster.move_leader("alone", 0, other_than(cluster, leader))


def test_refusals_of_the_cluster_are_passed_on(cluster):
    with pytest.raises(KafkaError) as caught:
        cluster.create_topic(TOPIC)
    assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(LookupError):
        cluster.leader_of(TOPIC, 99)


def test_wait_that_fails_tells_what_is_missing_and_what_the_logs_say(cluster):
    leader = cluster.leader_of(TOPIC)
    with pytest.raises(TimeoutError) as caught:
        cluster.wait_leader(TOPIC, is_one_of=[other_than(cluster, leader)], timeout_s=0.1)
    text = str(caught.value)
    assert "orders-0 has no leader in" in text
    assert "--- broker 3, running" in text
    assert "kafkalite ready:" in text


def test_all_brokers_may_die_at_once(cluster):
    for number in cluster.brokers:
        cluster.kill(number)
    for number in cluster.brokers:
        cluster.restart(number)
    cluster.wait_leader(TOPIC)


def test_restart_of_a_running_broker_is_a_clean_one(cluster):
    pid = cluster.brokers[1].pid
    cluster.restart(1)
    assert cluster.brokers[1].pid != pid
    assert "running" in repr(cluster)


class TestWithoutLinks:
    def test_data_that_are_kept_are_those_of_processes_that_ended_cleanly(self, tmp_path):
        with Cluster(1, links=False, data_dir=tmp_path) as cluster:
            parts = [cluster.brokers[1].process, cluster.zookeeper.process]
        assert all(part.poll() not in (None, -signal.SIGKILL) for part in parts)

    def test_zookeeper_of_somebody_else_is_used_and_left_running(self, tmp_path):
        with ZooKeeper() as zookeeper:
            address = f"{zookeeper.connect}/cluster"
            with Cluster(2, zookeeper=address, links=False, data_dir=tmp_path) as cluster:
                cluster.create_topic("t")
                assert len(cluster.partition("t").replica_nodes) == 2
                assert cluster.zookeeper_address == address
                with pytest.raises(RuntimeError, match="without links"):
                    cluster.isolate(1)
                with pytest.raises(RuntimeError, match="somebody else"):
                    cluster.expire_session(1)
            assert zookeeper.is_serving()
            assert (tmp_path / "broker-1" / "t-0").exists()

    def test_port_that_somebody_took_is_replaced(self, monkeypatch):
        with Cluster(1, links=False) as first:
            taken = [first.brokers[1].port]
            monkeypatch.setattr(
                module, "unused_port", lambda: taken.pop() if taken else unused_port()
            )
            with Cluster(1, links=False) as second:
                assert second.metadata().controller_id == 1
                assert second.bootstrap != first.bootstrap

    def test_setting_that_is_wrong_is_told_with_the_log(self):
        with (
            pytest.raises(module.ProcessError, match="broker 1 ended with code 1") as caught,
            Cluster(1, config={"num.partitions": "none"}, links=False),
        ):
            pass
        assert "num.partitions" in caught.value.tail

    def test_cluster_of_none_is_refused(self):
        with pytest.raises(ValueError, match="at least one"):
            Cluster(0)


@pytest.mark.parametrize(
    ("brokers", "factor", "min_isr"), [(1, "1", "1"), (2, "2", "2"), (5, "3", "2")]
)
def test_everything_is_replicated_on_up_to_three(brokers, factor, min_isr):
    settings = replication_settings(brokers)
    assert settings["default.replication.factor"] == factor
    assert settings["transaction.state.log.min.isr"] == min_isr
