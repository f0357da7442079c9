"""DIGEST-MD5 (RFC 2831) as ZooKeeper wants it of its clients: one round, no encryption (rule 586).

It is outdated, and the only login by name and password at ZooKeeper that Apache Kafka's brokers
and tools have too.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final

from kafkalite.security.jaas import JaasError, parse_jaas

MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
URI: Final = "zookeeper/zk-sasl-md5"
"""Service and host; ZooKeeper's servers have these whatever they are called."""

_COUNT: Final = "00000001"
_DIRECTIVE = re.compile(r'\s*([a-z-]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^,\s]*))\s*(?:,|$)')


class DigestError(ValueError):
    """A login that cannot go on; the message holds no password."""


def user_of(line: str) -> tuple[str, str]:
    """Return name and password of a JAAS line.

    Raises:
        DigestError: it has none.
    """
    try:
        module = parse_jaas(line)
        if module.class_name != MODULE:
            raise DigestError(f"the login module has to be {MODULE}")
        return module.options["username"], module.options["password"]
    except JaasError as error:
        raise DigestError(str(error)) from None
    except KeyError as error:
        raise DigestError(f"{MODULE} needs {error.args[0]}") from None


class DigestExchange:
    """The client's part of one login.

    Args:
        user: its name.
        password: its password.
        nonce: a random text of the client.
        uri: service and host.
    """

    def __init__(self, user: str, password: str, nonce: str, uri: str = URI) -> None:
        self._uri = uri
        self._user = user
        self._password = password
        self._nonce = nonce
        self._expected = ""

    def answer(self, challenge: bytes) -> bytes:
        """Return what proves that the client knows the password.

        Raises:
            DigestError: the server's first token is none of this mechanism.
        """
        found = _directives(challenge)
        if "nonce" not in found or "auth" not in found.get("qop", "auth").split(","):
            raise DigestError("the server's challenge is none of DIGEST-MD5")
        realm, server_nonce = found.get("realm", ""), found["nonce"]
        secret = hashlib.md5(
            f"{self._user}:{realm}:{self._password}".encode(), usedforsecurity=False
        ).digest()
        session = _hex(secret + f":{server_nonce}:{self._nonce}".encode())

        def proof(what: str) -> str:
            parts = (session, server_nonce, _COUNT, self._nonce, "auth", _hex(what.encode()))
            return _hex(":".join(parts).encode())

        self._expected = proof(f":{self._uri}")
        values = {
            "charset": "utf-8",
            "username": _quoted(self._user),
            "realm": _quoted(realm),
            "nonce": _quoted(server_nonce),
            "nc": _COUNT,
            "cnonce": _quoted(self._nonce),
            "digest-uri": _quoted(self._uri),
            "response": proof(f"AUTHENTICATE:{self._uri}"),
            "qop": "auth",
        }
        return ",".join(f"{name}={value}" for name, value in values.items()).encode()

    def check(self, token: bytes) -> None:
        """Check that the server knows the password too.

        Raises:
            DigestError: it does not.
        """
        shown = _directives(token).get("rspauth", "")
        if not hmac.compare_digest(shown.encode(), self._expected.encode()):
            raise DigestError("the server does not prove that it knows the user")


def _directives(token: bytes) -> Mapping[str, str]:
    """Return names and values of a token; none if it is not of this form."""
    text = token.decode("utf-8", "replace")
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _DIRECTIVE.match(text, position)
        if match is None:
            return {}
        position = match.end()
        quoted = match[2]
        found[match[1]] = match[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    return found


def _quoted(value: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def _hex(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
