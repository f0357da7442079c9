"""A certificate authority for development: it signs brokers and clients, nobody else knows it.

Needs the package cryptography (`kafkalite[tls]`). Keys are on the curve P-256, and written as
PKCS#8, the only form that Java reads.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS: Final = 3_650
LEAF_DAYS: Final = 825
"""The longest that macOS trusts a certificate for."""

CLOCK_SKEW: Final = dt.timedelta(hours=1)
"""Certificates are valid from a little earlier, for machines whose clock is behind."""

_COMMON_NAME_MAX = 64


@dataclass(slots=True, frozen=True, kw_only=True)
class Credentials:
    """A certificate and its key, as PEM.

    Attributes:
        certificate: the leaf's own.
        key: PKCS#8, not encrypted.
        authority: the certificate of who signed it.
    """

    certificate: bytes
    key: bytes
    authority: bytes

    @property
    def pem(self) -> bytes:
        """Key and chain in one, as `ssl.keystore.location` wants it."""
        return self.key + self.certificate + self.authority


class Authority:
    """A certificate authority with its key."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def new(cls, now: dt.datetime, name: str = "kafkalite development CA") -> "Authority":
        """Make a new one, valid from `now`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        builder = _builder(subject, subject, key, now, days=AUTHORITY_DAYS)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def read(cls, certificate: bytes, key: bytes) -> "Authority":
        """Return the one that `certificate_pem` and `key_pem` wrote.

        Raises:
            ValueError: they are none.
        """
        loaded = load_pem_private_key(key, None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise ValueError("the key is on no elliptic curve")  # noqa: TRY004 - of the file
        return cls(x509.load_pem_x509_certificate(certificate), loaded)

    @property
    def certificate_pem(self) -> bytes:
        """Certificate that others have to trust, as PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """Private key, as PEM; for nobody else."""
        return _key_pem(self._key)

    @property
    def truststore(self) -> bytes:
        """The certificate as a PKCS12 store that Java takes, with the password `changeit`."""
        return serialize_java_truststore(
            [PKCS12Certificate(self._certificate, b"kafkalite")],
            BestAvailableEncryption(TRUSTSTORE_PASSWORD.encode()),
        )

    def issue(
        self,
        common_name: str,
        now: dt.datetime,
        *,
        hosts: Iterable[str] = (),
        days: float = LEAF_DAYS,
    ) -> Credentials:
        """Sign a certificate that is good for servers and clients.

        Args:
            common_name: of whoever it is for; it makes the user's name.
            now: when it begins, less an hour.
            hosts: names and addresses of a server.
            days: how long it is valid; a negative number makes one that has expired.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(common_name), self._certificate.subject, key, now, days=days)
        names = [_alternative(host) for host in dict.fromkeys(hosts)]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return Credentials(
            certificate=certificate.public_bytes(Encoding.PEM),
            key=_key_pem(key),
            authority=self.certificate_pem,
        )


TRUSTSTORE_PASSWORD: Final = "changeit"


def is_good_for(certificate: bytes, hosts: Iterable[str], now: dt.datetime) -> bool:
    """Tell whether a server's PEM certificate names all hosts and is valid for another month."""
    loaded = x509.load_pem_x509_certificate(certificate)
    try:
        extension = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return False
    found = {str(each.value) for each in extension.value}
    left = loaded.not_valid_after_utc - now
    return left > dt.timedelta(days=30) and found.issuperset(hosts)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
    *,
    days: float,
) -> x509.CertificateBuilder:
    end = now + dt.timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_COMMON_NAME_MAX])])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
