"""What only brokers may ask: refused on the listener of clients, served on that of brokers.

The messages of real connections to real processes; `tests/api` has each handler by itself.
"""

import pytest

from kafkalite.testing import Cluster
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkalite.wire.messages.allocate_producer_ids import (
    ALLOCATE_PRODUCER_IDS,
    AllocateProducerIdsRequest,
)
from kafkalite.wire.messages.alter_partition import ALTER_PARTITION, AlterPartitionRequest
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.controlled_shutdown import (
    CONTROLLED_SHUTDOWN,
    ControlledShutdownRequest,
)
from kafkalite.wire.messages.envelope import ENVELOPE, EnvelopeRequest
from kafkalite.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from tests.raw_client import RawClient

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]

TOPIC = "orders"
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
NOBODY = 99
"""No broker has this id, so what is served on the listener of brokers changes nothing."""
FIRST_FETCH_WITH_REPLICA_IN_BODY = 12

TRANSACTION = AddPartitionsToTxnTransaction(
    transactional_id="t",
    producer_id=1,
    producer_epoch=0,
    topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
)
BETWEEN_BROKERS = {
    "AlterPartition": (
        ALTER_PARTITION,
        AlterPartitionRequest(broker_id=NOBODY, broker_epoch=1, topics=[]),
    ),
    "ControlledShutdown": (
        CONTROLLED_SHUTDOWN,
        ControlledShutdownRequest(broker_id=NOBODY, broker_epoch=1),
    ),
    "AllocateProducerIds": (
        ALLOCATE_PRODUCER_IDS,
        AllocateProducerIdsRequest(broker_id=NOBODY, broker_epoch=1),
    ),
    "Envelope": (
        ENVELOPE,
        EnvelopeRequest(request_data=b"", client_host_address=b"\x7f\0\0\1"),
    ),
    "AddPartitionsToTxn": (
        ADD_PARTITIONS_TO_TXN,
        AddPartitionsToTxnRequest(transactions=[TRANSACTION]),
    ),
}


class PeerPort:
    """A broker's listener for brokers, for a `RawClient`."""

    def __init__(self, broker):
        self.port = broker.peer_port


@pytest.fixture(scope="module")
def cluster():
    with Cluster(2, links=False) as running:
        running.create_topic(TOPIC)
        yield running


def last_version(api):
    return api.versions[1]


def fetch_as(replica):
    partition = FetchPartition(partition=0, current_leader_epoch=-1, partition_max_bytes=1000)
    return FetchRequest(
        replica_id=replica, max_bytes=1000, topics=[FetchTopic(topic=TOPIC, partitions=[partition])]
    )


@pytest.mark.parametrize("name", BETWEEN_BROKERS)
def test_what_brokers_ask_is_refused_to_clients_and_not_to_brokers(cluster, name):
    api, request = BETWEEN_BROKERS[name]
    broker = cluster.brokers[cluster.controller()]
    with RawClient(broker) as client:
        assert client.ask(api, last_version(api), request).error_code == REFUSED
        # The connection serves on, and so does the broker.
        assert client.ask(API_VERSIONS, 0, ApiVersionsRequest()).error_code == ErrorCode.NONE
    with RawClient(PeerPort(broker)) as peer:
        assert peer.ask(api, last_version(api), request).error_code != REFUSED
        keys = {one.api_key for one in peer.ask(API_VERSIONS, 0, ApiVersionsRequest()).api_keys}
        assert api.key in keys


@pytest.mark.parametrize("version", [0, 3])
def test_clients_add_partitions_in_their_own_versions(cluster, version):
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=TRANSACTION.topics,
    )
    with RawClient(cluster.brokers[1]) as client:
        answer = client.ask(ADD_PARTITIONS_TO_TXN, version, request)
    ((partition,),) = [t.results_by_partition for t in answer.results_by_topic_v3_and_below]
    assert partition.partition_error_code != REFUSED


def test_fetch_of_a_replica_is_refused_to_clients_and_not_to_brokers(cluster):
    leader = cluster.leader_of(TOPIC)
    (follower,) = set(cluster.brokers) - {leader}
    version = FIRST_FETCH_WITH_REPLICA_IN_BODY
    broker = cluster.brokers[leader]

    def code_of(client, replica):
        answer = client.ask(FETCH, version, fetch_as(replica))
        codes = [p.error_code for t in answer.responses for p in t.partitions]
        return answer.error_code or codes[0]

    with RawClient(broker) as client:
        assert code_of(client, follower) == REFUSED
        assert code_of(client, -1) == ErrorCode.NONE
    with RawClient(PeerPort(broker)) as peer:
        assert code_of(peer, follower) == ErrorCode.NONE
    cluster.wait_in_sync(TOPIC)
