"""ConsumerGroupHeartbeat: form, epochs, static members, answers (rules 300-311)."""

import pytest

from kafkalite.group.consumer.events import ConsumerHeartbeat
from kafkalite.group.consumer.heartbeat import check_heartbeat
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from tests.group.consumer.harness import SESSION_MS, ConsumerHarness, topic_id
from tests.group.work import calls_of

ASSIGNORS = ("uniform", "range")
JOIN = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1,
    "subscribed_topic_names": [],
    "topic_partitions": [],
}


@pytest.fixture
def harness():
    return ConsumerHarness(topics={"t1": 3, "t2": 2})


def check(version=1, **said):
    check_heartbeat(ConsumerGroupHeartbeatRequest(**{**JOIN, **said}), version, ASSIGNORS)


class TestForm:
    @pytest.mark.parametrize(
        "said",
        [
            {},
            {"subscribed_topic_names": None, "subscribed_topic_regex": ""},
            {"server_assignor": "range"},
            {"member_epoch": 3, "rebalance_timeout_ms": -1, "subscribed_topic_names": None},
            {"member_epoch": -1, "topic_partitions": None},
            {"member_epoch": -2, "instance_id": "i"},
        ],
    )
    def test_what_clients_say_is_accepted(self, said):
        check(**said)

    @pytest.mark.parametrize(
        "said",
        [
            {"member_id": ""},
            {"member_id": "  "},
            {"group_id": ""},
            {"instance_id": ""},
            {"rack_id": " "},
            {"rebalance_timeout_ms": -1},
            {"topic_partitions": None},
            {"topic_partitions": [TopicPartitions(topic_id=topic_id("t1"), partitions=[0])]},
            {"subscribed_topic_names": None},
            {"member_epoch": -2},
            {"member_epoch": -3},
        ],
    )
    def test_what_makes_no_sense_is_an_invalid_request(self, said):
        with pytest.raises(KafkaError) as refused:
            check(**said)
        assert refused.value.code is ErrorCode.INVALID_REQUEST

    def test_assignor_is_looked_at_last(self):
        with pytest.raises(KafkaError) as refused:
            check(server_assignor="sticky")
        assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
        with pytest.raises(KafkaError) as refused:
            check(server_assignor="sticky", rebalance_timeout_ms=-1)
        assert refused.value.code is ErrorCode.INVALID_REQUEST

    def test_version_0_may_join_without_an_id(self):
        check(0, member_id="")
        check(0, member_id="", member_epoch=-2, instance_id="i")
        for epoch in (1, -1):
            with pytest.raises(KafkaError):
                check(0, member_id="", member_epoch=epoch)


class TestGroup:
    def test_a_join_makes_the_group_and_nothing_else_does(self, harness):
        assert harness.refused("a", 3) is ErrorCode.GROUP_ID_NOT_FOUND
        assert harness.refused("a", -1) is ErrorCode.GROUP_ID_NOT_FOUND
        answer = harness.beat("a", 0)
        assert (answer.member_id, answer.epoch, answer.has) == ("a", 2, {"t1": [0, 1, 2]})
        assert harness.written == [5, 3, 7, 6, 8]

    def test_who_has_no_id_is_given_one(self, harness):
        assert harness.beat("", 0, version=0).member_id == "made"

    def test_who_reads_nothing_yet_is_at_epoch_1(self, harness):
        answer = harness.beat("a", 0, topics=[])
        assert (answer.epoch, answer.has) == (1, {})
        assert harness.epochs() == (1, 1, 1)

    def test_a_group_is_full_for_strangers_alone(self):
        harness = ConsumerHarness(topics={"t1": 3}, consumer_group_max_size=1)
        harness.beat("a", 0)
        assert harness.refused("b", 0) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert harness.beat("a", 0).epoch == 2

    def test_an_empty_classic_group_makes_room_and_keeps_its_offsets(self, harness):
        harness.commit({("t1", 0): 5})
        assert harness.beat("a", 0).epoch == 2
        assert harness.written == [5, 3, 7, 6, 8], "offsets alone have no record"
        assert harness.fetch(("t1", 0)) == {("t1", 0): 5}

    def test_heartbeats_are_not_for_classic_groups(self, harness):
        harness.commit({("t1", 0): 5})
        assert harness.refused("a", 1) is ErrorCode.GROUP_ID_NOT_FOUND


class TestEpochs:
    def test_strangers_are_unknown(self, harness):
        harness.beat("a", 0)
        assert harness.refused("b", 1) is ErrorCode.UNKNOWN_MEMBER_ID
        assert harness.refused("b", -1) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_later_epoch_is_a_lie(self, harness):
        harness.beat("a", 0)
        assert harness.refused("a", 99) is ErrorCode.FENCED_MEMBER_EPOCH

    def test_the_epoch_before_is_accepted_of_who_owns_no_more_than_it_has(self, harness):
        harness.beat("a", 0)
        harness.beat("a", 2, topics=["t1", "t2"])
        harness.advance(1_100)
        assert harness.beat("a", 2).epoch == 3
        assert harness.refused("a", 2) is ErrorCode.FENCED_MEMBER_EPOCH, "owned is not said"
        assert harness.refused("a", 2, owned={"t3": [0]}) is ErrorCode.FENCED_MEMBER_EPOCH
        assert harness.refused("a", 2, owned={"t1": [9]}) is ErrorCode.FENCED_MEMBER_EPOCH
        assert harness.beat("a", 2, owned={"t1": [0, 1, 2]}).epoch == 3
        assert harness.refused("a", 1, owned={}) is ErrorCode.FENCED_MEMBER_EPOCH

    def test_who_is_known_may_join_again_at_any_time(self, harness):
        harness.beat("a", 0)
        answer = harness.beat("a", 0)
        assert (answer.epoch, answer.has) == (2, {"t1": [0, 1, 2]})
        assert harness.written == []


class TestAnswers:
    def test_nothing_new_is_null_and_writes_nothing(self, harness):
        harness.beat("a", 0)
        answer = harness.beat("a", 2)
        assert (answer.epoch, answer.has, answer.interval_ms) == (2, None, 5_000)
        assert harness.beat("a", 2, owned={"t1": [0, 1, 2]}).has is None
        assert harness.written == []

    def test_who_says_all_is_told_all(self, harness):
        harness.beat("a", 0)
        said = {"rebalance_timeout_ms": 60_000, "owned": {}}
        assert harness.beat("a", 2, topics=["t1"], **said).has == {"t1": [0, 1, 2]}
        assert harness.beat("a", 2, subscribed_topic_regex="", **said).has == {"t1": [0, 1, 2]}
        assert harness.beat("a", 2, topics=["t1"], rebalance_timeout_ms=60_000).has is None
        assert harness.written == []

    def test_a_settings_interval_reaches_members_with_the_next_answer(self, harness):
        harness.beat("a", 0)
        harness.configure(consumer_heartbeat_interval_ms=6_000)
        assert harness.beat("a", 2).interval_ms == 6_000

    def test_the_order_of_topics_does_not_matter(self, harness):
        harness.beat("a", 0, topics=["t1", "t2"])
        harness.beat("a", 2, topics=["t2", "t1", "t2"])
        assert (harness.epochs(), harness.written) == ((2, 2, 2), [])

    @pytest.mark.parametrize(
        "said",
        [
            {"rack_id": "r"},
            {"server_assignor": "range"},
            {"rebalance_timeout_ms": 7},
        ],
    )
    def test_what_concerns_no_topic_is_written_and_bumps_nothing(self, harness, said):
        harness.beat("a", 0)
        harness.beat("a", 2, **said)
        assert (harness.epochs(), harness.written) == ((2, 2, 2), [5])
        harness.beat("a", 2)
        assert harness.written == [], "what is not said stays"

    def test_a_client_that_calls_itself_otherwise_is_written(self, harness):
        harness.beat("a", 0)
        harness.group.members["a"]
        assert harness.group.members["a"].client_host == "/127.0.0.1"


class TestStatic:
    def test_a_place_that_is_taken_is_not_given_away(self, harness):
        harness.beat("a", 0, instance_id="i")
        for member in ("b", "a"):
            assert harness.refused(member, 0, instance_id="i") is ErrorCode.UNRELEASED_INSTANCE_ID

    def test_unknown_places_and_former_holders_are_refused(self, harness):
        harness.beat("a", 0, instance_id="i")
        assert harness.refused("a", 2, instance_id="x") is ErrorCode.UNKNOWN_MEMBER_ID
        for epoch in (2, -1, -2):
            said = {"instance_id": "i"}
            assert harness.refused("b", epoch, **said) is ErrorCode.FENCED_INSTANCE_ID

    def test_who_comes_back_has_its_partitions_without_a_rebalance(self, harness):
        harness.beat("a", 0, instance_id="i")
        gone = harness.beat("a", -2, instance_id="i")
        assert (gone.epoch, gone.interval_ms, harness.written) == (-2, 0, [8])
        assert harness.state_name == "Reconciling"
        back = harness.beat("b", 0, instance_id="i")
        assert (back.epoch, back.has) == (2, {"t1": [0, 1, 2]})
        assert harness.written == [-8, -7, -5, 5, 7, 8, 8]
        assert harness.refused("a", 2, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
        assert harness.beat("b", 2, instance_id="i").epoch == 2

    def test_who_comes_back_for_other_topics_is_a_change(self, harness):
        harness.beat("a", 0, instance_id="i")
        harness.beat("a", -2, instance_id="i")
        harness.advance(1_100)
        back = harness.beat("b", 0, instance_id="i", topics=["t2"])
        assert (back.epoch, back.has) == (3, {"t2": [0, 1]})

    def test_others_do_not_get_what_somebody_comes_back_for(self, harness):
        harness.beat("a", 0, instance_id="i")
        harness.beat("a", -2, instance_id="i")
        harness.advance(1_100)
        assert harness.beat("b", 0).has == {}
        harness.advance(SESSION_MS - 1_000)
        assert "a" not in harness.group.members
        harness.beat("b", 3)
        assert harness.has("b") == {"t1": [0, 1, 2]}

    def test_a_static_member_may_leave_for_good(self, harness):
        harness.beat("a", 0, instance_id="i")
        assert harness.beat("a", -1, instance_id="i").epoch == -1
        assert harness.group.static_members == {}
        harness.advance(1_100)
        assert harness.beat("b", 0, instance_id="i").has == {"t1": [0, 1, 2]}


class TestLeaving:
    def test_who_leaves_is_gone_and_the_group_stays(self, harness):
        harness.beat("a", 0)
        answer = harness.beat("a", -1)
        assert (answer.epoch, answer.interval_ms, answer.has) == (-1, 0, None)
        assert harness.written == [-8, -7, -5, 3]
        assert (harness.state_name, harness.epochs()) == ("Empty", (3, 2))

    def test_others_take_over_at_their_next_heartbeat(self, harness):
        harness.beat("a", 0)
        harness.beat("b", 0)
        harness.settle("a", "b")
        harness.beat("a", -1)
        assert harness.state_name == "Assigning"
        harness.advance(1_100)
        assert harness.beat("b", harness.group.members["b"].member_epoch).has == {"t1": [0, 1, 2]}
        assert harness.state_name == "Stable"


def test_names_of_no_topics_are_little_work():
    """Few calls for each: a client may name as many as fit into a request."""

    def work(count):
        harness = ConsumerHarness(topics={"t1": 3})
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="a",
            member_epoch=0,
            rebalance_timeout_ms=1,
            subscribed_topic_names=[f"t{number}" for number in range(count)],
            topic_partitions=[],
        )
        event = ConsumerHeartbeat(request, "client", "/127.0.0.1", "made", "User:me")
        return calls_of(lambda: harness.shard.handle(event, 1, harness.now))

    work(1)  # imports what is needed
    assert work(6_000) - work(1_000) < 8 * 5_000
