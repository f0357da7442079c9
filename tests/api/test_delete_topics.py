from uuid import UUID

import pytest

from kafkalite.api.delete_topics import HANDLERS, refuse
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    return MetadataKit()


def delete(kit, *wanted, version=6, timeout_ms=5000):
    if version < 6:
        request = DeleteTopicsRequest(topic_names=list(wanted), timeout_ms=timeout_ms)
    else:
        states = [
            DeleteTopicState(name=name, topic_id=topic_id or ZERO_UUID) for name, topic_id in wanted
        ]
        request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
    return kit.ask(HANDLER, request, version).responses


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name(kit, version):
    """Rule 30."""
    kit.create("a")
    answers = delete(kit, "a", "b", version=version)
    codes = {answer.name: answer.error_code for answer in answers}
    assert codes == {"a": 0, "b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not kit.image.topics


def test_topics_are_deleted_by_name_or_id_from_v6(kit):
    """Rule 30, KIP-516."""
    first, second = kit.create("a"), kit.create("b")
    answers = delete(kit, ("a", None), (None, second.topic_id))
    assert {(answer.name, answer.topic_id, answer.error_code) for answer in answers} == {
        ("a", first.topic_id, 0),
        ("b", second.topic_id, 0),
    }


def test_a_deleted_name_can_be_used_again_at_once(kit):
    """USERS 7."""
    before = kit.create("a")
    assert delete(kit, ("a", None))[0].error_code == ErrorCode.NONE
    after = kit.create("a")
    assert after.topic_id != before.topic_id
    (answer,) = delete(kit, (None, before.topic_id))
    assert (answer.name, answer.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_what_names_no_topic_is_refused(kit):
    known = kit.create("a")
    cases = {
        ("b", None): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("bad name", None): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("", None): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (None, UUID(int=99)): ErrorCode.UNKNOWN_TOPIC_ID,
        (None, None): ErrorCode.INVALID_REQUEST,
        ("a", known.topic_id): ErrorCode.INVALID_REQUEST,
    }
    for wanted, code in cases.items():
        (answer,) = delete(kit, wanted)
        assert answer.error_code == code, wanted
        assert answer.error_message
    assert "a" in kit.image.topics


def test_a_topic_named_twice_is_kept(kit):
    """As Kafka 4.3 answers."""
    topic_id = kit.create("a").topic_id
    for wanted in (
        [("a", None), ("a", None)],
        [(None, topic_id), (None, topic_id)],
        [("a", None), (None, topic_id)],
    ):
        (answer,) = delete(kit, *wanted)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "a" in kit.image.topics


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deletion_can_be_switched_off(version, code):
    """Rule 30."""
    kit = MetadataKit(delete_topic_enable="false")
    kit.create("a")
    (answer,) = delete(kit, "a", version=version)
    assert answer.error_code == code


def test_without_time_the_topic_is_deleted_and_answered_as_timed_out(kit):
    kit.create("a")
    (answer,) = delete(kit, ("a", None), timeout_ms=0)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not kit.image.topics


def test_an_error_of_the_whole_request_is_answered_for_each_topic(kit):
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    by_name = DeleteTopicsRequest(topic_names=["a", "b"])
    assert len(refuse(by_name, error, kit.context(5)).responses) == 2
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(name="a", topic_id=ZERO_UUID)])
    assert [each.name for each in refuse(by_id, error, kit.context(6)).responses] == ["a"]
