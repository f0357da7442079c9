"""States, offsets and lists of streams groups (rules 481 to 483 and 485)."""

import pytest

from kafkalite.group.kinds import ANY_PARTITION, Committer
from kafkalite.group.streams.group import StreamsGroup
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.group.harness import Client, GroupHarness
from tests.group.streams.harness import StreamsHarness, Thread
from tests.group.streams.topologies import subtopology

SIMPLE = (subtopology("0", "in1"),)
COUNTING_TOPICS = {"in1": 2, "st-rep": 2, "st-store-changelog": 2}


def stable(*names, topics=None, topology=SIMPLE):
    harness = StreamsHarness(topics or {"in1": 4})
    threads = [Thread(name, topology=topology) for name in names]
    for thread in threads:
        harness.join(thread)
    harness.settle(*threads)
    return harness, *threads


def committer(member_id="a", epoch=2, **fields):
    return Committer(
        group_id="app",
        member_id=member_id,
        group_instance_id=None,
        epoch=epoch,
        **{"api_version": 9, **fields},
    )


def refusal_of(call):
    with pytest.raises(KafkaError) as refusal:
        call()
    return refusal.value.code


class TestState:
    """Rule 485."""

    def test_the_states_are_found_in_this_order(self):
        harness = StreamsHarness(config={"group.streams.assignment.interval.ms": "1000"})
        a, b = (Thread(name, topology=SIMPLE) for name in "ab")
        harness.join(a)
        assert harness.group.state_name == "NotReady"
        harness.create("in1", 2)
        harness.beat(a)
        assert harness.group.state_name == "Assigning"
        harness.advance(1_000)
        harness.beat(a)
        assert harness.group.state_name == "Stable"
        harness.join(b)
        harness.advance(1_000)
        harness.beat(b)
        assert harness.group.state_name == "Reconciling"
        harness.leave(a)
        harness.leave(b)
        assert harness.group.state_name == "Empty"

    def test_lists_tell_kind_and_state_and_a_filter_has_a_word_of_its_own(self):
        harness = StreamsHarness()
        harness.join(Thread("a", topology=SIMPLE))
        (listed,) = harness.list_groups(types=["Streams"])
        assert (listed.group_id, listed.protocol_type) == ("app", "streams")
        assert (listed.group_state, listed.group_type) == ("NotReady", "streams")
        assert harness.list_groups(states=["Not_Ready"]) == [listed]
        assert harness.list_groups(states=["NotReady"]) == []
        assert harness.list_groups(types=["consumer"]) == []

    def test_describe_groups_does_not_know_it(self):
        harness, _ = stable("a")
        described = harness.describe(version=6)
        assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert described.group_state == "Dead"


class TestCommit:
    """Rule 482."""

    def test_without_members_everybody_may_who_has_no_epoch(self):
        harness, a = stable("a")
        harness.leave(a)
        assert harness.group.check_commit(committer("", -1)) is ANY_PARTITION

    def test_with_members_only_they_may(self):
        group = stable("a")[0].group
        assert refusal_of(lambda: group.check_commit(committer("", -1))) is (
            ErrorCode.UNKNOWN_MEMBER_ID
        )
        assert refusal_of(lambda: group.check_commit(committer("z"))) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_member_has_to_use_version_9(self):
        group = stable("a")[0].group
        assert refusal_of(lambda: group.check_commit(committer(api_version=8))) is (
            ErrorCode.UNSUPPORTED_VERSION
        )

    def test_a_member_with_its_epoch_may(self):
        assert stable("a")[0].group.check_commit(committer()) is ANY_PARTITION

    def test_a_newer_epoch_is_stale(self):
        group = stable("a")[0].group
        assert refusal_of(lambda: group.check_commit(committer(epoch=3))) is (
            ErrorCode.STALE_MEMBER_EPOCH
        )

    def test_tasks_that_came_later_or_never_are_stale_and_those_being_given_up_are_not(self):
        harness, a = stable("a")
        b = Thread("b", topology=SIMPLE)
        harness.join(b)
        harness.beat(a)
        assert a.epoch == 2
        mine, others = a.active.split(), {"0_0", "0_1", "0_2", "0_3"}
        harness.beat(a, owned=True)
        harness.settle(a, b)
        check = harness.group.check_commit(committer("a", 2))
        for task in mine:
            check("in1", ZERO_UUID, int(task[-1]))
        for task in others - set(mine):
            number = int(task[-1])
            assert refusal_of(lambda n=number: check("in1", ZERO_UUID, n)) is (
                ErrorCode.STALE_MEMBER_EPOCH
            )
        check = harness.group.check_commit(committer("b", 2))
        number = int(b.active[-1])
        assert refusal_of(lambda: check("in1", ZERO_UUID, number)) is ErrorCode.STALE_MEMBER_EPOCH

    def test_tasks_being_given_up_may_be_committed_with_an_older_epoch(self):
        harness, a, b = stable("a", "b")
        harness.beat(a, rack_id="r")  # epoch 4 for both, who keep what they have
        harness.settle(a, b)
        c = Thread("c", topology=SIMPLE)
        harness.join(c)
        harness.beat(a)
        harness.beat(b)
        losing = a if harness.group.members["a"].pending_revocation else b
        (revoked,) = harness.group.members[losing.member_id].pending_revocation.active
        check = harness.group.check_commit(committer(losing.member_id, 3))
        check("in1", ZERO_UUID, revoked.partition)

    def test_topics_that_the_topology_does_not_read_are_stale(self):
        harness, a = stable("a")
        harness.beat(a, rack_id="r")
        check = harness.group.check_commit(committer("a", 2))
        assert refusal_of(lambda: check("other", ZERO_UUID, 0)) is ErrorCode.STALE_MEMBER_EPOCH

    def test_without_a_topology_an_older_epoch_is_stale(self):
        harness, a = stable("a")
        harness.beat(a, rack_id="r")
        harness.group.topology = None
        harness.replica.groups["app"].topology = None
        assert refusal_of(lambda: harness.group.check_commit(committer("a", 2))) is (
            ErrorCode.STALE_MEMBER_EPOCH
        )

    def test_a_transaction_that_names_nobody_may(self):
        group = stable("a")[0].group
        nobody = committer("", -1, in_transaction=True)
        assert group.check_commit(nobody) is ANY_PARTITION
        named = committer("z", -1, in_transaction=True)
        assert refusal_of(lambda: group.check_commit(named)) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_member_of_a_transaction_has_no_version(self):
        group = stable("a")[0].group
        assert group.check_commit(committer(api_version=3, in_transaction=True)) is ANY_PARTITION

    def test_a_stale_member_of_a_transaction_is_told_of_its_generation(self):
        """As transactional clients know it."""
        harness, a = stable("a")
        harness.beat(a, rack_id="r")
        group = harness.group
        newer = committer(epoch=9, in_transaction=True)
        assert refusal_of(lambda: group.check_commit(newer)) is ErrorCode.ILLEGAL_GENERATION
        check = group.check_commit(committer(epoch=1, in_transaction=True))
        assert refusal_of(lambda: check("in1", ZERO_UUID, 0)) is ErrorCode.ILLEGAL_GENERATION

    def test_commits_come_to_the_log_while_the_group_is_not_ready(self):
        harness = StreamsHarness()
        a = Thread("a", topology=SIMPLE)
        harness.join(a)
        client = Client(member_id="a", generation=a.epoch)
        ticket = harness.commit({("in1", 0): 5}, client=client, version=9)
        assert harness.partition_codes(ticket) == [ErrorCode.NONE]
        assert harness.fetch(("in1", 0)) == {("in1", 0): 5}


class TestFetch:
    """Rule 482."""

    def test_who_says_nothing_of_himself_may(self):
        stable("a")[0].group.check_fetch(None, -1)

    def test_a_member_needs_its_epoch(self):
        group = stable("a")[0].group
        group.check_fetch("a", 2)
        assert refusal_of(lambda: group.check_fetch("a", 1)) is ErrorCode.STALE_MEMBER_EPOCH
        assert refusal_of(lambda: group.check_fetch("z", 2)) is ErrorCode.UNKNOWN_MEMBER_ID
        assert refusal_of(lambda: group.check_fetch(None, 2)) is ErrorCode.UNKNOWN_MEMBER_ID


class TestTopicsAndDeletion:
    """Rule 483."""

    def test_source_and_repartition_topics_are_read_while_there_are_members(self):
        harness = StreamsHarness(COUNTING_TOPICS)
        a = Thread("a")
        harness.join(a)
        read = [name for name in COUNTING_TOPICS if harness.group.is_subscribed_to(name)]
        assert read == ["in1", "st-rep"]
        harness.leave(a)
        assert not harness.group.is_subscribed_to("in1")

    def test_offsets_of_topics_that_are_read_are_not_deleted(self):
        harness, a = stable("a")
        client = Client(member_id="a", generation=a.epoch)
        harness.answer(harness.commit({("in1", 0): 5}, client=client, version=9))
        assert harness.partition_codes(harness.delete_offsets(("in1", 0))) == [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        ]
        harness.leave(a)
        assert harness.partition_codes(harness.delete_offsets(("in1", 0))) == [ErrorCode.NONE]

    def test_a_group_with_members_is_not_deleted(self):
        harness, a = stable("a")
        assert harness.code(harness.delete_group()) is ErrorCode.NON_EMPTY_GROUP
        harness.leave(a)
        written = len(harness.log)
        harness.answer(harness.delete_group())
        assert harness.group is None
        assert harness.kinds(written) == ["-TargetAssignmentMetadata", "-Metadata", "-Topology"]

    def test_an_empty_group_without_offsets_vanishes_at_the_next_check(self):
        harness, a = stable("a")
        harness.leave(a)
        harness.advance(harness.settings.offsets_retention_check_interval_ms)
        assert harness.group is None

    def test_offsets_expire_by_the_time_of_their_commit(self):
        harness, a = stable("a")
        client = Client(member_id="a", generation=a.epoch)
        harness.answer(harness.commit({("in1", 0): 5}, client=client, version=9))
        harness.leave(a)
        harness.advance(harness.settings.offsets_retention_ms + 600_000)
        assert harness.fetch() == {}


class TestClassicProtocol:
    """Rule 481."""

    def test_an_empty_group_becomes_classic_and_its_offsets_stay(self):
        harness, a = stable("a")
        harness.leave(a)
        harness.answer(harness.commit({("in1", 0): 5}))
        client = Client()
        GroupHarness.join(harness, client)
        harness.sync(client)
        assert not isinstance(harness.group, StreamsGroup)
        assert harness.fetch(("in1", 0)) == {("in1", 0): 5}

    def test_a_join_that_is_refused_changes_nothing(self):
        harness, a = stable("a")
        harness.leave(a)
        ticket = harness.join_once(Client(session_ms=1))
        assert harness.code(ticket) is ErrorCode.INVALID_SESSION_TIMEOUT
        assert isinstance(harness.group, StreamsGroup)

    def test_a_group_with_members_refuses_the_classic_protocol(self):
        harness, _ = stable("a")
        client = Client(member_id="a", generation=2)
        assert harness.code(harness.join_once(client)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert harness.heartbeat(client) is ErrorCode.UNKNOWN_MEMBER_ID
        assert harness.code(harness.sync(client)) is ErrorCode.UNKNOWN_MEMBER_ID
        assert harness.code(GroupHarness.leave(harness, client)) is ErrorCode.UNKNOWN_MEMBER_ID
