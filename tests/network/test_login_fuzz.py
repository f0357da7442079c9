"""Nonsense before a login: nobody gets in by it, nobody else is harmed, little memory is held."""

import random
import struct

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kafkalite.security import scram
from kafkalite.security.bearer import UnsecuredRules, check_unsecured
from kafkalite.security.exchanges import (
    InvalidToken,
    LoginFailed,
    OAuthBearerExchange,
    PlainExchange,
    ScramExchange,
)
from kafkalite.testing.broker import Broker
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.raw_client import RawClient, encoded

pytestmark = pytest.mark.slow

CREDENTIAL = scram.Credential.of_password(scram.SHA_256, "secret", salt=b"salt", iterations=4096)
PIECES = st.lists(
    st.sampled_from(
        [b"n,,", b"n=alice", b",r=", b"c=biws", b",p=", b"\x01", b"auth=Bearer ", b"a.b.", b"\0"]
    )
    | st.binary(max_size=8),
    max_size=10,
).map(b"".join)


def exchanges():
    def validate(token):
        return check_unsecured(token, UnsecuredRules(), now_ms=0)

    return [
        PlainExchange(lambda name, password: False),
        ScramExchange(scram.SHA_256, lambda name: CREDENTIAL, "nonce"),
        OAuthBearerExchange(validate),
    ]


@given(st.lists(PIECES, min_size=1, max_size=3))
def test_tokens_of_nonsense_let_nobody_in(tokens):
    for exchange in exchanges():
        try:
            for token in tokens:
                exchange.evaluate(token)
        except LoginFailed:
            pass
        assert exchange.user is None


@given(st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_unsigned_tokens_of_nonsense_are_refused(token):
    with pytest.raises(InvalidToken):
        check_unsecured(token, UnsecuredRules(), now_ms=0)


@pytest.fixture(scope="module")
def broker():
    with Broker(
        tls=True,
        users={"alice": "secret"},
        config={"connection.failed.authentication.delay.ms": 0},
    ) as running:
        yield running


class Outsider(RawClient):
    """A client that came in by the listener with TLS and logins, without either."""

    def __init__(self, broker, context=None):
        super().__init__(Place(broker.bootstrap_for("SASL_SSL")))
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


class Place:
    def __init__(self, bootstrap):
        self.port = int(bootstrap.rpartition(":")[2])


def context_of(broker):
    import ssl

    return ssl.create_default_context(cafile=broker.ca_file)


@hypothesis_settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.binary(max_size=200), begins=st.sampled_from([b"", b"\x16\x03\x01", b"\x15\x03"]))
def test_bytes_that_are_no_handshake_close_the_connection(broker, data, begins):
    with Outsider(broker) as outsider:
        outsider.send(begins + data)
        outsider.socket.shutdown(1)
        while outsider.socket.recv(4096):
            pass


def test_frames_before_a_login_are_answered_by_nothing_but_it(broker):
    """Method: random changes of what a client says; Metadata is never answered."""
    rng = random.Random(7)
    context = context_of(broker)
    good = [
        encoded(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256")),
        encoded(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x")),
        encoded(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"c=biws,r=x,p=AAAA")),
        encoded(METADATA, 12, MetadataRequest(topics=None)),
    ]
    for _ in range(40):
        with Outsider(broker, context) as outsider:
            frames = [bytearray(rng.choice(good)) for _ in range(rng.randrange(1, 4))]
            for frame in frames:
                if rng.random() < 0.7:
                    frame[rng.randrange(len(frame))] = rng.randrange(256)
            try:
                outsider.send(b"".join(struct.pack(">i", len(f)) + f for f in frames))
                outsider.send_frame(good[-1])
                while (answer := outsider.receive()) is not None:
                    assert len(answer) < 600  # never all of the metadata, nor records
                    assert broker.server.services.metadata.image.cluster_id.encode() not in answer
            except OSError:
                pass


def test_others_are_served_meanwhile(broker):
    """Whoever announces much and sends little holds little: one buffer of a small frame."""
    context = context_of(broker)
    outsiders = [Outsider(broker, context) for _ in range(20)]
    for outsider in outsiders:
        outsider.send(struct.pack(">i", 524_288))
    with RawClient(broker) as client:
        assert client.ask(METADATA, 12, MetadataRequest(topics=[])).cluster_id
    for outsider in outsiders:
        outsider.close()
