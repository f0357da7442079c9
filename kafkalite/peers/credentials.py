"""How a broker comes in at other brokers, by the listener that is theirs (rule 555).

With TLS it shows that listener's own certificate, which has to be good for clients too. With a
login
it is the user that the listener's JAAS line names (`username`, `password`), by
`sasl.mechanism.inter.broker.protocol`.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kafkalite.security.jaas import JaasError, parse_jaas
from kafkalite.security.scram import BY_NAME, ClientExchange, ScramError
from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    import ssl

    from kafkalite.config import BrokerConfig
    from kafkalite.config.listeners import Listener

Send = Callable[[bytes], Awaitable[bytes]]
"""Sends a token and returns the answer to it."""

PLAIN: Final = "PLAIN"
_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"


class PeerCredentials:
    """Credentials of a broker towards the others.

    Raises:
        SettingError: it has nothing to show, or what it has cannot be used.
    """

    def __init__(self, config: "BrokerConfig", listener: "Listener") -> None:
        self._settings = config.for_listener(listener.name)
        self._encrypts = listener.is_encrypted
        self.logs_in = listener.is_authenticated
        self.mechanism = config.str(_MECHANISM)
        self._user = self._password = ""
        if self.logs_in:
            self._read_user(listener.name)
        if self._encrypts:
            self.context()

    def context(self) -> "ssl.SSLContext":
        """Return what OpenSSL needs for a new connection, of the files as they are now."""
        from kafkalite.security.tls import client_context

        return client_context(self._settings)

    @property
    def make_context(self) -> "Callable[[], ssl.SSLContext] | None":
        """The same as a function; None where nothing is encrypted."""
        return self.context if self._encrypts else None

    async def log_in(self, send: Send) -> None:
        """Send the tokens of a login.

        Raises:
            OSError: the other side does not prove that it knows the user.
        """
        if self.mechanism == PLAIN:
            await send(f"\0{self._user}\0{self._password}".encode())
            return
        exchange = ClientExchange(
            BY_NAME[self.mechanism], self._user, self._password, secrets.token_urlsafe(24)
        )
        try:
            exchange.check(await send(exchange.final(await send(exchange.first()))))
        except ScramError as error:
            raise OSError(f"{self.mechanism}: {error}") from None

    def _read_user(self, listener: str) -> None:
        known = (PLAIN, *BY_NAME)
        if self.mechanism not in known:
            raise SettingError(
                f"{_MECHANISM}: brokers cannot log in by {self.mechanism}, only by one of "
                f"{', '.join(known)}"
            )
        text = self._settings.for_mechanism(self.mechanism).text("sasl.jaas.config")
        try:
            options = parse_jaas(text or "").options
            self._user, self._password = options["username"], options["password"]
        except (JaasError, KeyError):
            raise SettingError(
                f"sasl.jaas.config of {listener} and {self.mechanism}: needs username and "
                "password, by which this broker logs in at others"
            ) from None


def peer_credentials(config: "BrokerConfig") -> PeerCredentials | None:
    """Return what the listener of brokers asks for; None if it asks for nothing.

    Raises:
        SettingError: see `PeerCredentials`.
    """
    listener = next(one for one in config.listeners if one.name == config.inter_broker_listener)
    return None if listener.protocol == "PLAINTEXT" else PeerCredentials(config, listener)
