"""Requests of very many elements, decoded, served and answered in steps (decision 0062).

Between two steps everybody else has a turn. Nothing here is used for a request of ordinary size.
"""

import struct
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from kafkalite.api.handler import CloseConnection, EncodedAnswer, NoResponse, RelayedAnswer
from kafkalite.deferred import Deferred
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.header import encode_response_header

if TYPE_CHECKING:
    from kafkalite.network.dispatch import InFlightRequest

LARGE_MIN_BYTES: Final = 64 * 1024
"""A smaller frame holds no more elements than are decoded and served in some milliseconds. Those of
Produce are large because of records, which have steps of their own."""

SIZE_PREFIX_BYTES: Final = 4

Value = TypeVar("Value")


async def in_steps(steps: Generator[None, None, Value]) -> Value:
    """Return the value of a generator, with a turn for others at each of its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: Value = done.value
            return value
        await trio.lowlevel.checkpoint()


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
    if isinstance(response, NoResponse | RelayedAnswer):
        return response
    await trio.lowlevel.checkpoint()
    try:
        chunks = await in_steps(api.response.encode_in_steps(version, response))
    except struct.error as error:
        raise CloseConnection(f"{api.key.name} v{version}: does not fit: {error}") from error
    prefix = encode_response_header(api, version, correlation_id=header.correlation_id)
    size = len(prefix) + sum(map(len, chunks))
    return EncodedAnswer([size.to_bytes(SIZE_PREFIX_BYTES, "big") + prefix, *chunks])


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
