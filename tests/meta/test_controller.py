from dataclasses import replace

import pytest

from kafkalite.meta.changes import (
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.controller import PARTITIONS_AT_ONCE_MAX, decide
from kafkalite.meta.events import (
    AllocateProducerIds,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from kafkalite.meta.image import PartitionImage
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import after, image, refusal, rules, topic_id

NEW = topic_id(77)
SOLE = PartitionImage((1,), (1,), 1)


def create(name="new", **attributes):
    attributes.setdefault("topic_id", NEW)
    if "assignments" not in attributes:
        attributes.setdefault("num_partitions", 1)
        attributes.setdefault("replication_factor", 1)
    return CreateTopic(name=name, **attributes)


class TestCreateTopic:
    def test_makes_partitions_with_leaders_and_keeps_the_settings(self):
        event = create(num_partitions=2, configs={"retention.ms": "5"})
        (created,) = decide(event, image(), rules())
        assert created == TopicCreated(
            name="new", topic_id=NEW, partitions=(SOLE, SOLE), configs={"retention.ms": "5"}
        )

    def test_spreads_replicas_over_the_brokers(self):
        (created,) = decide(
            create(num_partitions=3, replication_factor=2), image(brokers=(1, 2, 3)), rules()
        )
        assert {state.leader for state in created.partitions} == {1, 2, 3}
        assert all(len(state.replicas) == 2 for state in created.partitions)

    @pytest.mark.parametrize(
        ("event", "code", "words"),
        [
            (create(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty"),
            (create("bad name"), ErrorCode.INVALID_TOPIC_EXCEPTION, "ASCII"),
            (create("a.b"), ErrorCode.TOPIC_ALREADY_EXISTS, "'a.b' already exists"),
            (
                create("a_b"),
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                "collides with existing topic 'a.b'",
            ),
            (create("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "is prohibited"),
            (create(num_partitions=0), ErrorCode.INVALID_PARTITIONS, "num.partitions"),
            (create(num_partitions=-1), ErrorCode.INVALID_PARTITIONS, "at least 1"),
            (create(replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR, "at least 1"),
            (
                create(replication_factor=2),
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "1 are registered",
            ),
            (create(num_partitions=10_001), ErrorCode.POLICY_VIOLATION, "at once"),
            (create(configs={"nope": "1"}), ErrorCode.INVALID_CONFIG, "nope"),
            (create(configs={"retention.ms": "x"}), ErrorCode.INVALID_CONFIG, "retention.ms"),
            (create(configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG, "No value"),
        ],
    )
    def test_refuses(self, event, code, words):
        """Rules 22, 28, 227."""
        error = refusal(event, image("a.b"))
        assert error.code is code
        assert words in error.message

    def test_both_numbers_wrong_is_a_wrong_replication_factor(self):
        """As Kafka 4.3 answers."""
        error = refusal(create(num_partitions=0, replication_factor=0), image())
        assert error.code is ErrorCode.INVALID_REPLICATION_FACTOR

    def test_names_without_dot_and_underscore_never_collide(self):
        assert decide(create("ab"), image("a.b"), rules())

    def test_the_limit_at_once_is_inclusive(self):
        (created,) = decide(create(num_partitions=PARTITIONS_AT_ONCE_MAX), image(), rules())
        assert len(created.partitions) == PARTITIONS_AT_ONCE_MAX

    def test_takes_replicas_assigned_by_hand(self):
        event = create(assignments=[(1, [2, 1]), (0, [1, 3])])
        (created,) = decide(event, image(brokers=(1, 2, 3)), rules())
        assert created.partitions == (
            PartitionImage((1, 3), (1, 3), 1),
            PartitionImage((2, 1), (2, 1), 2),
        )

    @pytest.mark.parametrize(
        ("attributes", "code", "words"),
        [
            ({"num_partitions": 2}, ErrorCode.INVALID_REQUEST, "have to be -1"),
            ({"replication_factor": 1}, ErrorCode.INVALID_REQUEST, "have to be -1"),
            ({"assignments": [(0, [1]), (0, [1])]}, None, "Partition 0 is assigned twice"),
            ({"assignments": [(0, [1]), (2, [1])]}, None, "without gaps"),
            ({"assignments": [(1, [1])]}, None, "without gaps"),
            ({"assignments": [(0, [])]}, None, "no brokers"),
            ({"assignments": [(0, [9])]}, None, "broker 9, which is not registered"),
            ({"assignments": [(0, [1, 1])]}, None, "more than once"),
            ({"assignments": [(0, [1]), (1, [1, 2])]}, None, "2 broker(s)"),
        ],
    )
    def test_refuses_assignments(self, attributes, code, words):
        """Rule 28, as Kafka 4.3 answers."""
        event = create(**{"assignments": [(0, [1])], **attributes})
        error = refusal(event, image(brokers=(1, 2)))
        assert error.code is (code or ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        assert words in error.message


class TestDeleteTopic:
    def test_deletes(self):
        (deleted,) = decide(DeleteTopic(name="a"), image("a"), rules())
        assert deleted == TopicDeleted(name="a", topic_id=topic_id(1))

    def test_the_name_can_be_used_again_at_once_and_the_id_is_remembered(self):
        """USERS 7."""
        gone = after(DeleteTopic(name="a"), image("a"))
        assert gone.retired_topic_ids == (topic_id(1),)
        again = after(create("a"), gone)
        assert again.topics["a"].topic_id == NEW

    def test_refuses_an_unknown_topic(self):
        """Rule 30."""
        error = refusal(DeleteTopic(name="a"), image())
        assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_refuses_another_topic_of_the_same_name(self):
        event = DeleteTopic(name="a", topic_id=topic_id(9))
        assert refusal(event, image("a")).code is ErrorCode.UNKNOWN_TOPIC_ID
        assert decide(replace(event, topic_id=topic_id(1)), image("a"), rules())

    def test_can_be_switched_off(self):
        """Rule 30."""
        error = refusal(DeleteTopic(name="a"), image("a"), rules(delete_topic_enable="false"))
        assert error.code is ErrorCode.TOPIC_DELETION_DISABLED
        assert "delete.topic.enable" in error.message


class TestCreatePartitions:
    def test_adds_what_is_missing(self):
        (added,) = decide(CreatePartitions(name="a", count=3), image("a"), rules())
        assert added == PartitionsAdded(
            name="a", topic_id=topic_id(1), partitions=(SOLE, SOLE), first_index=1
        )

    def test_keeps_the_replication_factor(self):
        before = image(brokers=(1, 2, 3))
        before = after(create(replication_factor=2), before)
        (added,) = decide(CreatePartitions(name="new", count=4), before, rules())
        assert all(len(state.replicas) == 2 for state in added.partitions)

    def test_takes_replicas_assigned_by_hand(self):
        event = CreatePartitions(name="a", count=2, assignments=[[2]])
        (added,) = decide(event, image("a", brokers=(1, 2)), rules())
        assert added.partitions == (PartitionImage((2,), (2,), 2),)

    @pytest.mark.parametrize(
        ("name", "count", "assignments", "code"),
        [
            ("b", 2, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("a", 1, None, ErrorCode.INVALID_PARTITIONS),
            ("a", 0, None, ErrorCode.INVALID_PARTITIONS),
            ("a", -1, None, ErrorCode.INVALID_PARTITIONS),
            ("a", 10_002, None, ErrorCode.INVALID_PARTITIONS),
            ("a", 3, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ("a", 2, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ("a", 2, [[9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ("a", 2, [[1, 2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ],
    )
    def test_refuses(self, name, count, assignments, code):
        """Rule 31."""
        event = CreatePartitions(name=name, count=count, assignments=assignments)
        assert refusal(event, image("a", brokers=(1, 2))).code is code


def test_producer_ids_come_in_blocks_that_never_overlap():
    """Rule 64."""
    event = AllocateProducerIds(broker_id=1)
    (first,) = decide(event, image(), rules())
    assert first == ProducerIdsAllocated(broker_id=1, next_producer_id=1000)
    assert after(event, after(event, image())).next_producer_id == 2000
