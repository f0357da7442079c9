"""Share groups in a shard: members, share partitions, what operators ask (rules 382-394)."""

import random
from uuid import UUID

import pytest

from kafkalite.group.admin import DeleteGroup
from kafkalite.group.share.part import (
    AlterShareOffsets,
    DeleteShareOffsets,
    ListShareStates,
    ShareOffsetsDeleted,
)
from kafkalite.group.share.states import UNKNOWN, StatesInitialized
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.group.harness import SECOND, Client
from tests.group.share.harness import ShareHarness

T = UUID(int=1)
LEAVE = -1


@pytest.fixture
def harness():
    return ShareHarness({"t": 2, "u": 1})


def settled(harness, *members, topics=("t",)):
    """Let members join and have all partitions; return their epoch."""
    for member in members:
        epoch, _ = harness.beat(member, 0, *topics)
    harness.initialize()
    for _ in range(2):
        for member in members:
            epoch, _ = harness.beat(member, 0, *topics)
    return epoch


def refused(harness, ticket, code):
    answer = harness.answers[ticket]
    return isinstance(answer, KafkaError) and answer.code is code


# --- Members


def test_first_join_has_epoch_2_and_nothing_then_epoch_3_and_partitions(harness):
    assert harness.beat("M", 0, "t") == (2, {})
    assert harness.beat("M", 2) == (2, None)
    assert harness.initialize() == 1
    assert harness.beat("M", 2) == (3, {"t": [0, 1]})
    assert harness.beat("M", 3) == (3, None)
    assert harness.beat("M", 3, "t") == (3, {"t": [0, 1]})
    assert harness.kinds()[:6] == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
        "StatePartitionMetadata",
    ]


def test_a_heartbeat_without_change_writes_nothing(harness):
    epoch = settled(harness, "M")
    batches = len(harness.log)
    for _ in range(5):
        assert harness.beat("M", epoch) == (epoch, None)
    assert len(harness.log) == batches


def test_epochs_fence(harness):
    epoch = settled(harness, "M")
    fenced = ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(harness, harness.heartbeat("M", epoch + 1), fenced)
    assert refused(harness, harness.heartbeat("M", epoch - 2), fenced)
    assert harness.beat("M", epoch - 1)[0] == epoch
    assert refused(harness, harness.heartbeat("X", epoch), ErrorCode.UNKNOWN_MEMBER_ID)
    assert harness.beat("M", 0, "t") == (epoch, {"t": [0, 1]})


def test_no_group_is_made_by_an_epoch(harness):
    unknown = ErrorCode.GROUP_ID_NOT_FOUND
    assert refused(harness, harness.heartbeat("M", 3, "t"), unknown)
    assert refused(harness, harness.heartbeat("M", LEAVE), unknown)
    assert not harness.shard.groups


def test_a_classic_group_keeps_its_name(harness):
    client = Client()
    super(ShareHarness, harness).join(client)
    assert refused(harness, harness.heartbeat("M", 0, "t"), ErrorCode.GROUP_ID_NOT_FOUND)


def test_group_is_full():
    harness = ShareHarness({"t": 1}, group_max_size=2)
    settled(harness, "A", "B")
    full = harness.heartbeat("C", 0, "t")
    assert refused(harness, full, ErrorCode.GROUP_MAX_SIZE_REACHED)
    harness.beat("A", 0, "t")


def test_more_members_than_partitions_share_them(harness):
    epoch = settled(harness, "A", "B", "C", "D")
    found = [harness.beat(member, epoch, "t")[1]["t"] for member in "ABCD"]
    assert sorted(found) == [[0], [0], [1], [1]]


def test_subscriptions_differ(harness):
    settled(harness, "A", topics=("t", "u"))
    harness.beat("B", 0, "u")
    harness.initialize()
    for _ in range(2):
        epoch_a, _ = harness.beat("A", 0, "t", "u")
        epoch_b, assigned = harness.beat("B", 0, "u")
    assert epoch_a == epoch_b
    assert assigned == {"u": [0]}
    assert harness.beat("A", epoch_a, "t")[1] == {"t": [0, 1]}


def test_who_leaves_is_gone_and_others_get_its_partitions(harness):
    epoch = settled(harness, "A", "B")
    answer = harness.answer(harness.heartbeat("A", LEAVE))
    assert (answer.member_id, answer.member_epoch) == ("A", LEAVE)
    assert harness.kinds(-1) == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "Metadata",
    ]
    assert harness.beat("B", epoch) == (epoch + 1, {"t": [0, 1]})


def test_the_silent_are_removed_after_their_session(harness):
    epoch = settled(harness, "A", "B")
    harness.advance(44 * SECOND)
    harness.beat("B", epoch)
    harness.advance(2 * SECOND)
    assert [*harness.group.members] == ["B"]
    assert refused(harness, harness.heartbeat("A", epoch), ErrorCode.UNKNOWN_MEMBER_ID)
    assert harness.beat("B", epoch)[1] == {"t": [0, 1]}


def test_sessions_are_as_long_as_the_group_says(harness):
    harness.configure(share_session_timeout_ms=50_000)
    settled(harness, "A")
    harness.advance(49 * SECOND)
    assert harness.group.members
    harness.advance(2 * SECOND)
    assert not harness.group.members


def test_fencing_that_the_log_refuses_is_tried_again(harness):
    settled(harness, "A")
    harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
    harness.advance(46 * SECOND)
    assert harness.group.members
    harness.refuse_appends_with = None
    harness.advance(SECOND)
    assert not harness.group.members


def test_the_next_coordinator_gives_the_whole_session(harness):
    epoch = settled(harness, "A")
    harness.advance(40 * SECOND)
    after = harness.restarted()
    after.advance(44 * SECOND)
    assert after.beat("A", epoch) == (epoch, None)


def test_the_log_may_be_replayed_twice(harness):
    epoch = settled(harness, "A", "B")
    harness.heartbeat("B", LEAVE)
    after = harness.restarted(times=2)
    assert [*after.group.members] == ["A"]
    assert after.beat("A", epoch)[1] == {"t": [0, 1]}


def test_the_target_waits_for_the_interval():
    harness = ShareHarness({"t": 2}, config={"group.share.assignment.interval.ms": "1000"})
    harness.beat("A", 0, "t")
    harness.initialize()
    assert harness.beat("A", 2) == (2, None)
    harness.advance(999)
    assert harness.beat("A", 2) == (2, None)
    harness.advance(1)
    assert harness.beat("A", 2) == (3, {"t": [0, 1]})


def test_partitions_that_are_added_are_initialised_and_given(harness):
    epoch = settled(harness, "A")
    harness.grow("t", 4)
    harness.beat("A", epoch)
    (plan,) = harness.plans
    assert [*plan.start_offsets] == [(T, 2), (T, 3)]
    harness.initialize()
    harness.beat("A", epoch)
    assert harness.beat("A", 0, "t")[1] == {"t": [0, 1, 2, 3]}


def test_a_topic_that_comes_later_is_read(harness):
    epoch = settled(harness, "A", topics=("t", "later"))
    harness.create("later", 1)
    epoch, _ = harness.beat("A", epoch)
    assert harness.initialize() == 1
    assert harness.beat("A", epoch)[1] == {"t": [0, 1], "later": [0]}


def test_a_topic_that_goes_is_forgotten(harness):
    settled(harness, "A", topics=("t", "u"))
    harness.delete("t")
    assert [state.name for state in harness.group.states.initialized.values()] == ["u"]
    harness.beat("A", 0, "t", "u")
    assert harness.beat("A", 0, "t", "u")[1] == {"u": [0]}


# --- Share partitions


def test_initialising_that_fails_is_tried_again(harness):
    harness.beat("A", 0, "t")
    harness.initialize(is_done=False)
    assert not harness.group.states.initializing
    harness.beat("A", 2)
    assert harness.initialize() == 1
    assert harness.beat("A", 2) == (3, {"t": [0, 1]})


def test_initialising_that_is_not_answered_is_tried_again_after_a_while(harness):
    harness.beat("A", 0, "t")
    (plan,) = harness.plans
    assert (plan.state_epoch, dict(plan.start_offsets)) == (2, {(T, 0): -1, (T, 1): -1})
    harness.beat("A", 2)
    harness.advance(29 * SECOND)
    harness.beat("A", 2)
    assert len(harness.plans) == 1
    harness.advance(SECOND)
    harness.beat("A", 2)
    assert len(harness.plans) == 2


def test_initialising_survives_the_coordinator(harness):
    harness.beat("A", 0, "t")
    after = harness.restarted()
    after.beat("A", 2)
    assert not after.plans
    after.advance(30 * SECOND)
    after.beat("A", 2)
    assert after.initialize() == 1
    assert after.beat("A", 2)[1] == {"t": [0, 1]}


def test_initialised_after_the_group_was_deleted(harness):
    harness.beat("A", 0, "t")
    harness.heartbeat("A", LEAVE)
    harness.ask(DeleteGroup("sh"))
    assert harness.initialize() == 1
    assert not harness.shard.groups


def test_a_topic_deleted_while_it_was_initialised(harness):
    harness.beat("A", 0, "t")
    harness.delete("t")
    harness.initialize()
    assert harness.group.states.initialized[T].name == UNKNOWN


# --- Operators


def test_described(harness):
    epoch = settled(harness, "A")
    found = harness.described()
    assert (found.group_state, found.assignor_name) == ("Stable", "simple")
    assert (found.group_epoch, found.assignment_epoch) == (epoch, epoch)
    (member,) = found.members
    assert member.subscribed_topic_names == ["t"]
    (assigned,) = member.assignment.topic_partitions
    assert (assigned.topic_name, assigned.partitions) == ("t", [0, 1])
    harness.heartbeat("A", LEAVE)
    assert harness.described().group_state == "Empty"


def test_offsets_are_altered_in_groups_without_members(harness):
    harness.ask(AlterShareOffsets("sh", {(T, 1): 7}))
    assert harness.group.states.initializing[T].partitions == (1,)
    harness.ask(StatesInitialized("sh", {T: [1]}, is_done=True))
    assert harness.ask(ListShareStates("sh"))[T].partitions == (1,)
    settled(harness, "A")
    with pytest.raises(KafkaError) as refusal:
        harness.ask(AlterShareOffsets("sh", {(T, 1): 7}))
    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_topics_are_deleted(harness):
    settled(harness, "A", topics=("t", "u"))
    with pytest.raises(KafkaError) as refusal:
        harness.ask(DeleteShareOffsets("sh", (T,)))
    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP
    harness.heartbeat("A", LEAVE)
    unknown = UUID(int=77)
    found = harness.ask(DeleteShareOffsets("sh", (T, unknown)))
    assert found.topics[T].partitions == (0, 1)
    assert found.unknown == (unknown,)
    assert [*harness.group.states.deleting] == [T]
    # A coordinator that dies in between leaves them to be deleted again.
    after = harness.restarted()
    assert after.ask(DeleteShareOffsets("sh", (T,))).topics[T].partitions == (0, 1)
    after.ask(ShareOffsetsDeleted("sh", (T,)))
    assert not after.group.states.deleting
    assert [state.name for state in after.group.states.initialized.values()] == ["u"]


def test_a_group_is_deleted_with_its_share_partitions(harness):
    settled(harness, "A")
    harness.heartbeat("A", LEAVE)
    assert harness.ask(DeleteShareOffsets("sh", None)).topics[T].partitions == (0, 1)
    harness.ask(ShareOffsetsDeleted("sh", (T,)))
    harness.ask(DeleteGroup("sh"))
    assert not harness.shard.groups
    assert not harness.restarted().shard.groups
    assert not harness.restarted(times=2).shard.groups


def test_a_group_is_made_again_after_its_deletion(harness):
    settled(harness, "A")
    harness.heartbeat("A", LEAVE)
    harness.ask(DeleteShareOffsets("sh", None))
    harness.ask(DeleteGroup("sh"))
    assert harness.beat("A", 0, "t") == (2, {})
    assert harness.initialize() == 1
    assert harness.beat("A", 2) == (3, {"t": [0, 1]})


# --- Anything


@pytest.mark.parametrize("seed", range(60))
def test_any_order_of_events_comes_to_rest(seed):
    rng = random.Random(seed)
    harness = ShareHarness(
        {"t": 2, "u": 1}, config=rng.choice([{}, {"group.share.assignment.interval.ms": "5000"}])
    )
    members = {}
    counts = {"t": 2, "u": 1}
    for _ in range(80):
        name = rng.choice("ABCDE")
        match rng.randrange(10):
            case 0 | 1 | 2:
                topics = rng.choice([("t",), ("u",), ("t", "u")])
                members[name] = harness.beat(name, 0, *topics)[0]
            case 3 | 4 | 5 if name in members:
                ticket = harness.heartbeat(name, members[name])
                if isinstance(harness.answers[ticket], KafkaError):
                    del members[name]
                else:
                    members[name] = harness.answers[ticket].member_epoch
            case 6 if name in members:
                harness.heartbeat(name, LEAVE)
                del members[name]
            case 7:
                harness.initialize(is_done=rng.random() < 0.7)
            case 8:
                harness.advance(rng.randrange(20 * SECOND))
            case 9 if rng.random() < 0.5:
                harness = harness.restarted(times=rng.choice([1, 2]))
            case 9:
                counts["t"] += 1
                harness.grow("t", counts["t"])
    members = {}
    for name in harness.group.members if harness.group else ():
        members[name] = 0
    for name in members or {"A": 0}:
        harness.beat(name, 0, "t", "u")
        members[name] = 0
    harness.advance(31 * SECOND)
    for _ in range(16):
        harness.initialize()
        for name in members:
            members[name], _ = harness.beat(name, 0, "t", "u")
        harness.advance(5 * SECOND)
    assert harness.group.is_settled
    held = {
        (topic, index)
        for name in members
        for topic, indexes in harness.beat(name, members[name], "t", "u")[1].items()
        for index in indexes
    }
    assert held == {(topic, index) for topic, count in counts.items() for index in range(count)}
