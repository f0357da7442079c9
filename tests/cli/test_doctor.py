"""`kafkalite doctor` on what keeps clients waiting: groups, transactions, partitions."""

import time
from datetime import UTC, datetime, timedelta

import confluent_kafka
import pytest

from kafkalite import Broker
from kafkalite.cli.doctor import examine
from kafkalite.client.cluster import Client
from kafkalite.client.groups import commit_offsets
from kafkalite.testing import Cluster
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from kafkalite.wire.messages.consumer_group_heartbeat import TopicPartitions as Owned
from kafkalite.wire.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkalite.wire.messages.sync_group import SYNC_GROUP, SyncGroupRequest
from tests.raw_client import RawClient

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        broker.create_topic("first")
        with Client(broker.bootstrap) as client:  # there are coordinators then
            commit_offsets(client, "first", {TopicPartition("first", 0): 0})
        yield broker


def findings(bootstrap):
    """What is found, without the advice."""
    with Client(bootstrap) as client:
        return [finding.what for finding in examine(client)]


def found(bootstrap, *words):
    """Wait for a finding with all of these words, and return it."""
    for _ in range(100):
        for what in findings(bootstrap):
            if all(word in what for word in words):
                return what
        time.sleep(0.05)
    return pytest.fail(f"{words} in none of {findings(bootstrap)}")


def join(group_id):
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def test_a_group_waits_for_a_member_that_does_not_join_again(broker):
    with RawClient(broker, client_id="first") as first, RawClient(broker, client_id="new") as new:
        joined = first.ask(JOIN_GROUP, 3, join("stuck"))
        sync = SyncGroupRequest(
            group_id="stuck", member_id=joined.member_id, generation_id=joined.generation_id
        )
        assert first.ask(SYNC_GROUP, 3, sync).error_code == 0
        new.send_request(JOIN_GROUP, 3, join("stuck"))
        what = found(broker.bootstrap, "'stuck' is in PreparingRebalance")
    assert "first at" in what
    assert "new at" in what


def test_a_group_of_kafka_4_waits_for_who_keeps_its_partitions(broker):
    broker.create_topic("shared", partitions=2)
    topic_id = broker.server.services.metadata.image.topics["shared"].topic_id

    def heartbeat(client, member_id, epoch, owned=None):
        request = ConsumerGroupHeartbeatRequest(
            group_id="slow",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=["shared"] if epoch == 0 else None,
            server_assignor="uniform" if epoch == 0 else None,
            topic_partitions=[]
            if epoch == 0
            else None
            if owned is None
            else [Owned(topic_id=topic_id, partitions=owned)],
        )
        answer = client.ask(CONSUMER_GROUP_HEARTBEAT, 0, request)
        assert answer.error_code == 0, answer
        return answer

    with RawClient(broker, client_id="hog") as hog, RawClient(broker, client_id="new") as new:
        joined = heartbeat(hog, "a" * 22, 0)
        heartbeat(hog, "a" * 22, joined.member_epoch, owned=[0, 1])
        heartbeat(new, "b" * 22, 0)
        what = found(broker.bootstrap, "'slow' is in")
    assert "it waits for hog at" in what
    assert "new at" not in what


def test_a_group_of_kafka_4_without_members_has_records_to_read(broker):
    broker.create_topic("left-behind")
    config = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "gone-4",
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
    }
    broker.produce("left-behind", b"one")
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe(["left-behind"])
    assert consumer.poll(20).value() == b"one"
    consumer.commit(asynchronous=False)
    consumer.close()
    broker.produce("left-behind", b"two")
    found(broker.bootstrap, "'gone-4' has no members, and 1 records to read")


def test_an_open_transaction_and_who_holds_it(broker):
    broker.create_topic("held")
    broker.clock.set(datetime.now(UTC) - timedelta(minutes=5))
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": "forgotten",
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("held", b"x")
    producer.flush(20)
    told = findings(broker.bootstrap)
    assert any(
        "transaction 'forgotten' of producer" in what
        and "consumers of held" in what
        and "open for 3" in what
        for what in told
    ), told
    assert "1 partitions have records of open transactions: held-0" in told
    producer.abort_transaction(20)
    broker.clock.reset()


@pytest.mark.xdist_group("cluster")
def test_partitions_without_a_leader_and_too_few_in_sync():
    with Cluster(2, config={"min.insync.replicas": 2}) as cluster:
        cluster.create_topic("both", replication_factor=2)
        cluster.create_topic("single", partitions=2, replication_factor=1)
        alone = next(p for p in (0, 1) if cluster.leader_of("single", p) == 2)
        cluster.kill(2)
        with Client(cluster.brokers[1].bootstrap) as client:
            cluster.wait_until(
                lambda: len(client.fetch_metadata(None).brokers) == 1, "2 is not missed"
            )
        bootstrap = cluster.brokers[1].bootstrap
        found(bootstrap, f"single: partitions {alone} have no leader")
        found(bootstrap, "both: partitions 0 are below min.insync.replicas=2")
