"""TLS in the poller: turns, records that hold many requests or parts of one, clients that fail."""

import socket
import ssl
import struct
import threading
import time

import pytest

from kafkalite.network import sockets
from kafkalite.testing.broker import Broker
from kafkalite.wire.header import decode_response_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from tests.raw_client import encoded, framed
from tests.security import kit

ASK = framed(encoded(API_VERSIONS, 0, ApiVersionsRequest()))
TIMEOUT_S = 20
PRODUCE_MAX_BYTES = 900_000


@pytest.fixture(scope="module", params=[True, False], ids=["epoll", "no epoll"])
def broker(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    config = {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,MUTUAL://127.0.0.1:0",
        "listener.security.protocol.map": "SSL:SSL,PLAINTEXT:PLAINTEXT,MUTUAL:SSL",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U",
        **kit.server_settings(folder),
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sockets, "HAS_EPOLL", sockets.HAS_EPOLL and request.param)
        with Broker(config=config) as running:
            yield running


def connect(broker, listener="SSL", context=None, tmp_path=None):
    host, _, port = broker.bootstrap_for(listener).rpartition(":")
    sock = socket.create_connection((host, int(port)), TIMEOUT_S)
    context = context or kit.client_context(tmp_path)
    return context.wrap_socket(sock, server_hostname="localhost")


def receive(sock, size):
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionResetError(f"{len(data)} of {size} bytes")
        data += piece
    return data


def answer(sock):
    (size,) = struct.unpack(">i", receive(sock, 4))
    return receive(sock, size)


def ask(broker, listener, context):
    with connect(broker, listener, context) as sock:
        sock.sendall(ASK)
        return answer(sock)


def test_request_is_answered_as_without_tls(broker, tmp_path):
    with connect(broker, tmp_path=tmp_path) as sock:
        sock.sendall(ASK)
        over_tls = answer(sock)
    host, _, port = broker.bootstrap_for("PLAINTEXT").rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_S) as sock:
        sock.sendall(ASK)
        assert answer(sock) == over_tls


@pytest.mark.parametrize("name", ["localhost", None])
def test_a_client_is_told_the_name_by_which_it_came(broker, tmp_path, name):
    """`advertised.listeners=auto`: an address would not be what its certificate is for."""
    host, _, port = broker.bootstrap_for("SSL").rpartition(":")
    context = kit.client_context(tmp_path)
    context.check_hostname = False
    sock = socket.create_connection((host, int(port)), TIMEOUT_S)
    with context.wrap_socket(sock, server_hostname=name) as secure:
        secure.sendall(framed(encoded(METADATA, 9, MetadataRequest(topics=[]))))
        answered = answer(secure)
    _, position = decode_response_header(METADATA, 9, memoryview(answered))
    (found,) = METADATA.decode_response(9, memoryview(answered), position).brokers
    assert (found.host, found.port) == (name or host, int(port))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(broker, tmp_path, version):
    context = kit.client_context(tmp_path)
    context.minimum_version = context.maximum_version = version
    with connect(broker, context=context) as sock:
        sock.sendall(ASK)
        assert answer(sock)


def test_requests_in_one_record_are_all_answered(broker, tmp_path):
    """The kernel tells once that something came: the rest is in OpenSSL by then."""
    with connect(broker, tmp_path=tmp_path) as sock:
        sock.sendall(ASK * 3)
        first = answer(sock)
        assert [answer(sock), answer(sock)] == [first, first]


def test_many_requests_at_once_are_all_answered(broker, tmp_path):
    count = 2_000  # several records and receives; the kernel takes them all
    with connect(broker, tmp_path=tmp_path) as sock:
        sock.sendall(ASK * count)  # not from a thread: a TLS socket is for one
        assert len({answer(sock) for _ in range(count)}) == 1


def test_request_in_many_records_is_answered(broker, tmp_path):
    with connect(broker, tmp_path=tmp_path) as sock:
        for byte in ASK:
            sock.sendall(bytes([byte]))
        assert answer(sock)


@pytest.mark.slow
def test_batches_larger_than_any_buffer_go_in_and_out(broker, tmp_path):
    from confluent_kafka import Consumer, Producer

    ca = kit.written(tmp_path, "ca.pem", kit.authority().certificate_pem)
    client = {
        "bootstrap.servers": broker.bootstrap_for("SSL"),
        "security.protocol": "SSL",
        "ssl.ca.location": ca,
    }
    topic = f"large-{time.monotonic_ns()}"
    broker.create_topic(topic)
    producer = Producer({**client, "linger.ms": 0, "message.max.bytes": 1_000_000})
    values = [bytes([index]) * PRODUCE_MAX_BYTES for index in range(20)]
    for value in values:
        producer.produce(topic, value)
    assert not producer.flush(TIMEOUT_S)
    consumer = Consumer({**client, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got = []
    end = time.monotonic() + TIMEOUT_S
    while len(got) < len(values) and time.monotonic() < end:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            got.append(message.value())
    consumer.close()
    assert got == values


def test_certificate_names_the_user(broker, tmp_path):
    seen = []
    broker.server.dispatcher.observer = lambda _, __, context: seen.append(context.principal)
    try:
        context = kit.client_context(tmp_path, kit.client_credentials())
        with connect(broker, "MUTUAL", context) as sock:
            sock.sendall(ASK)
            answer(sock)
        with connect(broker, tmp_path=tmp_path) as sock:
            sock.sendall(ASK)
            answer(sock)
    finally:
        broker.server.dispatcher.observer = None
    assert seen == ["User:ALICE", "User:ANONYMOUS"]


@pytest.mark.parametrize("signed_by", [None, "somebody else"])
def test_client_without_a_good_certificate_does_not_get_in(broker, tmp_path, signed_by, caplog):
    credentials = None
    if signed_by is not None:
        credentials = kit.authority(signed_by).issue("alice", kit.now())
    context = kit.client_context(tmp_path, credentials)
    with pytest.raises(OSError):
        ask(broker, "MUTUAL", context)
    assert waited_for(lambda: "TLS handshake on MUTUAL" in caplog.text)


def test_client_that_does_not_trust_the_broker_is_named_once(broker, tmp_path, caplog):
    for _ in range(2):
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(broker, context=kit.client_context(tmp_path, trusted=kit.authority("other")))
    assert waited_for(lambda: "does not trust the CA" in caplog.text)
    assert caplog.text.count("does not trust the CA") == 1


def test_plaintext_client_is_turned_away_with_a_word_to_the_operator(broker, caplog):
    host, _, port = broker.bootstrap_for("SSL").rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_S) as sock:
        sock.sendall(ASK)
        assert sock.recv(100) == b""
    assert "does not speak TLS" in caplog.text


def test_tls_client_is_turned_away_where_plaintext_is_spoken(broker, tmp_path, caplog):
    with pytest.raises(OSError):
        connect(broker, "PLAINTEXT", tmp_path=tmp_path)
    assert waited_for(lambda: "a client that speaks TLS" in caplog.text)


def test_client_that_leaves_in_the_midst_of_a_handshake_harms_nobody(broker, tmp_path):
    host, _, port = broker.bootstrap_for("SSL").rpartition(":")
    hello = bytes.fromhex("1603010200010001fc0303")
    for data in (b"", b"\x16", hello, b"\x16\x03\x01\x00\x05hello"):
        with socket.create_connection((host, int(port)), TIMEOUT_S) as sock:
            sock.sendall(data)
    test_requests_in_one_record_are_all_answered(broker, tmp_path)


def test_bytes_that_are_no_record_close_the_connection(broker, tmp_path):
    with connect(broker, tmp_path=tmp_path) as sock:
        sock.sendall(ASK)
        answer(sock)
        raw = socket.socket(fileno=sock.detach())
        with raw:
            raw.sendall(b"nonsense" * 100)
            raw.settimeout(TIMEOUT_S)
            while raw.recv(4096):
                pass


def test_answers_end_with_a_farewell(broker, tmp_path):
    """Who sees no close_notify may take what he has for cut off."""
    with connect(broker, tmp_path=tmp_path) as sock:
        sock.sendall(b"\xff\xff\xff\xff")  # a frame of no size
        assert sock.recv(100) == b""  # SSLEOFError without it


def test_handshakes_let_others_have_their_turns(broker, tmp_path):
    """A client that is in is answered while fifty come."""
    context = kit.client_context(tmp_path)
    with connect(broker, context=context) as sock:
        come = [
            threading.Thread(target=lambda: connect(broker, context=context).close())
            for _ in range(20)
        ]
        for thread in come:
            thread.start()
        for _ in range(20):
            sock.sendall(ASK)
            assert answer(sock)
        for thread in come:
            thread.join()


def waited_for(condition, seconds=TIMEOUT_S):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
