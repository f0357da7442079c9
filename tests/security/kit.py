"""Certificates for tests, made once a process: what they cost is a few milliseconds each."""

import datetime as dt
import functools
import ssl

from kafkalite.security.certificates import Authority, Credentials

HOSTS = ("localhost", "127.0.0.1")


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


@functools.cache
def authority(name: str = "kafkalite development CA") -> Authority:
    return Authority.new(now(), name)


@functools.cache
def server_credentials() -> Credentials:
    return authority().issue("broker", now(), hosts=HOSTS)


@functools.cache
def client_credentials(name: str = "alice") -> Credentials:
    return authority().issue(name, now())


def written(folder, name, data):
    path = folder / name
    path.write_bytes(data)
    return str(path)


def server_settings(folder, credentials=None) -> dict[str, str]:
    """Settings of a broker that shows a certificate of `authority`."""
    shown = credentials or server_credentials()
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": written(folder, "broker.pem", shown.pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": written(folder, "ca.pem", authority().certificate_pem),
    }


def client_context(folder, credentials=None, trusted=None) -> ssl.SSLContext:
    """What a client of the standard library needs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusted = trusted or authority()
    context.load_verify_locations(cadata=trusted.certificate_pem.decode())
    if credentials is not None:
        context.load_cert_chain(written(folder, "client.pem", credentials.pem))
    return context
