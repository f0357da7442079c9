"""Heartbeats of Streams threads: rules 463-471, 473-478, 484, 488 and 489.

After Kafka's GroupMetadataManagerTest, where the names of its cases are in the comments.
"""

import pytest

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.streams.member import MemberState
from kafkalite.meta.changes import PartitionChanged
from kafkalite.meta.image import PartitionImage
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    Status,
    TopicPartition,
)
from kafkalite.wire.stored.consumer_group import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from kafkalite.wire.stored.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from kafkalite.wire.stored.share_group import ShareGroupMetadataKey, ShareGroupMetadataValue
from kafkalite.wire.stored.streams_group import StreamsGroupTopologyKey
from tests.group.streams.harness import (
    StreamsHarness,
    Thread,
    joining,
    task_lists,
    words,
)
from tests.group.streams.topologies import COUNTING, subtopology

READY = {"in1": 3, "st-rep": 3, "st-store-changelog": 3}
SIMPLE = (subtopology("0", "in1"),)
STATEFUL = (subtopology("0", "in1", changelogs="log"),)


def statuses(response):
    return [status.status_code for status in response.status]


def simple(*names, count=4, **config):
    """A group over one topic, and threads that have not joined."""
    config = {f"group.streams.{key.replace('_', '.')}": str(v) for key, v in config.items()}
    harness = StreamsHarness({"in1": count}, config=config)
    return harness, *(Thread(name, topology=SIMPLE) for name in names)


class TestGroup:
    """Rule 463."""

    def test_the_first_member_makes_the_group(self):
        harness, a = simple("a")
        response = harness.join(a)
        assert (response.member_id, response.member_epoch) == ("a", 2)
        assert response.heartbeat_interval_ms == 5_000
        assert a.active == "0_0 0_1 0_2 0_3"
        assert harness.group.group_epoch == 2
        assert harness.described().group_state == "Stable"

    def test_others_than_who_joins_need_a_group(self):
        harness, a = simple("a")
        a.epoch = 5
        refusal = harness.refusal(a)
        assert refusal.code is ErrorCode.GROUP_ID_NOT_FOUND
        assert refusal.message == "Streams group app not found."

    # testStreamsGroupHeartbeatWithEmptyClassicGroup
    def test_an_empty_classic_group_becomes_one_and_its_offsets_stay(self):
        harness, a = simple("a")
        key = GroupMetadataKey(group="app")
        for shard in (harness.shard, harness.replica):
            shard.replay(StoredRecord(key, GroupMetadataValue(protocol_type="consumer")))
        assert harness.shard.groups["app"].state_name == "Empty"
        harness.answer(harness.commit({("in1", 0): 7}))
        harness.join(a)
        assert harness.kinds(1)[:2] == ["-GroupMetadata", "MemberMetadata"]
        assert harness.fetch(("in1", 0)) == {("in1", 0): 7}
        assert a.active

    # testStreamsGroupHeartbeatWithNonEmptyClassicGroup
    def test_groups_of_other_kinds_are_not_found(self):
        harness, a = simple("a")
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader="m",
            members=[MemberMetadata(member_id="m", client_id="c", session_timeout=9)],
        )
        for shard in (harness.shard, harness.replica):
            shard.replay(StoredRecord(GroupMetadataKey(group="app"), value))
        for epoch in (0, 1):
            a.epoch = epoch
            refusal = harness.refusal(a)
            assert refusal.code is ErrorCode.GROUP_ID_NOT_FOUND
            assert refusal.message == "Group app is not a streams group."

    def test_a_full_group_takes_nobody_not_even_who_begins_again(self):
        harness = StreamsHarness({"in1": 2}, group_max_size=1)
        a, b = (Thread(name, topology=SIMPLE) for name in "ab")
        harness.join(a)
        harness.beat(a)

        for thread in (b, a):
            thread.epoch = 0
            refusal = harness.refusal(thread, **joining(thread))
            assert refusal.code is ErrorCode.GROUP_MAX_SIZE_REACHED
            assert "maximum capacity of 1 members" in refusal.message

    @pytest.mark.parametrize("epoch", [0, 1, -1])
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            (ConsumerGroupMetadataKey(group_id="app"), ConsumerGroupMetadataValue(epoch=3)),
            (ShareGroupMetadataKey(group_id="app"), ShareGroupMetadataValue(epoch=3)),
        ],
        ids=["consumer", "share"],
    )
    def test_empty_groups_of_the_other_new_kinds_are_not_found_either(self, key, value, epoch):
        harness, a = simple("a")
        for shard in (harness.shard, harness.replica):
            shard.replay(StoredRecord(key, value))
        a.epoch = epoch
        assert harness.refusal(a, **joining(a)).code is ErrorCode.GROUP_ID_NOT_FOUND
        assert harness.kinds() == []


NO_SUCH_TASK = {"active_tasks": task_lists("7_0"), "standby_tasks": [], "warmup_tasks": []}


class TestOrder:
    """Of several faults the first in the order of streamsGroupHeartbeat is told."""

    def test_a_full_group_comes_before_another_topology(self):
        harness = StreamsHarness({"in1": 2}, group_max_size=1)
        a, b = Thread("a", topology=SIMPLE), Thread("b", topology=STATEFUL)
        harness.join(a)
        assert harness.refusal(b, **joining(b)).code is ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_a_group_that_is_not_there_comes_before_the_member(self):
        harness, a = simple("a")
        a.epoch = 3
        refusal = harness.refusal(a, **NO_SUCH_TASK)
        assert refusal.code is ErrorCode.GROUP_ID_NOT_FOUND

    def test_who_is_no_member_comes_before_the_tasks(self):
        harness, a, b = simple("a", "b")
        harness.join(a)
        b.epoch = 99
        assert harness.refusal(b, **NO_SUCH_TASK).code is ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("epoch", [1, 99])
    def test_the_epoch_comes_before_the_tasks(self, epoch):
        harness, a = simple("a")
        harness.join(a)
        harness.beat(a, rack_id="r")
        a.epoch = epoch
        assert harness.refusal(a, **NO_SUCH_TASK).code is ErrorCode.FENCED_MEMBER_EPOCH

    def test_another_topology_comes_before_topics_that_lack(self):
        harness, a, b = simple("a", "b")
        harness.join(a)
        harness.delete("in1")
        b.topology = (subtopology("0", "other"),)
        refusal = harness.refusal(b, **joining(b))
        assert (refusal.code, refusal.message) == (
            ErrorCode.INVALID_REQUEST,
            "Topology updates are not supported yet.",
        )

    def test_topics_that_lack_come_before_the_tasks(self):
        """Without a validated topology it is not known which tasks there are."""
        harness, a = simple("a")
        harness.join(a)
        harness.delete("in1")
        assert statuses(harness.beat(a, **NO_SUCH_TASK)) == [1]


class TestMember:
    """Rule 464: testStreamsGroupMemberEpochValidation, testStreamsGroupMemberCanRejoin..."""

    def test_who_does_not_join_has_to_be_a_member(self):
        harness, a, b = simple("a", "b")
        harness.join(a)
        b.epoch = 2
        refusal = harness.refusal(b)
        assert refusal.code is ErrorCode.UNKNOWN_MEMBER_ID
        assert refusal.message == "Member b is not a member of group app."

    def test_a_newer_epoch_is_fenced(self):
        harness, a = simple("a")
        harness.join(a)
        a.epoch = 3
        refusal = harness.refusal(a)
        assert refusal.code is ErrorCode.FENCED_MEMBER_EPOCH
        assert refusal.message == (
            "The streams group member has a greater member epoch (3) than the one known by the "
            "group coordinator (2). The member must abandon all its partitions and rejoin."
        )

    def test_the_previous_epoch_is_accepted_from_who_owns_nothing_else(self):
        """Its answer may have been lost."""
        harness, a, b = simple("a", "b")
        harness.join(a)
        harness.join(b)
        harness.beat(a)
        harness.beat(a, active_tasks=task_lists(a.active), standby_tasks=[], warmup_tasks=[])
        assert a.epoch == 3
        a.epoch = 2
        owned = {"active_tasks": task_lists(a.active), "standby_tasks": [], "warmup_tasks": []}
        assert harness.beat(a, **owned).member_epoch == 3
        a.epoch = 2
        nothing = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        assert harness.beat(a, **nothing).member_epoch == 3

    @pytest.mark.parametrize(
        "owned",
        [
            {},
            {"active_tasks": task_lists("0_0 0_1 0_2 0_3"), "standby_tasks": []},
            {"active_tasks": [], "standby_tasks": task_lists("0_0")},
        ],
    )
    def test_the_previous_epoch_is_fenced_otherwise(self, owned):
        harness, a, b = simple("a", "b")
        harness.join(a)
        harness.join(b)
        harness.settle(a, b)
        a.epoch = 2
        owned = {**owned, "warmup_tasks": []} if owned else {}
        refusal = harness.refusal(a, **owned)
        assert refusal.code is ErrorCode.FENCED_MEMBER_EPOCH
        assert "smaller member epoch (2)" in refusal.message

    @pytest.mark.parametrize("heartbeats", [0, 1, 2])
    def test_who_begins_again_does_so_in_every_state(self, heartbeats):
        harness, a, b = simple("a", "b")
        harness.join(a)
        harness.join(b)
        for _ in range(heartbeats):
            harness.beat(a)
            harness.beat(b)
        response = harness.join(a)
        assert response.active_tasks is not None
        harness.settle(a, b)
        assert len(a.active.split()) == len(b.active.split()) == 2


class TestUpdate:
    """Rule 465."""

    @pytest.mark.parametrize(
        "change",
        [
            {"rack_id": "r"},
            {"process_id": "another"},
            {"rebalance_timeout_ms": 1},
            {"user_endpoint": Endpoint(host="h", port=1)},
            {"client_tags": [KeyValue(key="k", value="v")]},
        ],
    )
    def test_whatever_a_member_says_anew_is_stored_and_the_epoch_grows(self, change):
        harness, a = simple("a")
        harness.join(a)
        written = len(harness.log)
        harness.beat(a, **change)
        assert harness.kinds(written)[:2] == ["MemberMetadata", "Metadata"]
        assert a.epoch == 3
        written = len(harness.log)
        harness.beat(a, **change)
        harness.beat(a)
        assert harness.kinds(written) == []

    def test_another_client_id_counts_too(self):
        harness, a = simple("a")
        harness.join(a)
        a.client_id = "other"
        harness.beat(a)
        assert a.epoch == 3
        assert harness.group.members["a"].client_id == "other"

    def test_a_heartbeat_that_says_nothing_new_writes_nothing(self):
        harness, a = simple("a")
        harness.join(a)
        written = len(harness.log)
        response = harness.beat(a)
        assert harness.kinds(written) == []
        assert (response.member_epoch, response.active_tasks, response.status) == (2, None, [])


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


class TestGroupEpoch:
    """Rule 471."""

    # testStreamsGroupEpochIncreaseWithAssignmentConfigChanges
    def test_another_number_of_standby_replicas_makes_a_new_target(self):
        harness = StreamsHarness({"in1": 2, "log": 2})
        a, b = (Thread(name, topology=STATEFUL) for name in "ab")
        harness.join(a)
        harness.join(b)
        harness.settle(a, b)
        assert (a.standby, b.standby) == ("", "")
        harness.configure(streams_num_standby_replicas=1)
        harness.settle(a, b)
        assert {a.standby, b.standby} == {"0_0", "0_1"}
        assert harness.group.assignment_configs == {"num.standby.replicas": "1"}

    def test_all_reasons_of_one_heartbeat_count_once(self):
        harness, a = simple("a", count=2)
        harness.join(a)
        harness.grow("in1", 3)
        harness.beat(a, rack_id="r")
        assert harness.group.group_epoch == 3


class TestInitialDelay:
    """Rule 473."""

    def delayed(self, *names, delay=3_000):
        harness, *threads = simple(*names, initial_rebalance_delay_ms=delay)
        return harness, *threads

    def test_nobody_has_tasks_until_the_delay_is_over(self):
        harness, a, b = self.delayed("a", "b")
        response = harness.join(a)
        assert response.status == [
            Status(
                status_code=5,
                status_detail="Assignment delayed due to the configured initial rebalance delay.",
            )
        ]
        assert (response.member_epoch, response.active_tasks) == (1, [])
        harness.advance(1_000)
        harness.beat(a)
        assert statuses(harness.join(b)) == [5]
        harness.advance(1_999)
        assert statuses(harness.beat(a)) == [5]
        harness.advance(1)
        assert harness.kinds(len(harness.log) - 1) == [
            "TargetAssignmentMember",
            "TargetAssignmentMember",
            "TargetAssignmentMetadata",
        ]
        harness.settle(a, b)
        assert len(a.active.split()) == len(b.active.split()) == 2

    # testStreamsInitialRebalanceDelay: a lone member's topology is configured by its second
    # heartbeat only, as the group is made by replaying the first.
    def test_where_the_topology_is_not_configured_the_next_heartbeat_computes(self):
        harness, a = self.delayed("a")
        harness.join(a)
        written = len(harness.log)
        harness.advance(3_000)
        assert harness.kinds(written) == []
        harness.beat(a)
        assert a.active == "0_0 0_1 0_2 0_3"

    def test_later_joins_are_not_delayed(self):
        harness, a, b = self.delayed("a", "b")
        harness.join(a)
        harness.advance(3_000)
        harness.beat(a)
        assert statuses(harness.join(b)) == []

    # testStreamsRebalanceDelayWhenJoiningEmptyGroupWithNonZeroEpoch
    def test_a_group_that_became_empty_waits_again(self):
        harness, a, b = self.delayed("a", "b")
        harness.join(a)
        harness.advance(3_000)
        harness.beat(a)
        harness.leave(a)
        assert statuses(harness.join(b)) == [5]
        harness.beat(b)
        harness.advance(3_000)
        harness.beat(b)
        assert b.active == "0_0 0_1 0_2 0_3"

    # testStreamsInitialRebalanceDelayEmptyDuringDelayAssignsAfterTimer
    def test_a_group_that_empties_meanwhile_is_left_alone(self):
        harness, a, b = self.delayed("a", "b")
        harness.join(a)
        harness.beat(a)
        harness.leave(a)
        written = len(harness.log)
        harness.advance(3_000)
        assert harness.kinds(written) == []
        assert statuses(harness.join(b)) == [5]

    # testStreamsGroupDeleteCancelsInitialRebalanceTimer
    def test_a_deleted_group_has_no_timers(self):
        harness, a = self.delayed("a")
        harness.join(a)
        harness.leave(a)
        harness.answer(harness.delete_group())
        assert harness.shard.timers.next_deadline_ms() is not None
        harness.advance(60_000)
        assert harness.group is None

    def test_a_delay_that_is_running_is_lost_with_the_coordinator(self):
        harness, a = self.delayed("a")
        harness.join(a)
        after = harness.restarted()
        after.beat(a)
        assert a.active == "0_0 0_1 0_2 0_3"

    def test_a_target_of_the_delay_that_the_log_refused_is_computed_by_the_next_heartbeat(self):
        harness, a = self.delayed("a")
        harness.join(a)
        harness.beat(a)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.advance(3_000)
        harness.refuse_appends_with = None
        harness.beat(a)
        assert a.active == "0_0 0_1 0_2 0_3"


class TestAssignmentInterval:
    """Rule 474."""

    def test_within_the_interval_the_old_target_counts(self):
        harness, a, b = simple("a", "b", assignment_interval_ms=1_000)
        harness.join(a)
        response = harness.join(b)
        assert response.status == [
            Status(
                status_code=5,
                status_detail="Assignment delayed due to the configured assignment interval.",
            )
        ]
        assert (response.member_epoch, response.active_tasks) == (2, [])
        assert harness.group.state_name == "Assigning"
        harness.advance(999)
        assert statuses(harness.beat(b)) == [5]
        harness.advance(1)
        assert statuses(harness.beat(b)) == []
        assert harness.group.assignment_epoch == 3

    def test_a_target_is_told_to_everybody_who_has_another(self):
        harness, a, b = simple("a", "b")
        harness.join(a)
        harness.join(b)
        harness.settle(a, b)
        assert sorted((a.active + " " + b.active).split()) == ["0_0", "0_1", "0_2", "0_3"]


class TestReconciliation:
    """Rules 475, 476 and 484."""

    def test_tasks_go_from_one_member_to_another_step_by_step(self):
        harness, a, b = simple("a", "b", count=2)
        harness.join(a)
        response = harness.join(b)
        assert (b.epoch, words(response.active_tasks)) == (3, "")
        assert harness.group.members["b"].state is MemberState.UNRELEASED_TASKS
        response = harness.beat(a)
        assert (a.epoch, len(a.active.split())) == (2, 1)
        assert response.standby_tasks == response.warmup_tasks == []
        assert harness.group.members["a"].state is MemberState.UNREVOKED_TASKS
        assert harness.beat(b).active_tasks is None
        assert harness.beat(a).active_tasks is None
        assert harness.group.state_name == "Reconciling"
        response = harness.beat(a, owned=True)
        assert (response.member_epoch, response.active_tasks) == (3, None)
        assert len(words(harness.beat(b).active_tasks).split()) == 1
        assert harness.group.state_name == "Stable"

    def test_who_does_not_give_up_in_time_is_removed(self):
        harness, a, b = simple("a", "b", count=2)
        harness.join(a)
        harness.join(b)
        harness.beat(a)
        for _ in range(8):
            harness.advance(1_000)
            harness.beat(a)
            harness.beat(b)
        harness.advance(999)
        assert "a" in harness.group.members
        harness.advance(1)
        assert "a" not in harness.group.members
        harness.beat(b)
        assert b.active == "0_0 0_1"

    def test_who_gave_up_in_time_stays(self):
        harness, a, b = simple("a", "b", count=2)
        harness.join(a)
        harness.join(b)
        harness.beat(a)
        harness.beat(a, owned=True)
        harness.advance(9_000)
        assert "a" in harness.group.members

    def test_a_deadline_of_an_older_epoch_does_not_count(self):
        """The member was told twice to give up tasks, and has its whole time for the second."""
        harness, a, b, c = simple("a", "b", "c", count=3)
        harness.join(a)
        harness.join(b)
        harness.beat(a)
        harness.advance(5_000)
        harness.join(c)
        harness.beat(a, owned=True)
        assert harness.group.members["a"].state is MemberState.UNREVOKED_TASKS
        harness.advance(8_999)
        assert "a" in harness.group.members
        harness.advance(1)
        assert "a" not in harness.group.members

    def test_a_session_ends_after_its_timeout_and_only_heartbeats_prolong_it(self):
        harness, a = simple("a")
        harness.join(a)
        harness.advance(44_999)
        harness.beat(a)
        harness.advance(44_999)
        a.epoch = 9
        harness.refusal(a)
        assert "a" in harness.group.members
        harness.advance(1)
        assert harness.group.is_empty
        assert harness.kinds(len(harness.log) - 1) == [
            "-CurrentMemberAssignment",
            "-TargetAssignmentMember",
            "-MemberMetadata",
            "Metadata",
        ]

    def test_the_groups_own_session_timeout_counts(self):
        harness, a = simple("a")
        harness.configure(streams_session_timeout_ms=50_000)
        harness.join(a)
        harness.advance(49_999)
        assert "a" in harness.group.members
        harness.advance(1)
        assert harness.group.is_empty

    def test_a_member_whose_fencing_the_log_refused_is_fenced_again(self):
        harness, a = simple("a")
        harness.join(a)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.advance(45_000)
        assert "a" in harness.group.members
        harness.refuse_appends_with = None
        harness.advance(500)
        assert harness.group.is_empty


class TestAnswer:
    """Rules 476-478 and 488."""

    def test_the_groups_own_heartbeat_interval_is_answered(self):
        harness, a = simple("a")
        harness.configure(streams_heartbeat_interval_ms=7_000)
        assert harness.join(a).heartbeat_interval_ms == 7_000

    def test_statuses_come_in_their_order(self):
        harness = StreamsHarness(config={"group.streams.initial.rebalance.delay.ms": "3000"})
        a = Thread("a", topology=SIMPLE, topology_epoch=1)
        b = Thread("b", topology=SIMPLE)
        harness.join(a)
        assert statuses(harness.join(b, shutdown_application=True)) == [0, 5, 1, 4]

    # testStreamsGroupMemberRequestingShutdownApplication
    def test_the_first_who_wants_the_application_to_end_is_told_to_all(self):
        harness, a, b = simple("a", "b")
        harness.join(a)
        harness.join(b)
        told = Status(
            status_code=4,
            status_detail=(
                "Streams group member a encountered a fatal error and requested a shutdown for "
                "the entire application."
            ),
        )
        assert harness.beat(a, shutdown_application=True).status == [told]
        assert harness.beat(b, shutdown_application=True).status == [told]

    # testStreamsGroupMemberRequestingShutdownApplicationUponLeaving
    def test_it_may_be_wanted_upon_leaving_and_is_forgotten_with_the_last_member(self):
        harness, a, b = simple("a", "b")
        harness.join(a)
        harness.join(b)
        assert harness.leave(a, shutdown_application=True).status == []
        assert "Streams group member a " in harness.beat(b).status[-1].status_detail
        harness.leave(b)
        assert harness.join(a).status == []

    def test_who_is_no_member_may_want_it_upon_leaving_as_with_kafka(self):
        """It is refused, and noted before that."""
        harness, a, b = simple("a", "b")
        harness.join(a)
        b.epoch = -1
        assert harness.refusal(b, shutdown_application=True).code is ErrorCode.UNKNOWN_MEMBER_ID
        assert statuses(harness.beat(a)) == [4]

    def test_endpoints_are_told_to_who_knows_another_epoch(self):
        harness = StreamsHarness({"in1": 2, "st-rep": 2, "st-store-changelog": 2})
        a = Thread("a", endpoint=("ha", 1))
        b = Thread("b")
        response = harness.join(a)
        (told,) = response.partitions_by_user_endpoint
        assert (told.user_endpoint, told.standby_partitions) == (Endpoint(host="ha", port=1), [])
        assert told.active_partitions == [
            TopicPartition(topic="in1", partitions=[0, 1]),
            TopicPartition(topic="st-rep", partitions=[0, 1]),
        ]
        # The group is made with this heartbeat, so that its soft state is not that of the next.
        assert response.endpoint_information_epoch == 0
        assert harness.beat(a).partitions_by_user_endpoint is None
        harness.join(b)
        response = harness.beat(a)
        assert response.endpoint_information_epoch == 1
        assert len(response.partitions_by_user_endpoint) == 1
        assert harness.beat(a).partitions_by_user_endpoint is None
        assert harness.beat(b).endpoint_information_epoch == 1

    def test_an_epoch_that_is_higher_than_ours_is_another(self):
        """After a failover the count begins anew."""
        harness, a = simple("a")
        a.endpoint = ("h", 1)
        harness.join(a)
        a.endpoint_epoch = 7
        assert harness.beat(a).partitions_by_user_endpoint is not None

    def test_of_a_topic_with_fewer_partitions_than_tasks_the_first_are_told(self):
        harness = StreamsHarness({"in1": 1, "in2": 3})
        a = Thread("a", topology=(subtopology("0", "in1 in2"),), endpoint=("h", 1))
        (told,) = harness.join(a).partitions_by_user_endpoint
        assert told.active_partitions == [
            TopicPartition(topic="in1", partitions=[0]),
            TopicPartition(topic="in2", partitions=[0, 1, 2]),
        ]

    def test_standby_tasks_are_told_apart(self):
        harness = StreamsHarness({"in1": 1, "log": 1})
        harness.configure(streams_num_standby_replicas=1)
        a, b = (Thread(n, topology=STATEFUL, endpoint=(n, 1)) for n in "ab")
        harness.join(a)
        harness.join(b)
        harness.settle(a, b)
        a.endpoint_epoch = -1
        told = {t.user_endpoint.host: t for t in harness.beat(a).partitions_by_user_endpoint}
        assert told["a"].active_partitions == [TopicPartition(topic="in1", partitions=[0])]
        assert told["b"].standby_partitions == [TopicPartition(topic="in1", partitions=[0])]

    def test_an_endpoint_without_a_configured_topology_has_no_partitions(self):
        """Where Kafka 4.3.1 answers UNKNOWN_SERVER_ERROR."""
        harness = StreamsHarness()
        a = Thread("a", topology=SIMPLE, endpoint=("h", 1))
        response = harness.join(a)
        assert statuses(response) == [1]
        (told,) = response.partitions_by_user_endpoint
        assert told.active_partitions == told.standby_partitions == []

    @pytest.mark.parametrize(("gone", "told"), [("in1", []), ("st-rep", ["in1"])])
    def test_topics_that_are_gone_are_not_told(self, gone, told):
        """Where Kafka 4.3.1 answers UNKNOWN_SERVER_ERROR."""
        harness = StreamsHarness({"in1": 1, "st-rep": 1, "st-store-changelog": 1})
        a = Thread("a", endpoint=("h", 1))
        harness.join(a)
        harness.delete(gone)
        (endpoint,) = harness.join(Thread("b")).partitions_by_user_endpoint
        assert [each.topic for each in endpoint.active_partitions] == told


class TestLeaving:
    """Rule 489."""

    def test_who_leaves_is_removed_and_its_epoch_repeated(self):
        harness, a, b = simple("a", "b")
        harness.join(a)
        harness.join(b)
        harness.settle(a, b)
        response = harness.leave(a)
        assert (response.member_id, response.member_epoch) == ("a", -1)
        assert (response.heartbeat_interval_ms, response.status) == (0, [])
        assert harness.group.state_name == "Assigning"
        harness.settle(b)
        assert b.active == "0_0 0_1 0_2 0_3"

    def test_leaving_needs_a_group_and_to_be_a_member(self):
        harness, a, b = simple("a", "b")
        a.epoch = -1
        refusal = harness.refusal(a)
        assert refusal.code is ErrorCode.GROUP_ID_NOT_FOUND
        assert refusal.message == "Group app not found."
        harness.join(b)
        assert harness.refusal(a).code is ErrorCode.UNKNOWN_MEMBER_ID


class TestTranscript:
    """The first minutes of a group, as recorded from Kafka 4.3.1."""

    def test_two_members_of_a_group_whose_internal_topics_are_made_meanwhile(self):
        harness = StreamsHarness(
            {"in1": 3},
            config={
                "group.streams.initial.rebalance.delay.ms": "3000",
                "group.streams.assignment.interval.ms": "1000",
            },
        )
        a = Thread("44a9367c-21a0-46ef-943d-ec0d5f5e339b", "p1", endpoint=("hp1", 9))
        b = Thread("68787717-1311-4cc4-962a-67ef90da7891", "p2", endpoint=("hp2", 9))
        assert statuses(harness.join(a)) == [5, 3]
        assert statuses(harness.beat(a)) == [5, 3]
        assert statuses(harness.join(b)) == [5, 3]
        assert (a.epoch, b.epoch, harness.group.group_epoch) == (1, 1, 3)
        harness.advance(3_000)
        harness.create("st-rep", 3)
        harness.create("st-store-changelog", 3)
        response = harness.beat(a)
        assert (statuses(response), a.epoch, response.active_tasks) == ([5], 3, None)
        harness.advance(1_000)
        response = harness.beat(a)
        assert (a.epoch, a.active, response.status) == (4, "0_0 0_2 1_1", [])
        harness.beat(b)
        assert (b.epoch, b.active) == (4, "0_1 1_0 1_2")
        assert harness.kinds() == [
            *("MemberMetadata", "Topology", "Metadata", "CurrentMemberAssignment"),
            *("MemberMetadata", "Metadata", "CurrentMemberAssignment"),
            *("TargetAssignmentMember", "TargetAssignmentMember", "TargetAssignmentMetadata"),
            *("Metadata", "CurrentMemberAssignment"),
            *("TargetAssignmentMember", "TargetAssignmentMember", "TargetAssignmentMetadata"),
            *("CurrentMemberAssignment", "CurrentMemberAssignment"),
        ]
