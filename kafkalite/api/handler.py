"""Handlers: each is a synchronous function of a request, plus an optional wait."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import trio

from kafkalite.api.context import RequestContext
from kafkalite.deferred import Deferred
from kafkalite.types import mypyc_attr
from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.errors import KafkaError


class NoResponse:
    """The answer to a request that must not be answered (Produce with acks=0, rule 12)."""


NO_RESPONSE: Final = NoResponse()


class CloseConnection(Exception):
    """Raised by a handler where the protocol knows no other answer than closing the connection."""


class ClosedOnPurpose(CloseConnection):
    """The connection is closed by a fault rule: nothing to warn the operator about."""


SECRET: Final = frozenset(
    {
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.ENVELOPE,
    }
)
"""APIs whose messages hold passwords and tokens: only that they were asked is kept."""

FETCHES: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})
"""APIs whose answers hold records."""


def _nobody() -> None:
    """Nobody is told."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(Deferred[Any]):
    """A response that waits for the log, and can be asked for without waiting in a task.

    After Kafka's class of this name. It watches from the beginning what it waits for, until it is
    complete or `close`d.

    Attributes:
        allows_pipelining: requests for the same API behind it on its connection may be handled
            before it is complete. They are answered after it all the same.
        deadline_s: trio's time at which it is answered with what there is.
        on_change: called, perhaps more than once and in the midst of what others do, when
            `complete` may have a response, or `deadline_s` came nearer.
    """

    __slots__ = ("allows_pipelining", "deadline_s", "on_change")

    def __init__(self, timeout_ms: float, *, allows_pipelining: bool = False) -> None:
        self.allows_pipelining = allows_pipelining
        self.deadline_s = trio.current_time() + timeout_ms / 1_000
        self.on_change: Callable[[], object] = _nobody

    def complete(self) -> Any:
        """Return the response, or None while there is none; raises what a handler raises."""
        raise NotImplementedError

    def close(self) -> None:
        """Watch nothing any more; may be called again."""
        raise NotImplementedError

    @property
    def is_late(self) -> bool:
        """Whether it is to be answered now, whatever there is."""
        return trio.current_time() >= self.deadline_s

    async def wait(self) -> Any:
        """Return the response when there is one, and watch nothing any more in any case."""
        try:
            while True:
                changed = trio.Event()
                self.on_change = changed.set
                response = self.complete()
                if response is not None:
                    return response
                with trio.CancelScope(deadline=self.deadline_s):
                    await changed.wait()
        finally:
            self.close()


@dataclass(slots=True)
class PlayedAnswer:
    """Bytes sent in place of a response, when a fault rule wants that.

    Attributes:
        pieces: sent one after the other.
        pause_s: between two of them.
        closes: the connection ends after that.
        resets: and with a TCP reset.
    """

    pieces: Sequence[bytes] = ()
    pause_s: float = 0.0
    closes: bool = False
    resets: bool = False


@dataclass(slots=True)
class RelayedAnswer:
    """A response that another broker made: its bytes, with the header that the client expects."""

    data: bytes | memoryview


@dataclass(slots=True)
class EncodedAnswer:
    """A response that was encoded already: its bytes, with their size and its header in front.

    Attributes:
        message: the response.
    """

    chunks: list[Any]
    message: Any

    @property
    def error_code(self) -> int:
        """Error code of the whole response, NONE if it has no place for one."""
        return int(getattr(self.message, "error_code", 0))


def _whole(request: Any) -> Iterable[Any]:
    return (request,)


def _only(responses: list[Any]) -> Any:
    (response,) = responses
    return response


def _no_check(request: object, context: object) -> None:
    del request, context


def _never(request: object) -> bool:
    del request
    return False


@dataclass(slots=True, frozen=True)
class Handler:
    """One API that this broker answers.

    `handle(request, context)` runs to completion without awaiting, in the order in which requests
    arrived, and returns a response message, a `Deferred`, or `NO_RESPONSE`. A `KafkaError` it
    raises is answered by `refuse(request, error, context)`, which puts the code where this API has
    a field for it.

    Attributes:
        forward_to_controller: only the controller answers; other brokers hand the request on to
            it (KIP-590).
        is_local_request: tells of a request that is forwarded otherwise that it is for the broker
            that was asked.
        inter_broker_only: only brokers ask this, and only on the listener that is theirs.
        check: called where the client came in, before a request is forwarded; raises KafkaError.
        parts: smaller requests that a very large one may be taken for, one after another, with
            turns for others in between (decision 0062).
        join: makes one response of those to the parts.
        handle_large: called for a very large request in the place of `handle`.
    """

    api: Api[Any, Any]
    handle: Callable[[Any, RequestContext], Any]
    refuse: Callable[[Any, KafkaError, RequestContext], Any]
    forward_to_controller: bool = False
    is_local_request: Callable[[Any], bool] = _never
    inter_broker_only: bool = False
    check: Callable[[Any, RequestContext], object] = _no_check
    parts: Callable[[Any], Iterable[Any]] = _whole
    join: Callable[[list[Any]], Any] = _only
    handle_large: "Callable[[Any, RequestContext], Any] | None" = None
    is_plain: bool = True
    """Its messages may be kept as the bytes that they were; not so secrets, records that are read
    from files, and what is very large."""
    is_special: bool = field(init=False)
    """Who asks, and who answers, is looked at before it is called."""

    def __post_init__(self) -> None:
        """See at once whether it is special, or plain: each request wants to know."""
        object.__setattr__(self, "is_special", self.forward_to_controller or self.inter_broker_only)
        is_plain = self.is_plain and self.api.key not in SECRET | FETCHES
        object.__setattr__(self, "is_plain", is_plain)
