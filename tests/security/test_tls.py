"""Contexts from settings: stores of all kinds, limits, reload (rule 521)."""

import os
import ssl

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from kafkalite.config import BrokerConfig
from kafkalite.security.tls import TlsServer, client_context, openssl_name, server_context
from kafkalite.settings.config_def import SettingError
from tests.security import kit

BASE = {"listeners": "SSL://127.0.0.1:0"}


class Clock:
    def __init__(self):
        self.now_ms = 0

    def monotonic_ms(self):
        return self.now_ms


def settings(**given):
    named = {name.replace("__", "-").replace("_", "."): value for name, value in given.items()}
    return BrokerConfig({**BASE, **named}).for_listener("SSL")


def keystore(password=b"secret"):
    shown = kit.server_credentials()
    return pkcs12.serialize_key_and_certificates(
        b"broker",
        load_pem_private_key(shown.key, None),
        load_pem_x509_certificate(shown.certificate),
        [load_pem_x509_certificate(shown.authority)],
        BestAvailableEncryption(password),
    )


def encrypted_key(password=b"secret"):
    key = load_pem_private_key(kit.server_credentials().key, None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))


def shake_hands(server, client):
    """Return the certificate that the server shows, in DER."""
    pipes = [ssl.MemoryBIO() for _ in range(2)]
    sides = [
        server.wrap_bio(pipes[0], pipes[1], server_side=True),
        client.wrap_bio(pipes[1], pipes[0], server_hostname="localhost"),
    ]
    for _ in range(5):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return sides[1].getpeercert(binary_form=True)


def test_stores_of_all_kinds_are_read(tmp_path):
    shown = kit.server_credentials()
    pem = kit.written(tmp_path, "broker.pem", shown.pem)
    secret = kit.written(tmp_path, "secret.pem", encrypted_key() + shown.certificate)
    p12 = kit.written(tmp_path, "broker.jks", keystore())  # as keytool names it
    trusted = kit.written(tmp_path, "trust.p12", kit.authority().truststore)
    ca = kit.authority().certificate_pem.decode()
    for given in (
        {"ssl_keystore_location": pem, "ssl_keystore_type": "PEM"},
        {"ssl_keystore_location": secret, "ssl_key_password": "secret"},
        {"ssl_keystore_location": p12, "ssl_keystore_password": "secret"},
        {
            "ssl_keystore_key": shown.key.decode(),
            "ssl_keystore_certificate_chain": shown.certificate.decode(),
        },
    ):
        for trust in (
            {"ssl_truststore_location": trusted, "ssl_truststore_password": "changeit"},
            {"ssl_truststore_certificates": ca},
        ):
            server = server_context(settings(**given, ssl_client_auth="required", **trust))
            client = client_context(settings(**given, **trust))
            assert shake_hands(server, client)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xfe\xed\xfe\xedxxxx", "keytool -importkeystore -srckeystore .* -deststoretype PKCS12"),
        (b"\xce\xce\xce\xcexxxx", "Java's own format"),
        (b"hello", "neither PEM nor PKCS12"),
        (b"0\x03\x02\x01\x01", "store"),
        (b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n", "cannot be used"),
    ],
)
def test_store_that_is_none_stops_the_start(tmp_path, data, message):
    path = kit.written(tmp_path, "store", data)
    with pytest.raises(SettingError, match=message):
        server_context(settings(ssl_keystore_location=path))


def test_store_that_is_missing_or_contradicts_itself_stops_the_start(tmp_path):
    pem = kit.written(tmp_path, "broker.pem", kit.server_credentials().pem)
    for given, message in (
        ({}, "listener SSL needs a key"),
        ({"ssl_keystore_location": str(tmp_path / "none")}, "cannot be read: No such file"),
        ({"ssl_keystore_location": pem, "ssl_keystore_password": "x"}, "ssl.key.password only"),
        ({"ssl_keystore_location": pem, "ssl_keystore_key": "x"}, "cannot be set together"),
        ({"ssl_keystore_key": "x"}, "has to be set together"),
        ({"ssl_keystore_location": pem, "ssl_enabled_protocols": "SSLv3"}, "none of TLSv1.2"),
        (
            {"ssl_keystore_location": pem, "ssl_cipher_suites": "TLS_RSA_WITH_NONSENSE"},
            "OpenSSL has none",
        ),
        (
            {
                "ssl_keystore_location": pem,
                "ssl_client_auth": "required",
                "ssl_truststore_certificates": "x",
            },
            "ssl.truststore.location",
        ),
    ):
        with pytest.raises(SettingError, match=message):
            server_context(settings(**given))


def test_listener_has_settings_of_its_own(tmp_path):
    pem = kit.written(tmp_path, "broker.pem", kit.server_credentials().pem)
    own = BrokerConfig(
        {
            **BASE,
            "ssl.keystore.location": "elsewhere",
            "listener.name.ssl.ssl.keystore.location": pem,
            "listener.name.ssl.ssl.enabled.protocols": "TLSv1.2",
        }
    )
    assert own.warnings == ()
    context = server_context(own.for_listener("SSL"))
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
    ],
)
def test_suites_have_the_names_that_openssl_knows(suite, name):
    assert openssl_name(suite) == name
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(name)
    assert name in {each["name"] for each in context.get_ciphers()}


def test_suites_limit_what_is_spoken(tmp_path):
    pem = kit.written(tmp_path, "broker.pem", kit.server_credentials().pem)
    one = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    context = server_context(
        settings(ssl_keystore_location=pem, ssl_cipher_suites=f"TLS_AES_128_GCM_SHA256,{one}")
    )
    older = [each["name"] for each in context.get_ciphers() if each["protocol"] == "TLSv1.2"]
    assert older == ["ECDHE-ECDSA-AES256-GCM-SHA384"]
    newest = server_context(
        settings(ssl_keystore_location=pem, ssl_cipher_suites="TLS_AES_128_GCM_SHA256")
    )
    assert newest.minimum_version is ssl.TLSVersion.TLSv1_3


class TestReload:
    @staticmethod
    def server(tmp_path, **given):
        clock = Clock()
        given = {"ssl_keystore_location": str(tmp_path / "broker.pem"), **given}
        kit.written(tmp_path, "broker.pem", kit.server_credentials().pem)
        return TlsServer(settings(**given), clock), clock

    def test_file_with_another_certificate_is_taken_up(self, tmp_path):
        server, clock = self.server(tmp_path)
        first = server.context()
        other = kit.authority().issue("broker", kit.now(), hosts=kit.HOSTS)
        kit.written(tmp_path, "new.pem", other.pem)
        os.replace(tmp_path / "new.pem", tmp_path / "broker.pem")
        assert server.context() is first  # it was looked at a moment ago
        clock.now_ms += 1_000
        assert server.context() is not first
        trusting = client_context(
            settings(ssl_truststore_certificates=kit.authority().certificate_pem.decode())
        )
        shown = shake_hands(server.context(), trusting)
        assert ssl.DER_cert_to_PEM_cert(shown).encode() == other.certificate

    def test_file_that_cannot_be_used_leaves_what_was(self, tmp_path, caplog):
        server, clock = self.server(tmp_path)
        first = server.context()
        kit.written(tmp_path, "new.pem", b"nonsense")
        os.replace(tmp_path / "new.pem", tmp_path / "broker.pem")
        for _ in range(3):
            clock.now_ms += 1_000
            assert server.context() is first
        assert caplog.text.count("listener SSL goes on as it was") == 1

    def test_rules_that_cannot_be_read_stop_the_start(self, tmp_path):
        with pytest.raises(SettingError, match=r"ssl\.principal\.mapping\.rules"):
            self.server(tmp_path, ssl_principal_mapping_rules="x")
