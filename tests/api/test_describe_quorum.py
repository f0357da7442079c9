"""Rule 272."""

import pytest

from kafkalite.api.describe_quorum import HANDLERS, refuse
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.add_raft_voter import AddRaftVoterRequest
from kafkalite.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
)
from kafkalite.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.api.cluster_kit import ClusterKit
from tests.api.metadata_kit import MetadataKit

DESCRIBE, ADD, REMOVE = HANDLERS


def describe(kit, topic="__cluster_metadata", index=0, version=2):
    partition = DescribeQuorumPartition(partition_index=index)
    asked = DescribeQuorumTopic(topic_name=topic, partitions=[partition])
    response = kit.ask(DESCRIBE, DescribeQuorumRequest(topics=[asked]), version)
    assert response.error_code == 0
    return response, response.topics[0].partitions[0]


def test_a_lone_broker_is_the_one_voter():
    kit = MetadataKit()
    response, partition = describe(kit)
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert partition.high_watermark == kit.image.version > 0
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, kit.image.version)
    assert partition.observers == []
    (node,) = response.nodes
    assert (node.node_id, node.listeners[0].name) == (1, "PLAINTEXT")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_brokers_but_the_controller_observe(version):
    kit = ClusterKit()
    response, partition = describe(kit, version=version)
    assert [each.replica_id for each in partition.current_voters] == [1]
    observers = [(each.replica_id, each.log_end_offset) for each in partition.observers]
    assert observers == [(2, -1), (3, -1)]
    assert [each.node_id for each in response.nodes] == ([1] if version == 2 else [])


@pytest.mark.parametrize(("topic", "index"), [("a", 0), ("__cluster_metadata", 1)])
def test_nothing_else_has_a_quorum(topic, index):
    _, partition = describe(MetadataKit(), topic, index)
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition.leader_id == -1


def test_an_error_is_told_at_the_top():
    context = MetadataKit().context(2)
    error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert refuse(DescribeQuorumRequest(), error, context).error_code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize(
    ("handler", "request_"),
    [(ADD, AddRaftVoterRequest(voter_id=2)), (REMOVE, RemoveRaftVoterRequest(voter_id=2))],
)
def test_voters_come_and_go_with_their_brokers_alone(handler, request_):
    response = MetadataKit().ask(handler, request_)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "no KRaft quorum" in response.error_message
