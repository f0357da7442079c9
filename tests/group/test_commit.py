"""OffsetCommit and TxnOffsetCommit: who may commit (rules 119, 145-149)."""

import pytest

from kafkalite.group.classic.states import GroupState
from kafkalite.wire.errors import ErrorCode
from tests.group.harness import Client, GroupHarness

AT_FIVE = {("topic", 0): 5}


@pytest.fixture
def harness():
    return GroupHarness()


class TestWithoutMembership:
    """Rule 145: generation -1 and no member id."""

    def test_a_commit_makes_a_group(self, harness):
        """Rule 157."""
        assert harness.partition_codes(harness.commit(AT_FIVE)) == [ErrorCode.NONE]
        assert harness.state is GroupState.EMPTY
        assert harness.group.protocol_type is None

    def test_empty_group_id_is_allowed(self, harness):
        """Rule 126: old clients."""
        harness.commit(AT_FIVE, group_id="")
        assert harness.shard.offsets.get("", "topic", 0).offset == 5

    def test_group_with_members_refuses(self, harness):
        harness.stable_group(Client())
        assert code_of(harness, harness.commit(AT_FIVE)) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_group_that_has_become_empty_accepts(self, harness):
        (client,) = harness.stable_group(Client())
        harness.leave(client)
        assert harness.partition_codes(harness.commit(AT_FIVE)) == [ErrorCode.NONE]

    @pytest.mark.parametrize(
        ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_generation_of_an_unknown_group_is_refused(self, harness, version, code):
        ticket = harness.commit(AT_FIVE, client=Client("x", 1), version=version)
        assert code_of(harness, ticket) is code
        assert harness.group is None


class TestMembers:
    def test_stable_group_accepts(self, harness):
        (client,) = harness.stable_group(Client())
        ticket = harness.commit(AT_FIVE, client=client)
        assert harness.partition_codes(ticket) == [ErrorCode.NONE]

    def test_rebalancing_group_accepts_the_last_generation(self, harness):
        """Rule 146: work that was done is not to be lost."""
        a, b = harness.stable_group(Client(), Client())
        harness.join(a)
        assert harness.partition_codes(harness.commit(AT_FIVE, client=b)) == [ErrorCode.NONE]

    def test_group_without_an_assignment_refuses(self, harness):
        """Rule 146."""
        client = Client()
        harness.join(client)
        ticket = harness.commit(AT_FIVE, client=client)
        assert code_of(harness, ticket) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_old_generation_is_refused(self, harness):
        (client,) = harness.stable_group(Client())
        client.generation -= 1
        assert code_of(harness, harness.commit(AT_FIVE, client=client)) is (
            ErrorCode.ILLEGAL_GENERATION
        )

    def test_unknown_member_is_refused(self, harness):
        harness.stable_group(Client())
        ticket = harness.commit(AT_FIVE, client=Client("x", 1))
        assert code_of(harness, ticket) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_fenced_static_member_is_refused(self, harness):
        (old,) = harness.stable_group(Client(instance_id="a"))
        harness.join(Client(instance_id="a"))
        ticket = harness.commit(AT_FIVE, client=old)
        assert code_of(harness, ticket) is ErrorCode.FENCED_INSTANCE_ID


class TestWhatIsStored:
    def test_offset_epoch_and_metadata(self, harness):
        harness.commit(AT_FIVE, leader_epoch=3, metadata="m", version=6)
        stored = harness.replica.offsets.get("g", "topic", 0)
        assert (stored.offset, stored.leader_epoch, stored.metadata) == (5, 3, "m")
        assert stored.commit_timestamp_ms == harness.now.wall_ms
        assert stored.expire_timestamp_ms == -1

    def test_retention_of_the_commit_itself(self, harness):
        """Rule 149: v2-4."""
        harness.commit(AT_FIVE, retention_ms=1000, version=4)
        stored = harness.replica.offsets.get("g", "topic", 0)
        assert stored.expire_timestamp_ms == harness.now.wall_ms + 1000

    def test_null_metadata_is_empty(self, harness):
        harness.commit(AT_FIVE, metadata=None)
        assert harness.shard.offsets.get("g", "topic", 0).metadata == ""

    def test_too_long_metadata_fails_its_partition_alone(self, harness):
        """Rule 147."""
        long = harness.commit(AT_FIVE, metadata="x" * 4097)
        assert harness.partition_codes(long) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        assert harness.fetch() == {}
        fits = harness.commit(AT_FIVE, metadata="x" * 4096)
        assert harness.partition_codes(fits) == [ErrorCode.NONE]

    def test_refused_append_stores_nothing(self, harness):
        """Rule 148: NOT_ENOUGH_REPLICAS and the like reach the client by another name."""
        harness.refuse_appends_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert code_of(harness, harness.commit(AT_FIVE)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert harness.fetch() == {}


class TestInTransactions:
    """Rule 119."""

    def test_without_membership(self, harness):
        ticket = harness.commit_in_transaction(AT_FIVE)
        assert harness.partition_codes(ticket) == [ErrorCode.NONE]

    def test_empty_group(self, harness):
        harness.commit(AT_FIVE)
        ticket = harness.commit_in_transaction(AT_FIVE)
        assert harness.partition_codes(ticket) == [ErrorCode.NONE]

    def test_old_clients_name_no_member_and_are_let_in(self, harness):
        """Before v3 they could not."""
        harness.stable_group(Client())
        ticket = harness.commit_in_transaction(AT_FIVE)
        assert harness.partition_codes(ticket) == [ErrorCode.NONE]

    def test_member_may_commit_while_the_group_rebalances(self, harness):
        client = Client()
        harness.join(client)
        ticket = harness.commit_in_transaction(AT_FIVE, client=client)
        assert harness.partition_codes(ticket) == [ErrorCode.NONE]

    def test_unknown_group_with_a_generation_is_refused(self, harness):
        ticket = harness.commit_in_transaction(AT_FIVE, client=Client("x", 1))
        assert code_of(harness, ticket) is ErrorCode.ILLEGAL_GENERATION

    def test_old_generation_is_refused(self, harness):
        (client,) = harness.stable_group(Client())
        client.generation += 1
        ticket = harness.commit_in_transaction(AT_FIVE, client=client)
        assert code_of(harness, ticket) is ErrorCode.ILLEGAL_GENERATION

    def test_unknown_member_is_refused(self, harness):
        harness.stable_group(Client())
        ticket = harness.commit_in_transaction(AT_FIVE, client=Client("x", 1))
        assert code_of(harness, ticket) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_too_long_metadata_fails_its_partition_alone(self, harness):
        ticket = harness.commit_in_transaction(AT_FIVE, metadata="x" * 4097)
        assert harness.partition_codes(ticket) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]


def code_of(harness, ticket):
    return harness.answers[ticket].code
