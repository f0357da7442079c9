"""GetTelemetrySubscriptions (key 71) and PushTelemetry (72), version 0: metrics of clients.

KIP-714. The last metrics of each client instance are kept in memory; nothing is passed on
(decision 0072).
"""

from kafkalite.api.client_metrics import ClientAttributes, ClientMetrics
from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.types import ZERO_UUID
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.get_telemetry_subscriptions import (
    GET_TELEMETRY_SUBSCRIPTIONS,
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkalite.wire.messages.push_telemetry import (
    PUSH_TELEMETRY,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

ACCEPTED_COMPRESSION_TYPES = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""The order is one of preference, and Kafka's."""


def handle_get(
    request: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    """Tell a client what to push, and who it is if it does not know yet."""
    metrics = _current(context)
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        # A random UUID is a random UUID.
        instance_id = context.services.metadata.new_topic_id()
    instance = metrics.subscribe(
        instance_id,
        _attributes(context),
        connection_id=context.connection_id,
        now_ms=context.now_ms,
    )
    subscription = instance.subscription
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=subscription.subscription_id,
        accepted_compression_types=list(map(int, ACCEPTED_COMPRESSION_TYPES)),
        push_interval_ms=subscription.push_interval_ms,
        telemetry_max_bytes=metrics.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=list(subscription.metrics),
    )


def refuse_get(
    request: GetTelemetrySubscriptionsRequest, error: KafkaError, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    """Answer the error."""
    del request, context
    return GetTelemetrySubscriptionsResponse(error_code=error.code)


def handle_push(request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    """Keep what a client pushes."""
    _current(context).push(
        request.client_instance_id,
        _attributes(context),
        connection_id=context.connection_id,
        now_ms=context.now_ms,
        subscription_id=request.subscription_id,
        terminating=request.terminating,
        compression_type=request.compression_type,
        metrics=bytes(request.metrics),
    )
    return PushTelemetryResponse(error_code=ErrorCode.NONE)


def refuse_push(
    request: PushTelemetryRequest, error: KafkaError, context: RequestContext
) -> PushTelemetryResponse:
    """Answer the error."""
    del request, context
    return PushTelemetryResponse(error_code=error.code)


def _current(context: RequestContext) -> ClientMetrics:
    metrics = context.services.client_metrics
    metrics.update(context.services.metadata.image.configs)
    return metrics


def _attributes(context: RequestContext) -> ClientAttributes:
    name, version = context.client_software or (None, None)
    address, port = context.peer_address
    return ClientAttributes(context.client_id, name, version, address, str(port))


HANDLERS = (
    Handler(GET_TELEMETRY_SUBSCRIPTIONS, handle_get, refuse_get),
    Handler(PUSH_TELEMETRY, handle_push, refuse_push),
)
