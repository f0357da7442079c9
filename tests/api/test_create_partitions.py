import pytest

from kafkalite.api.create_partitions import HANDLERS, refuse
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    made = MetadataKit()
    made.create("a", 2)
    return made


def topic(name, count, assignments=None):
    if assignments is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def grow(kit, *topics, version=3, **options):
    options = {"timeout_ms": 5000, "validate_only": False, **options}
    return kit.ask(
        HANDLER, CreatePartitionsRequest(topics=list(topics), **options), version
    ).results


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added(kit, version):
    """Rule 31."""
    (answer,) = grow(kit, topic("a", 4), version=version)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert len(kit.image.topics["a"].partitions) == 4


def test_replicas_can_be_assigned(kit):
    assert grow(kit, topic("a", 3, [[1]]))[0].error_code == 0
    assert grow(kit, topic("a", 4, [[9]]))[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_one_refused_topic_does_not_touch_the_others(kit):
    """Rule 31."""
    kit.create("b")
    answers = grow(kit, topic("a", 1), topic("c", 5), topic("b", 5))
    assert [answer.error_code for answer in answers] == [
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0,
    ]
    assert "has 2 partition(s)" in answers[0].error_message


def test_a_topic_named_twice_is_refused(kit):
    (answer,) = grow(kit, topic("a", 4), topic("a", 5))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert len(kit.image.topics["a"].partitions) == 2


def test_validate_only_adds_nothing(kit):
    assert grow(kit, topic("a", 4), validate_only=True)[0].error_code == 0
    assert len(kit.image.topics["a"].partitions) == 2


def test_without_time_partitions_are_added_and_answered_as_timed_out(kit):
    (answer,) = grow(kit, topic("a", 4), timeout_ms=0)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert len(kit.image.topics["a"].partitions) == 4


def test_an_error_of_the_whole_request_is_answered_for_each_topic(kit):
    request = CreatePartitionsRequest(topics=[topic("a", 4)])
    response = refuse(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), kit.context(3))
    assert [answer.error_code for answer in response.results] == [-1]
