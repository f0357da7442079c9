"""StreamsGroupHeartbeat and StreamsGroupDescribe over the wire (rules 460, 479 and 480)."""

import time

import pytest

from kafkalite.api.streams_groups import _shown
from kafkalite.testing import Broker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafkalite.wire.messages.streams_group_describe import (
    STREAMS_GROUP_DESCRIBE,
    StreamsGroupDescribeRequest,
)
from kafkalite.wire.messages.update_features import (
    UPDATE_FEATURES,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tests.group.streams.harness import Thread, joining, words
from tests.group.streams.speaking import heartbeat, join
from tests.group.streams.topologies import COUNTING, message, subtopology
from tests.raw_client import RawClient

AT_ONCE = {
    "group.streams.assignment.interval.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 1,
}
SIMPLE = (subtopology("0", "in1"),)
READ_DELETE_DESCRIBE_AND_CONFIGS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


@pytest.fixture(scope="module")
def broker():
    with Broker(config=AT_ONCE) as started:
        started.create_topic("in1", partitions=3)
        yield started


@pytest.fixture
def client(broker):
    with RawClient(broker) as connected:
        yield connected


def describe(client, *group_ids, **fields):
    request = StreamsGroupDescribeRequest(group_ids=[*group_ids], **fields)
    return client.ask(STREAMS_GROUP_DESCRIBE, 0, request).groups


def test_a_member_joins_and_gets_its_tasks(client):
    response = join(client, "simple", Thread("a", topology=SIMPLE))
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.member_id, response.member_epoch, response.status) == ("a", 2, [])
    assert words(response.active_tasks) == "0_0 0_1 0_2"
    listed = client.ask(LIST_GROUPS, 5, ListGroupsRequest(types_filter=["streams"])).groups
    assert ("simple", "Stable") in [(each.group_id, each.group_state) for each in listed]


def test_missing_internal_topics_are_made_with_their_settings(broker, client):
    topology = (COUNTING[0], subtopology("1", repartition="st-rep:0:-1", changelogs="st-store"))
    a = Thread("a", topology=topology)
    response = join(client, "counting", a)
    assert [status.status_code for status in response.status] == [3]
    deadline = time.monotonic() + 10
    while response.status and time.monotonic() < deadline:
        response = heartbeat(client, "counting", a)
    assert words(response.active_tasks) == "0_0 0_1 0_2 1_0 1_1 1_2"
    topics = broker.server.services.metadata.image.topics
    assert len(topics["st-rep"].partitions) == 3
    assert topics["st-store"].configs == {"cleanup.policy": "compact"}


def test_a_topic_that_cannot_be_made_is_told_with_the_reason(client):
    topology = (subtopology("0", "in1", repartition="too-many:1:9"),)
    a = Thread("a", topology=topology)
    response = join(client, "failing", a)
    deadline = time.monotonic() + 10
    while "; Creation failed" not in response.status[0].status_detail:
        assert time.monotonic() < deadline
        response = heartbeat(client, "failing", a)
    detail = response.status[0].status_detail
    assert detail.startswith("Internal topics are missing: too-many; Creation failed: too-many (")
    assert detail.endswith(").")


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        (
            [subtopology("0", "in1 __consumer_offsets")],
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is "
            "prohibited.",
        ),
        (
            [subtopology("0", "in1", sinks="a!b", changelogs="..")],
            "Topic names a!b,.. are not valid topic names.",
        ),
    ],
)
def test_topics_that_no_application_may_have_are_refused_first(client, topology, words):
    a = Thread("a")
    response = join(client, "refused", a, topology=message(*topology), instance_id="i")
    assert response.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert response.error_message == words
    assert (response.member_id, response.member_epoch, response.status) == ("", 0, [])


def test_internal_topics_of_kafka_come_before_names_that_are_none(client):
    a = Thread("a")
    topology = message(subtopology("0", "a!b __consumer_offsets"))
    response = join(client, "refused", a, topology=topology)
    assert "Use of Kafka internal topics __consumer_offsets" in response.error_message


def test_requests_that_make_no_sense_are_refused(client):
    response = join(client, "refused", Thread("a"), instance_id="i")
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message == "Static membership is not yet supported."


def test_who_leaves_an_unknown_group_is_told_so(client):
    a = Thread("a")
    a.epoch = -1
    response = heartbeat(client, "unknown", a)
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_describe(client):
    join(client, "described", Thread("a", topology=SIMPLE))
    known, unknown, nameless = describe(
        client, "described", "unknown", "", include_authorized_operations=True
    )
    assert (known.error_code, known.group_state) == (ErrorCode.NONE, "Stable")
    assert known.members[0].client_host == "/127.0.0.1"
    assert known.members[0].client_id == "raw"
    assert known.authorized_operations == READ_DELETE_DESCRIBE_AND_CONFIGS
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert unknown.error_message == "Group unknown not found."
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
    (plain,) = describe(client, "described")
    assert plain.authorized_operations == -(2**31)


def test_many_failures_are_summed_up():
    failures = dict.fromkeys("abcde", "no")
    assert _shown(failures.items()) == "a (no), b (no), c (no) and 2 more"


def test_without_the_protocol_all_is_refused():
    config = {"group.coordinator.rebalance.protocols": "classic,consumer"}
    with Broker(config=config) as broker, RawClient(broker) as client:
        forbidden = Thread("a", topology=(subtopology("0", "__consumer_offsets"),))
        response = heartbeat(client, "g", Thread("a"), **joining(forbidden))
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION, "before anything else"
        assert describe(client, "g")[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_without_the_feature_all_is_refused():
    with Broker() as broker, RawClient(broker) as client:
        update = FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
        request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update])
        assert client.ask(UPDATE_FEATURES, 2, request).error_code == ErrorCode.NONE
        response = heartbeat(client, "g", Thread("a"), **joining(Thread("a")))
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
