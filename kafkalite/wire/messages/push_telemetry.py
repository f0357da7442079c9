"""PushTelemetry (API key 72), version 0, flexible.

KIP-714. The metrics are OpenTelemetry's MetricsData v1 as protobuf, perhaps compressed.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32, Uuid
from kafkalite.wire.schema import Bytes, structure

PushTelemetryRequest = structure(
    "PushTelemetryRequest",
    "client_instance_id" / Uuid,
    "subscription_id" / Int32,
    "terminating" / Bool,
    "compression_type" / Int8,
    "metrics" / Bytes,
)

PushTelemetryResponse = structure(
    "PushTelemetryResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
)

PUSH_TELEMETRY = Api(
    ApiKey.PUSH_TELEMETRY,
    versions=(0, 0),
    flexible_from=0,
    request=PushTelemetryRequest,
    response=PushTelemetryResponse,
)
