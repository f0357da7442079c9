"""Tokens of OAuth: unsigned ones for development, and those that an issuer has signed.

Signed tokens need the package PyJWT (`kafkalite[oauth]`), which is imported where an issuer's keys
are named (`sasl.oauthbearer.jwks.endpoint.url`).
"""

import json
import math
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkalite.security.exchanges import BearerToken, InvalidToken
from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    from jwt import PyJWKSet

    from kafkalite.config.security import ListenerSettings

ALGORITHMS: Final = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
]
"""Signatures by a key pair: with a shared secret whoever checks could sign as well."""

_PARTS: Final = 3
_OPTION: Final = "unsecuredValidator"


class KeysMissing(Exception):
    """The issuer's keys are not here yet: no fault of the client's."""


@dataclass(slots=True, frozen=True, kw_only=True)
class UnsecuredRules:
    """Claims that an unsigned token must have, as options of the login module say.

    Attributes:
        principal_claim, scope_claim: names of claims.
        required_scope: what the scope has to contain.
        skew_ms: by how much clocks may differ.
    """

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    skew_ms: int = 0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "UnsecuredRules":
        """Return what the options of a login module say.

        Raises:
            SettingError: a number that is none.
        """
        skew = options.get(f"{_OPTION}AllowableClockSkewMs", "").strip() or "0"
        if not skew.isdigit():
            raise SettingError(f"sasl.jaas.config: {_OPTION}AllowableClockSkewMs is no number")
        return cls(
            principal_claim=options.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub",
            scope_claim=options.get(f"{_OPTION}ScopeClaimName", "").strip() or "scope",
            required_scope=tuple(options.get(f"{_OPTION}RequiredScope", "").split()),
            skew_ms=int(skew),
        )


def check_unsecured(token: str, rules: UnsecuredRules, *, now_ms: int) -> BearerToken:
    """Return what an unsigned token says (rule 534).

    Raises:
        InvalidToken: it is none, or not good any more, or lacks what it needs.
    """
    claims = _unsigned_claims(token)
    principal = claims.get(rules.principal_claim)
    if not isinstance(principal, str) or not principal.strip():
        raise InvalidToken(f"no claim {rules.principal_claim}")
    expires_ms = _time_ms(claims, "exp")
    issued_ms = _time_ms(claims, "iat")
    if expires_ms is None:
        raise InvalidToken("no claim exp")
    if now_ms - rules.skew_ms >= expires_ms:
        raise InvalidToken(f"it expired {now_ms - expires_ms} ms ago")
    if issued_ms is not None and now_ms + rules.skew_ms < issued_ms:
        raise InvalidToken("it was issued in the future")
    if issued_ms is not None and expires_ms <= issued_ms:
        raise InvalidToken("it expires before it was issued")
    scope = _scope(claims.get(rules.scope_claim))
    for name in rules.required_scope:
        if name not in scope:
            raise InvalidToken(f"its scope lacks {name}", scope=" ".join(rules.required_scope))
    return BearerToken(principal, expires_ms)


class SignedTokens:
    """Checks tokens against the keys of their issuer.

    Raises:
        SettingError: PyJWT is not there, or a setting is missing.
    """

    def __init__(self, settings: "ListenerSettings") -> None:
        try:
            import jwt
        except ImportError:
            raise SettingError(
                "sasl.oauthbearer.jwks.endpoint.url: signed tokens need the package PyJWT: "
                "pip install 'kafkalite[oauth]'"
            ) from None
        self._jwt = jwt
        self._keys: PyJWKSet | None = None
        self._issuer = settings.text("sasl.oauthbearer.expected.issuer")
        self._audience: Sequence[str] | None = (
            settings.elements("sasl.oauthbearer.expected.audience") or None
        )
        self._skew_s = settings.number("sasl.oauthbearer.clock.skew.seconds")
        self._sub_claim = settings.text("sasl.oauthbearer.sub.claim.name") or "sub"
        self._scope_claim = settings.text("sasl.oauthbearer.scope.claim.name") or "scope"
        self.on_unknown_key: Callable[[], object] = lambda: None
        """Called where a token names a key that is not among those known."""

    def use_keys(self, document: bytes) -> None:
        """Take the issuer's keys from a JWKS document.

        Raises:
            ValueError: it is none; the keys that were there stay in use.
        """
        try:
            self._keys = self._jwt.PyJWKSet.from_json(document.decode())
        except (self._jwt.PyJWTError, ValueError, AttributeError, TypeError) as error:
            raise ValueError(f"no JSON Web Key Set: {error}") from None

    def check(self, token: str) -> BearerToken:
        """Return what a token says.

        Raises:
            InvalidToken: it is not good.
            KeysMissing: that cannot be told.
        """
        if self._keys is None:
            raise KeysMissing("the issuer's keys could not be fetched yet")
        jwt = self._jwt
        try:
            header = jwt.get_unverified_header(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key_for(header.get("kid")),
                algorithms=ALGORITHMS,
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._skew_s,
                options={
                    "require": ["exp", "iat"],
                    "verify_aud": self._audience is not None,
                    "verify_iss": self._issuer is not None,
                    "verify_sub": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise InvalidToken(str(error)) from None
        principal = claims.get(self._sub_claim)
        if not isinstance(principal, str) or not principal.strip():
            raise InvalidToken(f"no claim {self._sub_claim}")
        _scope(claims.get(self._scope_claim))
        return BearerToken(principal, int(claims["exp"] * 1_000))

    def _key_for(self, key_id: object) -> Any:
        assert self._keys is not None
        keys = self._keys.keys
        if key_id is None and len(keys) == 1:
            return keys[0]
        for key in keys:
            if key.key_id == key_id:
                return key
        self.on_unknown_key()
        raise InvalidToken("it is signed with a key that the issuer does not name")


def _unsigned_claims(token: str) -> Mapping[str, Any]:
    parts = token.split(".")
    if len(parts) != _PARTS or parts[2]:
        raise InvalidToken("no unsigned JWT")
    header, claims = (_object(part) for part in parts[:2])
    if header.get("alg") != "none":
        raise InvalidToken(f"signed by {header.get('alg')}, and no issuer's keys are named here")
    return claims


def _object(part: str) -> Mapping[str, Any]:
    try:
        found = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidToken("no JWT")
    return found


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a time that is given as a number of seconds, perhaps a fraction."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidToken(f"the claim {name} is no number")
    return round(value * 1_000)


def _scope(value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return frozenset(value)
    raise InvalidToken("its scope is neither a text nor a list of texts")
