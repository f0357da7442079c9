"""Handing a client's request on to the controller, so that any broker will do for a client.

The client's frame goes into an Envelope as it came, and the controller's answer comes out of one
with the client's correlation id in it (KIP-590).
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from kafkalite.api.context import RequestContext
from kafkalite.api.envelope import envelope_of
from kafkalite.api.handler import RelayedAnswer
from kafkalite.deferred import Deferred
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.envelope import ENVELOPE, EnvelopeRequest

if TYPE_CHECKING:
    from kafkalite.meta.peers import ControllerChannel

FORWARDING_CHANNEL = "forwarding"
"""Channel of a `ControllerClient` for envelopes, which may take as long as their clients allow."""


class Forwarder:
    """Hands requests on (`dispatch.Forward`).

    Args:
        controller: the way to the controller, on a channel of its own.
        timeout_ms: how long to try for a request that does not say it (`request.timeout.ms`).
    """

    def __init__(self, controller: "ControllerChannel", *, timeout_ms: int) -> None:
        self._controller = controller
        self._timeout_ms = timeout_ms

    def __call__(
        self, request: Any, frame: memoryview, context: RequestContext
    ) -> Deferred[RelayedAnswer]:
        """Return what waits for the controller's answer to a request that came in `frame`.

        It raises KafkaError, for the request's own refusal: NOT_CONTROLLER if no controller was
        found in time, REQUEST_TIMED_OUT if none answered, UNKNOWN_SERVER_ERROR if it does not know
        what to do with an envelope.
        """
        timeout_ms: int = getattr(request, "timeout_ms", 0)
        if timeout_ms <= 0:
            timeout_ms = self._timeout_ms
        return Deferred(partial(self._relay, envelope_of(frame, context), timeout_ms))

    async def _relay(self, envelope: EnvelopeRequest, timeout_ms: int) -> RelayedAnswer:
        try:
            answer = await self._controller.request(ENVELOPE, envelope, timeout_ms=timeout_ms)
        except KafkaError as error:
            if error.code in (ErrorCode.NOT_CONTROLLER, ErrorCode.UNSUPPORTED_VERSION):
                raise
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"the controller did not answer: {error.message}"
            ) from error
        if answer.error_code or answer.response_data is None:
            code = ErrorCode(answer.error_code)
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"the controller refused the envelope: {code.name}"
            )
        return RelayedAnswer(answer.response_data)
