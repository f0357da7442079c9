"""Heartbeats of streams groups: when tasks are assigned, and how they change hands."""

from kafkalite.group.streams.member import MemberState
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.streams_group_heartbeat import (
    Status,
)
from tests.group.streams.harness import (
    StreamsHarness,
    Thread,
    words,
)
from tests.group.streams.topology_kit import STATEFUL, simple, statuses


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
