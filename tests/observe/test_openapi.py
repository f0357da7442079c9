"""The OpenAPI file is what the broker serves.

`KAFKALITE_RENEW=1 pytest tests/observe/test_openapi.py` writes it anew.
"""

import json
import os
import re

import pytest

from kafkalite import Broker
from kafkalite.observe.api_cluster import OPENAPI
from kafkalite.observe.history import History
from kafkalite.observe.inside import BrokerParts, InsideCluster
from kafkalite.observe.openapi import text_of
from kafkalite.observe.requests import Requests
from kafkalite.observe.serving import broker_routes
from tests.observe.observe_kit import Http


@pytest.fixture(scope="module")
def broker():
    with Broker(http=True) as broker:
        yield broker


def test_has_each_route_and_no_other(broker):
    server = broker.server
    parts = BrokerParts(
        services=server.services,
        dispatcher=server.dispatcher,
        connections=None,
        requests=Requests(max_bytes=0, slow_ms=-1),
        peers=None,
        ports={},
        bootstrap=broker.bootstrap,
        control=server.control,
    )
    cluster = InsideCluster(parts)
    routes = [route for each in broker_routes(cluster, History(cluster)) for route in each]
    text = text_of(routes)
    if os.environ.get("KAFKALITE_RENEW"):
        OPENAPI.write_text(text)
    assert OPENAPI.read_text() == text


def test_is_served(broker):
    assert Http(broker.http_url).get("/api/v1/openapi.json")["openapi"] == "3.1.0"


def test_each_path_that_it_names_is_answered(broker):
    """With names that stand for nothing: any refusal but that there is no such path or method."""
    http = Http(broker.http_url)
    for path, operations in json.loads(OPENAPI.read_text())["paths"].items():
        for method in operations:
            if path.endswith("/follow"):
                continue  # it goes on for ever
            status, body = http.ask(
                method.upper(), re.sub(r"\{\w+\}", "0", path), None if method == "get" else {}
            )
            message = body["error"]["message"] if status >= 400 else ""
            assert not message.startswith("there is nothing at"), path
            assert status not in (405, 500), (method, path, body)


def test_each_operation_says_what_it_is_for():
    for path, operations in json.loads(OPENAPI.read_text())["paths"].items():
        for method, operation in operations.items():
            if path.startswith("/api/"):
                assert operation["summary"], (method, path)
