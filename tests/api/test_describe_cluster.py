import pytest

from kafkalite.api.describe_cluster import HANDLERS
from kafkalite.meta.events import UnregisterBroker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.describe_cluster import DescribeClusterRequest
from tests.api.cluster_kit import ClusterKit
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    return MetadataKit(broker_rack="r1")


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(kit, version):
    """KIP-700."""
    response = kit.ask(HANDLER, DescribeClusterRequest(), version)
    assert (response.error_code, response.error_message) == (0, None)
    assert (response.cluster_id, response.controller_id) == ("cluster", 1)
    assert response.cluster_authorized_operations == -(2**31)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.rack, broker.is_fenced) == (1, "r1", False)
    assert (broker.host, broker.port) == ("127.0.0.1", 4711)


def test_operations_are_told_when_asked_for(kit):
    """Rule 27; the bits that Kafka 4.3 answers without an authorizer."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert kit.ask(HANDLER, request).cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_only_brokers_are_described(kit, kind, code):
    """KIP-919, as Kafka 4.3 answers."""
    response = kit.ask(HANDLER, DescribeClusterRequest(endpoint_type=kind))
    assert (response.error_code, response.brokers, response.controller_id) == (code, [], -1)
    assert response.endpoint_type == 1
    assert response.error_message


def test_a_client_of_another_listener_sees_no_broker(kit):
    """Rule 17."""
    assert kit.ask(HANDLER, DescribeClusterRequest(), listener="OTHER").brokers == []


def test_live_brokers_are_described_in_order():
    """Rule 17."""
    kit = ClusterKit(3)
    kit.submit(UnregisterBroker(broker_id=2))
    brokers = kit.ask(HANDLER, DescribeClusterRequest()).brokers
    assert [(broker.broker_id, broker.host, broker.port) for broker in brokers] == [
        (1, "host", 9091),
        (3, "host", 9093),
    ]
