"""What no client should send, sent to a running broker over real sockets.

The sender gets the error that Kafka gives, or its connection is closed; everyone else notices
nothing, and what is stored stays as it is.
"""

import random
import struct
import time

import pytest

from kafkalite.api import HANDLERS
from kafkalite.testing import Broker
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.header import encode_request_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch
from tests.raw_client import RawClient, encoded

TOPIC = "victim"
MAX_REQUEST_BYTES = 200_000
FUZZ_ROUNDS = 3_000
PRODUCE_VERSION = 9


@pytest.fixture(scope="module")
def broker():
    settings = {
        "socket.request.max.bytes": MAX_REQUEST_BYTES,
        "queued.max.request.bytes": 2 * MAX_REQUEST_BYTES,
    }
    with Broker(config=settings) as running:
        running.create_topic(TOPIC)
        running.produce(TOPIC, value=b"kept")
        yield running


@pytest.fixture
def client(broker):
    with RawClient(broker) as one:
        yield one


@pytest.fixture
def bystander(broker):
    """A good client that was there before, and must be served after."""
    with RawClient(broker) as one:
        assert_served(one)
        yield one
        assert_served(one)
    assert [record.value for record in broker.records(TOPIC)] == [b"kept"]


def assert_served(client):
    response = client.ask(METADATA, 9, MetadataRequest(topics=None))
    assert TOPIC in [topic.name for topic in response.topics]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", -1), id="negative size"),
        pytest.param(struct.pack(">i", MAX_REQUEST_BYTES + 1), id="too large"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS"),
        pytest.param(struct.pack(">i", 0), id="empty frame"),
        pytest.param(struct.pack(">ihhi", 8, 3, 1, 7), id="header cut short"),
        pytest.param(struct.pack(">ihhih", 10, 9999, 0, 7, -1), id="unknown key"),
        pytest.param(struct.pack(">ihhih", 10, 3, 99, 7, -1) + b"\0", id="unknown version"),
        pytest.param(struct.pack(">ihhih", 10, 29, 1, 7, -1), id="API that is not served"),
        *(
            pytest.param(struct.pack(">ihhihi", 14, 0, version, 7, -1, 0), id=f"Produce v{version}")
            for version in range(3)  # advertised, for librdkafka's sake, and yet not served
        ),
        pytest.param(struct.pack(">ihhihi", 14, 3, 1, 7, -1, 2**31 - 1), id="lying array length"),
        pytest.param(struct.pack(">ihhihi", 14, 3, 1, 7, -1, 5), id="truncated array"),
    ],
)
def test_what_is_no_request_closes_its_connection_only(client, bystander, data):
    """Rules 1 and 4."""
    client.send(data)
    assert client.is_closed()


def test_torn_frame_is_forgotten_with_its_connection(client, bystander):
    client.send(struct.pack(">i", 1_000) + b"only the beginning")
    client.close()


def test_announced_but_never_sent_frames_do_not_use_up_memory(broker, bystander):
    """Ten clients announce more than queued.max.request.bytes together, and send nothing."""
    clients = [RawClient(broker) for _ in range(10)]
    for one in clients:
        one.send(struct.pack(">i", MAX_REQUEST_BYTES) + bytes(70_000))
    assert_served(bystander)
    for one in clients:
        one.close()


def test_too_new_api_versions_is_answered_with_the_range(client, bystander):
    """Rule 5."""
    header = encode_request_header(API_VERSIONS, 4, correlation_id=7, client_id="x")
    client.send_frame(header[:2] + struct.pack(">h", 77) + header[4:] + b"whatever this is")
    frame = client.receive()
    response = API_VERSIONS.decode_response(0, frame, 4)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 4)]
    good = client.ask(
        API_VERSIONS, 4, ApiVersionsRequest(client_software_name="a", client_software_version="1")
    )
    assert good.error_code == ErrorCode.NONE


def test_bad_software_name_is_refused_and_the_connection_stays(client):
    """Rule 6."""
    bad = ApiVersionsRequest(client_software_name="-no-", client_software_version="1")
    assert client.ask(API_VERSIONS, 3, bad).error_code == ErrorCode.INVALID_REQUEST
    assert_served(client)


def batch(**given):
    return build_batch([Record(offset=0, timestamp=1_000, key=b"k", value=b"v")], **given)


def produce(client, records, *, version=PRODUCE_VERSION, acks=-1):
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=[
            TopicProduceData(
                name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    response = client.ask(PRODUCE, version, request)
    (answer,) = response.responses[0].partition_responses
    return ErrorCode(answer.error_code)


def patched(data, position, fmt, value):
    data = bytearray(data)
    struct.pack_into(fmt, data, position, value)
    return bytes(data)


BAD_BATCHES = {
    "no batch": (b"", ErrorCode.INVALID_RECORD),
    "null": (None, ErrorCode.INVALID_RECORD),
    "torn header": (bytes(batch())[:40], ErrorCode.INVALID_RECORD),
    "torn batch": (bytes(batch())[:-3], ErrorCode.INVALID_RECORD),
    "bad CRC": (patched(batch(), 62, ">B", 0xAA), ErrorCode.CORRUPT_MESSAGE),
    "magic 1": (patched(batch(), 16, ">b", 1), ErrorCode.INVALID_RECORD),
    "magic 0": (patched(batch(), 16, ">b", 0), ErrorCode.INVALID_RECORD),
    "two batches": (bytes(batch()) * 2, ErrorCode.INVALID_RECORD),
    "control batch": (
        batch(control=True, producer_id=1, producer_epoch=0),
        ErrorCode.INVALID_RECORD,
    ),
    "base offset": (
        batch(base_offset=0) and patched(batch(), 0, ">q", 5),
        ErrorCode.INVALID_RECORD,
    ),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_bad_batch_is_refused_and_nothing_is_stored(client, bystander, name):
    """Rules 38-40."""
    records, expected = BAD_BATCHES[name]
    assert produce(client, records) in (expected, ErrorCode.CORRUPT_MESSAGE)


def test_wrong_acks_are_refused(client, bystander):
    """Rule 36."""
    assert produce(client, batch(), acks=2) is ErrorCode.INVALID_REQUIRED_ACKS


GROUP_SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "offsets.topic.num.partitions": 1,
}
INVALID_UTF8_SIZE = 20_000


def join(**fields):
    given = {"group_id": "g", "protocol_type": "consumer", **fields}
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    return JoinGroupRequest(
        session_timeout_ms=100, rebalance_timeout_ms=100, protocols=protocols, **given
    )


@pytest.mark.slow  # the broker's own timers have to run off
@pytest.mark.parametrize("field", ["group_id", "protocol_type"])
@pytest.mark.parametrize(("version", "size"), [(3, INVALID_UTF8_SIZE), (9, 40_000)])
def test_names_that_cannot_be_stored_do_not_end_the_broker(field, version, size):
    """Each byte of invalid UTF-8 is read as U+FFFD, which is three; int16 counts what is stored."""
    instance_id = "static" if version == 9 else None  # or it would only be told its member id
    request = join(group_instance_id=instance_id, **{field: "x" * size})
    frame = encoded(JOIN_GROUP, version, request)
    if size == INVALID_UTF8_SIZE:
        frame = frame.replace(b"x" * size, b"\xff" * size)
    with Broker(config=GROUP_SETTINGS) as broker, RawClient(broker) as one:
        one.ask(FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
        one.send_frame(frame)
        one.receive()
        time.sleep(1)
        with RawClient(broker) as other:
            assert other.ask(API_VERSIONS, 0, ApiVersionsRequest()).error_code == ErrorCode.NONE


def test_failed_acks_0_closes_the_connection(client, bystander):
    """Rule 12."""
    request = ProduceRequest(
        acks=0,
        topic_data=[
            TopicProduceData(
                name="unknown", partition_data=[PartitionProduceData(index=0, records=batch())]
            )
        ],
    )
    client.send_frame(encoded(PRODUCE, PRODUCE_VERSION, request))
    assert client.is_closed()


def good_frames():
    """One request of each API and version that is served, with default contents."""
    for handler in HANDLERS:
        lowest, highest = handler.api.versions
        for version in range(lowest, highest + 1):
            yield encoded(handler.api, version, handler.api.request.record())


def mutated(frame, chance):
    """Flip, cut, grow or splice a frame; the API key stays one that changes nothing for good."""
    data = bytearray(frame)
    kind = chance.randrange(4)
    if kind == 0:
        del data[chance.randrange(8, len(data) + 1) :]
    elif kind == 1:
        data += chance.randbytes(chance.randrange(1, 50))
    elif kind == 2:
        position = chance.randrange(8, len(data)) if len(data) > 8 else 8
        data[position : position + 4] = struct.pack(">i", chance.choice([-1, 2**31 - 1, 1 << 20]))
    for _ in range(chance.randrange(1, 6) if kind == 3 else 0):
        data[chance.randrange(2, len(data))] = chance.randrange(256)
    return bytes(data)


def test_mutated_requests_harm_nobody(broker, bystander):
    """Frames of every API and version, damaged at random; each is answered or its sender closed."""
    harmless = [
        frame
        for frame in good_frames()
        if int.from_bytes(frame[:2], "big") not in (ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS)
    ]
    chance = random.Random(20240)
    one = RawClient(broker)
    one.socket.settimeout(0.5)
    for round_ in range(FUZZ_ROUNDS):
        frame = mutated(chance.choice(harmless), chance)
        try:
            one.send_frame(frame)
            if one.receive() is not None:
                continue
        except (TimeoutError, OSError):
            pass
        one.close()
        one = RawClient(broker)
        one.socket.settimeout(0.05)
        if round_ % 100 == 0:
            assert_served(bystander)
    one.close()
