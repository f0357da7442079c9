"""Who asks by HTTP where not everybody may do everything (rule 580)."""

import json
import urllib.error
import urllib.request

import pytest

from kafkalite.testing.broker import Broker

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="s" user_admin="s";'
)
CLOSED = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": JAAS,
}


def get(url, token=None):
    request = urllib.request.Request(url)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


@pytest.mark.parametrize("config", [{"authorizer.class.name": AUTHORIZER}, CLOSED])
def test_the_token_is_wanted_on_loopback_too(config):
    with Broker(config=config, http=True) as broker:
        base, _, token = broker.http_url.partition("/?token=")
        assert token
        with pytest.raises(urllib.error.HTTPError) as refusal:
            get(f"{base}/api/v1/topics")
        assert refusal.value.code == 401
        refusal.value.close()
        assert get(f"{base}/api/v1/topics", token)["count"] == 0
        assert get(f"{base}/health/live")


def test_who_shows_it_is_a_super_user():
    config = {"authorizer.class.name": AUTHORIZER, "super.users": "User:admin"}
    with Broker(config=config, http=True) as broker:
        broker.create_topic("orders")
        broker.produce("orders", b"hello")
        base, _, token = broker.http_url.partition("/?token=")
        found = get(f"{base}/api/v1/topics/orders/messages?from=earliest&limit=5", token)
        assert "hello" in json.dumps(found)


def test_where_everybody_may_do_everything_none_is_wanted():
    with Broker(http=True, users={"alice": "secret"}) as broker:
        assert "token" not in broker.http_url
        assert get(f"{broker.http_url}/api/v1/topics")["count"] == 0
