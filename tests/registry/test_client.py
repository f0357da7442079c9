"""The client of a registry: what it shows of itself."""

import pytest

from kafkalite import Broker
from kafkalite.registry.client import SchemaRegistryClient, SchemaRegistryError

pytestmark = pytest.mark.slow


def test_a_password_without_a_user_is_the_ports_token():
    with Broker(schema_registry=True, config={"kafkalite.http.token": "secret"}) as broker:
        url = broker.schema_registry_url
        with pytest.raises(SchemaRegistryError, match="401"):
            SchemaRegistryClient(url).latest("orders-value")
        with pytest.raises(SchemaRegistryError, match="40401"):
            SchemaRegistryClient(url.replace("://", "://:secret@")).latest("orders-value")


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
