"""From Kafka's refusals to HTTP's, and what all routes of the API share."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from kafkalite.client.errors import ClientError
from kafkalite.http.routing import (
    BODY_MAX_BYTES,
    HttpError,
    HttpRequest,
    HttpResponse,
    Route,
    json_response,
)
from kafkalite.observe.cluster import Cluster, retry
from kafkalite.observe.openapi import summary_of
from kafkalite.wire.errors import ErrorCode, KafkaError

API: Final = "/api/v1"

NOT_FOUND: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)
CONFLICT: Final = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
UNAVAILABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
FORBIDDEN: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

Answer = Callable[[HttpRequest], Awaitable[Any]]
"""Returns what becomes JSON, or a response."""


class Routes:
    """Collects the routes of one part of the API, each with Kafka's errors as statuses.

    Args:
        cluster: whose `can_write` decides whether what changes something is let through.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.list: list[Route] = []

    def get(self, path: str, answer: Answer) -> None:
        """Answer GET."""
        self._add("GET", path, answer)

    def write(
        self, method: str, path: str, answer: Answer, *, body_max_bytes: int = BODY_MAX_BYTES
    ) -> None:
        """Answer what changes something, unless the cluster is only to be looked at."""
        self._add(method, path, answer, body_max_bytes=body_max_bytes)

    def _add(
        self, method: str, path: str, answer: Answer, *, body_max_bytes: int = BODY_MAX_BYTES
    ) -> None:
        async def handler(request: HttpRequest) -> HttpResponse:
            if method != "GET" and not self._cluster.can_write:
                raise HttpError(403, "this console only looks; start it with --write")
            try:
                if method == "GET":
                    answered = await retry(lambda: answer(request))
                else:
                    answered = await answer(request)
            except KafkaError as error:
                raise refusal_of(error) from error
            except ClientError as error:
                raise HttpError(502, str(error)) from error
            except trio.TooSlowError as error:
                raise HttpError(504, "no answer in time") from error
            return answered if isinstance(answered, HttpResponse) else json_response(answered)

        self.list.append(
            Route(
                method=method,
                path=API + path,
                handler=handler,
                body_max_bytes=body_max_bytes,
                summary=summary_of(answer),
            )
        )


def refusal_of(error: KafkaError) -> HttpError:
    """Return the refusal that a Kafka error is."""
    status = 400
    if error.code in NOT_FOUND:
        status = 404
    elif error.code in CONFLICT:
        status = 409
    elif error.code in FORBIDDEN:
        status = 403
    elif error.code in UNAVAILABLE:
        status = 503
    elif error.code is ErrorCode.UNSUPPORTED_VERSION:
        status = 501
    message = f"{error.code.name}: {error.message}" if error.message else error.code.name
    return HttpError(status, message)


def field(
    body: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any = ...
) -> Any:
    """Return a field of a JSON body.

    Raises:
        HttpError: 400, it is missing or of another type.
    """
    value = body.get(name, default)
    if value is ...:
        raise HttpError(400, f"{name} is missing")
    if value is default:
        return value
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise HttpError(400, f"{name} is of the wrong type")
    return value
