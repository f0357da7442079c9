"""Exchanges of a login between client and broker, by mechanism; the broker's side.

Each exchange takes a token and returns the answer to it, until it is complete. It has no clock and
no chance of its own.
"""

import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from kafkalite.security import scram

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"

_PLAIN_PARTS: Final = 3


class LoginFailed(Exception):
    """A login that fails.

    Attributes:
        told: what the client is told; None is the sentence that gives nothing away (rule 531).
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


class Exchange(Protocol):
    """A login on its way."""

    user: str | None
    """The name of the user, once it is complete."""
    expires_ms: int | None
    """When (since 1970) what was shown is worth nothing any more; None is never."""
    is_token: bool
    """A delegation token was shown."""

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a token.

        Raises:
            LoginFailed: there is nothing more to say.
        """
        ...


CheckPassword = Callable[[str, str], bool]
FindCredential = Callable[[str], scram.Credential | None]


class TokenCredential(NamedTuple):
    """A delegation token as a credential: whose it is, and until when."""

    owner: str
    credential: scram.Credential
    expires_ms: int


FindToken = Callable[[str], TokenCredential | None]


class PlainExchange:
    """PLAIN (RFC 4616): the password itself."""

    is_token = False

    def __init__(self, is_right: CheckPassword) -> None:
        self._is_right = is_right
        self.user: str | None = None
        self.expires_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return nothing, if the password is right."""
        parts = token.decode("utf-8", "replace").split("\0")
        if len(parts) != _PLAIN_PARTS:
            count = min(len(parts), _PLAIN_PARTS + 1)
            raise _told(f"Invalid SASL/PLAIN response: expected 3 tokens, got {count}")
        authorization_id, name, password = parts
        if not name:
            raise _told("Authentication failed: username not specified")
        if not password:
            raise _told("Authentication failed: password not specified")
        if not self._is_right(name, password):
            raise LoginFailed(
                f"user {name!r}: wrong password, or no such user",
                "Authentication failed: Invalid username or password",
            )
        _check_authorization_id(authorization_id, name)
        self.user = name
        return b""


class ScramExchange:
    """SCRAM-SHA-256 and -512, and delegation tokens, which are users of their own.

    Args:
        nonce: new and unpredictable.
    """

    def __init__(
        self,
        mechanism: scram.Mechanism,
        find: FindCredential,
        nonce: str,
        *,
        find_token: FindToken | None = None,
    ) -> None:
        self.mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._nonce = nonce
        self._client: scram.ClientFirst | None = None
        self._credential: scram.Credential | None = None
        self._first_answer = ""
        self._owner = ""
        self.user: str | None = None
        self.expires_ms: int | None = None
        self.is_token = False

    def token_of(self, message: bytes) -> str | None:
        """Return the delegation token that a client's first message names, None if it has none."""
        if self._client is not None:
            return None
        try:
            client = scram.read_client_first(message)
        except scram.ScramError:
            return None
        return client.name if client.is_token else None

    def evaluate(self, token: bytes) -> bytes:
        """Return the server's first message, then its final one."""
        try:
            return self._begin(token) if self._client is None else self._finish(token)
        except scram.ScramError as error:
            name = "" if self._client is None else f"user {self._client.name!r}: "
            raise LoginFailed(f"{name}{error}") from None

    def _begin(self, token: bytes) -> bytes:
        client = scram.read_client_first(token)
        credential = self._known(client)
        if credential is None:
            raise LoginFailed(f"there is no {self.mechanism.name} user {client.name!r}")
        _check_authorization_id(client.authorization_id, client.name)
        if credential.iterations < scram.ITERATIONS_MIN:
            raise LoginFailed(
                f"user {client.name!r} is stored with {credential.iterations} iterations, "
                f"{scram.ITERATIONS_MIN} are the least"
            )
        self._client, self._credential = client, credential
        self._first_answer = scram.server_first(client, credential, self._nonce)
        return self._first_answer.encode()

    def _known(self, client: scram.ClientFirst) -> scram.Credential | None:
        if not client.is_token:
            self._owner = client.name
            return self._find(client.name)
        known = None if self._find_token is None else self._find_token(client.name)
        if known is None:
            return None
        self._owner, self.expires_ms, self.is_token = known.owner, known.expires_ms, True
        return known.credential

    def _finish(self, token: bytes) -> bytes:
        assert self._client is not None
        assert self._credential is not None
        answer = scram.server_final(
            self.mechanism, self._credential, self._client, self._first_answer, token
        )
        self.user = self._owner
        return answer


class BearerToken(NamedTuple):
    """Claims of an OAuth token that was found to be good."""

    principal: str
    expires_ms: int


class InvalidToken(Exception):
    """A token that is not good: expired, of somebody else, not signed as it should be.

    Attributes:
        scope: what would have been needed, if that is what it lacks.
    """

    def __init__(self, reason: str, *, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope


ValidateToken = Callable[[str], BearerToken]

_KV_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_INITIAL = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:{_KV_PAIR})*)\x01")
_AUTH = re.compile(r"(?P<scheme>[\w]+)[ ]+(?P<token>[-_\.a-zA-Z0-9]+)")
_CONTROL_A = b"\x01"


class OAuthBearerExchange:
    """OAUTHBEARER (RFC 7628), as Kafka has it (KIP-255, rule 533)."""

    is_token = False

    def __init__(self, validate: ValidateToken) -> None:
        self._validate = validate
        self._refusal = ""
        self._reason = ""
        self.user: str | None = None
        self.expires_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return nothing for a good token, or what is wrong; the client then says that it knows."""
        if token == _CONTROL_A and self._refusal:
            raise LoginFailed(self._reason, self._refusal)
        self._refusal = ""
        authorization_id, bearer = _read_initial(token)
        try:
            found = self._validate(bearer)
        except InvalidToken as error:
            status = "invalid_token" if error.scope is None else "insufficient_scope"
            scope = "" if error.scope is None else f', "scope":"{error.scope}"'
            self._reason, self._refusal = str(error), f'{{"status":"{status}"{scope}}}'
            return self._refusal.encode()
        if authorization_id not in ("", found.principal):
            raise _told(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) "
                f"that is different from the token's principal name ({found.principal})"
            )
        self.user, self.expires_ms = found.principal, found.expires_ms
        return b""


def _read_initial(token: bytes) -> tuple[str, str]:
    """Return the authorization id and the token of a client's first message."""
    match = _INITIAL.fullmatch(token.decode("utf-8", "replace"))
    if match is None:
        raise LoginFailed("Invalid OAUTHBEARER client first message")
    pairs: Mapping[str, str] = dict(
        pair.partition("=")[::2] for pair in match["pairs"].split("\x01") if pair
    )
    if "auth" not in pairs:
        raise LoginFailed("Invalid OAUTHBEARER client first message: 'auth' not specified")
    auth = _AUTH.fullmatch(pairs["auth"])
    if auth is None or auth["scheme"].lower() != "bearer":
        raise LoginFailed("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    return match["authzid"] or "", auth["token"]


def same_password(known: str | None, given: str) -> bool:
    """Compare passwords in a time that does not tell how much of them is the same."""
    return hmac.compare_digest((known or "").encode(), given.encode()) and known is not None


def _check_authorization_id(authorization_id: str, name: str) -> None:
    if authorization_id not in ("", name):
        raise _told(
            "Authentication failed: Client requested an authorization id that is different from "
            "username"
        )


def _told(message: str) -> LoginFailed:
    return LoginFailed(message, message)
