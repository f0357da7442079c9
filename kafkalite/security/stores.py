"""Keys and certificates as Kafka's settings name them: PEM and PKCS12, as files or inline.

What a store is, its first bytes tell: Java's `keytool` has written PKCS12 under names that end in
`.jks` since Java 9. The older formats of Java itself are not read (rule 522).
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    from kafkalite.config.security import ListenerSettings

KEY_SETTINGS = (
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
)
TRUST_SETTINGS = (
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "ssl.truststore.certificates",
)

_JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER_SEQUENCE = b"0"


class Identity(NamedTuple):
    """Private key and certificates of one's own, as one PEM text."""

    pem: bytes
    password: str | None


def read_identity(settings: "ListenerSettings") -> Identity | None:
    """Return the key and the certificates that a listener has; None if it has none.

    Raises:
        SettingError: they cannot be read; the message names the setting and the file.
    """
    inline, chain = (
        settings.text("ssl.keystore.key"),
        settings.text("ssl.keystore.certificate.chain"),
    )
    key_password = settings.text("ssl.key.password")
    location = settings.text("ssl.keystore.location")
    if inline is not None or chain is not None:
        if location is not None:
            raise SettingError(
                "ssl.keystore.location: cannot be set together with ssl.keystore.key"
            )
        if inline is None or chain is None:
            raise SettingError(
                "ssl.keystore.key: has to be set together with ssl.keystore.certificate.chain"
            )
        return Identity(f"{inline}\n{chain}\n".encode(), key_password)
    if location is None:
        return None
    data = _read("ssl.keystore.location", location)
    store_password = settings.text("ssl.keystore.password")
    if _is_pem(data):
        if store_password is not None:
            raise SettingError(
                "ssl.keystore.password: is not allowed with PEM, which has ssl.key.password only"
            )
        return Identity(data, key_password)
    return Identity(_pem_of_keystore(location, data, store_password), None)


def read_trusted(settings: "ListenerSettings") -> str | None:
    """Return the certificates, as PEM, of those whose signature a listener trusts; None if unset.

    Raises:
        SettingError: they cannot be read.
    """
    inline = settings.text("ssl.truststore.certificates")
    location = settings.text("ssl.truststore.location")
    if inline is not None:
        if location is not None:
            raise SettingError(
                "ssl.truststore.location: cannot be set together with ssl.truststore.certificates"
            )
        return inline
    if location is None:
        return None
    data = _read("ssl.truststore.location", location)
    if _is_pem(data):
        return data.decode("latin-1")
    return _pem_of_truststore(location, data, settings.text("ssl.truststore.password"))


def files_of(settings: "ListenerSettings") -> tuple[str, ...]:
    """Return the files that a listener's stores are in."""
    names = ("ssl.keystore.location", "ssl.truststore.location")
    return tuple(path for path in map(settings.text, names) if path is not None)


def _read(setting: str, location: str) -> bytes:
    try:
        data = Path(location).read_bytes()
    except OSError as error:
        raise SettingError(f"{setting}: {location} cannot be read: {error.strerror}") from None
    if data.startswith(_JKS):
        raise SettingError(
            f"{setting}: {location} is in Java's own format; convert it: keytool -importkeystore "
            f"-srckeystore {location} -destkeystore {Path(location).stem}.p12 "
            "-deststoretype PKCS12"
        )
    if not _is_pem(data) and not data.startswith(_DER_SEQUENCE):
        raise SettingError(f"{setting}: {location} is neither PEM nor PKCS12")
    return data


def _is_pem(data: bytes) -> bool:
    return b"-----BEGIN " in data[:65_536]


def _pem_of_keystore(location: str, data: bytes, password: str | None) -> bytes:
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates
    except ImportError:
        raise _needs_library(location) from None
    try:
        secret = None if password is None else password.encode()
        key, own, others = load_key_and_certificates(data, secret)
    except ValueError as error:
        raise SettingError(f"ssl.keystore.location: {location}: {error}") from None
    if key is None or own is None:
        raise SettingError(
            f"ssl.keystore.location: {location} holds no private key with its certificate"
        )
    pieces = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    pieces += [one.public_bytes(Encoding.PEM) for one in (own, *others)]
    return b"".join(pieces)


def _pem_of_truststore(location: str, data: bytes, password: str | None) -> str:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise _needs_library(location) from None
    try:
        store = load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise SettingError(f"ssl.truststore.location: {location}: {error}") from None
    found = [one.certificate for one in store.additional_certs]
    if store.cert is not None:
        found.append(store.cert.certificate)
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in found)


def _needs_library(location: str) -> SettingError:
    return SettingError(
        f"{location} is a PKCS12 store, which needs the package cryptography: "
        "pip install 'kafkalite[tls]'"
    )
