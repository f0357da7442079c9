"""GetTelemetrySubscriptions (API key 71), version 0, flexible.

KIP-714.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, structure

GetTelemetrySubscriptionsRequest = structure(
    "GetTelemetrySubscriptionsRequest",
    "client_instance_id" / Uuid,
)

GetTelemetrySubscriptionsResponse = structure(
    "GetTelemetrySubscriptionsResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "client_instance_id" / Uuid,
    "subscription_id" / Int32,
    "accepted_compression_types" / ArrayOf(Int8),
    "push_interval_ms" / Int32,
    "telemetry_max_bytes" / Int32,
    "delta_temporality" / Bool,
    "requested_metrics" / ArrayOf(String),
)

GET_TELEMETRY_SUBSCRIPTIONS = Api(
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    versions=(0, 0),
    flexible_from=0,
    request=GetTelemetrySubscriptionsRequest,
    response=GetTelemetrySubscriptionsResponse,
)
