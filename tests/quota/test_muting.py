"""Clients that used too much are answered, and then not read until their time is over (KIP-219)."""

import socket
import time

import pytest

from kafkalite.testing.broker import Broker
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from tests.quota.scenarios import Asker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        running.create_topic("orders")
        yield running


@pytest.fixture
def admin(broker):
    with Asker(broker, "admin") as client:
        yield client


def is_silent(client, seconds=0.1):
    """Whether a broker says nothing although it was asked."""
    client.send_request(API_VERSIONS, 0, ApiVersionsRequest())
    client.socket.settimeout(seconds)
    try:
        return not client.socket.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        client.socket.settimeout(10)


@pytest.mark.parametrize("acks", [1, 0])
def test_what_a_muted_client_sends_is_answered_when_its_time_is_over(broker, admin, acks):
    """Rule 563: the broker's clock decides, and others are served meanwhile."""
    name = f"muted-{acks}"
    admin.set_quota({"client-id": name}, producer_byte_rate=100)
    with Asker(broker, name) as client, Asker(broker, "other") as other:
        count, throttle_ms = client.produce("orders", 10_000, acks=acks)
        if acks:
            assert throttle_ms == count * 10 - 10_000
        assert is_silent(client)
        assert other.ask(METADATA, 12, MetadataRequest()).throttle_time_ms == 0
        broker.clock.advance(count / 100)
        assert client.receive_response(API_VERSIONS, 0).error_code == 0


def test_requests_that_came_together_are_answered_one_and_then_none(broker, admin):
    admin.set_quota({"client-id": "hasty"}, producer_byte_rate=100)
    with Asker(broker, "hasty") as client:
        client.produce("orders", 1_000, acks=0)
        client.produce("orders", 1_000, acks=0)
        client.send_request(API_VERSIONS, 0, ApiVersionsRequest())
        assert is_silent(client)
        with Asker(broker, "other") as other:
            assert len(other.fetch("orders", epoch=-1).responses) == 1
        broker.clock.advance(3_600)
        assert client.receive_response(API_VERSIONS, 0).error_code == 0


def test_a_muted_client_that_goes_away_is_noticed(broker, admin):
    admin.set_quota({"client-id": "gone"}, producer_byte_rate=1)
    before = len(broker.server.connections.open_connections())
    client = Asker(broker, "gone")
    client.produce("orders", 10_000)
    client.close()
    for _ in range(100):
        if len(broker.server.connections.open_connections()) == before:
            return
        time.sleep(0.02)
    raise AssertionError("the connection is still open")


def test_what_a_throttled_fetch_did_not_tell_is_told_by_the_next(broker, admin):
    """Rule 561."""
    broker.create_topic("told")
    admin.produce("told", 5_000)
    with Asker(broker, "told") as client:
        opened = client.fetch("told", offset=1, epoch=0)
    assert opened.session_id
    assert opened.responses[0].partitions[0].high_watermark == 1
    admin.produce("told", 50_000)
    admin.set_quota({"client-id": "told"}, consumer_byte_rate=100)
    traffic = broker.server.services.replicas.traffic.of("told")
    sent = traffic.bytes_out
    with Asker(broker, "told") as client:
        throttled = client.fetch("told", epoch=1, session=opened.session_id)
    assert throttled.throttle_time_ms > 0
    assert (throttled.session_id, throttled.responses) == (opened.session_id, [])
    assert traffic.bytes_out == sent
    admin.set_quota({"client-id": "told"}, consumer_byte_rate=None)
    with Asker(broker, "told") as client:
        again = client.fetch("told", epoch=2, session=opened.session_id)
    assert len(again.responses[0].partitions[0].records) > 50_000


def test_session_of_a_throttled_first_fetch_is_not_kept(broker, admin):
    broker.create_topic("first")
    admin.produce("first", 50_000)
    admin.set_quota({"client-id": "first"}, consumer_byte_rate=100)
    before = len(broker.server.services.fetch_sessions)
    with Asker(broker, "first") as client:
        answer = client.fetch("first", epoch=0)
    assert (answer.session_id, answer.responses) == (0, [])
    assert len(broker.server.services.fetch_sessions) == before


def test_no_more_is_read_than_a_quota_lets_through_at_once(broker, admin):
    broker.create_topic("capped")
    for _ in range(5):
        admin.produce("capped", 4_000)
    admin.set_quota({"client-id": "capped"}, consumer_byte_rate=1_000)
    with Asker(broker, "capped") as client:
        answer = client.fetch("capped")
    assert answer.throttle_time_ms == 0
    assert 8_000 < len(answer.responses[0].partitions[0].records) <= 10_000


def test_time_of_requests_is_waited_for_a_second_at_most(broker, admin):
    admin.set_quota({"client-id": "busy"}, request_percentage=1e-6)
    with Asker(broker, "busy") as client:
        assert client.ask(METADATA, 12, MetadataRequest()).throttle_time_ms == 1_000
        broker.clock.advance(1)
        assert client.ask(API_VERSIONS, 3, api_versions()).throttle_time_ms == 1_000
    admin.set_quota({"client-id": "busy"}, request_percentage=None)


def api_versions():
    return ApiVersionsRequest(client_software_name="test", client_software_version="1")


def test_without_quotas_nothing_is_looked_at(broker, admin):
    with Broker() as other:
        assert other.server.services.quotas is None
        with Asker(other, "admin") as client:
            client.set_quota({"user": "ann"}, producer_byte_rate=1)
            assert other.server.services.quotas is not None
            client.set_quota({"user": "ann"}, producer_byte_rate=None)
        assert other.server.services.quotas is None


def test_quotas_are_there_after_a_restart(tmp_path):
    with Broker(data_dir=tmp_path) as first, Asker(first, "admin") as client:
        client.set_quota({"user": None}, producer_byte_rate=1_000)
    with Broker(data_dir=tmp_path) as second, Asker(second, "admin") as client:
        second.create_topic("orders")
        assert client.quotas() == [([("user", "")], [("producer_byte_rate", 1_000.0)])]
        assert client.produce("orders", 20_000)[1] > 0


class TestConnections:
    def test_an_address_that_connects_too_often_is_closed_after_its_time(self, admin, broker):
        """Rule 568."""
        admin.set_quota({"ip": "127.0.0.1"}, connection_creation_rate=1)
        broker.clock.freeze()
        clients = [Asker(broker, "often") for _ in range(11)]
        answered = []
        for client in clients:
            client.socket.settimeout(0.3)
            try:
                answered.append(client.ask(METADATA, 12, MetadataRequest()) is not None)
            except TimeoutError:
                answered.append(False)
        assert answered == [True] * 10 + [False]
        broker.clock.resume()
        broker.clock.advance(2)
        assert clients[10].is_closed()
        for client in clients:
            client.close()
        admin.set_quota({"ip": "127.0.0.1"}, connection_creation_rate=None)

    def test_a_listener_takes_connections_one_after_another(self):
        """Rule 567."""
        config = {"listener.name.plaintext.max.connection.creation.rate": "1"}
        with Broker(config=config) as slow:
            slow.clock.freeze()
            clients = [Asker(slow, "x") for _ in range(13)]
            for client in clients[:10]:
                assert client.ask(METADATA, 12, MetadataRequest()) is not None
            assert all(is_silent(client, 0.05) for client in clients[11:])
            slow.clock.resume()
            for _ in range(3):
                slow.clock.advance(1)
            for client in clients:
                client.close()
