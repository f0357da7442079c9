"""From a request frame to an answer: the checks that every API shares, made once."""

import logging
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import CloseConnection, EncodedAnswer, Handler, NoResponse, RelayedAnswer
from kafkalite.deferred import Deferred
from kafkalite.network.complaints import Complaints
from kafkalite.network.in_flight import InFlightRequest
from kafkalite.network.large import LARGE_MIN_BYTES, serve
from kafkalite.network.transport import Chunk
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.header import RequestHeader, decode_request_header, encode_response_header

if TYPE_CHECKING:
    from kafkalite.network.throttling import Throttle

logger = logging.getLogger("kafkalite.server")

SIZE_PREFIX_BYTES = 4

NOTES_MAX = 100
"""Requests that tasks have answered since the poller's last pause; its own turns are short."""


def _nothing_else(key: int) -> None:
    """Find no handler."""
    del key


class Farewell(CloseConnection):
    """The connection is to be closed, after a last answer.

    It is sent and the connection closed only after `connection.failed.authentication.delay.ms`, as
    in Kafka: who guesses passwords, or tries again at once, is slowed down.

    Attributes:
        exchange: with the answer; None if there is to be none.
    """

    def __init__(self, reason: str, exchange: InFlightRequest | None) -> None:
        super().__init__(reason)
        self.exchange = exchange


Observer = Callable[[InFlightRequest, int, RequestContext], None]
"""Told of each request when its handler has returned, with the size of its frame in bytes."""

Interceptor = Callable[[InFlightRequest, int, RequestContext, Callable[[Any], Any]], Any]
"""Gives the result of a request, with the size of its frame in bytes and the handler's own way from
a request to a result."""

AnswerObserver = Callable[[InFlightRequest], None]
"""Told of each request when its answer has been encoded."""

Forward = Callable[[Any, memoryview, RequestContext], "Deferred[RelayedAnswer]"]
"""Hands a request (as decoded, and its frame) on to the controller; gives a `RelayedAnswer`."""

Authorize = Callable[[Handler, Any, RequestContext], Any]
"""Has a request answered as far as its client may ask for it (`api/authorization.py`)."""


class Dispatcher:
    """The table of what this broker answers, and the way there and back.

    Attributes:
        observer: for tests that look at what clients send; it may not raise.
        complaints: where to write what clients do wrong.
        interceptor: called in the place of each handler, while there are fault rules.
        on_answered: for metrics and the journal; it may not raise either.
        notes: where answered requests go in the place of `on_answered`, if they are `is_plain`;
            None if each must be told of.
        is_watched: somebody wants to know of requests.
        is_guarded: something is called in the place of handlers.
        throttle: what answers are counted by; None while there are no quotas of clients.
    """

    def __init__(
        self,
        handlers: Iterable[Handler] = (),
        *,
        find: Callable[[int], Handler | None] = _nothing_else,
        forward: Forward | None = None,
        authorize: Authorize | None = None,
    ) -> None:
        """Take what to answer, and where to hand on what only the controller may answer.

        Without the latter this broker is alone, and its own controller. `authorize` is called
        instead of handlers where there is an authorizer. `find` is asked once for each API that is
        not among `handlers`, when there is a request of it.
        """
        self.is_watched = False
        self.is_guarded = authorize is not None
        self._authorize = authorize
        self._observer: Observer | None = None
        self.complaints = Complaints(logger)
        self._interceptor: Interceptor | None = None
        self._on_answered: AnswerObserver | None = None
        self._all_notes: list[InFlightRequest] | None = None
        self._look: Callable[[], object] | None = None
        self.notes: list[InFlightRequest] | None = None
        self._throttle: Throttle | None = None
        self._forward = forward
        self._find = find
        self._handlers: dict[int, Handler] = {}
        for handler in handlers:
            assert handler.api.key not in self._handlers
            self._handlers[handler.api.key] = handler

    @property
    def observer(self) -> Observer | None:
        """See the class."""
        return self._observer

    @observer.setter
    def observer(self, observer: Observer | None) -> None:
        self._observer = observer
        self._note_watchers()

    @property
    def on_answered(self) -> AnswerObserver | None:
        """See the class."""
        return self._on_answered

    @on_answered.setter
    def on_answered(self, on_answered: AnswerObserver | None) -> None:
        self._on_answered = on_answered
        self._note_watchers()

    @property
    def throttle(self) -> "Throttle | None":
        """See the class."""
        return self._throttle

    @throttle.setter
    def throttle(self, throttle: "Throttle | None") -> None:
        self._throttle = throttle
        self._note_watchers()

    @property
    def interceptor(self) -> Interceptor | None:
        """See the class."""
        return self._interceptor

    @interceptor.setter
    def interceptor(self, interceptor: Interceptor | None) -> None:
        self._interceptor = interceptor
        self.is_guarded = interceptor is not None or self._authorize is not None

    def keep_notes(
        self, notes: list[InFlightRequest] | None, look: Callable[[], object] | None = None
    ) -> None:
        """Put plain requests into a list when they are answered.

        Whoever wants that looks at it in each pause of the poller; `look` is called where tasks,
        of which there may be many, have put NOTES_MAX into it.
        """
        self._all_notes, self._look = notes, look
        self._note_watchers()

    def bound_notes(self) -> None:
        """Have the notes looked at if there are many."""
        if self.notes is not None and len(self.notes) >= NOTES_MAX and self._look is not None:
            self._look()

    def _note_watchers(self) -> None:
        self.notes = None if self._throttle is not None else self._all_notes
        watchers = (self._observer, self._on_answered, self._throttle)
        self.is_watched = any(each is not None for each in watchers)

    def handle(self, frame: memoryview, context: RequestContext) -> InFlightRequest:
        """Decode a request and hand it to its handler.

        Raises:
            MalformedMessage: an unknown key or version, or a body that is none: the connection is
                closed (rule 4). The message names API and version.
            CloseConnection: the handler wants it so.
        """
        began_s = perf_counter() if self.is_watched else 0.0
        if context.login is not None:
            answered: InFlightRequest = context.login.handle(frame, context, self)
            answered.frame, answered.began_s = frame.obj, began_s
            return answered
        header, position = decode_request_header(frame)
        context.api_version = header.api_version
        context.client_id = header.client_id
        handler = self._handlers.get(header.api_key)
        if handler is None:
            handler = self._served(header)
        api = handler.api
        lowest, highest = api.versions
        if not lowest <= header.api_version <= highest:
            if api.key is not ApiKey.API_VERSIONS:
                raise MalformedMessage(
                    f"{api.key.name} v{header.api_version} is not served here, "
                    f"v{lowest} to v{highest} are"
                )
            # KIP-511: answered in version 0, whose body needs no decoding (rule 5).
            return self._too_new(handler, header, context)
        if len(frame) >= LARGE_MIN_BYTES and api.key is not ApiKey.PRODUCE:
            large = InFlightRequest(handler, header, None, None)
            large.frame, large.began_s = frame.obj, began_s
            return self._handle_large(large, frame, position, context)
        try:
            request = api.decode_request(header.api_version, frame, position)
        except MalformedMessage as malformed:
            raise MalformedMessage(f"{api.key.name} v{header.api_version}: {malformed}") from None
        exchange = InFlightRequest(handler, header, request, None)
        try:
            if began_s:
                exchange.began_s, exchange.frame = began_s, frame.obj
            if self.is_guarded or handler.is_special:
                exchange.result = self._serve(exchange, frame, context)
            else:
                exchange.result = handler.handle(request, context)
        except (CloseConnection, AssertionError):
            raise
        except Exception as error:
            exchange.result = self.refuse(exchange, error, context)
        if began_s and self._observer is not None:
            self._observer(exchange, len(frame), context)
        return exchange

    def _serve(self, exchange: InFlightRequest, frame: memoryview, context: RequestContext) -> Any:
        handler = exchange.handler
        if self._interceptor is not None:
            handle = partial(self._handle, handler, frame, context)
            return self._interceptor(exchange, len(frame), context, handle)
        return self._handle(handler, frame, context, exchange.request)

    def _handle_large(
        self, exchange: InFlightRequest, frame: memoryview, position: int, context: RequestContext
    ) -> InFlightRequest:
        handler, header = exchange.handler, exchange.header
        handle_large = handler.handle_large or handler.handle
        exchange.handler = handler = replace(handler, handle=handle_large, is_plain=False)

        def handle(request: Any) -> Any:
            part = InFlightRequest(handler, header, request, None)
            result = self._serve(part, frame, context)
            if self._observer is not None:
                self._observer(part, len(frame), context)
            return result

        def refuse(request: Any, error: Exception) -> Any:
            return self.refuse(InFlightRequest(handler, header, request, None), error, context)

        exchange.result = Deferred(partial(serve, exchange, frame, position, handle, refuse))
        return exchange

    def _served(self, header: RequestHeader) -> Handler:
        handler = self.find(header.api_key)
        if handler is None:
            raise MalformedMessage(
                f"{ApiKey(header.api_key).name} v{header.api_version} is not served here"
            )
        return handler

    def find(self, key: int) -> Handler | None:
        """Return the handler of an API; None if it is not served."""
        handler = self._handlers.get(key)
        if handler is None:
            handler = self._find(key)
            if handler is not None:
                self._handlers[key] = handler
        return handler

    def handler(self, key: int) -> Handler:
        """Return the handler of an API that is served."""
        handler = self.find(key)
        assert handler is not None
        return handler

    def refuse(self, exchange: InFlightRequest, error: Exception, context: RequestContext) -> Any:
        """Turn what a handler raised into a response; what was not expected is logged whole."""
        if not isinstance(error, KafkaError):
            self.complaints.error(
                "%s v%d from %s: unexpected error",
                exchange.handler.api.key.name,
                exchange.header.api_version,
                context.peer_address,
                error=error,
            )
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}")
        return exchange.handler.refuse(exchange.request, error, context)

    def encode(self, exchange: InFlightRequest) -> list[Chunk]:
        """Return the answer's bytes with their size in front; empty if there is to be none.

        Raises:
            CloseConnection: the answer does not fit the version that was asked in. A name of bytes
                that are no UTF-8 is longer when it is echoed, and may be too long for its field.
        """
        if isinstance(exchange.result, SPECIAL_ANSWERS):
            return _chunks_of(exchange.result)
        api, header = exchange.handler.api, exchange.header
        try:
            chunks = cast("list[Chunk]", api.encode_response(header.api_version, exchange.result))
        except struct.error as error:
            raise CloseConnection(
                f"{api.key.name} v{header.api_version}: the answer does not fit: {error}"
            ) from error
        prefix = encode_response_header(
            api, header.api_version, correlation_id=header.correlation_id
        )
        if len(chunks) == 1 and isinstance(chunks[0], bytes):
            body = chunks[0]
            return [(len(prefix) + len(body)).to_bytes(SIZE_PREFIX_BYTES, "big") + prefix + body]
        size = len(prefix) + sum(map(len, chunks))
        chunks.insert(0, size.to_bytes(SIZE_PREFIX_BYTES, "big") + prefix)
        return chunks

    def _handle(
        self, handler: Handler, frame: memoryview, context: RequestContext, request: Any
    ) -> Any:
        if handler.forward_to_controller or handler.inter_broker_only:
            return self._handle_special(handler, request, frame, context)
        return self._answer(handler, request, context)

    def _answer(self, handler: Handler, request: Any, context: RequestContext) -> Any:
        if self._authorize is not None:
            return self._authorize(handler, request, context)
        return handler.handle(request, context)

    def _handle_special(
        self, handler: Handler, request: Any, frame: memoryview, context: RequestContext
    ) -> Any:
        """Refuse what only brokers may ask; hand on what only the controller may answer."""
        if handler.inter_broker_only and not context.is_inter_broker:
            raise KafkaError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{handler.api.key.name} is for brokers, which do not come in by "
                f"{context.listener} (inter.broker.listener.name)",
            )
        handler.check(request, context)
        if (
            handler.forward_to_controller
            and self._forward is not None
            and not context.services.metadata.is_controller
            and not handler.is_local_request(request)
        ):
            return self._forward(request, frame, context)
        return self._answer(handler, request, context)

    def _too_new(
        self, handler: Handler, header: RequestHeader, context: RequestContext
    ) -> InFlightRequest:
        context.api_version = 0
        error = KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        at_zero = RequestHeader(header.api_key, 0, header.correlation_id, header.client_id)
        result = handler.refuse(None, error, context)
        exchange = InFlightRequest(handler, at_zero, None, result)
        exchange.began_s = perf_counter()
        return exchange


SPECIAL_ANSWERS: Final = (NoResponse, EncodedAnswer, RelayedAnswer, Deferred)


def _chunks_of(
    result: "NoResponse | EncodedAnswer | RelayedAnswer | Deferred[Any]",
) -> "list[Chunk]":
    """Return the bytes of what stands for a response."""
    assert not isinstance(result, Deferred)
    if isinstance(result, NoResponse):
        return []
    if isinstance(result, EncodedAnswer):
        return cast("list[Chunk]", result.chunks)
    return [len(result.data).to_bytes(SIZE_PREFIX_BYTES, "big"), result.data]
