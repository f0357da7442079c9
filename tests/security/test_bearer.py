"""Tokens of OAuth: unsigned ones (rule 534), and signed ones against an issuer's keys."""

import base64
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kafkalite.config import BrokerConfig
from kafkalite.network.issuer import IssuerKeys
from kafkalite.security.bearer import KeysMissing, SignedTokens, UnsecuredRules, check_unsecured
from kafkalite.security.exchanges import InvalidToken
from kafkalite.settings.config_def import SettingError

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000


def unsigned(claims, header=None, signature=b""):
    parts = [json.dumps(header or {"alg": "none"}).encode(), json.dumps(claims).encode(), signature]
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts).decode()


def claims(**more):
    found = {"sub": "alice", "exp": NOW_S + 10.5, "iat": NOW_S - 1, **more}
    return {name: value for name, value in found.items() if value is not None}


class TestUnsecured:
    def test_good_token_names_its_user_and_its_end(self):
        rules = UnsecuredRules()
        found = check_unsecured(unsigned(claims()), rules, now_ms=NOW_MS)
        assert found == ("alice", NOW_MS + 10_500)
        assert check_unsecured(unsigned(claims(iat=None)), rules, now_ms=NOW_MS)

    @pytest.mark.parametrize(
        "changed",
        [
            {"sub": None},
            {"sub": 1},
            {"sub": "  "},
            {"exp": None},
            {"exp": "1"},
            {"exp": True},
            {"exp": NOW_S},
            {"iat": NOW_S + 1},
            {"iat": NOW_S + 11, "exp": NOW_S + 11},
            {"scope": 1},
        ],
    )
    def test_token_that_is_not_good_is_refused(self, changed):
        with pytest.raises(InvalidToken) as refused:
            check_unsecured(unsigned(claims(**changed)), UnsecuredRules(), now_ms=NOW_MS)
        assert refused.value.scope is None

    def test_clocks_may_differ_as_much_as_is_said(self):
        rules = UnsecuredRules.of({"unsecuredValidatorAllowableClockSkewMs": "2000"})
        assert check_unsecured(unsigned(claims(exp=NOW_S - 1, iat=None)), rules, now_ms=NOW_MS)
        assert check_unsecured(unsigned(claims(iat=NOW_S + 2)), rules, now_ms=NOW_MS)
        with pytest.raises(InvalidToken):
            check_unsecured(unsigned(claims(iat=NOW_S + 3)), rules, now_ms=NOW_MS)

    def test_claims_have_the_names_that_the_options_say(self):
        rules = UnsecuredRules.of(
            {
                "unsecuredValidatorPrincipalClaimName": "user",
                "unsecuredValidatorScopeClaimName": "scp",
                "unsecuredValidatorRequiredScope": "read write",
            }
        )
        good = claims(user="bob", scp=["write", "read", "more"])
        assert check_unsecured(unsigned(good), rules, now_ms=NOW_MS).principal == "bob"
        with pytest.raises(InvalidToken) as refused:
            check_unsecured(unsigned(claims(user="bob", scp="read")), rules, now_ms=NOW_MS)
        assert refused.value.scope == "read write"

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "a.b.c",
            "a.b.",
            "..",
            unsigned(claims(), {"alg": "HS256"}),
            unsigned(claims(), signature=b"x"),
            "e30.W10.",
            "ZTMw.!!!.",
        ],
    )
    def test_what_is_no_unsigned_token_is_refused(self, token):
        with pytest.raises(InvalidToken):
            check_unsecured(token, UnsecuredRules(), now_ms=NOW_MS)

    def test_number_that_is_none_stops_the_start(self):
        with pytest.raises(SettingError, match="ClockSkewMs is no number"):
            UnsecuredRules.of({"unsecuredValidatorAllowableClockSkewMs": "x"})


KEY, OTHER_KEY = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def key_set(*keys):
    documents = []
    for name, key in keys:
        document = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        documents.append({**document, "kid": name, "alg": "ES256", "use": "sig"})
    return json.dumps({"keys": documents}).encode()


def signed(key=KEY, key_id="one", algorithm="ES256", **more):
    now = int(time.time())
    given = {"sub": "alice", "iat": now, "exp": now + 60, **more}
    given = {name: value for name, value in given.items() if value is not None}
    return jwt.encode(given, key, algorithm=algorithm, headers={"kid": key_id})


def settings(**given):
    named = {f"sasl.oauthbearer.{name.replace('_', '.')}": value for name, value in given.items()}
    return BrokerConfig(named).for_listener("PLAINTEXT")


GOOD = {"iss": "https://issuer", "aud": "kafka"}


class TestSigned:
    @pytest.fixture
    def checker(self):
        checker = SignedTokens(
            settings(expected_issuer="https://issuer", expected_audience="kafka,other")
        )
        checker.use_keys(key_set(("one", KEY)))
        return checker

    def test_good_token_names_its_user_and_its_end(self, checker):
        found = checker.check(signed(**GOOD))
        assert found.principal == "alice"
        assert found.expires_ms == pytest.approx((time.time() + 60) * 1000, abs=5000)

    @pytest.mark.parametrize(
        "changed",
        [
            {"iss": "https://other"},
            {"aud": "somebody"},
            {"aud": None},
            {"exp": 1},
            {"exp": None},
            {"iat": None},
            {"sub": None},
            {"sub": ""},
            {"scope": 1},
            {"key": OTHER_KEY},
            {"key_id": "two"},
            {"key": "a secret that all share, and long", "algorithm": "HS256"},
        ],
    )
    def test_token_that_is_not_good_is_refused(self, checker, changed):
        with pytest.raises(InvalidToken):
            checker.check(signed(**{**GOOD, **changed}))

    @pytest.mark.parametrize("token", ["", "a.b.c", unsigned(claims(**GOOD))])
    def test_unsigned_token_is_refused(self, checker, token):
        with pytest.raises(InvalidToken):
            checker.check(token)

    def test_unknown_key_is_asked_for(self, checker):
        asked = []
        checker.on_unknown_key = lambda: asked.append(1)
        with pytest.raises(InvalidToken):
            checker.check(signed(OTHER_KEY, "two", **GOOD))
        checker.use_keys(key_set(("one", KEY), ("two", OTHER_KEY)))
        assert checker.check(signed(OTHER_KEY, "two", **GOOD)).principal == "alice"
        assert asked == [1]

    @pytest.mark.parametrize("document", [b"", b"{}", b"[]", b"\xff", b'{"keys": []}'])
    def test_document_without_keys_leaves_those_that_were_there(self, checker, document):
        with pytest.raises(ValueError, match="no JSON Web Key Set"):
            checker.use_keys(document)
        assert checker.check(signed(**GOOD))

    def test_without_keys_nobody_is_refused(self):
        with pytest.raises(KeysMissing):
            SignedTokens(settings()).check(signed())


class TestIssuer:
    def test_keys_in_a_file_are_there_at_once(self, tmp_path):
        path = tmp_path / "keys.json"
        path.write_bytes(key_set(("one", KEY)))
        checker = SignedTokens(settings())
        IssuerKeys(settings(jwks_endpoint_url=path.as_uri()), checker)
        assert checker.check(signed()).principal == "alice"

    @pytest.mark.parametrize("url", ["ftp://x", "keys.json", "file:///nowhere", "file:///dev/null"])
    def test_keys_that_cannot_be_had_stop_the_start(self, url):
        with pytest.raises(SettingError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url"):
            IssuerKeys(settings(jwks_endpoint_url=url), SignedTokens(settings()))
