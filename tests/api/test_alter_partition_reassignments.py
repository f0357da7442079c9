import pytest

from kafkalite.api.alter_partition_reassignments import HANDLERS, refuse_list
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkalite.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.api.cluster_kit import ClusterKit

ALTER, LIST = HANDLERS


@pytest.fixture
def kit():
    made = ClusterKit(4)
    made.assign("a", [1, 2], [2, 3])
    return made


def alter(kit, replicas, version=1, **attributes):
    """`replicas` are those that partitions of the topic `a` are to have, by index."""
    partitions = [
        ReassignablePartition(partition_index=index, replicas=each)
        for index, each in replicas.items()
    ]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="a", partitions=partitions)], **attributes
    )
    response = kit.ask(ALTER, request, version)
    assert (response.error_code, response.error_message) == (0, None)
    (topic,) = response.responses
    return {each.partition_index: each.error_code for each in topic.partitions}


def ongoing(kit, topics=None):
    response = kit.ask(LIST, ListPartitionReassignmentsRequest(topics=topics))
    assert (response.error_code, response.error_message) == (0, None)
    return {
        (topic.name, each.partition_index): (
            each.replicas,
            each.adding_replicas,
            each.removing_replicas,
        )
        for topic in response.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", [0, 1])
def test_replicas_are_exchanged(kit, version):
    """KIP-455."""
    assert alter(kit, {0: [3, 4], 1: [9], 5: None}, version) == {
        0: 0,
        1: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert ongoing(kit) == {("a", 0): ([3, 4, 1, 2], [3, 4], [1, 2])}


def test_only_what_is_asked_for_is_listed(kit):
    alter(kit, {0: [3, 4]})
    asked = [
        ListPartitionReassignmentsTopics(name="a", partition_indexes=[1, 1, 7]),
        ListPartitionReassignmentsTopics(name="b", partition_indexes=[0]),
    ]
    assert ongoing(kit, asked) == {}
    asked[0].partition_indexes = [0, 1]
    assert list(ongoing(kit, asked)) == [("a", 0)]


def test_they_can_be_cancelled(kit):
    """KIP-455."""
    alter(kit, {0: [3, 4]})
    assert alter(kit, {0: None, 1: None}) == {0: 0, 1: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
    assert ongoing(kit) == {}
    assert set(kit.state("a").replicas) == {1, 2}


def test_the_replication_factor_may_be_kept(kit):
    """KIP-860."""
    answers = alter(kit, {0: [3]}, allow_replication_factor_change=False)
    assert answers == {0: ErrorCode.INVALID_REPLICATION_FACTOR}
    assert alter(kit, {0: [3]}) == {0: 0}


def test_refusals_are_answered_at_the_top():
    error = KafkaError(ErrorCode.NOT_CONTROLLER, "words")
    for handler, message in (
        (ALTER, AlterPartitionReassignmentsRequest()),
        (LIST, ListPartitionReassignmentsRequest()),
    ):
        response = handler.refuse(message, error, None)
        assert (response.error_code, response.error_message) == (41, "words")
    assert refuse_list(None, KafkaError(ErrorCode.NOT_CONTROLLER), None).error_message is None


def test_any_broker_may_be_asked():
    assert ALTER.forward_to_controller
    assert LIST.forward_to_controller
