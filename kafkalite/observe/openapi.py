"""The OpenAPI file, made from the routes themselves: it has each one that is served, and no other.

tests/observe/test_openapi.py holds that it is current, and says how to write it anew.
"""

import inspect
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from kafkalite import __version__
from kafkalite.http.routing import Route

PARAMETER: Final = re.compile(r"\{(\w+)\*?\}")
HIDDEN: Final = ("/console", "/")

QUERIES: Final[dict[str, dict[str, str]]] = {
    "/api/v1/topics": {
        "search": "part of the name",
        "internal": "true: Kafka's own topics too",
        "limit": "so many at most",
    },
    "/api/v1/topics/{topic}/messages": {
        "from": "newest, earliest, offset:N, time:2026-01-31T12:00",
        "partition": "numbers with commas; all without it",
        "limit": "matching records, 1 to 1000",
        "filter": "words, key:K, header:NAME=VALUE, $.field > VALUE, -not",
        "committed": "true: without what belongs to open and aborted transactions",
        "cursor": "of the answer before, as JSON: goes on there",
    },
    "/api/v1/topics/{topic}/messages/follow": {"partition": "as above", "filter": "as above"},
    "/api/v1/groups": {"search": "part of the id", "lag": "true: with what each is behind"},
    "/api/v1/transactions": {"open": "true: only those under way"},
    "/api/v1/requests": {
        "api": "such as Produce",
        "client_id": "part of it",
        "topic": "named by the request",
        "failed": "true: only with an error",
        "connection": "id of one connection",
        "limit": "so many at most",
    },
    "/api/v1/requests/follow": {
        "api": "such as Produce",
        "client_id": "part of it",
        "topic": "named by the request",
        "failed": "true: only with an error",
        "whole": "true: with both messages",
        "raw": "true: with their bytes in base64",
    },
    "/api/v1/rates": {"topic": "of this one only"},
    "/health/ready": {
        "topic": "waits until it has leaders",
        "group": "waits until it is stable",
        "members": "with so many members",
        "timeout": "how long to wait, in ms",
    },
}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of these routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.path in HIDDEN or route.path.startswith("/console/"):
            continue
        parameters: list[dict[str, Any]] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in PARAMETER.findall(route.path)
        ]
        if route.method == "GET":
            parameters += [
                {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
                for name, text in QUERIES.get(route.path, {}).items()
            ]
        operation: dict[str, Any] = {
            "summary": route.summary,
            "parameters": parameters,
            "responses": {
                "200": {"description": "the answer"},
                "default": {
                    "description": "a refusal: error.status and error.message",
                    "content": {"application/json": {"schema": ERROR}},
                },
            },
        }
        if route.method in ("POST", "PUT", "PATCH"):
            operation["requestBody"] = {
                "content": {"application/json": {"schema": {"type": "object"}}}
            }
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "kafkalite", "version": __version__},
        "paths": {path: paths[path] for path in sorted(paths)},
    }


ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["status", "message"],
            "properties": {"status": {"type": "integer"}, "message": {"type": "string"}},
        }
    },
}


def text_of(routes: Iterable[Route]) -> str:
    """Return the file's text."""
    return json.dumps(document(routes), indent=1) + "\n"


def summary_of(answer: object) -> str:
    """Return the first sentence of what a function says of itself, else its name in words."""
    text = inspect.getdoc(answer)
    if text:
        return text.split("\n")[0].rstrip(".")
    return getattr(answer, "__name__", "").strip("_").replace("_", " ").capitalize()
