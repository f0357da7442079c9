"""Requests of very many elements, decoded, served and answered in steps (decision 0062).

Between two steps everybody else has a turn. Nothing here is used for a request of ordinary size.
"""

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from kafkalite.api.handler import (
    CloseConnection,
    EncodedAnswer,
    NoResponse,
    PlayedAnswer,
    RelayedAnswer,
)
from kafkalite.deferred import Deferred, in_steps
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.header import encode_response_header

if TYPE_CHECKING:
    from kafkalite.network.in_flight import InFlightRequest

LARGE_MIN_BYTES: Final = 64 * 1024
"""A smaller frame holds no more elements than are decoded and served in some milliseconds. Those of
Produce are large because of records, which have steps of their own."""

SIZE_PREFIX_BYTES: Final = 4


async def serve(
    exchange: "InFlightRequest",
    frame: memoryview,
    position: int,
    handle: Callable[[Any], Any],
    refuse: Callable[[Any, Exception], Any],
) -> Any:
    """Return the answer to a large request, or what stands for none.

    Args:
        exchange: gets the request.
        frame: of the request, whose body begins at `position`.
        position: see `frame`.
        handle: hands a request to its handler.
        refuse: makes a response of what a handler raised.

    Raises:
        CloseConnection: it is no such request, or the answer does not fit its version.
    """
    handler, header = exchange.handler, exchange.header
    api, version = handler.api, header.api_version
    try:
        exchange.request = await in_steps(api.request.decode_in_steps(version, frame, position))
    except MalformedMessage as error:
        raise CloseConnection(f"{api.key.name} v{version}: {error}") from None
    responses = []
    for part in handler.parts(exchange.request):
        await trio.lowlevel.checkpoint()
        responses.append(await _response(part, handle, refuse))
    response = handler.join(responses)
    return await encoded(exchange, response)


async def encoded(exchange: "InFlightRequest", response: Any) -> Any:
    """Return the bytes of a response; what stands for none is returned as it is.

    Raises:
        CloseConnection: it does not fit the version that was asked in.
    """
    if isinstance(response, NoResponse | RelayedAnswer | PlayedAnswer | EncodedAnswer):
        return response
    api, header = exchange.handler.api, exchange.header
    version = header.api_version
    await trio.lowlevel.checkpoint()
    try:
        chunks = await in_steps(api.response.encode_in_steps(version, response))
    except struct.error as error:
        raise CloseConnection(f"{api.key.name} v{version}: does not fit: {error}") from error
    prefix = encode_response_header(api, version, correlation_id=header.correlation_id)
    size = len(prefix) + sum(map(len, chunks))
    return EncodedAnswer([size.to_bytes(SIZE_PREFIX_BYTES, "big") + prefix, *chunks], response)


async def _response(
    part: Any, handle: Callable[[Any], Any], refuse: Callable[[Any, Exception], Any]
) -> Any:
    try:
        response = handle(part)
        if isinstance(response, Deferred):
            response = await response.wait()
    except (AssertionError, CloseConnection):
        raise
    except Exception as error:
        return refuse(part, error)
    return response
