import pytest

from kafkalite.api.elect_leaders import HANDLERS
from kafkalite.meta.events import ControlledShutdown, UnregisterBroker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.api.cluster_kit import ClusterKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    """Partition 0 is led by its second replica, the first being out of sync; 1 is as it should."""
    made = ClusterKit(3)
    made.assign("a", [2, 1], [1, 3])
    made.submit(ControlledShutdown(broker_id=2, broker_epoch=12))
    return made


def elect(kit, *partitions, everything=False, version=2, timeout_ms=5000, **attributes):
    asked = None if everything else [TopicPartitions(topic="a", partitions=list(partitions))]
    request = ElectLeadersRequest(topic_partitions=asked, timeout_ms=timeout_ms, **attributes)
    response = kit.ask(HANDLER, request, version)
    return response.error_code, {
        (topic.topic, each.partition_id): each.error_code
        for topic in response.replica_election_results
        for each in topic.partition_result
    }


@pytest.mark.parametrize("version", range(3))
def test_each_partition_has_an_answer(kit, version):
    """Rule 181."""
    code, results = elect(kit, 0, 1, 1, 7, version=version)
    assert code == 0
    assert results == {
        ("a", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("a", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("a", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_asked_about_everything_it_leaves_out_what_is_as_it_should_be(kit):
    """Rule 181, as Kafka."""
    _, results = elect(kit, everything=True)
    assert results == {("a", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_an_unclean_election_takes_whoever_lives(kit):
    """KIP-460."""
    kit.submit(UnregisterBroker(broker_id=1))
    assert kit.state("a").leader == -1
    code, results = elect(kit, 0, election_type=1)
    assert (code, results) == (0, {("a", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE})
    kit.register(2, epoch=40)
    assert elect(kit, 0, election_type=1) == (0, {("a", 0): 0})
    assert (kit.state("a").leader, kit.state("a").isr) == (2, (2,))


def test_an_unknown_kind_of_election_is_refused(kit):
    code, results = elect(kit, 0, election_type=5)
    assert (code, results) == (ErrorCode.INVALID_REQUEST, {("a", 0): ErrorCode.INVALID_REQUEST})
    assert elect(kit, everything=True, election_type=5) == (ErrorCode.INVALID_REQUEST, {})


def test_who_does_not_wait_is_told_so(kit):
    _, results = elect(kit, 0, timeout_ms=0)
    assert results[("a", 0)] in (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    )


def test_any_broker_may_be_asked():
    assert HANDLER.forward_to_controller
