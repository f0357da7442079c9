"""Members, targets and groups as records, and back (rule 486)."""

import pytest

from kafkalite.group.streams.member import Endpoint, MemberState, StreamsMember
from kafkalite.group.streams.records import (
    current_record,
    group_tombstones,
    member_record,
    member_tombstones,
    metadata_record,
    target_metadata_record,
    target_of,
    target_record,
    topology_record,
    with_assignment,
    with_metadata,
    without_assignment,
)
from kafkalite.group.streams.tasks import HOLDS_NOTHING, HeldTasks, TaskId, Tasks
from kafkalite.wire.stored import streams_group as stored

MEMBER = StreamsMember(
    member_id="m",
    member_epoch=7,
    previous_member_epoch=6,
    state=MemberState.UNREVOKED_TASKS,
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="/127.0.0.1",
    rebalance_timeout_ms=9_000,
    topology_epoch=2,
    process_id="p",
    user_endpoint=Endpoint("host", 65_535),
    client_tags={"zone": "z", "cluster": "k"},
    assigned=HeldTasks(
        active={TaskId("1", 2): 7, TaskId("0", 3): 5, TaskId("1", 0): 6},
        standby=frozenset({TaskId("0", 4)}),
        warmup=frozenset({TaskId("0", 5)}),
    ),
    pending_revocation=HeldTasks(
        active={TaskId("0", 6): 4},
        standby=frozenset({TaskId("0", 7)}),
        warmup=frozenset({TaskId("0", 8)}),
    ),
)


def test_a_member_comes_back_from_its_two_records():
    metadata, current = member_record("g", MEMBER), current_record("g", MEMBER)
    bare = StreamsMember(member_id="m")
    assert with_assignment(with_metadata(bare, metadata.value), current.value) == MEMBER
    assert with_metadata(with_assignment(bare, current.value), metadata.value) == MEMBER


def test_a_member_without_endpoint_comes_back():
    bare = StreamsMember(member_id="m")
    assert with_metadata(MEMBER, member_record("g", bare).value).user_endpoint is None


def test_tasks_are_stored_in_ascending_order_and_only_active_ones_with_epochs():
    value = current_record("g", MEMBER).value
    assert value.active_tasks == [
        stored.TaskIdsWithEpochs(subtopology_id="0", partitions=[3], assignment_epochs=[5]),
        stored.TaskIdsWithEpochs(subtopology_id="1", partitions=[0, 2], assignment_epochs=[6, 7]),
    ]
    assert value.standby_tasks == [stored.TaskIdsWithEpochs(subtopology_id="0", partitions=[4])]
    tags = member_record("g", MEMBER).value.client_tags
    assert [tag.key for tag in tags] == ["cluster", "zone"]


@pytest.mark.parametrize("epochs", [None, [], [1]])
def test_tasks_without_epochs_have_the_members(epochs):
    lists = [
        stored.TaskIdsWithEpochs(subtopology_id="0", partitions=[1, 2], assignment_epochs=epochs)
    ]
    value = stored.StreamsGroupCurrentMemberAssignmentValue(member_epoch=7, active_tasks=lists)
    member = with_assignment(StreamsMember(member_id="m"), value)
    assert member.assigned.active == {TaskId("0", 1): 7, TaskId("0", 2): 7}


def test_a_state_of_a_later_version_is_unknown():
    value = stored.StreamsGroupCurrentMemberAssignmentValue(state=9)
    assert with_assignment(MEMBER, value).state is MemberState.UNKNOWN


def test_the_first_tombstone_leaves_a_member_without_epoch_and_tasks():
    gone = without_assignment(MEMBER)
    assert (gone.member_epoch, gone.previous_member_epoch) == (-1, -1)
    assert (gone.assigned, gone.pending_revocation) == (HOLDS_NOTHING, HOLDS_NOTHING)
    assert gone.process_id == MEMBER.process_id


def test_a_target_comes_back():
    target = Tasks(
        active=frozenset({TaskId("0", 1)}),
        standby=frozenset({TaskId("0", 2)}),
        warmup=frozenset({TaskId("0", 3)}),
    )
    record = target_record("g", "m", target)
    assert target_of(record.value) == target
    assert (record.key.group_id, record.key.member_id) == ("g", "m")


def test_records_of_the_group_say_what_they_are_given():
    record = metadata_record(
        "g",
        epoch=3,
        metadata_hash=-5,
        validated_topology_epoch=0,
        assignment_configs={"num.standby.replicas": "1"},
    )
    assert record.value == stored.StreamsGroupMetadataValue(
        epoch=3,
        metadata_hash=-5,
        validated_topology_epoch=0,
        last_assignment_configs=[
            stored.LastAssignmentConfig(key="num.standby.replicas", value="1")
        ],
    )
    target = target_metadata_record("g", epoch=3, timestamp_ms=9)
    assert (target.value.assignment_epoch, target.value.assignment_timestamp) == (3, 9)
    topology = stored.StreamsGroupTopologyValue(epoch=1)
    assert topology_record("g", topology).value is topology


def test_tombstones_come_in_kafkas_order():
    def kinds(records):
        assert all(record.value is None for record in records)
        return [type(record.key).__name__.removeprefix("StreamsGroup") for record in records]

    assert kinds(member_tombstones("g", "m")) == [
        "CurrentMemberAssignmentKey",
        "TargetAssignmentMemberKey",
        "MemberMetadataKey",
    ]
    assert kinds(group_tombstones("g", ["m"])) == [
        "CurrentMemberAssignmentKey",
        "TargetAssignmentMemberKey",
        "TargetAssignmentMetadataKey",
        "MemberMetadataKey",
        "MetadataKey",
        "TopologyKey",
    ]
