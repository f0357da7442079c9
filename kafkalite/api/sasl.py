"""SaslHandshake (key 17), versions 0-1, and SaslAuthenticate (key 36), versions 0-2.

What is asked of a listener with logins before it is open is answered by `network/login.py`. Here
is what remains: listeners without logins, and clients that log in where they are in already
(rule 532).
"""

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkalite.wire.messages.sasl_handshake import (
    SASL_HANDSHAKE,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


def handle_handshake(
    request: SaslHandshakeRequest, context: RequestContext
) -> SaslHandshakeResponse:
    """Refuse: there is nothing to log in for."""
    del request, context
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def handle_authenticate(
    request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    """Refuse: there was no handshake."""
    del request, context
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def refuse_handshake(
    request: SaslHandshakeRequest, error: KafkaError, context: RequestContext
) -> SaslHandshakeResponse:
    """Answer the error."""
    del request, context
    return SaslHandshakeResponse(error_code=error.code)


def refuse_authenticate(
    request: SaslAuthenticateRequest, error: KafkaError, context: RequestContext
) -> SaslAuthenticateResponse:
    """Answer the error."""
    del request, context
    return SaslAuthenticateResponse(error_code=error.code, error_message=error.message or None)


HANDLERS = (
    Handler(SASL_HANDSHAKE, handle_handshake, refuse_handshake),
    Handler(SASL_AUTHENTICATE, handle_authenticate, refuse_authenticate),
)
