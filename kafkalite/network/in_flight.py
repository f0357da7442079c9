"""A request that is served, and what those who watch it see."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafkalite.api.handler import EncodedAnswer, Handler
from kafkalite.wire.header import RequestHeader

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext


class InFlightRequest:
    """One request on its way to its answer.

    What has a default here is only for those who watch (`Dispatcher.is_watched`), and set where
    somebody does.

    Attributes:
        result: response message, `EncodedAnswer`, `RelayedAnswer`, `Deferred`, or `NO_RESPONSE`.
    """

    began_s: float = 0.0
    """`perf_counter` when it was about to be decoded; 0 if nobody wants to know."""
    handled_s: float = 0.0
    """The same when it began to wait, 0 if it did not."""
    end_s: float = 0.0
    """The same when its answer was encoded."""
    frame: Any = b""
    """The request's bytes, or what only has their size."""
    chunks: Sequence[Any] = ()
    """The answer's bytes, or what only has their size."""
    context: "RequestContext | None" = None
    """Of its connection."""
    at_ms: int = 0
    """Wall clock when its turn began."""

    def __init__(self, handler: Handler, header: RequestHeader, request: Any, result: Any) -> None:
        self.handler = handler
        self.header = header
        self.request = request
        self.result = result

    @property
    def response(self) -> Any:
        """The response message, also where it was encoded already; else what `result` is."""
        result = self.result
        return result.message if isinstance(result, EncodedAnswer) else result
