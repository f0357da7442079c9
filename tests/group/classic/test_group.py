"""The group as an object: invariants that its callers rely on."""

import pytest

from kafkalite.group.classic.group import ClassicGroup, Member
from kafkalite.group.classic.states import GroupState
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.stored.group_metadata import GroupMetadataValue, MemberMetadata
from tests.group.harness import subscription


def member(name, *protocols, instance_id=None, **changes):
    offered = protocols or (("range", subscription("topic")),)
    values = {
        "member_id": name,
        "group_instance_id": instance_id,
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout_ms": 10,
        "session_timeout_ms": 5,
        "protocols": offered,
        **changes,
    }
    return Member(**values)


def group_of(*members):
    group = ClassicGroup("g")
    for one in members:
        group.add(one, "consumer")
    return group


class TestMembers:
    def test_first_member_leads_and_the_next_one_takes_over(self):
        group = group_of(member("a"), member("b"))
        assert group.leader_id == "a"
        group.remove("a")
        assert group.leader_id == "b"
        group.remove("b")
        assert group.leader_id is None

    def test_a_member_cannot_be_added_twice(self):
        group = group_of(member("a"))
        with pytest.raises(AssertionError):
            group.add(member("a"), "consumer")

    def test_an_instance_has_one_member(self):
        group = group_of(member("a", instance_id="i"))
        with pytest.raises(AssertionError):
            group.add(member("b", instance_id="i"), "consumer")

    def test_who_waits_cannot_be_removed_unanswered(self):
        group = group_of(member("a"))
        group.join_tickets["a"] = 1
        with pytest.raises(AssertionError):
            group.remove("a")

    def test_replacement_inherits_place_and_leadership(self):
        group = group_of(member("a", instance_id="i"), member("b"))
        group.replace("a", member("c", instance_id="i"))
        assert [*group.members] == ["c", "b"]
        assert (group.leader_id, group.static_members) == ("c", {"i": "c"})

    def test_replacement_of_a_follower_leaves_the_leader(self):
        group = group_of(member("a"), member("b", instance_id="i"))
        group.replace("b", member("c", instance_id="i"))
        assert group.leader_id == "a"

    def test_rebalance_timeout_is_the_longest(self):
        assert ClassicGroup("g").rebalance_timeout_ms == 0
        group = group_of(member("a"), member("b", rebalance_timeout_ms=99))
        assert group.rebalance_timeout_ms == 99

    def test_check_member_tells_unknown_from_fenced(self):
        group = group_of(member("a", instance_id="i"))
        assert group.check_member("a", "i").member_id == "a"
        assert group.check_member("a", None).member_id == "a"
        for member_id, instance_id, code in [
            ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
            ("a", "unknown", ErrorCode.UNKNOWN_MEMBER_ID),
            ("x", "i", ErrorCode.FENCED_INSTANCE_ID),
        ]:
            with pytest.raises(KafkaError) as raised:
                group.check_member(member_id, instance_id)
            assert raised.value.code is code


class TestProtocols:
    def test_the_common_one_with_most_votes_wins(self):
        """Rule 133."""
        group = group_of(
            member("a", ("x", b""), ("y", b""), ("z", b"")),
            member("b", ("y", b""), ("x", b"")),
            member("c", ("y", b""), ("x", b"")),
        )
        assert group.select_protocol() == "y"

    def test_of_equals_the_first_vote_wins(self):
        group = group_of(member("a", ("x", b""), ("y", b"")), member("b", ("y", b""), ("x", b"")))
        assert group.select_protocol() == "x"

    def test_what_left_with_a_member_is_no_longer_in_the_way(self):
        group = group_of(member("a", ("x", b"")))
        group.state = GroupState.PREPARING_REBALANCE
        assert not group.supports("consumer", (("y", b""),))
        group.update_protocols(group.members["a"], (("y", b""),))
        assert group.supports("consumer", (("y", b""),))

    def test_a_name_said_twice_counts_once(self):
        group = group_of(member("a", ("x", b"1"), ("x", b"2")))
        group.state = GroupState.PREPARING_REBALANCE
        assert group.supports("consumer", (("x", b""),))

    def test_unknown_protocol_has_no_metadata(self):
        assert member("a").metadata("other") == b""
        assert member("a").metadata(None) == b""


class TestLeader:
    def test_leader_who_joined_stays(self):
        group = group_of(member("a"), member("b"))
        group.join_tickets = {"a": 1, "b": 2}
        assert group.elect_joined_leader()
        assert group.leader_id == "a"

    def test_absent_leader_is_replaced_by_who_joined(self):
        group = group_of(member("a"), member("b"), member("c"))
        group.join_tickets = {"c": 1}
        assert group.elect_joined_leader()
        assert group.leader_id == "c"

    def test_nobody_joined(self):
        group = group_of(member("a"))
        assert not group.elect_joined_leader()
        assert group.leader_id == "a"


class TestSubscriptions:
    def test_they_are_the_union(self):
        group = group_of(
            member("a", ("range", subscription("x"))), member("b", ("range", subscription("y")))
        )
        group.state = GroupState.PREPARING_REBALANCE
        group.start_generation(now_wall_ms=1)
        assert group.subscribed_topics == {"x", "y"}
        assert group.is_subscribed_to("x")
        assert not group.is_subscribed_to("z")

    def test_unreadable_metadata_means_that_everything_may_be_read(self):
        """Rule 155."""
        group = group_of(member("a", ("range", b"?")))
        group.state = GroupState.PREPARING_REBALANCE
        group.start_generation(now_wall_ms=1)
        assert group.subscribed_topics is None
        assert group.is_subscribed_to("anything")

    def test_others_than_consumers_subscribe_to_nothing_that_we_know(self):
        group = ClassicGroup("g")
        group.add(member("a"), "connect")
        group.state = GroupState.PREPARING_REBALANCE
        group.start_generation(now_wall_ms=1)
        assert group.subscribed_topics is None
        assert not group.is_subscribed_to("topic")


class TestStates:
    def test_illegal_transition_is_a_bug(self):
        with pytest.raises(AssertionError, match=r"EMPTY.*STABLE"):
            ClassicGroup("g").transition_to(GroupState.STABLE, now_wall_ms=1)

    def test_transition_notes_the_time(self):
        group = ClassicGroup("g")
        group.transition_to(GroupState.PREPARING_REBALANCE, now_wall_ms=5)
        assert group.state_timestamp_ms == 5


class TestRestore:
    def stored(self, *members, **changes):
        values = {
            "protocol_type": "consumer",
            "generation": 3,
            "protocol": "range",
            "leader": members[0].member_id if members else None,
            "current_state_timestamp": 7,
            "members": list(members),
            **changes,
        }
        return GroupMetadataValue(**values)

    def data(self, name, **changes):
        values = {
            "member_id": name,
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout": 10,
            "session_timeout": 5,
            "subscription": subscription("topic"),
            "assignment": b"mine",
            **changes,
        }
        return MemberMetadata(**values)

    def test_members_come_back_stable(self):
        group = ClassicGroup("g")
        group.restore(self.stored(self.data("a"), self.data("b", group_instance_id="i")))
        assert group.state is GroupState.STABLE
        assert (group.generation, group.leader_id, group.state_timestamp_ms) == (3, "a", 7)
        assert group.members["a"].assignment == b"mine"
        assert group.static_members == {"i": "b"}
        assert group.subscribed_topics == {"topic"}

    def test_group_without_members_is_empty_and_reads_nothing(self):
        group = ClassicGroup("g")
        group.restore(self.stored(protocol=None))
        assert group.state is GroupState.EMPTY
        assert group.subscribed_topics == frozenset()

    def test_members_without_a_protocol_cannot_be_asked_what_they_read(self):
        group = ClassicGroup("g")
        group.restore(self.stored(self.data("a"), protocol=None))
        assert group.subscribed_topics is None

    def test_group_of_another_broker_without_a_type(self):
        group = ClassicGroup("g")
        group.restore(self.stored(protocol_type="", protocol=None))
        assert group.protocol_type is None

    def test_records_without_a_rebalance_timeout_use_the_session_timeout(self):
        """Group records of v0."""
        group = ClassicGroup("g")
        group.restore(self.stored(self.data("a", rebalance_timeout=-1)))
        assert group.rebalance_timeout_ms == 5

    def test_later_record_replaces_members_and_what_they_said(self):
        group = ClassicGroup("g")
        group.restore(self.stored(self.data("a"), self.data("b")))
        group.restore(
            self.stored(self.data("b", subscription=subscription("other"), session_timeout=6))
        )
        assert [*group.members] == ["b"]
        assert group.leader_id == "b"
        assert group.subscribed_topics == {"other"}
        assert group.members["b"].session_timeout_ms == 6

    def test_in_service_a_member_keeps_protocols_that_the_log_does_not_have(self):
        protocols = (("range", subscription("topic")), ("sticky", b"s"))
        group = group_of(member("a", *protocols))
        group.restore(self.stored(self.data("a")))
        assert group.members["a"].protocols == protocols
