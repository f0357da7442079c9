"""What a handler is: a synchronous function of a request, plus an optional wait."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.wire.api import Api
    from kafkalite.wire.errors import KafkaError


class NoResponse:
    """The answer to a request that must not be answered (Produce with acks=0, rule 12)."""


NO_RESPONSE: Final = NoResponse()


class CloseConnection(Exception):
    """Raised by a handler where the protocol knows no other answer than closing the connection."""


@dataclass(slots=True)
class Pending:
    """A response that is not there yet.

    `wait` is called once, by the connection, after everything before it on that connection was
    answered; it returns the response message, or raises KafkaError. It has a deadline of its own
    and leaves nothing behind when it is cancelled (the client went away).
    """

    wait: Callable[[], Awaitable[Any]]


@dataclass(slots=True)
class RelayedAnswer:
    """A response that another broker made: its bytes, with the header that the client expects."""

    data: bytes | memoryview


def _never(request: object) -> bool:
    del request
    return False


@dataclass(slots=True, frozen=True)
class Handler:
    """One API that this broker answers.

    `admit(request, context)` runs to completion without awaiting, in the order in which requests
    arrived, and returns a response message, a `Pending`, or `NO_RESPONSE`. A `KafkaError` it
    raises is answered by `refuse(request, error, context)`, which puts the code where this API has
    a field for it.

    Attributes:
        forwarded: only the controller answers; other brokers hand the request on to it (KIP-590).
        is_own: tells of a `forwarded` request that it is for the broker that was asked.
        between_brokers: only brokers ask this, and only on the listener that is theirs.
    """

    api: "Api[Any, Any]"
    admit: "Callable[[Any, RequestContext], Any]"
    refuse: "Callable[[Any, KafkaError, RequestContext], Any]"
    forwarded: bool = False
    is_own: "Callable[[Any], bool]" = _never
    between_brokers: bool = False
