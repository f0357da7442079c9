"""Heartbeats of streams groups: topologies, and topics that are missing, made or deleted."""

import pytest

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.meta.changes import PartitionChanged
from kafkalite.meta.image import PartitionImage
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.streams_group_heartbeat import (
    Status,
)
from kafkalite.wire.stored.streams_group import StreamsGroupTopologyKey
from tests.group.streams.harness import (
    StreamsHarness,
    Thread,
    joining,
    task_lists,
)
from tests.group.streams.topologies import COUNTING, subtopology
from tests.group.streams.topology_kit import SIMPLE, simple, statuses

READY = {"in1": 3, "st-rep": 3, "st-store-changelog": 3}


class TestTopology:
    """Rule 466."""

    # testStreamsGroupMemberJoiningWithStaleTopology
    def test_an_older_topology_is_told_to_be_stale_until_the_member_begins_again(self):
        harness = StreamsHarness({"in1": 2})
        a = Thread("a", topology=SIMPLE, topology_epoch=1)
        b = Thread("b", topology=SIMPLE)
        harness.join(a)
        response = harness.join(b)
        assert response.status[0] == Status(
            status_code=0,
            status_detail="The member's topology epoch 0 is behind the group's topology epoch 1.",
        )
        assert 0 in statuses(harness.beat(b))
        b.topology_epoch = 1
        assert 0 not in statuses(harness.join(b))

    @pytest.mark.parametrize(("epoch", "topology"), [(0, COUNTING), (1, SIMPLE), (1, COUNTING)])
    def test_another_topology_is_refused(self, epoch, topology):

        harness = StreamsHarness({"in1": 2})
        harness.join(Thread("a", topology=SIMPLE))
        b = Thread("b", topology=topology, topology_epoch=epoch)
        refusal = harness.refusal(b, **joining(b))
        assert refusal.code is ErrorCode.INVALID_REQUEST
        assert refusal.message == "Topology updates are not supported yet."

    def test_an_empty_group_keeps_its_topology_until_it_is_deleted(self):

        harness = StreamsHarness({"in1": 2})
        a = Thread("a", topology=SIMPLE)
        harness.join(a)
        harness.leave(a)
        b = Thread("b", topology=COUNTING)
        assert harness.refusal(b, **joining(b)).code is ErrorCode.INVALID_REQUEST
        harness.answer(harness.delete_group())
        assert harness.join(b).member_epoch == 2

    def test_a_group_whose_topology_is_lost_refuses_heartbeats(self):
        harness, a = simple("a")
        harness.join(a)
        for shard in (harness.shard, harness.replica):
            shard.replay(StoredRecord(StreamsGroupTopologyKey(group_id="app"), None))
        assert harness.refusal(a).code is ErrorCode.UNKNOWN_SERVER_ERROR


class TestTopics:
    """Rules 467, 469 and 470."""

    # testStreamsGroupMemberJoiningWithMissingSourceTopic
    def test_missing_source_topics_are_told_until_they_are_there(self):
        harness = StreamsHarness()
        a = Thread("a", topology=SIMPLE)
        response = harness.join(a)
        assert response.status == [
            Status(status_code=1, status_detail="Source topics in1 are missing.")
        ]
        assert (response.active_tasks, harness.group.state_name) == ([], "NotReady")
        harness.create("in1", 2)
        assert harness.beat(a).status == []
        assert (a.active, harness.group.state_name) == ("0_0 0_1", "Stable")

    # testStreamsGroupMemberJoiningWithMissingInternalTopic
    def test_missing_internal_topics_are_asked_for_and_the_epoch_grows_when_they_are_there(self):
        harness = StreamsHarness({"in1": 3})
        a = Thread("a")
        answer = harness.answer(harness.send_heartbeat(a, **joining(a)))
        assert statuses(answer.response) == [3]
        assert {name: topic.partition_count for name, topic in answer.missing_topics.items()} == {
            "st-rep": 3,
            "st-store-changelog": 3,
        }
        assert harness.group.validated_topology_epoch == -1
        a.epoch = answer.response.member_epoch
        harness.create("st-rep", 3)
        assert statuses(harness.beat(a)) == [3]
        harness.create("st-store-changelog", 3)
        assert statuses(harness.beat(a)) == []
        assert harness.group.validated_topology_epoch == 0
        assert a.active == "0_0 0_1 0_2 1_0 1_1 1_2"

    # testStreamsGroupMemberJoiningWithIncorrectlyPartitionedTopic
    def test_incorrectly_partitioned_topics_are_told(self):
        harness = StreamsHarness({**READY, "st-rep": 5})
        a = Thread("a")
        assert statuses(harness.join(a)) == [2]
        assert a.active == ""

    def test_a_topology_with_a_loop_is_an_error_and_makes_no_group(self):
        harness = StreamsHarness()
        a = Thread("a", topology=(subtopology("0", repartition="r", sinks="r"),))
        refusal = harness.refusal(a, **joining(a))
        assert refusal.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
        assert harness.group is None

    # testStreamsUpdatingPartitionMetadataTriggersNewTargetAssignment
    def test_more_partitions_are_more_tasks(self):
        harness, a = simple("a", count=2)
        harness.join(a)
        harness.grow("in1", 4)
        harness.beat(a)
        assert (a.active, a.epoch) == ("0_0 0_1 0_2 0_3", 3)

    def test_topics_that_the_group_does_not_need_change_nothing(self):
        harness, a = simple("a")
        harness.join(a)
        written = len(harness.log)
        harness.create("other", 9)
        harness.beat(a)
        assert harness.kinds(written) == []

    def test_topics_that_moved_within_their_racks_change_nothing(self):
        harness, a = simple("a", count=1)
        harness.join(a)
        harness.beat(a)
        written = len(harness.log)
        topic = harness.metadata.image.topics["in1"]
        moved = PartitionImage(replicas=(2,), isr=(2,), leader=2)
        harness.change(PartitionChanged(name="in1", topic_id=topic.topic_id, index=0, state=moved))
        assert harness.group.is_topics_check_due
        harness.beat(a)
        assert not harness.group.is_topics_check_due
        assert harness.kinds(written) == []

    def test_a_deleted_source_topic_makes_the_group_unready_and_takes_all_tasks(self):
        harness, a = simple("a")
        harness.join(a)
        harness.delete("in1")
        assert statuses(harness.beat(a)) == [1]
        assert harness.group.state_name == "NotReady"
        harness.beat(a, owned=True)
        assert a.active == ""

    # testStreamsOwnedTasksValidation
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"active_tasks": task_lists("7_0"), "standby_tasks": []},
                "Subtopology 7 does not exist in the topology.",
            ),
            (
                {"active_tasks": [], "standby_tasks": task_lists("0_4")},
                "Task 4 for subtopology 0 is invalid. Number of tasks for this subtopology: 4",
            ),
            (
                {"active_tasks": task_lists("0_-1"), "standby_tasks": []},
                "Task -1 for subtopology 0 is invalid. Number of tasks for this subtopology: 4",
            ),
        ],
    )
    def test_tasks_that_there_are_not_are_refused(self, fields, message):
        harness, a = simple("a")
        harness.join(a)
        refusal = harness.refusal(a, **fields, warmup_tasks=[])
        assert (refusal.code, refusal.message) == (ErrorCode.INVALID_REQUEST, message)

    def test_topics_are_looked_at_again_after_a_heartbeat_that_was_refused(self):
        harness, a = simple("a", count=2)
        harness.join(a)
        harness.grow("in1", 3)
        wrong = {"active_tasks": task_lists("7_0"), "standby_tasks": [], "warmup_tasks": []}
        assert harness.refusal(a, **wrong).code is ErrorCode.INVALID_REQUEST
        harness.beat(a)
        assert (a.active, a.epoch) == ("0_0 0_1 0_2", 3)

    # testStreamsPartitionMetadataRefreshedAgainAfterWriteFailure
    def test_topics_are_looked_at_again_when_the_log_refused_what_came_of_it(self):
        harness, a = simple("a", count=2)
        harness.join(a)
        harness.grow("in1", 3)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        assert harness.refusal(a).code is ErrorCode.NOT_ENOUGH_REPLICAS
        harness.refuse_appends_with = None
        harness.beat(a)
        assert (a.active, a.epoch) == ("0_0 0_1 0_2", 3)

    def test_a_group_whose_first_records_were_refused_begins_again(self):
        harness, a = simple("a")
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        assert harness.refusal(a, **joining(a)).code is ErrorCode.NOT_ENOUGH_REPLICAS
        harness.refuse_appends_with = None
        harness.advance(60_000)
        assert harness.group is None
        assert harness.join(a).member_epoch == 2
