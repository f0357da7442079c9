"""Brokers that come in at others by TLS and logins (rule 555)."""

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.network.sockets import TcpNetwork
from kafkalite.peers.clients import PeerClients, peer_settings
from kafkalite.settings.config_def import SettingError
from kafkalite.testing.broker import Broker
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from tests.security import kit

JAAS = 'x.Module required username="broker" password="secret";'


@pytest.fixture(scope="module")
def other():
    with Broker(tls=True, users={"broker": "secret"}) as running:
        yield running


def settings(broker, tmp_path, **more):
    """Settings of a broker that is to come in at another."""
    return BrokerConfig(
        {
            "listeners": "SASL_SSL://127.0.0.1:0",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            "sasl.jaas.config": JAAS,
            "ssl.truststore.location": broker.ca_file,
            **more,
        }
    )


async def ask(broker, config):
    port = int(broker.bootstrap_for("SASL_SSL").rpartition(":")[2])
    known = BrokerImage(broker_id=7, endpoints={"SASL_SSL": ("127.0.0.1", port)})
    peers = PeerClients(
        TcpNetwork(), lambda: Image(brokers={7: known}), settings=peer_settings(config)
    )
    try:
        return await peers.request(7, METADATA, MetadataRequest(topics=[]), timeout_ms=20_000)
    finally:
        peers.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_broker_logs_in_at_another(other, tmp_path, mechanism):
    seen = []
    other.server.dispatcher.observer = lambda _, __, context: seen.append(context.principal)
    config = settings(other, tmp_path, **{"sasl.mechanism.inter.broker.protocol": mechanism})
    answer = await ask(other, config)
    assert answer.cluster_id
    assert seen[-1] == "User:broker"


async def test_broker_with_a_wrong_password_is_told_so(other, tmp_path):
    config = settings(other, tmp_path, **{"sasl.jaas.config": JAAS.replace("secret", "wrong")})
    with pytest.raises(KafkaError, match="invalid credentials") as refused:
        await ask(other, config)
    assert refused.value.code is ErrorCode.NETWORK_EXCEPTION


async def test_broker_does_not_talk_to_a_stranger(other, tmp_path):
    stranger = kit.written(tmp_path, "ca.pem", kit.authority("stranger").certificate_pem)
    config = settings(other, tmp_path, **{"ssl.truststore.location": stranger})
    with pytest.raises(KafkaError, match="no TLS connection"):
        await ask(other, config)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "cannot log in by GSSAPI"),
        ({"sasl.jaas.config": "x.Module required;"}, "needs username and password"),
        ({"ssl.truststore.location": "/nowhere"}, "cannot be read"),
    ],
)
def test_broker_that_could_not_come_in_does_not_start(other, tmp_path, changed, message):
    with pytest.raises(SettingError, match=message):
        peer_settings(settings(other, tmp_path, **changed))


def test_broker_shows_nothing_where_nothing_is_asked_for():
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
            "inter.broker.listener.name": "PLAINTEXT",
        }
    )
    assert peer_settings(config).credentials is None
