"""Time, topics, load and replay of consumer groups (rules 317-325)."""

import pytest

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.consumer.member import MemberState
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    CurrentTopicPartitions,
)
from kafkalite.wire.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.group.consumer.harness import REBALANCE_MS, SESSION_MS, ConsumerHarness, topic_id
from tests.group.harness import SECOND


@pytest.fixture
def harness():
    return ConsumerHarness(topics={"t1": 3, "t2": 2})


@pytest.fixture
def pair(harness):
    harness.beat("a", 0)
    harness.beat("b", 0)
    harness.settle("a", "b")
    return harness


class TestSessions:
    def test_who_is_silent_is_fenced(self, harness):
        harness.beat("a", 0)
        harness.advance(SESSION_MS - 1)
        assert "a" in harness.group.members
        harness.advance(1)
        assert harness.group.members == {}
        assert harness.epochs() == (3, 2)

    def test_only_heartbeats_that_are_accepted_keep_a_session(self, harness):
        harness.beat("a", 0)
        harness.advance(SESSION_MS - 10)
        harness.refused("a", 99)
        harness.fetch(("t1", 0))
        harness.disconnect(1)
        harness.advance(10)
        assert harness.group.members == {}

    def test_a_setting_of_the_group_counts_from_the_next_heartbeat(self, harness):
        harness.beat("a", 0)
        harness.configure(consumer_session_timeout_ms=50_000)
        harness.beat("a", 2)
        harness.advance(SESSION_MS)
        assert "a" in harness.group.members
        harness.advance(5_000)
        assert "a" not in harness.group.members

    def test_a_client_that_went_away_keeps_its_place(self, harness):
        harness.beat("a", 0)
        harness.disconnect(1)
        assert "a" in harness.group.members

    def test_a_fence_that_the_log_refused_is_tried_again(self, harness):
        harness.beat("a", 0)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.advance(SESSION_MS)
        assert "a" in harness.group.members
        harness.refuse_appends_with = None
        harness.advance(500)
        assert "a" not in harness.group.members

    def test_who_was_refused_by_the_log_leaves_nothing_behind(self, harness):
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        with pytest.raises(Exception, match="NOT_ENOUGH_REPLICAS"):
            harness.beat("a", 0)
        assert harness.group is None
        harness.refuse_appends_with = None
        harness.advance(2 * SESSION_MS)
        harness.beat("b", 0)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        with pytest.raises(Exception, match="NOT_ENOUGH_REPLICAS"):
            harness.beat("a", 0)
        harness.refuse_appends_with = None
        for _ in range(3):
            harness.advance(SESSION_MS // 2)
            harness.beat("b", harness.group.members["b"].member_epoch)
        assert set(harness.group.members) == {"b"}


class TestTopics:
    def test_partitions_that_are_added_are_assigned(self, harness):
        harness.beat("a", 0)
        harness.advance(1_100)
        harness.add_partitions("t1", 5)
        told = harness.beat("a", 2)
        assert (told.epoch, told.has) == (3, {"t1": [0, 1, 2, 3, 4]})

    def test_a_topic_that_comes_later_is_assigned(self, harness):
        harness.beat("a", 0, topics=["later"])
        assert harness.has("a") == {}
        harness.create(later=2)
        harness.advance(1_100)
        assert harness.beat("a", 2).has == {"later": [0, 1]}

    def test_a_topic_that_is_gone_is_taken_away(self, harness):
        harness.beat("a", 0, topics=["t1", "t2"])
        harness.drop_topic("t2")
        harness.advance(1_100)
        told = harness.beat("a", 2)
        assert (told.epoch, told.has) == (2, {"t1": [0, 1, 2]})
        assert harness.beat("a", 2, owned={"t1": [0, 1, 2]}).epoch == 3

    def test_a_topic_made_anew_is_another(self, harness):
        harness.beat("a", 0)
        harness.drop_topic("t1")
        harness.create_anew("t1", 3)
        harness.advance(1_100)
        told = harness.beat("a", 2, owned={})
        assert (told.epoch, told.has) == (3, {"t1": [0, 1, 2]})
        assert [*harness.group.targets["a"]] == [topic_id("t1'")]

    def test_topics_that_nobody_reads_do_not_matter(self, harness):
        harness.beat("a", 0)
        harness.add_partitions("t2", 9)
        harness.create(other=1)
        harness.beat("a", 2)
        assert (harness.epochs(), harness.written) == ((2, 2, 2), [])

    def test_a_look_that_the_log_refused_is_taken_again(self, harness):
        harness.beat("a", 0)
        harness.advance(1_100)
        harness.add_partitions("t1", 4)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        with pytest.raises(Exception, match="NOT_ENOUGH_REPLICAS"):
            harness.beat("a", 2)
        harness.refuse_appends_with = None
        assert harness.beat("a", 2).has == {"t1": [0, 1, 2, 3]}


class TestAssignors:
    def test_the_one_that_most_want_is_used(self, harness):
        harness.configure(consumer_assignment_interval_ms=0)
        harness.beat("a", 0, server_assignor="range")
        assert harness.describe_consumers().assignor_name == "range"
        harness.beat("b", 0, server_assignor="uniform")
        assert harness.describe_consumers().assignor_name == "uniform", "of two with equal votes"
        harness.beat("c", 0, server_assignor="range")
        assert harness.describe_consumers().assignor_name == "range"
        assert harness.target("c") == {"t1": [2]}

    def test_the_first_that_is_configured_is_used_where_nobody_asks(self):
        harness = ConsumerHarness(topics={"t1": 2}, consumer_group_assignors=("range", "uniform"))
        harness.beat("a", 0)
        assert harness.describe_consumers().assignor_name == "range"


class TestLoading:
    def test_members_go_on_where_they_were(self, pair):
        other = pair.restarted()
        epoch = other.group.members["a"].member_epoch
        assert other.beat("a", epoch).epoch == epoch
        assert other.written == []
        assert other.state_name == "Stable"

    def test_each_has_a_whole_session(self, pair):
        pair.advance(SESSION_MS - SECOND)
        other = pair.restarted()
        other.advance(SESSION_MS - 1)
        assert set(other.group.members) == {"a", "b"}
        other.advance(1)
        other.advance(600)
        assert other.group.members == {}

    def test_who_has_to_give_up_has_its_time_again(self, harness):
        harness.beat("a", 0)
        harness.beat("b", 0)
        harness.advance(1_100)
        harness.beat("a", 2)
        assert harness.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
        other = harness.restarted()
        for _ in range(3):
            other.advance(REBALANCE_MS // 3 - 1)
            other.beat("a", 2)
        other.advance(3)
        assert "a" not in other.group.members

    def test_what_happened_to_topics_meanwhile_is_seen(self, pair):
        pair.metadata.update(pair.metadata.image)
        other = pair.restarted()
        other.advance(1_100)
        other.add_partitions("t1", 4)
        other.settle("a", "b")
        given = [index for m in ("a", "b") for index in other.has(m)["t1"]]
        assert sorted(given) == [0, 1, 2, 3]


class TestReplay:
    def replay(self, harness, key, value):
        for shard in (harness.shard, harness.replica):
            shard.replay(StoredRecord(key, value))

    @pytest.mark.parametrize(
        "key",
        [
            ConsumerGroupMetadataKey(group_id="x"),
            ConsumerGroupPartitionMetadataKey(group_id="x"),
            ConsumerGroupMemberMetadataKey(group_id="x", member_id="m"),
            ConsumerGroupTargetAssignmentMetadataKey(group_id="x"),
            ConsumerGroupTargetAssignmentMemberKey(group_id="x", member_id="m"),
            ConsumerGroupCurrentMemberAssignmentKey(group_id="x", member_id="m"),
            ConsumerGroupRegularExpressionKey(group_id="x", regular_expression="r"),
        ],
        ids=lambda key: type(key).__name__,
    )
    def test_tombstones_of_what_is_not_there_are_nothing(self, harness, key):
        self.replay(harness, key, None)
        assert harness.shard.groups == {}

    def test_tombstones_of_unknown_members_are_nothing(self, pair):
        for kind in (
            ConsumerGroupCurrentMemberAssignmentKey,
            ConsumerGroupMemberMetadataKey,
            ConsumerGroupTargetAssignmentMemberKey,
        ):
            self.replay(pair, kind(group_id="g", member_id="x"), None)
        pair.check()

    def test_a_members_partitions_may_come_before_the_member(self, harness):
        """As compaction leaves them; without epochs they are of the member's, at least 0."""
        for epoch, since in ((7, 7), (-2, 0)):
            topic = CurrentTopicPartitions(topic_id=topic_id("t1"), partitions=[0, 1])
            value = ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=epoch, state=9, assigned_partitions=[topic]
            )
            key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
            self.replay(harness, key, value)
            member = harness.group.members["m"]
            assert member.assigned == {topic_id("t1"): {0: since, 1: since}}
            assert (member.state, member.rebalance_timeout_ms) == (MemberState.UNKNOWN, -1)

    def test_offsets_alone_make_no_group_of_another_kind(self, harness):
        """A consumer group's records come after them, and take them over (rule 321)."""
        key = OffsetCommitKey(group="g", topic="t1", partition=0)
        self.replay(harness, key, OffsetCommitValue(offset=5, commit_timestamp=0))
        assert isinstance(harness.shard.groups["g"], ClassicGroup)
        self.replay(
            harness, ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=4)
        )
        assert harness.group.group_epoch == 4
        assert harness.beat("a", 0).epoch == 5

    def test_topics_that_a_broker_before_4_1_kept_are_removed(self, harness):
        harness.beat("a", 0)
        key = ConsumerGroupPartitionMetadataKey(group_id="g")
        self.replay(harness, key, ConsumerGroupPartitionMetadataValue())
        harness.beat("a", 2, topics=["t1", "t2"])
        assert harness.written == [5, 3, -4]
        harness.beat("a", 2, topics=["t1"])
        assert -4 not in harness.written


class TestDeleting:
    def test_a_group_with_members_stays(self, pair):
        assert pair.answers[pair.delete_group()].code is ErrorCode.NON_EMPTY_GROUP

    def test_a_group_goes_with_its_offsets(self, harness):
        harness.beat("a", 0)
        harness.beat("a", -1)
        harness.commit({("t1", 0): 1})
        harness.written = []
        harness.answer(harness.delete_group())
        assert harness.written == [1, -6, -4, -3]
        assert (harness.group, harness.fetch(("t1", 0))) == (None, {("t1", 0): -1})

    def test_an_unused_group_vanishes(self, harness):
        harness.beat("a", 0)
        harness.beat("a", -1)
        harness.written = []
        harness.advance(600_000)
        assert harness.written == [-6, -4, -3]
        assert harness.group is None

    def test_offsets_of_topics_that_are_read_stay(self, harness):
        harness.beat("a", 0)
        ticket = harness.delete_offsets(("t1", 0), ("t2", 0))
        assert harness.partition_codes(ticket) == [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
            ErrorCode.NONE,
        ]

    def test_offsets_of_topics_that_nobody_reads_expire(self):
        harness = ConsumerHarness(topics={"t1": 3, "t2": 2}, offsets_retention_ms=600_000)
        harness.commit({("t1", 0): 1, ("t2", 0): 2})
        harness.beat("a", 0)
        for _ in range(20):
            harness.advance(SESSION_MS - SECOND)
            harness.beat("a", 2)
        assert harness.fetch(("t1", 0), ("t2", 0)) == {("t1", 0): 1, ("t2", 0): -1}


class TestDescribing:
    def test_members_have_what_they_are_responsible_for(self, harness):
        harness.beat("a", 0, rack_id="r", instance_id="i")
        harness.beat("b", 0, topics=["t1"], subscribed_topic_regex="")
        harness.advance(1_100)
        harness.beat("a", 2)
        described = harness.describe_consumers()
        assert (described.group_state, described.group_epoch) == ("Reconciling", 3)
        assert (described.assignment_epoch, described.assignor_name) == (3, "uniform")
        first, second = described.members
        assert (first.member_id, first.instance_id, first.rack_id) == ("a", "i", "r")
        assert (first.member_epoch, first.member_type) == (2, 1)
        assert first.subscribed_topic_names == ["t1"]
        assert second.subscribed_topic_regex == ""
        (has,) = first.assignment.topic_partitions
        (target,) = first.target_assignment.topic_partitions
        assert (has.topic_name, has.partitions) == ("t1", [0, 1, 2])
        assert (target.topic_id, target.partitions) == (topic_id("t1"), [0, 1])

    def test_topics_that_are_gone_are_left_out(self, harness):
        harness.beat("a", 0, topics=["t1", "t2"])
        harness.drop_topic("t1")
        (member,) = harness.describe_consumers().members
        assert [each.topic_name for each in member.assignment.topic_partitions] == ["t2"]

    def test_other_groups_are_not_found(self, harness):
        harness.commit({("t1", 0): 1})
        for group_id in ("g", "x"):
            with pytest.raises(Exception, match="GROUP_ID_NOT_FOUND"):
                harness.describe_consumers(group_id)

    def test_classic_describe_does_not_know_it(self, harness):
        harness.beat("a", 0)
        assert harness.describe(version=5).group_state == "Dead"
        answer = harness.describe(version=6)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "not a classic group" in answer.error_message

    def test_it_is_listed_with_type_and_state(self, harness):
        harness.beat("a", 0)
        (listed,) = harness.list_groups(states=["STABLE"], types=["Consumer"])
        assert (listed.group_type, listed.protocol_type) == ("consumer", "consumer")
        assert harness.list_groups(states=["Empty"]) == []
        assert harness.list_groups(types=["classic"]) == []
