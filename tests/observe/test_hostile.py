"""Who looks on in bulk: event streams without end and searches of everything; Kafka goes on."""

import contextlib
import json
import socket
from urllib.parse import quote

import pytest

from kafkalite import Broker
from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer
from kafkalite.http.server import CONNECTIONS_MAX, STREAMS_MAX
from kafkalite.observe.records import FETCH_BYTES, read_forward
from tests.observe.observe_kit import Http

pytestmark = pytest.mark.slow

CROWD = 2 * CONNECTIONS_MAX
"""More than are let in; 10,000 are refused as these are, one after another."""

RECORDS = 400
RECORD_BYTES = 50_000


def test_a_crowd_of_event_streams_is_bounded_and_clients_notice_nothing():
    with Broker(http=True) as broker, contextlib.ExitStack() as stack:
        broker.create_topic("orders")
        host, _, port = broker.http_url.removeprefix("http://").partition(":")
        ask = b"GET /api/v1/requests/follow HTTP/1.1\r\nHost: localhost\r\n\r\n"
        client = stack.enter_context(Client(broker.bootstrap))
        producer = Producer(client, "orders")
        streams = []
        for number in range(CROWD):
            stream = stack.enter_context(socket.create_connection((host, int(port)), 30))
            stream.settimeout(60)
            with contextlib.suppress(ConnectionError):
                stream.sendall(ask)
            streams.append(stream)
            if number % 16 == 0:
                producer.send(b"%d" % number)
                producer.flush()
        answers = [status_of(stream) for stream in streams]
        assert answers.count(b"200") == STREAMS_MAX
        assert set(answers) <= {b"200", b"503", b""}
        assert len(broker.records("orders")) == CROWD / 16


def status_of(stream):
    """The status that a stream begins with, empty if it was closed."""
    try:
        head = stream.recv(64)
    except ConnectionError:
        return b""
    return head[9:12]


def test_a_search_of_everything_is_made_of_bounded_steps(monkeypatch):
    """20 MB here; of 10 GB each step is the same, and who asked may stop after any.

    A step ends with the first fetch after its time, which is over at once here.
    """
    monkeypatch.setitem(read_forward.__kwdefaults__, "step_s", 0.0)
    with Broker(http=True) as broker:
        broker.create_topic("large")
        with Client(broker.bootstrap) as client:
            producer = Producer(client, "large")
            for number in range(RECORDS):
                producer.send(b"%d " % number + b"x" * RECORD_BYTES)
                if number % 10 == 9:
                    producer.flush()
        api = Http(f"{broker.http_url}/api/v1")
        path = "/topics/large/messages?from=earliest&filter=nowhere"
        scanned, answer = [], {"done": False, "cursor": None}
        while not answer["done"]:
            cursor = answer["cursor"]
            more = "" if cursor is None else f"&cursor={quote(json.dumps(cursor))}"
            answer = api.get(path + more)
            scanned.append(answer["scanned"])
            assert answer["messages"] == []
            assert answer["of"] == RECORDS
            assert cursor is None or answer["cursor"] != cursor
        assert sum(scanned) == RECORDS
        assert max(scanned) * RECORD_BYTES <= FETCH_BYTES + RECORD_BYTES * 10
