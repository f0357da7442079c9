"""Rule 275."""

import pytest

from kafkalite.api.client_metrics import ClientMetrics
from kafkalite.api.push_telemetry import HANDLERS
from kafkalite.meta.changes import CLIENT_METRICS_RESOURCE
from kafkalite.meta.events import AlterConfigs
from kafkalite.types import ZERO_UUID
from kafkalite.wire.compression import Codec, compress
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kafkalite.wire.messages.push_telemetry import PushTelemetryRequest
from tests.api.metadata_kit import MetadataKit
from tests.wire.test_telemetry import GAUGE, data, double, metric

GET, PUSH = HANDLERS


@pytest.fixture
def kit():
    made = MetadataKit()
    made.services.client_metrics = ClientMetrics(telemetry_max_bytes=1000)
    subscribe(made, metrics="a.")
    made.new_uuid()  # its first is one that no instance has
    return made


def subscribe(kit, **settings):
    kit.submit(
        AlterConfigs(
            resource_type=CLIENT_METRICS_RESOURCE,
            resource_name="all",
            configs=list(settings.items()),
        )
    )


def get(kit, instance_id=ZERO_UUID):
    return kit.ask(GET, GetTelemetrySubscriptionsRequest(client_instance_id=instance_id))


def test_a_client_learns_who_it_is_and_what_to_push(kit):
    response = get(kit)
    assert response.error_code == 0
    assert response.client_instance_id != ZERO_UUID
    assert response.requested_metrics == ["a."]
    assert response.accepted_compression_types == [4, 3, 1, 2]
    assert (response.push_interval_ms, response.telemetry_max_bytes) == (300_000, 1000)
    assert response.delta_temporality
    again = get(kit, response.client_instance_id)
    assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_new_subscription_is_seen_at_once(kit):
    first = get(kit)
    subscribe(kit, metrics="a.,b.")
    second = get(kit, first.client_instance_id)
    assert second.client_instance_id == first.client_instance_id
    assert second.requested_metrics == ["a.", "b."]
    assert second.subscription_id != first.subscription_id


def test_pushed_metrics_are_kept(kit):
    told = get(kit)
    payload = data(metric("a.rate", GAUGE, double(2.5)))
    request = PushTelemetryRequest(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id,
        compression_type=Codec.ZSTD,
        metrics=compress(Codec.ZSTD, payload),
    )
    assert kit.ask(PUSH, request).error_code == 0
    (instance,) = kit.services.client_metrics.instances()
    assert instance.metrics == {"a.rate": 2.5}
    assert kit.ask(PUSH, request).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
