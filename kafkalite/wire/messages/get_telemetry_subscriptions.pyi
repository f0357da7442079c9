# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class GetTelemetrySubscriptionsRequest(Structure):
    client_instance_id: UUID
    def __init__(
        self,
        *,
        client_instance_id: UUID = ...,
    ) -> None: ...

class GetTelemetrySubscriptionsResponse(Structure):
    throttle_time_ms: int
    error_code: int
    client_instance_id: UUID
    subscription_id: int
    accepted_compression_types: list[int]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        client_instance_id: UUID = ...,
        subscription_id: int = ...,
        accepted_compression_types: list[int] = ...,
        push_interval_ms: int = ...,
        telemetry_max_bytes: int = ...,
        delta_temporality: bool = ...,
        requested_metrics: list[str] = ...,
    ) -> None: ...

GET_TELEMETRY_SUBSCRIPTIONS: Api[GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse]
