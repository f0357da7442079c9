from uuid import UUID

import pytest

from kafkalite.api.alter_partition import HANDLERS, refuse
from kafkalite.meta.events import Reassign
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_partition import (
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerState,
)
from tests.api.cluster_kit import ClusterKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    made = ClusterKit(4)
    made.assign("a", [1, 2, 3], [2, 1, 3])
    return made


def data(kit, index, *isr, **attributes):
    state = kit.state("a", index)
    attributes = {
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        **attributes,
    }
    return AlterPartitionData(
        partition_index=index,
        new_isr=list(isr),
        new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=10 + each) for each in isr],
        **attributes,
    )


def ask(kit, *partitions, broker_id=1, broker_epoch=11, topic_id=None, version=3):
    topic_id = topic_id or kit.image.topics["a"].topic_id
    topic = AlterPartitionTopic(topic_id=topic_id, partitions=list(partitions))
    request = AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=[topic])
    return kit.ask(HANDLER, request, version)


@pytest.mark.parametrize("version", [2, 3])
def test_the_leader_gets_the_new_state(kit, version):
    """Rule 176."""
    response = ask(kit, data(kit, 0, 1, 3), version=version)
    assert response.error_code == 0
    (topic,) = response.topics
    assert topic.topic_id == kit.image.topics["a"].topic_id
    (answer,) = topic.partitions
    assert (answer.partition_index, answer.error_code, answer.leader_id) == (0, 0, 1)
    assert (answer.leader_epoch, answer.isr, answer.partition_epoch) == (0, [1, 3], 1)
    assert kit.state("a").isr == (1, 3)


def test_a_lost_answer_can_be_asked_for_again(kit):
    ask(kit, data(kit, 0, 1, 3))
    (topic,) = ask(kit, data(kit, 0, 1, 3, partition_epoch=0)).topics
    assert (topic.partitions[0].error_code, topic.partitions[0].partition_epoch) == (0, 1)


def test_each_partition_has_an_answer_of_its_own(kit):
    (topic,) = ask(kit, data(kit, 0, 1, 2), data(kit, 1, 1, 2)).topics
    codes = [answer.error_code for answer in topic.partitions]
    assert codes == [0, ErrorCode.INVALID_REQUEST]


def test_an_unknown_topic_is_one_partitions_matter(kit):
    (topic,) = ask(kit, data(kit, 0, 1, 2), topic_id=UUID(int=99)).topics
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_dead_session_is_refused_as_a_whole(kit):
    """Rule 174, KIP-380."""
    response = ask(kit, data(kit, 0, 1, 2), broker_epoch=10)
    assert (response.error_code, response.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])


def test_a_leader_that_knows_more_asks_the_wrong_controller(kit):
    response = ask(kit, data(kit, 0, 1, 2, leader_epoch=7))
    assert (response.error_code, response.topics) == (ErrorCode.NOT_CONTROLLER, [])


def test_the_last_replica_in_sync_ends_the_reign(kit):
    """KIP-841: the reassignment is complete, and the controller wrote a new epoch."""
    kit.submit(Reassign(topic="a", index=0, replicas=[4]))
    (topic,) = ask(kit, data(kit, 0, 1, 2, 3, 4)).topics
    assert topic.partitions[0].error_code == ErrorCode.NEW_LEADER_ELECTED
    assert kit.state("a").replicas == kit.state("a").isr == (4,)


def test_refusals_are_answered_at_the_top(kit):
    error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert refuse(AlterPartitionRequest(), error, None).error_code == ErrorCode.NOT_CONTROLLER


def test_only_brokers_ask():
    assert HANDLER.inter_broker_only
    assert not HANDLER.forward_to_controller
