import pytest

from kafkalite.api.describe_topic_partitions import HANDLERS
from kafkalite.meta.events import UnregisterBroker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tests.api.cluster_kit import ClusterKit
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    made = MetadataKit()
    for name, partitions in (("m1", 2), ("m2", 3), ("m3", 1)):
        made.create(name, partitions)
    return made


def describe(kit, *names, limit=2000, cursor=None):
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return kit.ask(HANDLER, request)


def page(response):
    topics = [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]
    after = response.next_cursor
    return topics, None if after is None else (after.topic_name, after.partition_index)


ALL = [("m1", [0, 1]), ("m2", [0, 1, 2]), ("m3", [0])]


def test_topics_come_in_the_order_of_names_each_once(kit):
    """KIP-966."""
    assert page(describe(kit, "m3", "m1", "m2", "m1")) == (ALL, None)


def test_no_names_mean_all_topics(kit):
    assert page(describe(kit)) == (ALL, None)


@pytest.mark.parametrize(
    ("limit", "topics", "cursor"),
    [
        (6, ALL, None),
        (5, ALL[:2], ("m3", 0)),
        (3, [("m1", [0, 1]), ("m2", [0])], ("m2", 1)),
        (2, ALL[:1], ("m2", 0)),
        (1, [("m1", [0])], ("m1", 1)),
        (0, [("m1", [0])], ("m1", 1)),
        (-1, [("m1", [0])], ("m1", 1)),
    ],
)
def test_a_page_ends_after_the_limit(kit, limit, topics, cursor):
    """Each row is what Kafka 4.3 answered."""
    assert page(describe(kit, "m1", "m2", "m3", limit=limit)) == (topics, cursor)


def test_the_broker_bounds_the_limit():
    kit = MetadataKit(max_request_partition_size_limit="2")
    kit.create("a", 5)
    assert page(describe(kit)) == ([("a", [0, 1])], ("a", 2))


@pytest.mark.parametrize(
    ("cursor", "limit", "topics", "after"),
    [
        (("m2", 1), 2000, [("m2", [1, 2]), ("m3", [0])], None),
        (("m2", 1), 1, [("m2", [1])], ("m2", 2)),
        (("m2", 7), 2000, [("m2", []), ("m3", [0])], None),
    ],
)
def test_a_cursor_goes_on_where_the_last_page_ended(kit, cursor, limit, topics, after):
    assert page(describe(kit, limit=limit, cursor=cursor)) == (topics, after)
    assert page(describe(kit, "m1", "m2", "m3", limit=limit, cursor=cursor)) == (topics, after)


def test_all_pages_together_are_everything(kit):
    seen, cursor = [], None
    for _ in range(20):
        response = describe(kit, limit=1, cursor=cursor)
        topics, cursor = page(response)
        seen += [(name, index) for name, indexes in topics for index in indexes]
        if cursor is None:
            break
    assert seen == [(name, index) for name, indexes in ALL for index in indexes]


@pytest.mark.parametrize(
    ("names", "cursor"),
    [(["m1", "m2"], ("m2", -1)), (["m1", "m3"], ("m2", 0)), (["m1"], ("nosuch", 0))],
)
def test_an_impossible_cursor_is_refused_for_each_topic(kit, names, cursor):
    response = describe(kit, *names, cursor=cursor)
    assert [(t.name, t.error_code) for t in response.topics] == [
        (name, ErrorCode.INVALID_REQUEST) for name in names
    ]
    assert response.topics[0].topic_authorized_operations == -(2**31)


def test_topics_that_are_not_there_are_answered_by_their_name(kit):
    """Rule 19."""
    response = describe(kit, "bad name", "m3", "nosuch", "__consumer_offsets")
    assert [(t.name, t.error_code, t.is_internal) for t in response.topics] == [
        ("__consumer_offsets", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        ("m3", 0, False),
        ("nosuch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
    ]


def test_partitions_are_described(kit):
    (topic,) = describe(kit, "m3").topics
    assert topic.topic_id == kit.image.topics["m3"].topic_id
    assert topic.topic_authorized_operations == 3576
    (partition,) = topic.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
    assert partition.eligible_leader_replicas == partition.last_known_elr == []


def test_a_partition_without_a_leader_says_so(kit):
    """Rule 18."""
    kit.submit(UnregisterBroker(broker_id=1))
    (partition,) = describe(kit, "m3").topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_a_leader_that_the_client_cannot_reach_is_none():
    """Rules 17 and 18."""
    kit = ClusterKit(3)
    kit.assign("a", [2, 3])
    kit.register(2, listener="OTHER", epoch=12)
    (partition,) = describe(kit, "a").topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LISTENER_NOT_FOUND, -1)
    assert (partition.isr_nodes, partition.offline_replicas) == ([2, 3], [2])
