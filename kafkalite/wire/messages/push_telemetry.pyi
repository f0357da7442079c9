# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class PushTelemetryRequest(Structure):
    client_instance_id: UUID
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes
    def __init__(
        self,
        *,
        client_instance_id: UUID = ...,
        subscription_id: int = ...,
        terminating: bool = ...,
        compression_type: int = ...,
        metrics: bytes = ...,
    ) -> None: ...

class PushTelemetryResponse(Structure):
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
    ) -> None: ...

PUSH_TELEMETRY: Api[PushTelemetryRequest, PushTelemetryResponse]
