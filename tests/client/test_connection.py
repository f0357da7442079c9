import socket
import struct

import pytest

from kafkalite.client.connection import Connection
from kafkalite.client.errors import ClientError
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsResponse
from kafkalite.wire.messages.fetch import FETCH
from kafkalite.wire.messages.list_groups import LIST_GROUPS, ListGroupsRequest, ListGroupsResponse
from tests.client.fake_broker import FakeBroker, hang_up


def connect(broker, *, timeout_ms=5000):
    return Connection("127.0.0.1", broker.port, client_id="test", timeout_ms=timeout_ms)


def test_highest_common_version_is_used():
    with FakeBroker(
        {LIST_GROUPS: ListGroupsResponse()}, versions={ApiKey.LIST_GROUPS: (0, 2)}
    ) as b:
        connection = connect(b)
        assert connection.request(LIST_GROUPS, ListGroupsRequest()).groups == []
        header = b.requests[-1][1]
        assert (header.api_version, header.client_id) == (2, "test")
        connection.close()


def test_broker_newer_than_the_client_is_asked_in_the_version_of_one_shape():
    with FakeBroker(versions={ApiKey.FETCH: (4, 99), ApiKey.LIST_GROUPS: (4, 99)}) as broker:
        connection = connect(broker)
        assert connection.version_of(FETCH) == 12
        assert connection.version_of(LIST_GROUPS) == 5
        connection.close()


@pytest.mark.parametrize("versions", [{}, {ApiKey.LIST_GROUPS: (6, 9)}])
def test_api_without_a_common_version_is_named(versions):
    with FakeBroker(versions=versions) as broker:
        connection = connect(broker)
        assert not connection.supports(LIST_GROUPS)
        with pytest.raises(ClientError, match="does not support LIST_GROUPS"):
            connection.version_of(LIST_GROUPS)
        connection.close()


def test_refused_connection_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ClientError, match=f"cannot connect to 127.0.0.1:{port}: .*refused"):
        Connection("127.0.0.1", port, client_id="test", timeout_ms=5000)


def test_refused_negotiation_is_raised_and_closes():
    with (
        FakeBroker({API_VERSIONS: ApiVersionsResponse(error_code=35)}) as broker,
        pytest.raises(KafkaError, match="UNSUPPORTED_VERSION"),
    ):
        connect(broker)


def test_broker_that_hangs_up_is_named():
    with FakeBroker({LIST_GROUPS: hang_up}) as broker:
        connection = connect(broker)
        with pytest.raises(ClientError, match=r"no answer to LIST_GROUPS v5 .* closed"):
            connection.request(LIST_GROUPS, ListGroupsRequest())
        assert connection.closed


def test_broker_that_is_silent_times_out():
    with FakeBroker({LIST_GROUPS: lambda request: None}) as broker:
        connection = connect(broker, timeout_ms=20)
        with pytest.raises(ClientError, match="timed out"):
            connection.request(LIST_GROUPS, ListGroupsRequest())
        assert connection.closed


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (struct.pack(">i", -1), "a frame of -1 bytes"),
        (b"HTTP", "a frame of 1213486160 bytes; is this a Kafka broker"),
        (struct.pack(">ii", 4, 77), "correlation id 77 instead of"),
        (struct.pack(">i", 0), "cut short"),
        (struct.pack(">iihi", 10, 1, 0, 99), "does not fit"),
    ],
)
def test_answer_that_is_none_is_refused(answer, reason):
    with (
        FakeBroker({API_VERSIONS: lambda request: answer}) as broker,
        pytest.raises(ClientError, match=reason),
    ):
        connect(broker)


def test_address_with_colons_is_bracketed():
    with pytest.raises(ClientError, match=r"\[::1\]:1: "):
        Connection("::1", 1, client_id="test", timeout_ms=1000)
