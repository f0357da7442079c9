"""Heartbeats of Streams threads: rules 463-471, 473-478, 484, 488 and 489.

After Kafka's GroupMetadataManagerTest, where the names of its cases are in the comments.
"""

import pytest

from kafkalite.coordinator.shard import StoredRecord
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
from tests.group.streams.harness import (
    StreamsHarness,
    Thread,
    joining,
    task_lists,
)
from tests.group.streams.topologies import subtopology
from tests.group.streams.topology_kit import SIMPLE, STATEFUL, simple, statuses


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
