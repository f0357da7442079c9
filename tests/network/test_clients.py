"""Clients of all kinds on one running broker, over real sockets."""

import struct
import threading
import time
from uuid import UUID

import pytest

from kafkalite.testing import Broker
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch, iterate_batches
from tests.raw_client import RawClient, encoded, framed

LARGE = 900_000


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        yield running


@pytest.fixture
def client(broker):
    with RawClient(broker) as one:
        yield one


@pytest.fixture
def topic(broker, request):
    name = request.node.name.split("[")[0][-100:]
    broker.create_topic(name)
    return name


def fetch_request(topic, *, offset=0, max_wait_ms=0, min_bytes=1, max_bytes=1 << 30):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, topic_id=ZERO_UUID, partitions=[wanted])],
    )


def produce_request(topic, *values, acks=-1):
    records = build_batch([Record(n, 1_000, None, value) for n, value in enumerate(values)])
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        acks=acks, timeout_ms=1_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def base_offset(response):
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == ErrorCode.NONE
    return answer.base_offset


def first_offsets(response):
    (data,) = response.responses[0].partitions
    assert data.error_code == ErrorCode.NONE
    return [header.base_offset for _, header in iterate_batches(bytes(data.records))]


def test_answers_come_in_the_order_of_requests(client, topic):
    """Rules 9-11: also when the first waits and the others could be answered at once."""
    sent = b"".join(
        [
            framed(encoded(PRODUCE, 9, produce_request(topic, b"a"), correlation_id=1)),
            framed(
                encoded(FETCH, 12, fetch_request(topic, offset=1, max_wait_ms=50), correlation_id=2)
            ),
            framed(encoded(PRODUCE, 9, produce_request(topic, b"b"), correlation_id=3)),
            framed(encoded(FETCH, 12, fetch_request(topic), correlation_id=4)),
        ]
    )
    client.send(sent)
    assert base_offset(client.receive_response(PRODUCE, 9, correlation_id=1)) == 0
    assert first_offsets(client.receive_response(FETCH, 12, correlation_id=2)) == []
    assert base_offset(client.receive_response(PRODUCE, 9, correlation_id=3)) == 1
    assert first_offsets(client.receive_response(FETCH, 12, correlation_id=4)) == [0, 1]


def test_request_may_come_byte_by_byte(client):
    """Rule 1."""
    for byte in framed(encoded(METADATA, 12, MetadataRequest(topics=[]))):
        client.send(bytes([byte]))
    assert client.receive_response(METADATA, 12).brokers


def test_unasked_for_acks_are_not_sent(client, topic):
    """Rule 12: the next answer is that to the next request."""
    for value in (b"a", b"b"):
        client.send_request(PRODUCE, 9, produce_request(topic, value, acks=0))
    assert base_offset(client.ask(PRODUCE, 9, produce_request(topic, b"c"))) == 2


def test_unknown_tags_are_skipped(client):
    """Rule 13: in the header and in the body."""
    body = encoded(METADATA, 12, MetadataRequest(topics=[]))
    size_of_client_id = struct.unpack(">h", body[8:10])[0]
    header_end = 10 + size_of_client_id
    assert body[header_end] == 0
    assert body[-1] == 0
    tags = b"\x02\x05\x03abc\x7f\x00"
    client.send_frame(body[:header_end] + tags + body[header_end + 1 : -1] + tags)
    assert client.receive_response(METADATA, 12).brokers


@pytest.mark.parametrize("client_id", [None, "", "клиент-☃", "a/b c\0d", "x" * 30_000])
def test_any_client_id_will_do(broker, client_id):
    """Rule 2; member ids are made of it (rule 128)."""
    with RawClient(broker, client_id=client_id) as client:
        found = client.ask(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g", key_type=0))
        assert found.error_code == ErrorCode.NONE
        joined = client.ask(
            JOIN_GROUP,
            6,
            JoinGroupRequest(
                group_id=f"group of {str(client_id)[:20]}",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            ),
        )
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert joined.member_id.startswith(client_id or "-")


def test_large_answers_are_whole(client, broker, topic):
    """Rule 82: straight from the file, with all that stands around it."""
    values = [bytes([n]) * LARGE for n in range(5)]
    for value in values:
        client.ask(PRODUCE, 9, produce_request(topic, value))
    response = client.ask(FETCH, 12, fetch_request(topic))
    assert first_offsets(response) == [0, 1, 2, 3, 4]
    assert [record.value for record in broker.records(topic)] == values


def test_reader_that_takes_nothing_keeps_nobody_waiting(broker, topic, client):
    """Goal: the loop goes on while a send is stuck, and the stuck one gets all of it in the end."""
    for n in range(5):
        client.ask(PRODUCE, 9, produce_request(topic, bytes([n]) * LARGE))
    with RawClient(broker, receive_buffer=4096) as slow:
        assert slow.ask(METADATA, 12, MetadataRequest(topics=[])).brokers
        for number in range(3):
            slow.send_request(FETCH, 12, fetch_request(topic), correlation_id=number)
        for _ in range(20):
            assert client.ask(METADATA, 12, MetadataRequest(topics=[])).brokers
        broker.delete_topic(topic)
        response = slow.receive_response(FETCH, 12, correlation_id=0)
        assert first_offsets(response) == [0, 1, 2, 3, 4]


def test_deleted_topic_ends_a_wait_in_another_connection(broker, client, topic):
    """By name here; by ID and all else in tests/api/test_fetch."""
    client.send_request(FETCH, 12, fetch_request(topic, max_wait_ms=60_000))
    waiting = threading.Event()
    threading.Thread(target=lambda: (broker.delete_topic(topic), waiting.set())).start()
    (data,) = client.receive_response(FETCH, 12).responses[0].partitions
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert waiting.wait(10)


def test_topics_that_differ_by_dot_and_underscore_do_not_both_exist(broker, client):
    """Rule 22."""
    broker.create_topic("with.dot_and")

    def code(name):
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        (topic,) = client.ask(METADATA, 12, request).topics
        return topic.error_code

    assert code("with_dot.and") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert code("with.dot_and") == ErrorCode.NONE
    assert code("with.dot-and") == ErrorCode.NONE
    broker.delete_topic("with.dot_and")
    assert code("with_dot.and") == ErrorCode.NONE


def test_names_that_are_no_text_are_told_or_close_the_connection(broker):
    """Echoed they grow threefold: what fits is answered, what does not is no crash."""
    header = encoded(METADATA, 1, MetadataRequest(topics=[]))[:-4]
    for size, fits in [(249, True), (10_000, True), (20_000, False)]:
        with RawClient(broker) as client:
            client.send_frame(header + struct.pack(">ih", 1, size) + b"\xff" * size)
            if fits:
                (topic,) = client.receive_response(METADATA, 1).topics
                assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
                assert topic.name == "\ufffd" * size
            else:
                assert client.is_closed()


def test_what_spark_asks_after_every_poll(broker, client, topic):
    """Its consumer asks for the position at the beginning and at the end."""
    client.ask(PRODUCE, 9, produce_request(topic, b"a", b"b"))
    for timestamp, offset in [(-2, 0), (-1, 2)]:
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]
        )
        (found,) = client.ask(LIST_OFFSETS, 7, request).topics[0].partitions
        assert (found.error_code, found.offset) == (0, offset)


def test_topic_id_is_that_of_metadata(client, broker, topic):
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    (found,) = client.ask(METADATA, 12, request).topics
    assert found.topic_id not in (ZERO_UUID, UUID(int=0))
    wanted = fetch_request("")
    wanted.topics[0].topic_id = found.topic_id
    response = client.ask(FETCH, 17, wanted)
    assert response.responses[0].topic_id == found.topic_id
    assert first_offsets(response) == []


def test_clients_that_go_while_they_wait_leave_nothing_behind(broker, client, topic):
    """Nobody looks for their records any more, and those who stay are answered."""
    partition = broker.server.services.replicas.partition(topic, 0)

    def wait_for_watchers(count):
        deadline_s = time.monotonic() + 10
        while broker.call_in_broker(lambda: len(partition._watchers)) != count:
            assert time.monotonic() < deadline_s
            time.sleep(0.001)

    waiting = [RawClient(broker) for _ in range(3)]
    for one in waiting:
        one.send_request(FETCH, 12, fetch_request(topic, max_wait_ms=60_000))
    wait_for_watchers(3)
    for one in waiting[:2]:
        one.close()
    wait_for_watchers(1)
    assert base_offset(client.ask(PRODUCE, 9, produce_request(topic, b"a"))) == 0
    assert first_offsets(waiting[2].receive_response(FETCH, 12)) == [0]
    wait_for_watchers(0)
    waiting[2].close()
