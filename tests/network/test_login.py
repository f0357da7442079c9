"""Logins by SASL: frames, states, refusals, and logging in again (rules 530-534)."""

import base64
import json
import struct
import time

import pytest

from kafkalite.security import scram
from kafkalite.testing.broker import Broker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.raw_client import RawClient, encoded

TIMEOUT_S = 20
SALT = b"salt of a test"
PLAIN_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin-secret" user_alice="alice-secret" user_bob="b\\"ob;";'
)
LOGIN = "listener.name.login."
SHORT = "listener.name.short."


@pytest.fixture(scope="module")
def broker():
    config = {
        "listeners": "PLAINTEXT://127.0.0.1:0,LOGIN://127.0.0.1:0,SHORT://127.0.0.1:0",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{LOGIN}plain.sasl.jaas.config": PLAIN_JAAS,
        f"{LOGIN}oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredValidatorRequiredScope="kafka";'
        ),
        f"{SHORT}plain.sasl.jaas.config": PLAIN_JAAS,
        f"{SHORT}plain.connections.max.reauth.ms": 60_000,
        "connection.failed.authentication.delay.ms": 20,
    }
    with Broker(config=config) as running:
        set_user(running, "carol", "carol-secret", scram.SHA_256)
        set_user(running, "carol", "carol-secret", scram.SHA_512)
        set_user(running, "d,a=ve", "dave-secret", scram.SHA_512)
        yield running


def set_user(broker, name, password, mechanism, iterations=4096):
    salted = scram.salt_password(mechanism, password, SALT, iterations)
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism.number,
        iterations=iterations,
        salt=SALT,
        salted_password=salted,
    )
    with RawClient(broker) as client:
        answer = client.ask(
            ALTER_USER_SCRAM_CREDENTIALS,
            0,
            AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]),
        )
    return [(one.user, one.error_code) for one in answer.results]


class Client(RawClient):
    """A client that logs in by hand."""

    def __init__(self, broker, listener="LOGIN"):
        _, _, port = broker.bootstrap_for(listener).rpartition(":")

        class Place:
            pass

        place = Place()
        place.port = int(port)
        super().__init__(place)

    def handshake(self, mechanism, version=1):
        return self.ask(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))

    def token(self, data, version=2):
        return self.ask(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(auth_bytes=data))

    def plain(self, name="alice", password="alice-secret", version=2):
        self.handshake("PLAIN")
        return self.token(f"\0{name}\0{password}".encode(), version)

    def scram(self, name, password, mechanism):
        assert not self.handshake(mechanism.name).error_code
        exchange = scram.ClientExchange(mechanism, name, password, "nonce")
        answer = self.token(exchange.first())
        if answer.error_code:
            return answer
        answer = self.token(exchange.final(answer.auth_bytes))
        if not answer.error_code:
            exchange.check(answer.auth_bytes)
        return answer

    def is_in(self):
        return not self.ask(METADATA, 12, MetadataRequest(topics=[])).topics


@pytest.fixture
def client(broker):
    with Client(broker) as connected:
        yield connected


def bearer(claims, header=None):
    parts = [header or {"alg": "none"}, claims]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b"n,,\x01auth=Bearer " + b".".join([*encoded, b""]) + b"\x01\x01"


def claims(**more):
    now = time.time()
    return {"sub": "erin", "iat": now - 1, "exp": now + 3600, "scope": "kafka x", **more}


class TestPlain:
    def test_user_of_the_jaas_line_gets_in(self, client):
        assert client.plain().error_code == 0
        assert client.is_in()

    def test_password_with_quotes_is_read(self, client):
        assert client.plain("bob", 'b"ob;').error_code == 0

    def test_stored_user_gets_in_by_its_password_too(self, broker):
        for _ in range(2):  # the second time it is remembered
            with Client(broker) as client:
                assert client.plain("carol", "carol-secret").error_code == 0
                assert client.is_in()
        with Client(broker) as client:
            assert client.plain("carol", "other").error_code == 58

    @pytest.mark.parametrize(
        ("token", "message"),
        [
            (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
            (b"\0nobody\0wrong", "Authentication failed: Invalid username or password"),
            (b"\0\0x", "Authentication failed: username not specified"),
            (b"\0alice\0", "Authentication failed: password not specified"),
            (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
            (b"\0\0\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
            (b"\xff\xfe\0alice\0alice-secret", "an authorization id that is different"),
        ],
    )
    def test_refusal_is_told_and_the_connection_closed(self, client, token, message):
        """Rule 531: who guesses does not learn which names there are."""
        client.handshake("PLAIN")
        answer = client.token(token)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert message in answer.error_message
        assert client.is_closed()


class TestScram:
    @pytest.mark.parametrize("mechanism", [scram.SHA_256, scram.SHA_512])
    def test_user_gets_in(self, client, mechanism):
        assert client.scram("carol", "carol-secret", mechanism).error_code == 0
        assert client.is_in()

    def test_name_with_commas_gets_in(self, client):
        assert client.scram("d,a=ve", "dave-secret", scram.SHA_512).error_code == 0

    @pytest.mark.parametrize(
        ("name", "password", "mechanism"),
        [
            ("carol", "wrong", scram.SHA_256),
            ("nobody", "wrong", scram.SHA_256),
            ("d,a=ve", "dave-secret", scram.SHA_256),
        ],
    )
    def test_refusal_gives_nothing_away(self, client, name, password, mechanism):
        answer = client.scram(name, password, mechanism)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism SCRAM-SHA-256"
        )
        assert client.is_closed()

    def test_user_who_was_deleted_does_not_get_in(self, broker):
        set_user(broker, "gone", "secret", scram.SHA_256)
        with RawClient(broker) as admin:
            deletion = ScramCredentialDeletion(name="gone", mechanism=1)
            request = AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])
            codes = [
                admin.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request).results[0].error_code
                for _ in range(2)
            ]
        assert codes == [0, ErrorCode.RESOURCE_NOT_FOUND]
        with Client(broker) as client:
            assert client.scram("gone", "secret", scram.SHA_256).error_code == 58


class TestBearer:
    def test_unsigned_token_lets_in_for_as_long_as_it_lives(self, client):
        client.handshake("OAUTHBEARER")
        answer = client.token(bearer(claims()))
        assert answer.error_code == 0
        assert 3_500_000 < answer.session_lifetime_ms <= 3_601_000
        assert client.is_in()

    @pytest.mark.parametrize(
        ("token", "status"),
        [
            (bearer(claims(exp=1)), '{"status":"invalid_token"}'),
            (bearer(claims(sub="")), '{"status":"invalid_token"}'),
            (bearer(claims(), {"alg": "RS256"}), '{"status":"invalid_token"}'),
            (
                bearer(claims(scope="other")),
                '{"status":"insufficient_scope", "scope":"kafka"}',
            ),
        ],
    )
    def test_bad_token_is_explained_and_then_refused(self, client, token, status):
        """Rule 533."""
        client.handshake("OAUTHBEARER")
        answer = client.token(token)
        assert (answer.error_code, answer.auth_bytes.decode()) == (0, status)
        answer = client.token(b"\x01")
        assert (answer.error_code, answer.error_message) == (58, status)
        assert client.is_closed()


class TestStates:
    def test_versions_are_told_once_before_a_login(self, client):
        answer = client.ask(API_VERSIONS, 0, ApiVersionsRequest())
        assert {17, 36} <= {key.api_key for key in answer.api_keys}
        assert client.plain().error_code == 0

    def test_version_that_is_too_new_is_answered_and_asked_again(self, client):
        frame = bytearray(encoded(API_VERSIONS, 3, ApiVersionsRequest()))
        frame[2:4] = (99).to_bytes(2, "big")
        client.send_frame(bytes(frame))
        answer = client.receive_response(API_VERSIONS, 0)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        client.ask(API_VERSIONS, 0, ApiVersionsRequest())
        assert client.plain().error_code == 0

    @pytest.mark.parametrize("before", ["nothing", "versions"])
    def test_nothing_else_is_answered_before_a_login(self, client, before):
        if before == "versions":
            client.ask(API_VERSIONS, 0, ApiVersionsRequest())
        client.send_request(METADATA, 12, MetadataRequest(topics=None))
        assert client.is_closed()

    def test_versions_are_not_told_twice_before_a_login(self, client):
        client.ask(API_VERSIONS, 0, ApiVersionsRequest())
        client.send_request(API_VERSIONS, 0, ApiVersionsRequest())
        assert client.is_closed()

    def test_other_request_in_the_midst_of_a_login_is_refused(self, client):
        client.handshake("PLAIN")
        answer = client.ask(API_VERSIONS, 0, ApiVersionsRequest())
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert client.is_closed()

    def test_mechanism_that_is_not_offered_is_refused_with_those_that_are(self, client):
        answer = client.handshake("GSSAPI")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert "SCRAM-SHA-512" in answer.mechanisms
        assert client.is_closed()

    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
    def test_older_clients_send_bare_tokens(self, broker, mechanism):
        with Client(broker) as client:
            assert not client.handshake(mechanism, version=0).error_code
            if mechanism == "PLAIN":
                client.send_frame(b"\0alice\0alice-secret")
                assert client.receive() == b""
            else:
                exchange = scram.ClientExchange(scram.SHA_256, "carol", "carol-secret", "n")
                client.send_frame(exchange.first())
                client.send_frame(exchange.final(client.receive()))
                exchange.check(client.receive())
            assert client.is_in()

    def test_older_client_with_a_wrong_password_is_only_closed(self, client):
        client.handshake("PLAIN", version=0)
        client.send_frame(b"\0alice\0wrong")
        assert client.is_closed()

    @pytest.mark.parametrize("listener", ["LOGIN", "PLAINTEXT"])
    def test_login_where_there_is_none_to_be_made_is_an_illegal_state(self, broker, listener):
        """Rule 532."""
        with Client(broker, listener) as client:
            if listener == "LOGIN":
                client.plain()
            assert client.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert client.token(b"x").error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert client.is_in()

    def test_frame_before_a_login_has_a_bound_of_its_own(self, broker):
        with Client(broker) as client:
            client.send(struct.pack(">i", 524_289))
            assert client.is_closed()
        with Client(broker) as client:
            client.plain()
            client.send(struct.pack(">i", 524_289))
            client.send(bytes(10))
            client.socket.settimeout(0.1)
            with pytest.raises(TimeoutError):
                client.socket.recv(1)


class TestAgain:
    """KIP-368, rule 539."""

    def test_session_has_a_life_that_new_clients_are_told(self, broker):
        for version, lifetime_ms in ((0, 0), (1, 60_000), (2, 60_000)):
            with Client(broker, "SHORT") as client:
                answer = client.plain(version=version)
                assert answer.session_lifetime_ms == lifetime_ms

    def test_client_logs_in_again_between_requests(self, broker):
        with Client(broker, "SHORT") as client:
            client.plain()
            for _ in range(2):
                assert client.plain().session_lifetime_ms == 60_000
                assert client.is_in()
                forget_last_login(broker)

    def test_other_user_is_refused(self, broker):
        with Client(broker, "SHORT") as client:
            client.plain()
            answer = client.plain("bob", 'b"ob;')
            assert answer.error_code == 58
            assert answer.error_message == (
                "Cannot change principals during re-authentication from User.alice: User.bob"
            )
            assert client.is_closed()

    def test_other_mechanism_is_refused_at_its_token(self, broker):
        with Client(broker, "SHORT") as client:
            client.plain()
            assert not client.handshake("SCRAM-SHA-256").error_code
            answer = client.token(b"n,,n=alice,r=x")
            assert answer.error_code == 58
            assert "not supported for re-authentication of mechanism 'PLAIN'" in (
                answer.error_message
            )
            assert client.is_closed()

    def test_session_that_expired_ends_with_the_next_request(self, broker):
        with Client(broker, "SHORT") as client:
            client.plain()
            broker.expire_sessions()
            client.send_request(METADATA, 12, MetadataRequest(topics=[]))
            assert client.is_closed()

    def test_session_that_expired_goes_on_after_a_login(self, broker):
        with Client(broker, "SHORT") as client:
            client.plain()
            broker.expire_sessions()
            assert client.plain().error_code == 0
            assert client.is_in()

    def test_login_within_a_second_of_the_last_is_refused(self, broker):
        with Client(broker, "SHORT") as client:
            client.plain()
            client.plain()
            assert client.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert client.is_in()


def forget_last_login(broker):
    def forget():
        for login in broker.server.connections.logins():
            login._began_again_ms = -1_000

    broker._in_loop(forget)


class TestUsers:
    """Requests 50 and 51, rule 536."""

    @staticmethod
    def describe(broker, *names):
        users = [UserName(name=name) for name in names] if names else None
        with RawClient(broker) as client:
            answer = client.ask(
                DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest(users=users)
            )
        return {
            one.user: (
                one.error_code,
                [(info.mechanism, info.iterations) for info in one.credential_infos],
            )
            for one in answer.results
        }

    def test_users_are_told_without_their_keys(self, broker):
        both = (0, [(1, 4096), (2, 4096)])
        assert self.describe(broker, "carol") == {"carol": both}
        everybody = self.describe(broker)
        assert everybody["carol"] == both
        assert everybody["d,a=ve"] == (0, [(2, 4096)])

    def test_unknown_and_repeated_users_are_refused(self, broker):
        found = self.describe(broker, "nobody", "carol", "carol")
        assert found["nobody"][0] == ErrorCode.RESOURCE_NOT_FOUND
        assert found["carol"][0] == ErrorCode.DUPLICATE_RESOURCE

    @pytest.mark.parametrize(
        ("name", "iterations", "code"),
        [
            ("", 4096, ErrorCode.UNACCEPTABLE_CREDENTIAL),
            ("eve", 4095, ErrorCode.UNACCEPTABLE_CREDENTIAL),
            ("eve", 16_385, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ],
    )
    def test_credential_that_nobody_should_use_is_refused(self, broker, name, iterations, code):
        assert set_user(broker, name, "x", scram.SHA_256, iterations) == [(name, code)]

    def test_user_and_mechanism_come_once_in_a_request(self, broker):
        one = ScramCredentialUpsertion(
            name="eve", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
        )
        unknown = ScramCredentialUpsertion(
            name="fay", mechanism=3, iterations=4096, salt=b"s", salted_password=b"p"
        )
        known = ScramCredentialUpsertion(
            name="fay", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
        )
        upsertions = [one, one, one, unknown, known]
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=upsertions)
        with RawClient(broker) as client:
            answer = client.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert {each.user: each.error_code for each in answer.results} == {
            "eve": ErrorCode.DUPLICATE_RESOURCE,
            "fay": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        }
