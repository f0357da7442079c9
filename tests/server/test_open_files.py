"""A broker whose process may have few files open (rule 253)."""

import contextlib
import socket

import pytest

from benchmarks.process import frame_of
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client
from kafkalite.client.connection import Connection
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.log.log_kit import batch
from tests.server.broker_process import BrokerProcess

LIMIT = 120
PARTITIONS = 2 * LIMIT
CLIENTS = 2 * LIMIT
ASK = frame_of(API_VERSIONS, 0, ApiVersionsRequest())


def connect(broker):
    host, _, port = broker.bootstrap.rpartition(":")
    return Connection(host, int(port), client_id="test", timeout_ms=20_000)


def produce_to_all(connection):
    data = [PartitionProduceData(index=index, records=batch("a")) for index in range(PARTITIONS)]
    topics = [TopicProduceData(name="orders", partition_data=data)]
    request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=topics)
    answers = connection.request(PRODUCE, request).responses[0].partition_responses
    return {ErrorCode(answer.error_code) for answer in answers}


def is_turned_away(client):
    client.settimeout(20)
    try:
        client.sendall(ASK)
        return client.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.slow
def test_more_logs_and_clients_than_files(tmp_path):
    log = tmp_path / "stderr"
    with BrokerProcess(tmp_path / "data", open_files_max=LIMIT, log=log) as broker:
        assert f"may have {LIMIT} files open" in log.read_text()
        with Client(broker.bootstrap) as client:
            create_topic(client, "orders", partitions=PARTITIONS)
        first = connect(broker)
        assert produce_to_all(first) == {ErrorCode.NONE}
        with contextlib.ExitStack() as others:
            address = ("127.0.0.1", broker.port)
            crowd = [
                others.enter_context(socket.create_connection(address)) for _ in range(CLIENTS)
            ]
            away = sum(map(is_turned_away, crowd))
            assert 0 < away < CLIENTS
            # Who is in is served as before, and logs have what they need.
            assert produce_to_all(first) == {ErrorCode.NONE}
        connection = connect(broker)
        assert produce_to_all(connection) == {ErrorCode.NONE}
        connection.close()
        first.close()
    lines = log.read_text().splitlines()
    assert len(lines) < 20, lines
    assert any("refusing a connection" in line for line in lines)
    assert not any("Traceback" in line for line in lines)
