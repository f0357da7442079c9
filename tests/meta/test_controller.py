from dataclasses import replace

import pytest

from kafkalite.meta.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    LeaderEpochsRaised,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.controller import PARTITIONS_AT_ONCE_MAX, decide
from kafkalite.meta.events import (
    AdoptTopic,
    AllocateProducerIds,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    RegisterBroker,
    UnregisterBroker,
)
from kafkalite.meta.image import NO_LEADER, PartitionImage
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import ENDPOINTS, after, image, refusal, rules, topic_id

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
            (create("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "keeps to itself"),
            (create(num_partitions=0), ErrorCode.INVALID_PARTITIONS, "num.partitions"),
            (create(num_partitions=-1), ErrorCode.INVALID_PARTITIONS, "at least 1"),
            (create(replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR, "at least 1"),
            (
                create(replication_factor=2),
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "1 are registered",
            ),
            (create(num_partitions=10_001), ErrorCode.INVALID_PARTITIONS, "at once"),
            (create(configs={"nope": "1"}), ErrorCode.INVALID_CONFIG, "nope"),
            (create(configs={"retention.ms": "x"}), ErrorCode.INVALID_CONFIG, "retention.ms"),
            (create(configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG, "No value"),
        ],
    )
    def test_refuses(self, event, code, words):
        """Rules B22, B28, M227."""
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
        """Rule B28, as Kafka 4.3 answers."""
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
        """Rule B30."""
        error = refusal(DeleteTopic(name="a"), image())
        assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_refuses_another_topic_of_the_same_name(self):
        event = DeleteTopic(name="a", topic_id=topic_id(9))
        assert refusal(event, image("a")).code is ErrorCode.UNKNOWN_TOPIC_ID
        assert decide(replace(event, topic_id=topic_id(1)), image("a"), rules())

    def test_can_be_switched_off(self):
        """Rule B30."""
        error = refusal(DeleteTopic(name="a"), image("a"), rules(delete_topic_enable="false"))
        assert error.code is ErrorCode.TOPIC_DELETION_DISABLED
        assert "delete.topic.enable" in error.message


class TestCreatePartitions:
    def test_adds_what_is_missing(self):
        (added,) = decide(CreatePartitions(name="a", count=3), image("a"), rules())
        assert added == PartitionsAdded(name="a", topic_id=topic_id(1), partitions=(SOLE, SOLE))

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
        """Rule B31."""
        event = CreatePartitions(name=name, count=count, assignments=assignments)
        assert refusal(event, image("a", brokers=(1, 2))).code is code


class TestBrokers:
    def test_a_first_registration_is_only_that(self):
        event = RegisterBroker(broker_id=1, endpoints=ENDPOINTS, rack="r")
        (registered,) = decide(event, image(brokers=()), rules())
        assert registered == BrokerRegistered(broker_id=1, endpoints=ENDPOINTS, rack="r")

    def test_a_restart_begins_a_new_reign(self):
        """Rule I180."""
        event = RegisterBroker(broker_id=1, endpoints=ENDPOINTS)
        changes = decide(event, image("a"), rules())
        assert changes[1:] == [LeaderEpochsRaised(broker_id=1)]
        assert after(event, image("a")).topics["a"].partitions[0].leader_epoch == 1

    def test_new_addresses_begin_no_new_reign(self):
        event = RegisterBroker(broker_id=1, endpoints={"PLAINTEXT": ("x", 1)}, restarted=False)
        assert len(decide(event, image("a"), rules())) == 1

    def test_a_stopped_broker_hands_over_and_comes_back(self):
        """Rules I178 and I179."""
        both = TopicCreated(
            name="a", topic_id=topic_id(1), partitions=(PartitionImage((1, 2), (1, 2), 1), SOLE)
        )
        before = image(both, brokers=(1, 2))
        stopped = decide(UnregisterBroker(broker_id=1), before, rules())
        assert stopped[0] == BrokerUnregistered(broker_id=1)
        assert [change.state.leader for change in stopped[1:]] == [2, NO_LEADER]
        gone = before.apply(stopped)
        back = after(RegisterBroker(broker_id=1, endpoints=ENDPOINTS), gone)
        assert [state.leader for state in back.topics["a"].partitions] == [2, 1]

    def test_a_partition_without_a_leader_waits_for_one_that_was_in_sync(self):
        waiting = PartitionImage((1, 2), (2,), NO_LEADER, 3)
        topic = TopicCreated(name="a", topic_id=topic_id(1), partitions=(waiting,))
        event = RegisterBroker(broker_id=1, endpoints=ENDPOINTS)
        assert len(decide(event, image(topic, brokers=()), rules())) == 1

    def test_what_does_not_concern_a_broker_is_left_alone(self):
        before = image("a", brokers=(1, 2))
        assert len(decide(UnregisterBroker(broker_id=2), before, rules())) == 1

    @pytest.mark.parametrize(
        ("own", "default", "leader"),
        [
            ({}, "true", 2),
            ({}, "false", -1),
            ({"unclean.leader.election.enable": "true"}, "false", 2),
        ],
    )
    def test_unclean_elections_follow_the_topics_setting(self, own, default, leader):
        """Rule I178."""
        topic = TopicCreated(
            name="a",
            topic_id=topic_id(1),
            partitions=(PartitionImage((1, 2), (1,), 1),),
            configs=own,
        )
        with_rules = rules(unclean_leader_election_enable=default)
        (_, change) = decide(
            UnregisterBroker(broker_id=1), image(topic, brokers=(1, 2)), with_rules
        )
        assert isinstance(change, PartitionChanged)
        assert change.state.leader == leader

    def test_an_unknown_broker_cannot_stop(self):
        error = refusal(UnregisterBroker(broker_id=9), image())
        assert error.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_producer_ids_come_in_blocks_that_never_overlap():
    """Rule D64."""
    event = AllocateProducerIds(broker_id=1)
    (first,) = decide(event, image(), rules())
    assert first == ProducerIdsAllocated(broker_id=1, next_producer_id=1000)
    assert after(event, after(event, image())).next_producer_id == 2000


class TestAdoptTopic:
    def adopt(self, name="a", **attributes):
        attributes.setdefault("topic_id", topic_id(1))
        attributes.setdefault("leader_epochs", {0: 4})
        return AdoptTopic(name=name, new_topic_id=NEW, broker_id=1, **attributes)

    def test_directories_become_a_topic_with_a_later_reign(self):
        """A directory that Apache Kafka wrote is taken over; records of its reigns stay valid."""
        event = self.adopt(leader_epochs={0: 4, 2: -1}, configs={"cleanup.policy": "compact"})
        (created,) = decide(event, image(), rules())
        assert created.topic_id == topic_id(1)
        assert created.configs == {"cleanup.policy": "compact"}
        assert [state.leader_epoch for state in created.partitions] == [5, 0, 0]
        assert {state.leader for state in created.partitions} == {1}

    def test_directories_without_an_id_get_one(self):
        (created,) = decide(self.adopt(topic_id=None), image(), rules())
        assert created.topic_id == NEW

    def test_a_known_topic_takes_its_directories_back(self):
        assert decide(self.adopt(leader_epochs={0: 0}), image("a"), rules()) == []
        assert decide(self.adopt(leader_epochs={0: 0}, topic_id=None), image("a"), rules()) == []

    def test_a_known_topic_gets_more_partitions_and_later_reigns(self):
        changes = decide(self.adopt(leader_epochs={0: 4, 1: 2}), image("a"), rules())
        added, changed = changes
        assert isinstance(added, PartitionsAdded)
        assert added.partitions[0].leader_epoch == 3
        assert isinstance(changed, PartitionChanged)
        assert (changed.index, changed.state.leader_epoch) == (0, 5)

    def test_producer_ids_found_in_logs_are_not_given_again(self):
        """Rule D64."""
        taken = after(self.adopt(next_producer_id=4321), image())
        assert taken.next_producer_id == 4321
        lower = self.adopt("b", topic_id=topic_id(2), next_producer_id=1)
        assert after(lower, taken).next_producer_id == 4321

    def test_a_deleted_topic_does_not_come_back(self):
        """USERS 7: a crash between the acknowledgement and the removal of the directories."""
        gone = after(DeleteTopic(name="a"), image("a"))
        assert refusal(self.adopt(), gone).code is ErrorCode.UNKNOWN_TOPIC_ID

    def test_directories_of_another_topic_of_the_name_are_refused(self):
        error = refusal(self.adopt(topic_id=topic_id(9)), image("a"))
        assert error.code is ErrorCode.INCONSISTENT_TOPIC_ID

    def test_directories_with_the_id_of_another_topic_are_refused(self):
        error = refusal(self.adopt("b"), image("a"))
        assert error.code is ErrorCode.INCONSISTENT_TOPIC_ID

    @pytest.mark.parametrize("name", ["__cluster_metadata", "bad name"])
    def test_directories_that_are_no_topic_are_left_alone(self, name):
        assert refusal(self.adopt(name), image()).code is ErrorCode.INVALID_TOPIC_EXCEPTION
