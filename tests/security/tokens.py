"""What is done with delegation tokens: the same questions for kafkalite and Apache Kafka.

Answers are compared without what nobody can know: ids, secrets, and times but for their distance
from the time of issue.
"""

import secrets
import time
from base64 import b64encode

from kafkalite.security import scram
from kafkalite.security.acls import Operation, ResourceType
from kafkalite.wire.messages.create_delegation_token import (
    CREATE_DELEGATION_TOKEN,
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kafkalite.wire.messages.describe_delegation_token import (
    DESCRIBE_DELEGATION_TOKEN,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafkalite.wire.messages.expire_delegation_token import (
    EXPIRE_DELEGATION_TOKEN,
    ExpireDelegationTokenRequest,
)
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.messages.renew_delegation_token import (
    RENEW_DELEGATION_TOKEN,
    RenewDelegationTokenRequest,
)
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.raw_client import RawClient
from tests.security import matrix

SECRET = "not to be told"
LIFETIME_MS, PERIOD_MS = 1_000_000, 300_000
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin-secret" user_admin="admin-secret" '
    'user_alice="alice-secret" user_bob="bob-secret" user_carol="carol-secret";'
)
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "delegation.token.secret.key": SECRET,
    "delegation.token.max.lifetime.ms": LIFETIME_MS,
    "delegation.token.expiry.time.ms": PERIOD_MS,
}


class Asker(matrix.Asker):
    """A user who asks for tokens."""

    def __init__(self, bootstrap, user):
        super().__init__(bootstrap, user, f"{user}-secret")

    def create(self, *renewers, owner=None, lifetime_ms=-1, version=3):
        kind = None if owner is None else "User"
        request = CreateDelegationTokenRequest(
            owner_principal_type=kind,
            owner_principal_name=owner,
            renewers=[_renewer(renewer) for renewer in renewers],
            max_lifetime_ms=lifetime_ms,
        )
        return self.ask(CREATE_DELEGATION_TOKEN, version, request)

    def renew(self, hmac, period_ms=-1):
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return self.ask(RENEW_DELEGATION_TOKEN, 2, request)

    def expire(self, hmac, period_ms=-1):
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return self.ask(EXPIRE_DELEGATION_TOKEN, 2, request)

    def describe(self, *owners, version=3):
        named = [
            DescribeDelegationTokenOwner(principal_type="User", principal_name=owner)
            for owner in owners
        ]
        return self.ask(
            DESCRIBE_DELEGATION_TOKEN, version, DescribeDelegationTokenRequest(owners=named or None)
        )

    def wait_known(self, token_id, expected=True):
        """Wait until a broker has heard of a token, or of its end."""
        for _ in range(200):
            if (token_id in {token.token_id for token in self.describe().tokens}) == expected:
                return
            time.sleep(0.05)
        raise AssertionError(token_id)


class TokenAsker(RawClient):
    """Somebody who logs in by a token.

    Raises:
        AssertionError: the login fails.
    """

    def __init__(self, bootstrap, token_id, hmac, mechanism=scram.SHA_256):
        port = bootstrap.rpartition(":")[2]
        super().__init__(_At(int(port)), client_id="token")
        password = b64encode(hmac).decode()
        exchange = scram.ClientExchange(mechanism, token_id, password, secrets.token_urlsafe(12))
        exchange._bare += ",tokenauth=true"
        self.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=mechanism.name))
        try:
            first = self._step(exchange.first())
            final = self._step(exchange.final(bytes(first.auth_bytes)))
            exchange.check(bytes(final.auth_bytes))
        except BaseException:
            self.close()
            raise
        self.lifetime_ms = final.session_lifetime_ms

    def _step(self, token):
        answer = self.ask(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=token))
        assert not answer.error_code, answer.error_message
        return answer


class _At:
    def __init__(self, port):
        self.port = port


def _renewer(name):
    kind, _, user = name.rpartition(":")
    return CreatableRenewers(principal_type=kind or "User", principal_name=user)


def facts(answer):
    """Return what two brokers have to agree on in an answer to Create."""
    return (
        answer.error_code,
        (answer.principal_type, answer.principal_name),
        (answer.token_requester_principal_type, answer.token_requester_principal_name),
        answer.expiry_timestamp_ms - answer.issue_timestamp_ms,
        answer.max_timestamp_ms - answer.issue_timestamp_ms,
        len(answer.hmac),
        bool(answer.token_id),
    )


def created(bootstrap):
    """Who may make tokens for whom, and for how long."""
    with Asker(bootstrap, "admin") as admin, Asker(bootstrap, "alice") as alice:
        yield facts(alice.create())
        yield facts(alice.create(version=1))
        yield facts(alice.create("bob", "carol", lifetime_ms=5_000))
        yield facts(alice.create(lifetime_ms=10**15))
        yield facts(alice.create("Group:bob"))
        yield facts(alice.create(owner="bob"))
        yield facts(alice.create("Group:bob", owner="bob"))
        yield facts(alice.create(owner="alice"))
        yield facts(admin.create(owner="bob"))
        need = matrix.Need(Operation.CREATE_TOKENS, ResourceType.USER, "User:bob")
        admin.set_rules([need])
        yield facts(alice.create(owner="bob"))
        yield facts(alice.create(owner="carol"))
        admin.set_rules([])


def changed(bootstrap):
    """Owners and renewers may change a token, nobody else, and not beyond its maximum."""
    with (
        Asker(bootstrap, "admin") as admin,
        Asker(bootstrap, "alice") as alice,
        Asker(bootstrap, "bob") as bob,
        Asker(bootstrap, "carol") as carol,
    ):
        made = alice.create("bob")
        admin.wait_known(made.token_id)
        for asker, change, period_ms in (
            (alice, Asker.renew, -1),
            (bob, Asker.renew, 1_000),
            (alice, Asker.renew, 10**12),
            (alice, Asker.expire, 10**12),
            (bob, Asker.expire, 50_000),
            (carol, Asker.renew, -1),
            (carol, Asker.expire, 5),
            (admin, Asker.expire, -1),
        ):
            answer = change(asker, made.hmac, period_ms)
            seconds = (answer.expiry_timestamp_ms - made.issue_timestamp_ms) // 10_000
            yield answer.error_code, seconds if not answer.error_code else 0
        yield alice.renew(b"nobody's").error_code
        yield alice.expire(made.hmac, 0).error_code
        time.sleep(0.3)
        yield alice.renew(made.hmac).error_code
        yield carol.renew(made.hmac).error_code
        yield alice.expire(made.hmac, 1_000).error_code
        yield carol.expire(made.hmac, 1_000).error_code
        yield bob.expire(made.hmac, -1).error_code
        admin.wait_known(made.token_id, expected=False)
        yield alice.expire(made.hmac).error_code


def described(bootstrap):
    """Owners, renewers, and those whom a rule lets see a token or its owner."""
    with (
        Asker(bootstrap, "admin") as admin,
        Asker(bootstrap, "alice") as alice,
        Asker(bootstrap, "bob") as bob,
        Asker(bootstrap, "carol") as carol,
    ):
        made = carol.create("bob", owner=None)
        other = admin.create(owner="bob")
        for one in (made, other):
            admin.wait_known(one.token_id)
        known = {made.token_id: "made", other.token_id: "other"}

        def seen(answer):
            named = {known[one.token_id] for one in answer.tokens if one.token_id in known}
            return answer.error_code, sorted(named)

        for asker in (admin, alice, bob, carol):
            yield seen(asker.describe())
            yield seen(asker.describe("carol"))
            yield seen(asker.describe("bob", "nobody", version=1))
        for need in (
            matrix.Need(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, made.token_id),
            matrix.Need(Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob"),
        ):
            admin.set_rules([need])
            yield seen(alice.describe())
        admin.set_rules([])
        (token,) = [one for one in bob.describe("carol").tokens if one.token_id == made.token_id]
        yield token.hmac == made.hmac
        yield [one.principal_name for one in token.renewers]
        yield (token.principal_name, token.token_requester_principal_name)
        yield token.issue_timestamp == made.issue_timestamp_ms
        for one in (made, other):
            admin_or_owner = carol if one is made else bob
            assert not admin_or_owner.expire(one.hmac).error_code
            admin.wait_known(one.token_id, expected=False)


def logged_in(bootstrap):
    """Whoever shows a token is its owner, until it ends; and may ask for no other."""
    with Asker(bootstrap, "admin") as admin, Asker(bootstrap, "alice") as alice:
        made = alice.create(lifetime_ms=100_000)
        admin.wait_known(made.token_id)
        for mechanism in (scram.SHA_256, scram.SHA_512):
            with TokenAsker(bootstrap, made.token_id, made.hmac, mechanism) as shown:
                yield 0 < shown.lifetime_ms <= 100_000
                yield shown.ask(METADATA, 9, MetadataRequest(topics=[])).controller_id >= 0
                yield facts(Asker.create(shown))[:3]
                yield Asker.renew(shown, made.hmac).error_code
                yield Asker.expire(shown, made.hmac).error_code
                yield Asker.describe(shown).error_code
        for token_id, hmac in ((made.token_id, b"wrong"), ("nobody's", made.hmac)):
            try:
                TokenAsker(bootstrap, token_id, hmac).close()
            except (AssertionError, scram.ScramError):
                yield "refused"
            else:
                yield "let in"
        assert not alice.expire(made.hmac).error_code
        admin.wait_known(made.token_id, expected=False)
        try:
            TokenAsker(bootstrap, made.token_id, made.hmac).close()
        except (AssertionError, scram.ScramError):
            yield "refused"


SCENARIOS = [created, changed, described, logged_in]
