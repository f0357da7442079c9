"""Envelope (key 58), version 0: a client's request that another broker hands on (KIP-590).

Only the controller answers what is marked as `forwarded`, on behalf of the client that asked the
other broker. An answer of NOT_CONTROLLER, be it to one topic of many, becomes that of the envelope:
the other broker asks the new controller then, as Kafka's does.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, cast

from kafkalite.api import HANDLERS as SERVED
from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.header import RequestHeader, decode_request_header, encode_response_header
from kafkalite.wire.messages.envelope import ENVELOPE, EnvelopeRequest, EnvelopeResponse
from kafkalite.wire.schema import Structure
from kafkalite.wire.stored.principal import DEFAULT_PRINCIPAL_DATA, DefaultPrincipalData

if TYPE_CHECKING:
    from kafkalite.registry.rest import RegistryApi

REGISTRY_MARK = b"\xff\xff"
"""First bytes of what brokers hand on to each other's schema registries: no API has the key -1."""

UNKNOWN_ADDRESS = "0.0.0.0"
"""Of a client that came in by something that has no IP addresses, as simulations do."""


def handling(find: Callable[[int], Handler | None]) -> Handler:
    """Return the handler of envelopes, in which may be a request that `find` has a handler of.

    Only of one that is `forwarded`.
    """
    return Handler(ENVELOPE, partial(_handle, find), refuse, inter_broker_only=True)


def envelope_of(frame: memoryview, context: RequestContext) -> EnvelopeRequest:
    """Return the envelope for a client's request; `frame` is copied."""
    kind, _, name = context.principal.partition(":")
    principal = DefaultPrincipalData(
        principal_type=kind, principal_name=name, token_authenticated=context.is_token
    )
    return EnvelopeRequest(
        request_data=bytes(frame),
        request_principal=DEFAULT_PRINCIPAL_DATA.encode_versioned(0, principal),
        client_host_address=_packed(context.peer_address[0]),
    )


def holds_error(message: Structure, code: ErrorCode) -> bool:
    """Say whether a response has this error code, at the top or for anything in it."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if isinstance(value, list):
            if any(isinstance(one, Structure) and holds_error(one, code) for one in value):
                return True
        elif field.name == "error_code" and value == code:
            return True
    return False


def refuse(
    request: EnvelopeRequest, error: KafkaError, context: RequestContext
) -> EnvelopeResponse:
    """Answer an error of the envelope, not of what is in it."""
    del request, context
    return EnvelopeResponse(error_code=error.code)


def _handle(
    find: Callable[[int], Handler | None], request: EnvelopeRequest, context: RequestContext
) -> EnvelopeResponse | Deferred[EnvelopeResponse]:
    """Have the handler of the request that is inside answer it.

    Raises:
        KafkaError: NOT_CONTROLLER, or NOT_COORDINATOR for the schema registry;
            INVALID_REQUEST or UNSUPPORTED_VERSION for what no broker of
            this version hands on; PRINCIPAL_DESERIALIZATION_FAILURE.
    """
    if request.request_data[:2] == REGISTRY_MARK:
        registry = context.services.registry
        if registry is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "this broker has no schema registry")
        return Deferred(partial(_ask_registry, registry, memoryview(request.request_data)))
    if not context.services.metadata.is_controller:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
    frame = memoryview(request.request_data)
    try:
        header, position = decode_request_header(frame)
        handler = find(header.api_key)
        if handler is None or not handler.forward_to_controller:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"a request of key {header.api_key} is not forwarded"
            )
        if not handler.api.supports(header.api_version):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{handler.api.key.name} v{header.api_version} is not served here",
            )
        message = handler.api.decode_request(header.api_version, frame, position)
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"in an envelope: {error}") from None
    principal, is_token = _principal(request.request_principal)
    inner = replace(
        context,
        api_version=header.api_version,
        client_id=header.client_id,
        principal=principal,
        is_token=is_token,
        peer_address=(_address(request.client_host_address), 0),
        is_inter_broker=False,
    )
    try:
        if context.services.authorizer is None:
            result = handler.handle(message, inner)
        else:
            from kafkalite.api import authorization  # see server/composition.py

            result = authorization.handle(handler, message, inner)
    except KafkaError as error:
        result = _refused(handler, message, error, inner)
    if isinstance(result, Deferred):
        return Deferred(partial(_wait, handler, header, message, result, inner))
    return _answer(handler, header, result)


async def _ask_registry(registry: "RegistryApi", frame: memoryview) -> EnvelopeResponse:
    return EnvelopeResponse(response_data=await registry.answer_envelope(frame))


async def _wait(
    handler: Handler,
    header: RequestHeader,
    message: Any,
    pending: Deferred[Any],
    inner: RequestContext,
) -> EnvelopeResponse:
    try:
        result = await pending.wait()
    except KafkaError as error:
        result = _refused(handler, message, error, inner)
    return _answer(handler, header, result)


def _refused(handler: Handler, message: Any, error: KafkaError, inner: RequestContext) -> Any:
    if error.code is ErrorCode.NOT_CONTROLLER:
        raise error
    return handler.refuse(message, error, inner)


def _answer(handler: Handler, header: RequestHeader, result: Any) -> EnvelopeResponse:
    if holds_error(result, ErrorCode.NOT_CONTROLLER):
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "another broker was elected meanwhile")
    api, version = handler.api, header.api_version
    prefix = encode_response_header(api, version, correlation_id=header.correlation_id)
    # Only records are no bytes, and what is forwarded has none.
    chunks = cast("list[bytes]", api.encode_response(version, result))
    return EnvelopeResponse(response_data=b"".join([prefix, *chunks]))


def _principal(data: bytes | None) -> tuple[str, bool]:
    """Return who asks, and whether by a delegation token."""
    try:
        _, principal = DEFAULT_PRINCIPAL_DATA.decode_versioned(data or b"")
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
    name = f"{principal.principal_type}:{principal.principal_name}"
    return name, principal.token_authenticated


def _packed(host: str) -> bytes:
    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:
        return ip_address(UNKNOWN_ADDRESS).packed


def _address(packed: bytes) -> str:
    try:
        return str(ip_address(packed))
    except ValueError:
        return UNKNOWN_ADDRESS


HANDLERS = (handling(SERVED.get),)
