"""Loading streams groups from their log (rule 486), and what of them is told (rule 480)."""

import pytest

from kafkalite.coordinator.records import decode_batch
from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.records import GroupRecordCodec
from kafkalite.group.shard import GroupShard
from kafkalite.group.streams.group import StreamsGroup
from kafkalite.group.streams.part import DescribeStreamsGroup
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.streams_group_describe import Endpoint, KeyValue, TopicInfo
from kafkalite.wire.stored import streams_group as stored
from kafkalite.wire.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.group.streams.harness import StreamsHarness, Thread, hard_state, joining, words
from tests.group.streams.topologies import subtopology

READY = {"in1": 3, "st-rep": 3, "st-store-changelog": 3}


def stable(*names, **fields):
    harness = StreamsHarness(READY)
    threads = [Thread(name, **fields) for name in names]
    for thread in threads:
        harness.join(thread)
    harness.settle(*threads)
    return harness, *threads


class TestLoading:
    # testStreamsPartitionMetadataRefreshedAfterGroupIsLoaded
    def test_an_unchanged_group_goes_on_without_a_record(self):
        harness, a, b = stable("a", "b")
        after = harness.restarted()
        assert after.beat(a).status == []
        after.beat(b)
        assert after.log == []
        assert after.group.state_name == "Stable"

    def test_what_changed_meanwhile_is_seen_by_the_first_heartbeat(self):
        harness, a = stable("a")
        after = harness.restarted()
        after.delete("in1")
        after.create("in1", 5)
        after.beat(a)
        assert after.kinds()[0] == "Metadata"

    # testOnLoadedWithStreamsGroup
    def test_every_member_has_its_whole_session(self):
        harness, a, _ = stable("a", "b")
        harness.advance(44_000)
        after = harness.restarted()
        after.advance(44_000)
        after.beat(a)
        after.advance(1_000)
        assert list(after.group.members) == ["a"]

    def test_who_gives_up_tasks_has_its_whole_time_for_that(self):
        harness, a = stable("a")
        b = Thread("b")
        harness.join(b)
        harness.beat(a)
        harness.advance(8_000)
        after = harness.restarted()
        after.advance(8_999)
        assert "a" in after.group.members
        after.advance(1)
        assert "a" not in after.group.members

    def test_the_group_hears_of_its_topics_again(self):
        harness, a = stable("a")
        after = harness.restarted()
        after.beat(a)
        after.grow("in1", 4)
        assert [s.status_code for s in after.beat(a).status] == [2]

    def test_a_compacted_log_is_the_same_group(self):
        """Only the last record of each key stays, in any order of the kinds."""
        harness, a, b = stable("a", "b")
        harness.beat(a, rack_id="r")
        harness.settle(a, b)
        codec = GroupRecordCodec()
        last = {}
        for batch in harness.log:
            for record in decode_batch(batch, codec):
                last[codec.encode(record)[0]] = record
        for records in (last.values(), reversed(last.values())):
            shard = GroupShard(harness.settings, harness.metadata)
            for record in records:
                shard.replay(record)
            assert hard_state(shard.groups["app"]) == hard_state(harness.group)


class TestReplay:
    def test_tombstones_of_what_is_not_there_are_passed_over(self):
        shard = GroupShard(StreamsHarness().settings)
        keys = [
            stored.StreamsGroupMetadataKey(group_id="g"),
            stored.StreamsGroupMemberMetadataKey(group_id="g", member_id="m"),
            stored.StreamsGroupTargetAssignmentMetadataKey(group_id="g"),
            stored.StreamsGroupTargetAssignmentMemberKey(group_id="g", member_id="m"),
            stored.StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
            stored.StreamsGroupTopologyKey(group_id="g"),
        ]
        for key in keys:
            shard.replay(StoredRecord(key, None))
        assert shard.groups == {}
        shard.replay(StoredRecord(keys[-1], stored.StreamsGroupTopologyValue()))
        for key in keys[1:]:
            shard.replay(StoredRecord(key, None))
        assert isinstance(shard.groups["g"], StreamsGroup)
        shard.replay(StoredRecord(keys[0], None))
        assert shard.groups == {}

    def test_a_group_takes_the_place_of_one_that_was_made_for_its_offsets(self):
        shard = GroupShard(StreamsHarness().settings)
        offset = StoredRecord(
            OffsetCommitKey(group="g", topic="t", partition=0), OffsetCommitValue(offset=5)
        )
        shard.replay(offset)
        key = stored.StreamsGroupMetadataKey(group_id="g")
        shard.replay(StoredRecord(key, stored.StreamsGroupMetadataValue(epoch=4)))
        assert shard.groups["g"].group_epoch == 4
        assert shard.offsets.get("g", "t", 0).offset == 5

    def test_a_group_that_goes_with_its_members_leaves_no_timers(self):
        """No log says so, but that of a broker that failed might."""
        harness, _ = stable("a")
        key = stored.StreamsGroupMetadataKey(group_id="app")
        for shard in (harness.shard, harness.replica):
            shard.replay(StoredRecord(key, None))
        harness.create("other", 1)
        assert harness.shard.subscribers.of(["in1"]) == []
        harness.advance(100_000)
        assert harness.group is None

    def test_a_timer_of_a_member_that_the_log_refused_does_nothing(self):
        harness, a = stable("a")
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.refusal(Thread("b"), **joining(Thread("b")))
        harness.refuse_appends_with = None
        written = len(harness.log)
        harness.advance(44_000)
        harness.beat(a)
        harness.advance(1_000)
        assert len(harness.log) == written

    def test_a_deadline_for_tasks_that_the_log_refused_to_take_does_nothing(self):
        harness, a = stable("a")
        harness.join(Thread("b"))
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.refusal(a)
        harness.refuse_appends_with = None
        written = len(harness.log)
        harness.advance(9_000)
        assert len(harness.log) == written
        assert "a" in harness.group.members

    def test_a_timer_of_a_member_that_is_gone_does_nothing(self):
        harness, a = stable("a")
        harness.leave(a)
        written = len(harness.log)
        harness.advance(100_000)
        assert len(harness.log) == written


class TestDescribe:
    def test_unknown_groups_and_those_of_other_kinds_are_not_found(self):
        harness = StreamsHarness()
        assert harness.code(harness.send(DescribeStreamsGroup("app"))) is (
            ErrorCode.GROUP_ID_NOT_FOUND
        )
        harness.answer(harness.commit({("t", 0): 1}))
        assert harness.code(harness.send(DescribeStreamsGroup("app"))) is (
            ErrorCode.GROUP_ID_NOT_FOUND
        )

    def test_a_member_is_described_whole(self):
        harness, a, _ = stable("a", "b", endpoint=("h", 9), tags={"zone": "z"})
        member = harness.described().members[0]
        assert (member.member_id, member.member_epoch, member.is_classic) == ("a", 3, False)
        assert (member.client_id, member.client_host) == ("app", "/127.0.0.1")
        assert (member.process_id, member.topology_epoch) == ("process of a", 0)
        assert member.user_endpoint == Endpoint(host="h", port=9)
        assert member.client_tags == [KeyValue(key="zone", value="z")]
        assert words(member.assignment.active_tasks) == a.active
        assert member.assignment.active_tasks == member.target_assignment.active_tasks
        assert member.task_offsets == member.task_end_offsets == []

    def test_a_target_differs_from_what_is_had_until_it_is_reached(self):
        harness, a = stable("a")
        harness.join(Thread("b"))
        members = {each.member_id: each for each in harness.described().members}
        assert len(words(members["b"].target_assignment.active_tasks).split()) == 3
        assert members["b"].assignment.active_tasks == []
        assert words(members["a"].assignment.active_tasks) == a.active

    @pytest.mark.parametrize(("topics", "partitions"), [({"in1": 3}, 0), (READY, 3)])
    def test_partition_counts_are_those_decided_once_all_is_there(self, topics, partitions):
        harness = StreamsHarness(topics)
        a = Thread("a")
        harness.join(a)
        harness.beat(a)
        described = harness.described()
        assert (described.group_epoch, described.assignment_epoch) == (2, 2)
        first, second = described.topology.subtopologies
        assert (first.subtopology_id, first.source_topics) == ("0", ["in1"])
        assert first.repartition_sink_topics == ["st-rep"]
        assert second.repartition_source_topics == [TopicInfo(name="st-rep", partitions=partitions)]
        assert second.state_changelog_topics == [
            TopicInfo(
                name="st-store-changelog",
                partitions=partitions,
                topic_configs=[KeyValue(key="cleanup.policy", value="compact")],
            )
        ]

    def test_a_group_without_a_topology_is_described_without(self):
        harness = StreamsHarness()
        key = stored.StreamsGroupMetadataKey(group_id="app")
        for shard in (harness.shard, harness.replica):
            shard.replay(StoredRecord(key, stored.StreamsGroupMetadataValue(epoch=4)))
        described = harness.described()
        assert (described.topology, described.group_state) == (None, "Empty")

    def test_a_topology_is_in_the_order_of_its_ids(self):
        harness = StreamsHarness({"in1": 1})
        topology = tuple(subtopology(name, "in1") for name in ("10", "2", "1"))
        harness.join(Thread("a", topology=topology))
        ids = [each.subtopology_id for each in harness.described().topology.subtopologies]
        assert ids == ["1", "10", "2"]
