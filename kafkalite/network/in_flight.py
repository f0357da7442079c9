"""A request that is served, and what those who watch it see."""

from typing import Any

from kafkalite.api.handler import EncodedAnswer, Handler
from kafkalite.wire.header import RequestHeader


class InFlightRequest:
    """One request on its way to its answer.

    What has a default here is only for those who watch (`Dispatcher.is_watched`), and set where
    somebody does.

    Attributes:
        result: response message, `EncodedAnswer`, `RelayedAnswer`, `Deferred`, or `NO_RESPONSE`.
    """

    size_bytes: int = 0
    began_s: float = 0.0
    """`perf_counter` when it was about to be decoded; 0 if nobody wants to know."""
    handled_s: float = 0.0
    """The same when it began to wait, 0 if it did not."""
    frame: memoryview | None = None
    """The request's bytes, if somebody wants to see them."""

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
