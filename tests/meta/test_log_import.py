import logging
from functools import partial

import pytest
import trio

from kafkalite.meta.changes import PartitionChanged, PartitionsAdded
from kafkalite.meta.controller import decide
from kafkalite.meta.events import DeleteTopic, ImportTopic
from kafkalite.meta.kraft import KraftMetadata
from kafkalite.meta.log_import import FoundLog, import_logs, stray_logs
from kafkalite.meta.store import MetadataStoreError
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import after, image, refusal, rules, topic_id
from tests.meta.runner_kit import create

NEW = topic_id(77)


class TestImportTopic:
    def imported(self, name="a", **attributes):
        attributes.setdefault("topic_id", topic_id(1))
        attributes.setdefault("leader_epochs", {0: 4})
        return ImportTopic(name=name, new_topic_id=NEW, broker_id=1, **attributes)

    def test_directories_become_a_topic_with_a_later_reign(self):
        """A directory that Apache Kafka wrote is taken over; records of its epochs stay valid."""
        event = self.imported(leader_epochs={0: 4, 2: -1}, configs={"cleanup.policy": "compact"})
        (created,) = decide(event, image(), rules())
        assert created.topic_id == topic_id(1)
        assert created.configs == {"cleanup.policy": "compact"}
        assert [state.leader_epoch for state in created.partitions] == [5, 0, 0]
        assert {state.leader for state in created.partitions} == {1}

    def test_directories_without_an_id_get_one(self):
        (created,) = decide(self.imported(topic_id=None), image(), rules())
        assert created.topic_id == NEW

    def test_a_known_topic_takes_its_directories_back(self):
        assert decide(self.imported(leader_epochs={0: 0}), image("a"), rules()) == []
        assert decide(self.imported(leader_epochs={0: 0}, topic_id=None), image("a"), rules()) == []

    def test_a_known_topic_gets_more_partitions_and_later_reigns(self):
        changes = decide(self.imported(leader_epochs={0: 4, 1: 2}), image("a"), rules())
        added, changed = changes
        assert isinstance(added, PartitionsAdded)
        assert added.partitions[0].leader_epoch == 3
        assert isinstance(changed, PartitionChanged)
        assert (changed.index, changed.state.leader_epoch) == (0, 5)

    def test_producer_ids_found_in_logs_are_not_given_again(self):
        """Rule 64."""
        taken = after(self.imported(next_producer_id=4321), image())
        assert taken.next_producer_id == 4321
        lower = self.imported("b", topic_id=topic_id(2), next_producer_id=1)
        assert after(lower, taken).next_producer_id == 4321

    def test_a_deleted_topic_does_not_come_back(self):
        """USERS 7: a crash between the acknowledgement and the removal of the directories."""
        gone = after(DeleteTopic(name="a"), image("a"))
        assert refusal(self.imported(), gone).code is ErrorCode.UNKNOWN_TOPIC_ID

    def test_directories_of_another_topic_of_the_name_are_refused(self):
        error = refusal(self.imported(topic_id=topic_id(9)), image("a"))
        assert error.code is ErrorCode.INCONSISTENT_TOPIC_ID

    def test_directories_with_the_id_of_another_topic_are_refused(self):
        error = refusal(self.imported("b"), image("a"))
        assert error.code is ErrorCode.INCONSISTENT_TOPIC_ID

    @pytest.mark.parametrize("name", ["__cluster_metadata", "bad name"])
    def test_directories_that_are_no_topic_are_left_alone(self, name):
        assert refusal(self.imported(name), image()).code is ErrorCode.INVALID_TOPIC_EXCEPTION


def found(topic, partition, number=1, **attributes):
    return FoundLog(
        topic_partition=TopicPartition(topic, partition),
        topic_id=None if number is None else topic_id(number),
        **attributes,
    )


class TestImportLogs:
    def imported(self, kit, *logs, kraft=KraftMetadata):
        """Import logs; return those that are stale."""
        return trio.run(
            partial(
                import_logs,
                logs,
                kit.image,
                kit.config,
                kraft,
                new_uuid=kit.new_uuid,
                submit=kit.runner.submit_all,
            )
        )

    def test_directories_of_unknown_topics_become_topics(self, kit, caplog):
        """A data directory written by Apache Kafka is opened."""
        logs = (
            found("a", 1, leader_epoch=3, next_producer_id=42),
            found("a", 0),
            found("__consumer_offsets", 0, 2),
            found("old", 0, None),
        )
        with caplog.at_level(logging.INFO):
            assert self.imported(kit, *logs) == []
        assert len(kit.image.topics["a"].partitions) == 2
        assert kit.image.topics["a"].topic_id == topic_id(1)
        assert kit.image.topics["a"].partitions[1].leader_epoch == 4
        assert kit.image.next_producer_id == 42
        assert kit.runner.log_config("__consumer_offsets").cleanup_policy == {"compact"}
        assert kit.image.topics["old"].topic_id.int > 100
        assert "the logs of a were imported" in caplog.text

    def test_settings_that_kafka_knew_are_taken_over(self, kit):
        kraft = KraftMetadata(
            topic_configs={"a": {"cleanup.policy": "compact"}}, next_producer_id=5000
        )
        self.imported(kit, found("a", 0), kraft=lambda: kraft)
        assert kit.runner.log_config("a").cleanup_policy == {"compact"}
        assert kit.image.next_producer_id == 5000

    def test_known_directories_cost_nothing(self, kit):
        kit.submit(create("a"))
        before = kit.image

        def kraft():
            raise AssertionError("not to be read")

        assert self.imported(kit, found("a", 0, 7), kraft=kraft) == []
        assert kit.image is before

    def test_directories_of_deleted_topics_are_handed_back(self, kit):
        """USERS 7: also after a crash a deleted topic stays deleted."""
        kit.submit(create("a"))
        kit.submit(DeleteTopic(name="a"))
        kit.start()
        assert self.imported(kit, found("a", 0, 7), found("a", 1, 7)) == [("a", 0), ("a", 1)]
        kit.submit(create("a", topic_id=topic_id(8)))

    def test_directory_with_a_foreign_topic_id_is_kept_as_stray(self, kit):
        """As Kafka 4.3 does: nobody asked for it to be deleted."""
        kit.submit(create("a", topic_id=topic_id(8)))
        logs = [found("a", 0, 9), found("a", 1, 8), found("b", 0, 8)]
        assert self.imported(kit, *logs) == []
        assert stray_logs(logs, kit.image) == [("a", 0), ("b", 0)]
        assert kit.image.topics["a"].topic_id == topic_id(8)

    def test_directories_are_not_given_up_because_they_cannot_be_noted(self, kit):
        kit.disk.fail("append", "metadata")
        with pytest.raises(MetadataStoreError, match="directories of a"):
            self.imported(kit, found("a", 0, 9))

    def test_what_is_no_topic_is_left_alone(self, kit, caplog):
        assert self.imported(kit, found("__cluster_metadata", 0)) == []
        assert "__cluster_metadata" not in kit.image.topics
        assert "is no topic" in caplog.text
