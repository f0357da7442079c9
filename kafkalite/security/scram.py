"""SCRAM (RFC 5802) as Kafka has it: no channel binding, names as they are (rule 530).

A server keeps neither password nor what a client could log in with: `StoredKey` proves that a
client knows the password, `ServerKey` proves to the client that the server has met it.
"""

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Final, NamedTuple

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
TOKEN_EXTENSION: Final = "tokenauth"

_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D|[^\x00-\x7f])+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)


class ScramError(ValueError):
    """A login that fails; the message is for the log, never for the client."""


class Mechanism(NamedTuple):
    """One of the two that Kafka knows.

    Attributes:
        number: in requests 50 and 51.
        digest: of hashlib.
    """

    name: str
    number: int
    digest: str


SHA_256: Final = Mechanism("SCRAM-SHA-256", 1, "sha256")
SHA_512: Final = Mechanism("SCRAM-SHA-512", 2, "sha512")
BY_NAME: Final = {each.name: each for each in (SHA_256, SHA_512)}
BY_NUMBER: Final = {each.number: each for each in (SHA_256, SHA_512)}


@dataclass(slots=True, frozen=True, kw_only=True)
class Credential:
    """Stored credential of a user and a mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of_salted(
        cls, mechanism: Mechanism, salted_password: bytes, *, salt: bytes, iterations: int
    ) -> "Credential":
        """Return it for a password that a client has salted (KIP-554)."""
        client_key = _mac(mechanism, salted_password, b"Client Key")
        return cls(
            salt=salt,
            stored_key=hashlib.new(mechanism.digest, client_key).digest(),
            server_key=_mac(mechanism, salted_password, b"Server Key"),
            iterations=iterations,
        )

    @classmethod
    def of_password(
        cls, mechanism: Mechanism, password: str, *, salt: bytes, iterations: int = ITERATIONS_MIN
    ) -> "Credential":
        """Return it for a password; 2 to 6 ms for 4,096 iterations."""
        salted = salt_password(mechanism, password, salt, iterations)
        return cls.of_salted(mechanism, salted, salt=salt, iterations=iterations)

    @classmethod
    def parse(cls, text: str) -> "Credential":
        """Return what `str` wrote, which is Kafka's form (ScramCredentialUtils).

        Raises:
            ValueError: it is none.
        """
        values = dict(part.partition("=")[::2] for part in text.split(","))
        try:
            return cls(
                salt=b64decode(values["salt"], validate=True),
                stored_key=b64decode(values["stored_key"], validate=True),
                server_key=b64decode(values["server_key"], validate=True),
                iterations=int(values["iterations"]),
            )
        except (KeyError, binascii.Error) as error:
            raise ValueError("no SCRAM credential") from error

    def __str__(self) -> str:
        return (
            f"salt={_text(self.salt)},stored_key={_text(self.stored_key)},"
            f"server_key={_text(self.server_key)},iterations={self.iterations}"
        )

    def fits(self, mechanism: Mechanism, password: str) -> bool:
        """Tell whether this is the password: as slow as `of_password`."""
        other = Credential.of_password(
            mechanism, password, salt=self.salt, iterations=self.iterations
        )
        return hmac.compare_digest(other.stored_key, self.stored_key)


def salt_password(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return SaltedPassword, which is all that a client needs of a password."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


@dataclass(slots=True, frozen=True, kw_only=True)
class ClientFirst:
    """The first message of a client.

    Attributes:
        gs2_header: all before the part that is signed.
        bare: the part that is signed.
        is_token: the name is that of a delegation token.
    """

    gs2_header: str
    bare: str
    name: str
    authorization_id: str
    nonce: str
    is_token: bool


def read_client_first(message: bytes) -> ClientFirst:
    """Return what a client says first.

    Raises:
        ScramError: it is not that.
    """
    match = _CLIENT_FIRST.fullmatch(_decoded(message))
    if match is None:
        raise ScramError("no client-first-message")
    extensions = dict(part.partition("=")[::2] for part in match["extensions"].split(",") if part)
    return ClientFirst(
        gs2_header=match["gs2"],
        bare=match["bare"],
        name=_unescaped(match["name"]),
        authorization_id=_unescaped(match["authzid"] or ""),
        nonce=match["nonce"],
        is_token=extensions.get(TOKEN_EXTENSION, "").lower() == "true",
    )


def server_first(client: ClientFirst, credential: Credential, nonce: str) -> str:
    """Return the answer to it; `nonce` is new and unpredictable."""
    return f"r={client.nonce}{nonce},s={_text(credential.salt)},i={credential.iterations}"


def server_final(
    mechanism: Mechanism,
    credential: Credential,
    client: ClientFirst,
    first_answer: str,
    message: bytes,
) -> bytes:
    """Return the answer to a client's second message, which proves that it knows the password.

    Raises:
        ScramError: it does not.
    """
    match = _CLIENT_FINAL.fullmatch(_decoded(message))
    if match is None:
        raise ScramError("no client-final-message")
    if b64decode(match["channel"]) != client.gs2_header.encode():
        raise ScramError("channel bindings are not supported")
    if not first_answer.startswith(f"r={match['nonce']},"):
        raise ScramError("another nonce than the server's")
    signed = f"{client.bare},{first_answer},{match['bare']}".encode()
    signature = _mac(mechanism, credential.stored_key, signed)
    proof = b64decode(match["proof"])
    if len(proof) != len(signature):
        raise ScramError("a proof of another length")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    stored_key = hashlib.new(mechanism.digest, client_key).digest()
    if not hmac.compare_digest(stored_key, credential.stored_key):
        raise ScramError("another password")
    return f"v={_text(_mac(mechanism, credential.server_key, signed))}".encode()


class ClientExchange:
    """The client's side, for brokers as clients of brokers and for the command line.

    Args:
        nonce: new and unpredictable, of printable ASCII without commas.
    """

    def __init__(self, mechanism: Mechanism, name: str, password: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._password = password
        escaped = name.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={escaped},r={nonce}"
        self._nonce = nonce
        self._signature = b""

    def first(self) -> bytes:
        """Return what to say first."""
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes) -> bytes:
        """Return what to say to the server's first answer.

        Raises:
            ScramError: it is no answer to this client.
        """
        text = _decoded(answer)
        match = re.fullmatch(rf"r=({_PRINTABLE}),s=({_BASE64}),i=([0-9]+)", text)
        if match is None or not match[1].startswith(self._nonce):
            raise ScramError("no answer to this client")
        salted = salt_password(self._mechanism, self._password, b64decode(match[2]), int(match[3]))
        client_key = _mac(self._mechanism, salted, b"Client Key")
        stored_key = hashlib.new(self._mechanism.digest, client_key).digest()
        without_proof = f"c={_text(b'n,,')},r={match[1]}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        signature = _mac(self._mechanism, stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = _mac(self._mechanism, salted, b"Server Key")
        self._signature = _mac(self._mechanism, server_key, signed)
        return f"{without_proof},p={_text(proof)}".encode()

    def check(self, answer: bytes) -> None:
        """Look whether the server knows the user as well.

        Raises:
            ScramError: it does not.
        """
        if not hmac.compare_digest(answer, f"v={_text(self._signature)}".encode()):
            raise ScramError("the server does not prove that it knows the user")


def _mac(mechanism: Mechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.digest)


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _decoded(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("no UTF-8") from None


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
