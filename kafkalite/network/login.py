"""A client's login by SASL, from its first frame to its last (KIP-43, KIP-152, KIP-368; rule 539).

As long as nobody has logged in, a connection is answered by this and by nothing else.
"""

import struct
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from kafkalite.api.handler import CloseConnection, RelayedAnswer
from kafkalite.deferred import Deferred
from kafkalite.network.dispatch import Dispatcher, Farewell
from kafkalite.network.in_flight import InFlightRequest
from kafkalite.security.bearer import KeysMissing
from kafkalite.security.exchanges import LoginFailed
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.header import RequestHeader, decode_request_header
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateResponse
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeResponse

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.clock import Clock
    from kafkalite.security import exchanges
    from kafkalite.security.logins import Logins

REAUTHENTICATION_MIN_MS: Final = 1_000
"""A client that logs in again sooner is refused, as by Kafka."""

THREADS: Final = trio.CapacityLimiter(1)
"""Passwords are tried one after another: who guesses them is not to have all processors."""

_API_KEY: Final = struct.Struct(">h")


class State(Enum):
    """How far a login is."""

    BEGINNING = auto()
    """ApiVersions or a handshake is expected."""
    HANDSHAKE = auto()
    """Versions were told; a handshake is expected."""
    TOKENS = auto()
    """A mechanism was agreed upon; its tokens are expected."""
    OTHER_MECHANISM = auto()
    """A client logs in again by another mechanism than before, and is told so at its token."""
    COMPLETE = auto()


class Login:
    """One client's login, and its next ones on the same connection.

    Args:
        logins: what the listener offers.
        clock: for the life of sessions.
        on_failure: called with what went wrong, for the operator.
        on_complete: called when the client is in for the first time.

    Attributes:
        renewals: how often the client has logged in again on this connection (KIP-368).
    """

    def __init__(
        self,
        logins: "Logins",
        clock: "Clock",
        *,
        on_failure: Callable[[str], object],
        on_complete: Callable[[], object],
    ) -> None:
        self._logins = logins
        self._clock = clock
        self._on_failure = on_failure
        self._on_complete = on_complete
        self._state = State.BEGINNING
        self._has_headers = False
        """Tokens come in SaslAuthenticate requests, not bare."""
        self._mechanism = ""
        self._refusal = ""
        self._exchange: exchanges.Exchange | None = None
        self._is_again = False
        self.renewals = 0
        self._expires_ms: int | None = None
        """Of the monotonic clock: from when on requests are not answered any more."""
        self._began_again_ms = -REAUTHENTICATION_MIN_MS

    @property
    def is_complete(self) -> bool:
        """Whether a user has logged in."""
        return self._state is State.COMPLETE

    def expire(self) -> None:
        """End the session: the client has to log in again, on this connection if it knows how."""
        if self.is_complete:
            self._expires_ms = self._clock.monotonic_ms() - 1

    def handle(
        self, frame: memoryview, context: "RequestContext", dispatcher: Dispatcher
    ) -> InFlightRequest:
        """Return the answer to a frame, or what waits for it.

        Raises:
            Farewell: with the last answer that this connection gets.
            CloseConnection, MalformedMessage: it gets none.
        """
        if self._state is State.COMPLETE:
            if not self._begins_again(frame):
                return _passed(frame, context, dispatcher)
        elif self._state is State.TOKENS and not self._has_headers:
            header = RequestHeader(ApiKey.SASL_AUTHENTICATE, 0, 0, context.client_id)
            exchange = InFlightRequest(
                dispatcher.handler(SASL_AUTHENTICATE.key), header, None, None
            )
            return self._take_token(exchange, bytes(frame), context)
        header, position = decode_request_header(frame)
        context.api_version, context.client_id = header.api_version, header.client_id
        if self._state in (State.TOKENS, State.OTHER_MECHANISM):
            return self._authenticate(header, frame, position, context, dispatcher)
        if header.api_key == ApiKey.API_VERSIONS and self._state is State.BEGINNING:
            exchange = _passed(frame, context, dispatcher)
            if not exchange.result.error_code:
                self._state = State.HANDSHAKE
            return exchange
        if header.api_key != ApiKey.SASL_HANDSHAKE:
            raise MalformedMessage(
                f"{ApiKey(header.api_key).name} comes before a login "
                "(security.protocol of the client?)"
            )
        return self._shake_hands(header, frame, position, dispatcher)

    def _begins_again(self, frame: memoryview) -> bool:
        """Whether a client that is in logs in again; raise if it should have."""
        if self._expires_ms is None or len(frame) < _API_KEY.size:
            return False
        now_ms = self._clock.monotonic_ms()
        (key,) = _API_KEY.unpack_from(frame)
        is_early = now_ms - self._began_again_ms < REAUTHENTICATION_MIN_MS
        if key == ApiKey.SASL_HANDSHAKE and not is_early:
            self._began_again_ms = now_ms
            self._is_again = True
            self._has_headers = False
            self._state = State.HANDSHAKE
            return True
        if now_ms > self._expires_ms:
            raise CloseConnection("its session has expired, and it does not log in again")
        return False

    def _shake_hands(
        self, header: RequestHeader, frame: memoryview, position: int, dispatcher: Dispatcher
    ) -> InFlightRequest:
        if not SASL_HANDSHAKE.supports(header.api_version):
            raise MalformedMessage(f"SASL_HANDSHAKE v{header.api_version} is not served here")
        request = SASL_HANDSHAKE.decode_request(header.api_version, frame, position)
        offered = list(self._logins.mechanisms)
        response = SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=offered)
        exchange = InFlightRequest(
            dispatcher.handler(SASL_HANDSHAKE.key), header, request, response
        )
        self._has_headers = header.api_version > 0
        mechanism = request.mechanism
        if mechanism not in offered:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            raise self._farewell(
                f"it wants to log in by {mechanism!r}, offered are {', '.join(offered)}", exchange
            )
        if self._is_again and mechanism != self._mechanism:
            self._exchange = None
            self._refusal = (
                f"SASL mechanism '{mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._mechanism}'"
            )
            self._state = State.OTHER_MECHANISM
            return exchange
        self._mechanism = mechanism
        self._exchange = self._logins.begin(mechanism)
        self._state = State.TOKENS
        return exchange

    def _authenticate(
        self,
        header: RequestHeader,
        frame: memoryview,
        position: int,
        context: "RequestContext",
        dispatcher: Dispatcher,
    ) -> InFlightRequest:
        handler = dispatcher.find(header.api_key)
        if handler is None or not handler.api.supports(header.api_version):
            raise MalformedMessage(
                f"key {header.api_key} v{header.api_version} in the midst of a login"
            )
        request = handler.api.decode_request(header.api_version, frame, position)
        exchange = InFlightRequest(handler, header, request, None)
        if handler.api.key is not ApiKey.SASL_AUTHENTICATE:
            message = (
                f"Unexpected Kafka request of type {handler.api.key.name} during SASL "
                "authentication."
            )
            error = KafkaError(ErrorCode.ILLEGAL_SASL_STATE, message)
            exchange.result = handler.refuse(request, error, context)
            raise self._farewell(message, exchange)
        if self._state is State.OTHER_MECHANISM:
            raise self._refused(exchange, LoginFailed(self._refusal, self._refusal))
        return self._take_token(exchange, request.auth_bytes, context)

    def _take_token(
        self, exchange: InFlightRequest, token: bytes, context: "RequestContext"
    ) -> InFlightRequest:
        assert self._exchange is not None
        slow = self._logins.slow_part(self._exchange, token)
        if slow is None:
            exchange.result = self._evaluate(exchange, token, context)
        else:
            exchange.result = Deferred(partial(self._wait, slow, exchange, token, context))
        return exchange

    async def _wait(
        self,
        slow: Callable[[], object],
        exchange: InFlightRequest,
        token: bytes,
        context: "RequestContext",
    ) -> Any:
        await trio.to_thread.run_sync(slow, limiter=THREADS)
        return self._evaluate(exchange, token, context)

    def _evaluate(self, exchange: InFlightRequest, token: bytes, context: "RequestContext") -> Any:
        """Return the answer to a token."""
        login = self._exchange
        assert login is not None
        try:
            answer = login.evaluate(token)
            lifetime_ms = 0
            if login.user is not None:
                lifetime_ms = self._finish(login, context)
        except LoginFailed as failure:
            raise self._refused(exchange, failure) from None
        except KeysMissing as error:
            # No client is told that it is refused: that is final to clients, and this passes.
            raise CloseConnection(str(error)) from None
        if not self._has_headers:
            return RelayedAnswer(answer)
        return SaslAuthenticateResponse(
            error_code=ErrorCode.NONE, auth_bytes=answer, session_lifetime_ms=lifetime_ms
        )

    def _finish(self, login: "exchanges.Exchange", context: "RequestContext") -> int:
        """Let the client in; return for how many milliseconds, 0 for ever."""
        principal = f"User:{login.user}"
        if self._is_again and principal != context.principal:
            raise _changed(context.principal, principal)
        context.principal = principal
        context.is_token = login.is_token
        limits_ms = []
        if login.expires_ms is not None:
            limits_ms.append(max(login.expires_ms - self._clock.wall_ms(), 0))
        most_ms = self._logins.max_session_ms(self._mechanism)
        if most_ms > 0:
            limits_ms.append(most_ms)
        self._exchange = None
        self._state = State.COMPLETE
        self._expires_ms = None
        if self._is_again:
            self.renewals += 1
        else:
            self._on_complete()
        if not limits_ms:
            return 0
        self._expires_ms = self._clock.monotonic_ms() + min(limits_ms)
        return min(limits_ms)

    def _refused(self, exchange: InFlightRequest, failure: LoginFailed) -> Farewell:
        during = "re-authentication" if self._is_again else "authentication"
        told = failure.told or (
            f"Authentication failed during {during} due to invalid credentials with SASL "
            f"mechanism {self._mechanism}"
        )
        exchange.result = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told
        )
        return self._farewell(
            f"{self._mechanism} login: {failure}", exchange if self._has_headers else None
        )

    def _farewell(self, reason: str, exchange: InFlightRequest | None) -> Farewell:
        self._on_failure(reason)
        return Farewell(reason, exchange)


def _passed(
    frame: memoryview, context: "RequestContext", dispatcher: Dispatcher
) -> InFlightRequest:
    """Have a request answered as that of anybody who is in."""
    login, context.login = context.login, None
    try:
        return dispatcher.handle(frame, context)
    finally:
        context.login = login


def _changed(before: str, after: str) -> LoginFailed:
    message = "Cannot change principals during re-authentication from {}: {}".format(
        *(each.replace(":", ".", 1) for each in (before, after))
    )
    return LoginFailed(message, message)
