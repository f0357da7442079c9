"""The client of a registry: what it shows of itself."""

import base64
import json
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from kafkalite import Broker
from kafkalite.registry.client import SchemaRegistryClient, SchemaRegistryError
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.security.shorthand import allow

pytestmark = pytest.mark.slow


def test_a_password_without_a_user_is_the_ports_token():
    with Broker(schema_registry=True, config={"kafkalite.http.token": "secret"}) as broker:
        url = broker.schema_registry_url
        with pytest.raises(SchemaRegistryError, match="401"):
            SchemaRegistryClient(url).latest("orders-value")
        with pytest.raises(SchemaRegistryError, match="40401"):
            SchemaRegistryClient(url.replace("://", "://:secret@")).latest("orders-value")


def test_the_url_of_a_secured_broker_is_enough_for_clients():
    rules = allow("alice", "read", topic="orders")
    schema = '{"type":"long"}'
    with Broker(acls=rules, users={"alice": "secret"}, schema_registry=True) as broker:
        assert broker.http_url.partition("/?token=")[2]
        own = SchemaRegistryClient(broker.schema_registry_url)
        schema_id, _ = own.register("orders-value", Schema(SchemaType.AVRO, schema))
        # As others do with the part before the "@": Confluent's clients, requests, curl.
        login = base64.b64encode(
            urlsplit(broker.schema_registry_url).netloc.partition("@")[0].encode()
        )
        request = Request(
            f"{own.url}/subjects/orders-value/versions/latest",
            headers={"Authorization": f"Basic {login.decode()}"},
        )
        with urlopen(request, timeout=10) as answer:
            assert json.load(answer)["id"] == schema_id
        with pytest.raises(SchemaRegistryError, match="401"):
            SchemaRegistryClient(own.url).latest("orders-value")


@pytest.mark.parametrize("url", ["here", "ftp://host", "http://"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(ValueError, match="no URL of a schema registry"):
        SchemaRegistryClient(url)


def test_a_login_is_not_shown_in_messages():
    client = SchemaRegistryClient("http://user:secret@127.0.0.1:9/path")
    assert client.url == "http://127.0.0.1:9/path"
    with pytest.raises(SchemaRegistryError) as refusal:
        client.latest("orders-value")
    assert "secret" not in str(refusal.value)
