"""Describe, list, delete (rules 153, 154, 157)."""

import pytest

from kafkalite.wire.errors import ErrorCode
from tests.group.harness import SESSION_MS, Client, GroupHarness

A, OTHER = ("topic", 0), ("other", 0)


@pytest.fixture
def harness():
    return GroupHarness()


class TestDescribe:
    def test_stable_group_with_its_members(self, harness):
        client, _ = harness.stable_group(Client(client_id="reader"), Client(instance_id="b"))
        group = harness.describe()
        assert (group.group_state, group.protocol_type, group.protocol_data) == (
            "Stable",
            "consumer",
            "range",
        )
        first, second = group.members
        assert (first.member_id, first.client_id, first.client_host) == (
            client.member_id,
            "reader",
            "/127.0.0.1",
        )
        assert first.member_metadata == client.protocols[0].metadata
        assert first.member_assignment == client.assignment
        assert second.group_instance_id == "b"

    def test_rebalancing_group_has_no_metadata(self, harness):
        client, _ = harness.stable_group(Client(), Client())
        harness.join(client)
        group = harness.describe()
        assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
        assert group.members[0].member_metadata == b""

    def test_group_of_offsets_alone_is_empty_and_has_no_type(self, harness):
        """Rule 157."""
        harness.commit({A: 1})
        group = harness.describe()
        assert (group.group_state, group.protocol_type, group.members) == ("Empty", "", [])

    @pytest.mark.parametrize(
        ("version", "code"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_unknown_group_is_dead_and_an_error_from_v6(self, harness, version, code):
        """Rule 154."""
        group = harness.describe(version=version)
        assert (group.group_state, group.error_code) == ("Dead", code)
        assert (group.error_message is None) == (code is ErrorCode.NONE)


class TestList:
    def test_every_group_with_state_and_type(self, harness):
        harness.stable_group(Client())
        harness.commit({A: 1}, group_id="offsets")
        listed = {g.group_id: (g.protocol_type, g.group_state, g.group_type)
                  for g in harness.list_groups()}  # fmt: skip
        assert listed == {
            "g": ("consumer", "Stable", "classic"),
            "offsets": ("", "Empty", "classic"),
        }

    def test_by_state_without_regard_to_case(self, harness):
        """Rule 154: v4."""
        harness.stable_group(Client())
        harness.commit({A: 1}, group_id="offsets")
        assert [g.group_id for g in harness.list_groups(states=[" sTable "])] == ["g"]
        assert harness.list_groups(states=["nonsense"]) == []

    def test_by_type_without_regard_to_case(self, harness):
        """Rule 154: v5."""
        harness.stable_group(Client())
        assert len(harness.list_groups(types=["Classic", "consumer"])) == 1
        assert harness.list_groups(types=["consumer"]) == []


class TestDeleteGroup:
    """Rule 153."""

    def test_group_and_offsets_are_gone_for_good(self, harness):
        harness.commit({A: 1, OTHER: 2})
        assert harness.code(harness.delete_group()) is ErrorCode.NONE
        assert harness.group is None
        assert harness.fetch() == {}
        assert harness.restarted().group is None

    def test_group_with_members_is_refused(self, harness):
        harness.stable_group(Client())
        assert harness.code(harness.delete_group()) is ErrorCode.NON_EMPTY_GROUP

    def test_unknown_group_is_refused(self, harness):
        assert harness.code(harness.delete_group()) is ErrorCode.GROUP_ID_NOT_FOUND

    def test_timers_of_ids_handed_out_go_with_it(self, harness):
        pending = harness.hand_out(Client())
        harness.delete_group()
        harness.advance(SESSION_MS)
        assert harness.code(harness.join(pending)) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_deleted_group_can_begin_again(self, harness):
        (client,) = harness.stable_group(Client())
        harness.leave(client)
        harness.delete_group()
        (again,) = harness.stable_group(Client())
        assert again.generation == 1


class TestDeleteOffsets:
    """Rule 153."""

    def test_topic_that_is_not_read_any_more(self, harness):
        (client,) = harness.stable_group(Client(topics=("topic",)))
        harness.commit({A: 1, OTHER: 1}, client=client)
        ticket = harness.delete_offsets(A, OTHER)
        assert harness.partition_codes(ticket) == [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
            ErrorCode.NONE,
        ]
        assert harness.fetch() == {A: 1}

    def test_group_without_members(self, harness):
        harness.commit({A: 1})
        assert harness.partition_codes(harness.delete_offsets(A)) == [ErrorCode.NONE]
        assert harness.fetch() == {}

    def test_offset_that_is_not_there_is_no_error(self, harness):
        harness.commit({A: 1})
        assert harness.partition_codes(harness.delete_offsets(OTHER)) == [ErrorCode.NONE]

    def test_unknown_group(self, harness):
        assert harness.code(harness.delete_offsets(A)) is ErrorCode.GROUP_ID_NOT_FOUND

    def test_members_that_are_no_consumers(self, harness):
        harness.stable_group(Client(protocol_type="connect"))
        assert harness.code(harness.delete_offsets(A)) is ErrorCode.NON_EMPTY_GROUP
