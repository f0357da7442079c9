"""OpenSSL's contexts, made of Kafka's settings, and made again when those change.

Only imported where there is a listener with TLS.
"""

import contextlib
import logging
import os
import ssl
import tempfile
from typing import TYPE_CHECKING, Final

from kafkalite.security.names import MappingRules, NoUserName, subject_of
from kafkalite.security.stores import (
    KEY_SETTINGS,
    TRUST_SETTINGS,
    files_of,
    read_identity,
    read_trusted,
)
from kafkalite.settings.config_def import SettingError, Value

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.config.security import ListenerSettings

logger = logging.getLogger("kafkalite.security")

CHECK_INTERVAL_MS: Final = 1_000
"""How often, at most, files are looked at for newer certificates; a connection asks for it."""

_OTHER_SETTINGS: Final = (
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
    "ssl.principal.mapping.rules",
)
_SETTINGS: Final = (*KEY_SETTINGS, *TRUST_SETTINGS, *_OTHER_SETTINGS)
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class ServerSession(ssl.SSLObject):
    """A client's TLS.

    Attributes:
        asked_name: the name of this broker by which the client came (SNI); None if it told none.
    """

    asked_name: str | None = None


def _note_name(session: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
    del context
    assert isinstance(session, ServerSession)
    session.asked_name = name


def server_context(settings: "ListenerSettings") -> ssl.SSLContext:
    """Return what a listener needs for its handshakes.

    Raises:
        SettingError: it has no key, or what it has cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.sslobject_class = ServerSession
    context.sni_callback = _note_name
    context.num_tickets = 0  # clients of Kafka do not resume sessions
    _limit(context, settings)
    if not _show_identity(context, settings):
        raise SettingError(
            f"ssl.keystore.location: listener {settings.listener} needs a key and a certificate"
        )
    client_auth = settings.text("ssl.client.auth") or "none"
    if client_auth != "none":
        _trust(context, settings, ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = _CLIENT_AUTH[client_auth]
    return context


def client_context(settings: "ListenerSettings") -> ssl.SSLContext:
    """Return what a broker needs to connect to another one by a listener.

    Raises:
        SettingError: a store cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _limit(context, settings)
    _show_identity(context, settings)
    _trust(context, settings, ssl.Purpose.SERVER_AUTH)
    context.check_hostname = bool(settings.text("ssl.endpoint.identification.algorithm"))
    return context


class TlsServer:
    """The handshakes of one listener: with which certificates, and who has come in by one.

    Raises:
        SettingError: the listener cannot be used with its settings.
    """

    def __init__(self, settings: "ListenerSettings", clock: "Clock") -> None:
        self._settings = settings
        self._clock = clock
        self._known = self._fingerprint()
        self._checked_ms = clock.monotonic_ms()
        self._context = server_context(settings)
        self._rules = self._mapping_rules()

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection, of the settings and files as they are now.

        What cannot be read is told once, and the certificates that were there stay in use.
        """
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._checked_ms >= CHECK_INTERVAL_MS:
            self._checked_ms = now_ms
            self.reload()
        return self._context

    def reload(self) -> None:
        """Take up settings and files that have changed."""
        try:
            found = self._fingerprint()
            if found == self._known:
                return
            self._known = found
            self._context, self._rules = server_context(self._settings), self._mapping_rules()
        except SettingError as error:
            logger.error("%s; listener %s goes on as it was", error, self._settings.listener)
        else:
            logger.info("listener %s has other certificates now", self._settings.listener)

    def user_name(self, certificate: bytes) -> str:
        """Return the name of the user that shows this DER certificate.

        Raises:
            NoUserName: no mapping rule fits.
        """
        return self._rules.name_of(subject_of(certificate))

    def _mapping_rules(self) -> MappingRules:
        try:
            return MappingRules(self._settings.text("ssl.principal.mapping.rules") or "")
        except NoUserName as error:
            raise SettingError(str(error)) from None

    def _fingerprint(self) -> tuple[Value | float, ...]:
        times: list[float] = []
        for path in files_of(self._settings):
            with contextlib.suppress(OSError):
                status = os.stat(path)
                times += [status.st_mtime, status.st_ino]
        return (*self._settings.fingerprint(_SETTINGS), *times)


def _limit(context: ssl.SSLContext, settings: "ListenerSettings") -> None:
    """Allow the versions and ciphers of the settings, and no others."""
    names = settings.elements("ssl.enabled.protocols")
    versions = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if not versions:
        raise SettingError(
            f"ssl.enabled.protocols: '{','.join(names)}' has none of {', '.join(_VERSIONS)}"
        )
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    suites = settings.elements("ssl.cipher.suites")
    older = [openssl_name(name) for name in suites if "_WITH_" in name]
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise SettingError(
                f"ssl.cipher.suites: OpenSSL has none of {', '.join(suites)}"
            ) from None
    elif suites:  # those of TLS 1.3 alone
        context.minimum_version = ssl.TLSVersion.TLSv1_3


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a cipher suite for TLS 1.2 that Java names as IANA does."""
    keys, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256")
    cipher = cipher.replace("_CBC", "").replace("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305")
    prefix = "" if keys == "RSA" else f"{keys}-"
    return f"{prefix}{cipher}".replace("_", "-")


def _show_identity(context: ssl.SSLContext, settings: "ListenerSettings") -> bool:
    """Give a context key and certificates; False if there are none."""
    identity = read_identity(settings)
    if identity is None:
        return False
    # OpenSSL takes them from a file only, which nobody else can read while it is there.
    with tempfile.NamedTemporaryFile(prefix="kafkalite-", suffix=".pem") as file:
        file.write(identity.pem)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=identity.password or "")
        except (ssl.SSLError, OSError) as error:
            where = settings.text("ssl.keystore.location") or "ssl.keystore.key"
            reason = getattr(error, "reason", None) or error
            raise SettingError(
                f"ssl.keystore.location: {where}: key and certificate cannot be used: {reason}"
            ) from None
    return True


def _trust(context: ssl.SSLContext, settings: "ListenerSettings", purpose: ssl.Purpose) -> None:
    trusted = read_trusted(settings)
    if trusted is None:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise SettingError(
            f"ssl.truststore.location: the certificates cannot be used: {error.reason}"
        ) from None
