"""Passwords among settings, encoded as Apache Kafka 3.9 has them in ZooKeeper (rule 255).

A key made of `password.encoder.secret` encrypts them. Needs the package cryptography
(`kafkalite[tls]`).
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafkalite.settings.config_def import ConfigType, Update
from kafkalite.settings.registry import BROKER

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig

SALT_SIZE: Final = 256
BLOCK_SIZE: Final = 16
GCM_SIZE: Final = 12
GCM_TAG_BITS: Final = "128"
KEY_LENGTHS: Final = (128, 192, 256)
DEFAULT_KEY_FACTORY: Final = "PBKDF2WithHmacSHA512"
CBC, GCM = "AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"

_KEY_FACTORY: Final = "PBKDF2WithHmac"
_HASHES: Final = ("SHA1", "SHA224", "SHA256", "SHA384", "SHA512")
_PASSWORDS: Final = tuple(
    name
    for name, setting in BROKER.items()
    if setting.type is ConfigType.PASSWORD and setting.update is not Update.READ_ONLY
)


class PasswordError(ValueError):
    """A password that cannot be encoded or decoded; the message holds none."""


def is_password(name: str) -> bool:
    """Whether a setting of a broker, perhaps with a listener's prefix, is a password."""
    return name.endswith(_PASSWORDS)


class PasswordEncoder:
    """Encodes by one secret, and decodes by several.

    Args:
        secret: to encode and decode by.
        old_secrets: to decode by as well.
        key_factory: Java's name of the function that makes a key of the secret.
        cipher: Java's name of the cipher.
        key_length: of the key, in bits.
        iterations: of the function that makes the key.
    """

    def __init__(
        self,
        secret: str,
        *,
        old_secrets: tuple[str, ...] = (),
        key_factory: str = DEFAULT_KEY_FACTORY,
        cipher: str = CBC,
        key_length: int = 128,
        iterations: int = 4096,
    ) -> None:
        self._secrets = (secret, *old_secrets)
        self._key_factory = key_factory
        self._cipher = cipher
        self._key_length = key_length
        self._iterations = iterations

    @classmethod
    def of(cls, config: "BrokerConfig") -> "PasswordEncoder | None":
        """Return the encoder that a broker's settings ask for, None without a secret."""
        secret = config.optional_str("password.encoder.secret")
        if not secret:
            return None
        old = config.optional_str("password.encoder.old.secret")
        return cls(
            secret,
            old_secrets=(old,) if old else (),
            key_factory=config.optional_str("password.encoder.keyfactory.algorithm")
            or DEFAULT_KEY_FACTORY,
            cipher=config.str("password.encoder.cipher.algorithm"),
            key_length=config.int("password.encoder.key.length"),
            iterations=config.int("password.encoder.iterations"),
        )

    def encode(self, password: str) -> str:
        """Return a password as it is stored; another text each time.

        Raises:
            PasswordError: the settings name something that is not there.
        """
        is_gcm = self._cipher == GCM
        fields = {
            "initializationVector": _text(secrets.token_bytes(GCM_SIZE if is_gcm else BLOCK_SIZE)),
            "keyLength": str(self._key_length),
            "salt": _text(secrets.token_bytes(SALT_SIZE)),
            "keyFactoryAlgorithm": self._key_factory,
            "cipherAlgorithm": self._cipher,
            "iterations": str(self._iterations),
            "passwordLength": str(_length(password)),
        }
        if is_gcm:
            fields["authenticationTagLength"] = GCM_TAG_BITS
        cipher = _Cipher(fields, self._secrets[0])
        fields["encryptedPassword"] = _text(cipher.seal(password.encode()))
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, text: str) -> str:
        """Return the password of a stored text.

        Raises:
            PasswordError: it was encoded by another secret, or is damaged.
        """
        fields = {}
        for part in text.split(","):
            name, _, value = part.strip().partition(":")
            fields[name] = value
        for secret in self._secrets:
            try:
                password = (
                    _Cipher(fields, secret).open(_bytes(fields["encryptedPassword"])).decode()
                )
                if _length(password) == int(fields["passwordLength"]):
                    return password
            except PasswordError:
                raise
            except (ValueError, KeyError):
                continue
        raise PasswordError("it was encoded by another secret, or is damaged")


class _Cipher:
    """A cipher and its key, as the fields of a stored password say."""

    def __init__(self, fields: Mapping[str, str], secret: str) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise PasswordError(
                "password.encoder.secret needs the package cryptography: "
                "pip install 'kafkalite[tls]'"
            ) from None
        factory, mode = fields["keyFactoryAlgorithm"], fields["cipherAlgorithm"]
        length, name = int(fields["keyLength"]), factory.removeprefix(_KEY_FACTORY)
        if name not in _HASHES or mode not in (CBC, GCM) or length not in KEY_LENGTHS:
            raise PasswordError(f"{factory} with {mode} and {length} bits is not supported")
        if fields.get("authenticationTagLength", GCM_TAG_BITS) != GCM_TAG_BITS:
            raise PasswordError(f"tags of {mode} have to have {GCM_TAG_BITS} bits")
        salt, rounds = _bytes(fields["salt"]), int(fields["iterations"])
        key = hashlib.pbkdf2_hmac(name.lower(), secret.encode(), salt, rounds, length // 8)
        self._vector = _bytes(fields["initializationVector"])
        self._gcm = AESGCM(key) if mode == GCM else None
        self._cbc = Cipher(algorithms.AES(key), modes.CBC(self._vector)) if mode == CBC else None
        self._refusal = InvalidTag

    def seal(self, plain: bytes) -> bytes:
        if self._gcm is not None:
            return self._gcm.encrypt(self._vector, plain, None)
        assert self._cbc is not None
        missing = BLOCK_SIZE - len(plain) % BLOCK_SIZE
        encryptor = self._cbc.encryptor()
        return encryptor.update(plain + bytes([missing]) * missing) + encryptor.finalize()

    def open(self, sealed: bytes) -> bytes:
        if self._gcm is not None:
            try:
                return self._gcm.decrypt(self._vector, sealed, None)
            except self._refusal as error:
                raise ValueError("tag") from error
        assert self._cbc is not None
        decryptor = self._cbc.decryptor()
        plain = decryptor.update(sealed) + decryptor.finalize()
        padding = plain[-1:] * (plain[-1] if plain else 0)
        if not 0 < len(padding) <= BLOCK_SIZE or not plain.endswith(padding):
            raise ValueError("padding")
        return plain[: -len(padding)]


def _length(password: str) -> int:
    """As Java counts: in UTF-16."""
    return len(password.encode("utf-16-le", "surrogatepass")) // 2


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
