"""HTTP requests, the routes that answer them, and their responses."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"

BODY_MAX_BYTES: Final = 1024 * 1024
"""The largest body that a route takes which names no limit of its own."""


class HttpError(Exception):
    """An answer that is a refusal: a status from 400 on, and one line that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True, kw_only=True)
class HttpRequest:
    """One request.

    Attributes:
        method: in capitals.
        path: as it was sent, without the query.
        parameters: the parts of the path that the route names, decoded.
        query: the first value of each name in the query.
        headers: by name in small letters.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def text(self, name: str, default: str = "") -> str:
        """Return a value of the query."""
        return self.query.get(name, default)

    def flag(self, name: str) -> bool:
        """Whether a value of the query is `true` or `1`, or the name stands there alone.

        Raises:
            HttpError: 400, it is anything but these or `false` or `0`.
        """
        value = self.query.get(name, "false").lower()
        if value not in ("", "true", "1", "false", "0"):
            raise HttpError(400, f"{name}={value!r} is neither true nor false")
        return value in ("", "true", "1")

    def number(self, name: str, default: int, *, low: int = 0, high: int = 2**63 - 1) -> int:
        """Return a whole number of the query.

        Raises:
            HttpError: 400, it is none, or not from `low` to `high` (both inclusive).
        """
        text = self.query.get(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            raise HttpError(400, f"{name}={text!r} is no whole number") from None
        if not low <= value <= high:
            raise HttpError(400, f"{name}={value} is not from {low} to {high}")
        return value

    def json(self) -> dict[str, Any]:
        """Return the object that the body holds; an empty body is an empty object.

        Raises:
            HttpError: 400, it is no JSON object.
        """
        if not self.body.strip():
            return {}
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise HttpError(400, f"the body is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise HttpError(400, "the body is no JSON object")
        return value


@dataclass(slots=True, kw_only=True)
class HttpResponse:
    """One answer; a body that is made piece by piece is sent as it comes.

    Attributes:
        is_stream: it may go on for ever, and is counted as an event stream.
        on_closed: called when it was sent, or will not be.
    """

    status: int = 200
    body: bytes | Iterable[bytes] | AsyncGenerator[bytes, None] = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    is_stream: bool = False
    on_closed: Callable[[], object] | None = None


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


@dataclass(slots=True, frozen=True, kw_only=True)
class Route:
    """Route that answers one method of one path.

    Attributes:
        method: in capitals; a GET also answers HEAD.
        path: parts in braces match anything but a slash: `/api/v1/topics/{topic}`. `{rest*}` at
            the end matches all the rest.
        handler: called with the request; raises HttpError to refuse it.
        body_max_bytes: a larger body is refused with 413.
        is_open: may be asked without the token.
        summary: what it is for, in a few words.
        content_types: of bodies that it takes; none of them can a foreign page send unasked.
    """

    method: str
    path: str
    handler: Handler
    body_max_bytes: int = BODY_MAX_BYTES
    is_open: bool = False
    summary: str = ""
    content_types: frozenset[str] = frozenset({JSON})


class Match(NamedTuple):
    """A route, and what its path's names stand for."""

    route: Route
    parameters: dict[str, str]


class Router:
    """Finds the route of a request. Words are preferred to names in braces.

    Args:
        routes: of all that is served; each method and path once.
    """

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self._routes: list[tuple[tuple[str, ...], Route]] = []
        self.add(routes)

    @property
    def routes(self) -> list[Route]:
        """All routes, in the order in which they are looked at."""
        return [route for _, route in self._routes]

    def add(self, routes: Iterable[Route]) -> None:
        """Serve more."""
        for route in routes:
            assert not any(
                (each.method, each.path) == (route.method, route.path) for each in self.routes
            ), f"{route.method} {route.path} is there already"
            self._routes.append((tuple(route.path.split("/")[1:]), route))
        self._routes.sort(key=lambda entry: [_rank(part) for part in entry[0]])

    def find(self, method: str, path: str) -> Match:
        """Return the route of a request.

        Raises:
            HttpError: 404, nothing is there; 405, something is, but not by this method.
        """
        parts = tuple(unquote(part) for part in path.split("/")[1:])
        wanted = "GET" if method == "HEAD" else method
        others: list[str] = []
        for pattern, route in self._routes:
            parameters = _matched(pattern, parts)
            if parameters is None:
                continue
            if route.method == wanted:
                return Match(route, parameters)
            others.append(route.method)
        if others:
            raise HttpError(405, f"{method} is not served here, {', '.join(others)} is")
        raise HttpError(404, f"there is nothing at {path[:200]}")


def _rank(part: str) -> tuple[int, str]:
    if part.endswith("*}"):
        return 2, part
    return (1, part) if part.startswith("{") else (0, part)


def _matched(pattern: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    parameters: dict[str, str] = {}
    for index, part in enumerate(pattern):
        if part.endswith("*}"):
            parameters[part[1:-2]] = "/".join(parts[index:])
            return parameters
        if index >= len(parts):
            return None
        if part.startswith("{"):
            if not parts[index]:
                return None
            parameters[part[1:-1]] = parts[index]
        elif part != parts[index]:
            return None
    return parameters if len(parts) == len(pattern) else None


def parse_target(target: str) -> tuple[str, dict[str, str]]:
    """Return (path, query) of what stands in a request's first line.

    Raises:
        HttpError: 400, it is no path, or a query with too many fields.
    """
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        raise HttpError(400, "what is asked for is no path")
    try:
        fields = parse_qs(query, keep_blank_values=True, max_num_fields=100)
    except ValueError as error:
        raise HttpError(400, f"query: {error}") from None
    return path, {name: values[0] for name, values in fields.items()}


def json_response(value: Any, status: int = 200) -> HttpResponse:
    """Return an answer of JSON; what is long is made piece by piece as it is sent."""
    return HttpResponse(status=status, body=json_pieces(value))


PIECE_ITEMS: Final = 50
"""Elements of a list that become text at a time: about 0.2 ms of work."""


def json_pieces(value: Any) -> Iterable[bytes]:
    """Yield a value as JSON; the lists of an object, and a list, come piece by piece."""
    if isinstance(value, dict):
        before = b"{"
        for name, each in value.items():
            yield before + dump(name) + b": "
            yield from json_pieces(each) if isinstance(each, list) else (dump(each),)
            before = b", "
        yield b"}\n" if value else b"{}\n"
    elif isinstance(value, list):
        yield b"["
        for start in range(0, len(value), PIECE_ITEMS):
            piece = dump(value[start : start + PIECE_ITEMS])[1:-1]
            yield (b", " if start else b"") + piece
        yield b"]"
    else:
        yield dump(value)


def dump(value: Any) -> bytes:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
