import pytest

from kafkalite.meta.changes import PartitionChanged, PartitionsAdded
from kafkalite.meta.controller import decide
from kafkalite.meta.events import AdoptTopic, DeleteTopic
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import after, image, refusal, rules, topic_id

NEW = topic_id(77)


class TestAdoptTopic:
    def adopt(self, name="a", **attributes):
        attributes.setdefault("topic_id", topic_id(1))
        attributes.setdefault("leader_epochs", {0: 4})
        return AdoptTopic(name=name, new_topic_id=NEW, broker_id=1, **attributes)

    def test_directories_become_a_topic_with_a_later_reign(self):
        """A directory that Apache Kafka wrote is taken over; records of its epochs stay valid."""
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
        """Rule 64."""
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
