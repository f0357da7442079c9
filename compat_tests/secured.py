"""Brokers with one listener for each way to come in, for clients of all languages.

The same settings go to kafkalite and to Apache Kafka. Only `alice` may do anything, and the
certificate `CN=alice`; on the listener that wants encryption alone everybody may.
"""

from __future__ import annotations

import contextlib
import json
import time
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from compat_tests.apache_kafka import ApacheBroker
from kafkalite.client.cluster import Client as OwnClient
from kafkalite.client.users import set_password
from kafkalite.testing import Broker
from kafkalite.testing.security import AUTHORIZER, Certificates, as_java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USER, PASSWORD = "alice", 'wonder"land \\ 1'
ISSUER, AUDIENCE = "https://issuer.example", "kafka"
REAUTH_MS = 2_500

PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_SSL",
    "TOKEN": "SASL_SSL",
    "SIGNED": "SASL_SSL",
}
_LOGIN_MODULES = "org.apache.kafka.common.security"


class Way(NamedTuple):
    """One way to come in: the listener, and by which mechanism."""

    listener: str
    mechanism: str = ""


WAYS = {
    "TLS": Way("TLS"),
    "mutual TLS": Way("MUTUAL"),
    "PLAIN": Way("LOGIN", "PLAIN"),
    "SCRAM-SHA-512": Way("LOGIN", "SCRAM-SHA-512"),
    "OAUTHBEARER": Way("TOKEN", "OAUTHBEARER"),
    "OAUTHBEARER signed": Way("SIGNED", "OAUTHBEARER"),
}


class Server:
    """What clients have to know of a broker.

    Args:
        certificates: what it shows.
        folder: for what clients need.
        addresses: `HOST:PORT` by the name of the listener.
    """

    def __init__(self, certificates: Certificates, folder: Path, addresses: dict[str, str]) -> None:
        self.certificates = certificates
        self.addresses = addresses
        self._folder = folder
        self.broker: Broker | None = None
        """kafkalite itself, where it is that."""

    def security(
        self, way: str, *, password: str = PASSWORD, lifetime_s: float = 3_600
    ) -> dict[str, Any]:
        """Return what a driver is told (DRIVERS.md)."""
        listener, mechanism = WAYS[way]
        found: dict[str, Any] = {
            "protocol": PROTOCOLS[listener],
            "ca": str(self.certificates.ca_file),
        }
        java = {"security.protocol": PROTOCOLS[listener], "ssl.ca.location": found["ca"]}
        if listener == "MUTUAL":
            found["identity"] = str(self.certificates.client_file(USER))
            java["ssl.key.location"] = java["ssl.certificate.location"] = found["identity"]
        if mechanism == "OAUTHBEARER":
            signs = listener == "SIGNED"
            found |= {"mechanism": mechanism, "token": token(self._folder, lifetime_s, signs=signs)}
            java |= {"sasl.mechanism": mechanism, **self._java_token(found["token"], signs=signs)}
        elif mechanism:
            found |= {"mechanism": mechanism, "user": USER, "password": password}
            java |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}
        found["java"] = as_java(java)
        return found

    def _java_token(self, text: str, *, signs: bool) -> dict[str, str]:
        module = f"{_LOGIN_MODULES}.oauthbearer.OAuthBearerLoginModule required"
        if not signs:
            return {"sasl.jaas.config": f'{module} unsecuredLoginStringClaim_sub="{USER}";'}
        file = self._folder / "token.jwt"
        file.write_text(text)
        handler = f"{_LOGIN_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
        return {
            "sasl.jaas.config": f"{module};",
            "sasl.login.callback.handler.class": handler,
            "sasl.oauthbearer.jwt.retriever.class": (
                f"{_LOGIN_MODULES}.oauthbearer.FileJwtRetriever"
            ),
            "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
        }


def token(folder: Path, lifetime_s: float, *, signs: bool) -> str:
    """Return a token of the user: without signature, or signed by the issuer of this folder."""
    now = time.time()
    claims = {"sub": USER, "iat": int(now), "exp": int(now + lifetime_s), "scope": "kafka"}
    if not signs:
        parts = ({"alg": "none"}, claims)
        return ".".join(_encoded(json.dumps(part).encode()) for part in parts) + "."
    claims |= {"iss": ISSUER, "aud": AUDIENCE}
    key = (folder / "issuer.pem").read_bytes()
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": "one"})


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _make_issuer(folder: Path) -> str:
    """Make an issuer's key; return where its public part is to be had."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "issuer.pem").write_bytes(pem)
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    keys = {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}
    (folder / "jwks.json").write_text(json.dumps(keys))
    return (folder / "jwks.json").as_uri()


def settings(folder: Path, certificates: Certificates) -> dict[str, str]:
    """Return the settings of a broker, but for its listeners' addresses."""
    plain = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    bearer = f"{_LOGIN_MODULES}.oauthbearer.OAuthBearerLoginModule required"
    signed = "listener.name.signed."
    handler = f"{_LOGIN_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    found = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker_file),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca_file),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.login.plain.sasl.jaas.config": (
            f'{_LOGIN_MODULES}.plain.PlainLoginModule required user_{USER}="{plain}";'
        ),
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{USER};User:CN={USER};User:ANONYMOUS",
        f"{signed}oauthbearer.sasl.server.callback.handler.class": handler,
        f"{signed}sasl.oauthbearer.jwks.endpoint.url": _make_issuer(folder),
        f"{signed}sasl.oauthbearer.expected.issuer": ISSUER,
        f"{signed}sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    for mechanism in ("scram-sha-256", "scram-sha-512"):
        module = f"{_LOGIN_MODULES}.scram.ScramLoginModule required;"
        found[f"listener.name.login.{mechanism}.sasl.jaas.config"] = module
    for name in ("token", "signed"):
        found[f"listener.name.{name}.sasl.enabled.mechanisms"] = "OAUTHBEARER"
        found[f"listener.name.{name}.oauthbearer.connections.max.reauth.ms"] = str(REAUTH_MS)
    found["listener.name.token.oauthbearer.sasl.jaas.config"] = (
        f'{bearer} unsecuredLoginStringClaim_sub="{USER}";'
    )
    found[f"{signed}oauthbearer.sasl.jaas.config"] = f"{bearer};"
    return found


@contextlib.contextmanager
def kafkalite_server(folder: Path) -> Iterator[Server]:
    """A broker of this project, in this process."""
    certificates = Certificates(folder, "127.0.0.1")
    config = {
        **settings(folder, certificates),
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in PROTOCOLS),
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in PROTOCOLS.items()),
    }
    with Broker(config=config) as broker:
        broker.add_user(USER, PASSWORD)
        addresses = {name: broker.bootstrap_for(name) for name in PROTOCOLS}
        server = Server(certificates, folder, addresses)
        server.broker = broker
        yield server


@contextlib.contextmanager
def apache_server(folder: Path) -> Iterator[Server]:
    """The oracle: Apache Kafka with the same settings."""
    certificates = Certificates(folder, "127.0.0.1")
    more = {name: protocol for name, protocol in PROTOCOLS.items() if name != "PLAINTEXT"}
    url = (folder / "jwks.json").as_uri()
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"
    config = {
        name: value.replace("\\", "\\\\") for name, value in settings(folder, certificates).items()
    }
    with ApacheBroker(config=config, more_listeners=more, more_jvm_options=[allowed]) as broker:
        with OwnClient(broker.bootstrap) as client:
            set_password(client, USER, PASSWORD)
        yield Server(certificates, folder, broker.addresses)
