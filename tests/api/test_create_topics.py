import pytest
import trio
from trio.testing import MockClock

from kafkalite.api.create_topics import HANDLERS, refuse
from kafkalite.api.metadata_requests import submit_within
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    return MetadataKit()


def topic(name, partitions=1, replication_factor=1, configs=(), assignments=()):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
    )


def create(kit, *topics, version=7, timeout_ms=5000, validate_only=False):
    request = CreateTopicsRequest(
        topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only
    )
    return kit.ask(HANDLER, request, version).topics


def test_a_topic_is_created_and_described(kit):
    """Rule 28; KIP-525: settings from v5, the ID from v7."""
    (answer,) = create(kit, topic("a", 3, configs=[("retention.ms", "5")]))
    assert answer.error_code == ErrorCode.NONE
    assert answer.error_message is None
    assert (answer.num_partitions, answer.replication_factor) == (3, 1)
    assert answer.topic_id == kit.image.topics["a"].topic_id
    entries = {entry.name: entry for entry in answer.configs}
    assert len(entries) == 33
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("5", 1)
    assert (entries["segment.bytes"].value, entries["segment.bytes"].config_source) == (
        "1073741824",
        5,
    )
    assert list(entries) == sorted(entries)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_is_answered(kit, version):
    (answer,) = create(kit, topic("a"), version=version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.num_partitions == (1 if version >= 5 else -1)
    assert (answer.topic_id != ZERO_UUID) == (version >= 7)


def test_minus_one_takes_the_brokers_numbers():
    """What clients send that leave the numbers to the broker (KIP-464)."""
    kit = MetadataKit(num_partitions="4")
    (answer,) = create(kit, topic("a", -1, -1))
    assert (answer.num_partitions, answer.replication_factor) == (4, 1)


def test_replicas_can_be_assigned(kit):
    (answer,) = create(kit, topic("a", -1, -1, assignments=[(0, [1]), (1, [1])]))
    assert answer.num_partitions == 2
    (answer,) = create(kit, topic("b", -1, -1, assignments=[(0, [9])]))
    assert answer.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_one_refused_topic_does_not_touch_the_others(kit):
    answers = create(kit, topic("a"), topic("bad name"), topic("b"))
    assert [answer.error_code for answer in answers] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    refused = answers[1]
    assert "ASCII" in refused.error_message
    assert (refused.num_partitions, refused.replication_factor, refused.configs) == (-1, -1, [])
    assert refused.topic_id == ZERO_UUID
    assert list(kit.image.topics) == ["a", "b"]


def test_a_topic_named_twice_is_refused_once(kit):
    """Rule 28."""
    answers = create(kit, topic("a"), topic("b"), topic("a"))
    assert [(answer.name, answer.error_code) for answer in answers] == [
        ("b", 0),
        ("a", ErrorCode.INVALID_REQUEST),
    ]
    assert list(kit.image.topics) == ["b"]


def test_validate_only_creates_nothing(kit):
    """Rule 29."""
    answers = create(kit, topic("a"), topic("b", 0), validate_only=True)
    assert [answer.error_code for answer in answers] == [0, ErrorCode.INVALID_PARTITIONS]
    assert not kit.image.topics


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_the_topic_is_created_and_answered_as_timed_out(kit, timeout_ms):
    """Rules 28 and 29; librdkafka takes this answer for success."""
    answers = create(kit, topic("a"), topic("b", 0), timeout_ms=timeout_ms)
    assert [answer.error_code for answer in answers] == [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.INVALID_PARTITIONS,
    ]
    assert list(kit.image.topics) == ["a"]


def test_who_waits_too_long_for_others_is_answered_and_nothing_is_created(kit):
    async def hold(task_status):
        async with kit.metadata._committer._changing:
            task_status.started()
            await trio.sleep_forever()

    async def scenario():
        async with trio.open_nursery() as nursery:
            await nursery.start(hold)
            results = await submit_within([object()], kit.context(7), timeout_ms=100)
            nursery.cancel_scope.cancel()
        return results

    clock = MockClock(autojump_threshold=0)
    (result,) = trio.run(scenario, clock=clock)
    assert result.code is ErrorCode.REQUEST_TIMED_OUT
    assert "100 ms" in result.message


def test_a_null_setting_is_refused(kit):
    """Rules 28 and 227."""
    (answer,) = create(kit, topic("a", configs=[("retention.ms", None)]))
    assert answer.error_code == ErrorCode.INVALID_CONFIG


def test_an_error_of_the_whole_request_is_answered_for_each_topic(kit):
    request = CreateTopicsRequest(topics=[topic("a"), topic("b")])
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    response = refuse(request, error, kit.context(7))
    assert [answer.error_code for answer in response.topics] == [-1, -1]


def test_a_full_disk_creates_nothing(kit):
    kit.disk.fail("append", "metadata", times=1)
    (answer,) = create(kit, topic("a"))
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not kit.image.topics


class TestVeryMany:
    """Rule 250."""

    def test_more_partitions_than_one_request_may_create_are_refused_whole(self, kit):
        before = kit.image
        answers = create(kit, *(topic(f"t{i}", 1_000) for i in range(11)))
        assert {answer.error_code for answer in answers} == {ErrorCode.POLICY_VIOLATION}
        assert len(answers) == 11
        assert kit.image is before

    def test_assigned_partitions_and_the_brokers_default_count(self):
        kit = MetadataKit(num_partitions="6000")
        assigned = [(index, [1]) for index in range(5_000)]
        answers = create(kit, topic("a", -1, -1), topic("b", -1, -1, assignments=assigned))
        assert {answer.error_code for answer in answers} == {ErrorCode.POLICY_VIOLATION}

    def test_as_many_as_may_be_are_created(self, kit):
        answers = create(kit, *(topic(f"t{i}", 1_000) for i in range(10)))
        assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
        assert all(answer.num_partitions == 1_000 for answer in answers)

    def test_topics_that_are_alike_are_described_alike(self, kit):
        topics = [topic(f"t{i}", configs=[("retention.ms", str(i % 2))]) for i in range(60)]
        for index, answer in enumerate(create(kit, *topics)):
            entries = {entry.name: entry.value for entry in answer.configs}
            assert entries["retention.ms"] == str(index % 2)
