"""How this package's own client comes in where TLS and logins are wanted.

Settings have the names that Kafka's tools read from `--command-config FILE`.
"""

import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkalite.client.errors import ClientError
from kafkalite.config import BrokerConfig
from kafkalite.security.jaas import JaasError, parse_jaas
from kafkalite.security.scram import BY_NAME, ClientExchange, ScramError
from kafkalite.settings.config_def import SettingError
from kafkalite.settings.properties import parse_properties

if TYPE_CHECKING:
    import ssl

Send = Callable[[bytes], bytes]
"""Sends a token and returns the answer to it."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ALIASES: Final = {
    "ssl.ca.location": "ssl.truststore.location",
    "sasl.mechanisms": "sasl.mechanism",
}
"""librdkafka's names of the same."""


class Credentials:
    """Credentials of a client, and the authorities it trusts.

    Args:
        settings: by Kafka's names, or librdkafka's.

    Raises:
        ClientError: they cannot be used.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        given = {_ALIASES.get(name, name): value for name, value in settings.items()}
        self.protocol = given.get("security.protocol", "PLAINTEXT").upper()
        if self.protocol not in _PROTOCOLS:
            raise ClientError(f"security.protocol has to be one of {', '.join(_PROTOCOLS)}")
        self._mechanism = given.get("sasl.mechanism", "")
        self._user, self._password = _user_of(given)
        self._context: ssl.SSLContext | None = None
        if self.protocol.endswith("SSL"):
            # Most clients do without it.
            from kafkalite.security.tls import client_context

            stores = {name: value for name, value in given.items() if name.startswith("ssl.")}
            if "ssl.certificate.location" in given:  # librdkafka has key and certificate apart
                stores["ssl.keystore.key"] = _text(given.get("ssl.key.location", ""))
                stores["ssl.keystore.certificate.chain"] = _text(given["ssl.certificate.location"])
            try:
                self._context = client_context(BrokerConfig(stores).for_listener("PLAINTEXT"))
            except SettingError as error:
                raise ClientError(str(error)) from None
        if self.logs_in and self._mechanism not in ("PLAIN", *BY_NAME):
            raise ClientError(f"sasl.mechanism has to be one of PLAIN, {', '.join(BY_NAME)}")

    @classmethod
    def read(cls, path: str | Path) -> "Credentials":
        """Return those of a properties file.

        Raises:
            ClientError: it cannot be read, or used.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ClientError(f"{path}: {getattr(error, 'strerror', error)}") from None
        return cls(parse_properties(text))

    @property
    def logs_in(self) -> bool:
        """Whether a login has to be made."""
        return self.protocol.startswith("SASL")

    @property
    def tls_context(self) -> "ssl.SSLContext | None":
        """By which brokers are trusted; None where no TLS is wanted."""
        return self._context

    @property
    def mechanism(self) -> str:
        """By which the login is made."""
        return self._mechanism

    def wrap(self, sock: socket.socket, host: str) -> socket.socket:
        """Return a connected socket with TLS, if that is wanted.

        Raises:
            OSError: the broker is not trusted, or does not speak TLS.
        """
        if self._context is None:
            return sock
        return self._context.wrap_socket(sock, server_hostname=host)

    def log_in(self, send: Send) -> None:
        """Send the tokens of a login.

        Raises:
            ClientError: the broker does not prove that it knows the user.
        """
        if self._mechanism == "PLAIN":
            send(f"\0{self._user}\0{self._password}".encode())
            return
        exchange = ClientExchange(
            BY_NAME[self._mechanism], self._user, self._password, secrets.token_urlsafe(24)
        )
        try:
            exchange.check(send(exchange.final(send(exchange.first()))))
        except ScramError as error:
            raise ClientError(f"{self._mechanism}: {error}") from None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{path}: {getattr(error, 'strerror', error)}") from None


def _user_of(given: Mapping[str, str]) -> tuple[str, str]:
    if "sasl.username" in given:
        return given["sasl.username"], given.get("sasl.password", "")
    try:
        options = parse_jaas(given["sasl.jaas.config"]).options
        return options["username"], options["password"]
    except JaasError as error:
        raise ClientError(f"sasl.jaas.config: {error}") from None
    except KeyError:
        return "", ""
