"""Handlers: each is a synchronous function of a request, plus an optional wait."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kafkalite.api.context import RequestContext
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
