"""Loading, replay and time of a whole shard."""

from itertools import permutations
from types import SimpleNamespace

import pytest

from kafkalite.coordinator.shard import NOTHING, Now, StoredRecord, Ticket
from kafkalite.group.classic import part
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.join import JoinGroup
from kafkalite.group.classic.membership import Heartbeat, LeaveGroup
from kafkalite.group.classic.part import ConnectionClosed
from kafkalite.group.classic.states import GroupState
from kafkalite.group.classic.sync import SyncGroup
from kafkalite.group.kinds import GroupKind
from kafkalite.group.part import Part
from kafkalite.group.settings import GroupSettings
from kafkalite.group.shard import GroupShard, TopicsChanged, TopicsDeleted
from kafkalite.group.shards import GroupShards
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.heartbeat import HeartbeatRequest
from kafkalite.wire.messages.join_group import JoinGroupRequest
from kafkalite.wire.messages.leave_group import LeaveGroupRequest
from kafkalite.wire.messages.sync_group import SyncGroupRequest
from kafkalite.wire.stored import consumer_group, group_metadata, share_group, streams_group
from kafkalite.wire.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.group.harness import SECOND, SESSION_MS, Client, GroupHarness


@pytest.fixture
def harness():
    return GroupHarness()


class TestReload:
    def test_group_is_stable_with_the_same_generation(self, harness):
        clients = harness.stable_group(Client(), Client())
        other = harness.restarted()
        assert other.state is GroupState.STABLE
        for client in clients:
            assert other.heartbeat(client) is ErrorCode.NONE
            assert other.answer(other.sync(client)).assignment == client.assignment

    def test_members_get_their_whole_session(self, harness):
        """Rule 141: they could not reach anybody meanwhile."""
        (client,) = harness.stable_group(Client())
        harness.advance(SESSION_MS - 1)
        other = harness.restarted()
        other.advance(SESSION_MS - 1)
        assert other.heartbeat(client) is ErrorCode.NONE

    def test_members_that_do_not_come_back_are_removed(self, harness):
        harness.stable_group(Client(), Client())
        other = harness.restarted()
        other.advance(SESSION_MS)
        assert other.state is GroupState.EMPTY

    def test_rebalance_under_way_is_lost_and_begins_again(self, harness):
        a, b = harness.stable_group(Client(), Client())
        harness.join(a)
        harness.join(b)
        harness.learn(a)
        other = harness.restarted()
        assert other.code(other.sync(a)) is ErrorCode.ILLEGAL_GENERATION
        other.join(a)
        other.join(b)
        assert other.state is GroupState.COMPLETING_REBALANCE

    def test_ids_handed_out_are_lost(self, harness):
        harness.commit({("topic", 0): 1})
        pending = harness.hand_out(Client())
        other = harness.restarted()
        assert other.code(other.join(pending)) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_deleted_group_stays_deleted(self, harness):
        harness.commit({("topic", 0): 1})
        harness.delete_group()
        assert harness.restarted().state is GroupState.DEAD

    def test_rebalance_of_a_group_that_was_loaded_too_large(self, harness):
        harness.stable_group(Client(), Client())
        other = harness.restarted(group_max_size=1)
        assert other.state is GroupState.PREPARING_REBALANCE


class TestTime:
    def test_timer_that_was_put_off_fires_nothing(self, harness):
        (client,) = harness.stable_group(Client())
        harness.advance(SESSION_MS - 1)
        harness.heartbeat(client)
        early = Now(harness.now_ms + 2, 0)
        assert harness.shard.on_time(early) is NOTHING

    def test_one_timer_fires_at_a_time(self, harness):
        """A record must be replayed before anything else is decided about its group."""
        harness.stable_group(Client())
        harness.commit({("topic", 0): 1}, group_id="other")
        late = Now(harness.now_ms + 10_000 * SECOND, 0)
        fired = 0
        while harness.shard.next_deadline_ms() <= late.monotonic_ms and fired < 20:
            assert len(harness.shard.on_time(late).records) <= 1
            fired += 1
        assert fired > 1


class TestKind:
    def test_disconnects_matter_only_in_profile_test(self):
        assert GroupShards(GroupSettings()).event_for_disconnect(1) is None
        evicting = GroupShards(GroupSettings(evict_on_disconnect=True))
        assert evicting.event_for_disconnect(1) == ConnectionClosed(1)

    def test_deleted_topics_are_told(self):
        event = GroupShards(GroupSettings()).event_for_deleted_topics(["a", "b"])
        assert event == TopicsDeleted(frozenset({"a", "b"}))
        assert len({event, TopicsDeleted(frozenset({"b", "a"}))}) == 1, "kept once, if missed"

    def test_changed_topics_are_told(self):
        event = GroupShards(GroupSettings()).event_for_changed_topics(["a", "b"])
        assert event == TopicsChanged(frozenset({"a", "b"}))

    def test_a_new_shard_is_empty(self):
        shards = GroupShards(GroupSettings())
        shard = shards.new_shard(3)
        assert isinstance(shard, GroupShard)
        assert (shards.topic, shard.groups) == ("__consumer_offsets", {})


def test_tombstone_of_a_group_that_is_not_there_is_nothing(harness):
    harness.commit({("topic", 0): 1})
    harness.delete_group()
    for batch in harness.log[-1:]:
        from kafkalite.coordinator.records import decode_batch

        for record in decode_batch(batch, harness.codec):
            harness.shard.replay(record)
    assert harness.group is None


class OtherGroup(ClassicGroup):
    kind = GroupKind.STREAMS


class TestOtherKinds:
    """A group of a kind that has no classic protocol."""

    @pytest.fixture
    def harness(self, monkeypatch):
        harness = GroupHarness()
        monkeypatch.setattr(part, "ClassicGroup", SimpleNamespace)
        nothing = Part(
            kind=GroupKind.STREAMS, handlers={}, replays={}, on_timer=None, on_loaded=None
        )
        harness.shard._parts[GroupKind.STREAMS] = nothing
        harness.shard.classic_protocols[GroupKind.STREAMS] = {}
        harness.shard.groups["g"] = OtherGroup("g")
        return harness

    def test_classic_members_may_not_join(self, harness):
        event = JoinGroup(JoinGroupRequest(group_id="g"), 9, "c", "/h", "id")
        with pytest.raises(KafkaError) as refused:
            harness.shard.handle(event, 1, harness.now)
        assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    @pytest.mark.parametrize(
        "event",
        [
            SyncGroup(SyncGroupRequest(group_id="g")),
            Heartbeat(HeartbeatRequest(group_id="g")),
            LeaveGroup(LeaveGroupRequest(group_id="g"), 5),
        ],
        ids=lambda event: type(event).__name__,
    )
    def test_there_are_no_classic_members(self, harness, event):
        with pytest.raises(KafkaError) as refused:
            harness.shard.handle(event, 1, harness.now)
        assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID

    def test_types_are_listed(self, harness):
        assert [g.group_type for g in harness.list_groups()] == ["streams"]
        assert len(harness.list_groups(types=["Streams", "nonsense"])) == 1
        assert harness.list_groups(types=["classic"]) == []
        assert harness.list_groups(types=["nonsense"]) == []


MADE_BY = {
    GroupKind.CLASSIC: [
        (group_metadata.GroupMetadataKey(group="g"), group_metadata.GroupMetadataValue()),
    ],
    GroupKind.CONSUMER: [
        (
            consumer_group.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
            consumer_group.ConsumerGroupMemberMetadataValue(subscribed_topic_names=["consumed"]),
        ),
        (
            consumer_group.ConsumerGroupMetadataKey(group_id="g"),
            consumer_group.ConsumerGroupMetadataValue(epoch=3),
        ),
    ],
    GroupKind.SHARE: [
        (
            share_group.ShareGroupMemberMetadataKey(group_id="g", member_id="m"),
            share_group.ShareGroupMemberMetadataValue(subscribed_topic_names=["shared"]),
        ),
        (
            share_group.ShareGroupMetadataKey(group_id="g"),
            share_group.ShareGroupMetadataValue(epoch=3),
        ),
    ],
    GroupKind.STREAMS: [
        (
            streams_group.StreamsGroupTopologyKey(group_id="g"),
            streams_group.StreamsGroupTopologyValue(
                subtopologies=[
                    streams_group.Subtopology(subtopology_id="0", source_topics=["streamed"])
                ]
            ),
        ),
        (
            streams_group.StreamsGroupMetadataKey(group_id="g"),
            streams_group.StreamsGroupMetadataValue(epoch=3),
        ),
    ],
}
"""Records that make a group of each kind, the last of which removes it as a tombstone."""


@pytest.mark.parametrize(("first", "second"), [*permutations(MADE_BY, 2)])
class TestContradictingKinds:
    """A log in which one group is of two kinds, and no tombstone between them (rule 346)."""

    @pytest.fixture
    def shard(self, first, second):
        shard = GroupShard(GroupSettings())
        offset = OffsetCommitKey(group="g", topic="t", partition=0)
        shard.replay(StoredRecord(offset, OffsetCommitValue(offset=5)))
        for kind in (first, second):
            for key, value in MADE_BY[kind]:
                shard.replay(StoredRecord(key, value))
        return shard

    def test_the_later_kind_counts_and_offsets_stay(self, shard, first, second):
        assert {name: group.kind for name, group in shard.groups.items()} == {"g": second}
        shard.on_loaded(Now(0, 0))
        assert shard.offsets.get("g", "t", 0).offset == 5

    def test_tombstones_of_the_earlier_kind_do_not_touch_it(self, shard, first, second):
        for key, _ in reversed(MADE_BY[first]):
            shard.replay(StoredRecord(key, None))
        assert shard.groups["g"].kind is second

    def test_topics_of_the_earlier_kind_may_change_when_there_is_no_group(
        self, shard, first, second
    ):
        for key, _ in reversed(MADE_BY[second]):
            shard.replay(StoredRecord(key, None))
        assert shard.groups == {}
        topics = frozenset({"consumed", "shared", "streamed"})
        assert not shard.handle(TopicsChanged(topics), Ticket(1), Now(0, 0)).records
