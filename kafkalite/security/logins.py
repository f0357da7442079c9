"""The logins that a listener offers: mechanisms, users, and what each of them needs."""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafkalite.meta.entities import user_resource
from kafkalite.security import scram
from kafkalite.security.bearer import SignedTokens, UnsecuredRules, check_unsecured
from kafkalite.security.exchanges import (
    OAUTHBEARER,
    PLAIN,
    BearerToken,
    Exchange,
    OAuthBearerExchange,
    PlainExchange,
    ScramExchange,
    same_password,
)
from kafkalite.security.jaas import JaasError, LoginModule, parse_jaas
from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.config.security import ListenerSettings
    from kafkalite.meta.image import Image
    from kafkalite.security.delegation_tokens import DelegationTokens

logger = logging.getLogger("kafkalite.security")

MECHANISMS: Final = (PLAIN, *scram.BY_NAME, OAUTHBEARER)
GSSAPI: Final = "GSSAPI"

PASSWORDS_MAX: Final = 10_000
"""Passwords that were right and are remembered, so that they are right at once the next time."""

_ISSUER: Final = "sasl.oauthbearer.jwks.endpoint.url"


class StoredUsers:
    """Users that the cluster keeps (KIP-554): credentials by name and mechanism.

    Passwords that were found to be right are remembered as long as the credential is the same:
    trying one costs milliseconds, and a thousand clients may come back at once.
    """

    def __init__(self, image: "Callable[[], Image]") -> None:
        self._image = image
        self._key = secrets.token_bytes(32)
        self._right: dict[str, tuple[scram.Credential, bytes]] = {}

    def credential(self, name: str, mechanism: scram.Mechanism) -> scram.Credential | None:
        """Return what is stored of a user, None if there is nothing."""
        text = self._image().configs_of(user_resource(name)).get(mechanism.name)
        return None if text is None else scram.Credential.parse(text)

    def knows(self, name: str, password: str) -> bool | None:
        """Return whether a password is right, None if that takes `try_password` to find out."""
        credential, _ = self._any(name)
        if credential is None:
            return False
        known = self._right.get(name)
        if known is None or known[0] != credential:
            return None
        return True if hmac.compare_digest(known[1], self._digest(password)) else None

    def try_password(self, name: str, password: str) -> bool:
        """Find out whether a password is right; to be called in a thread."""
        credential, mechanism = self._any(name)
        if credential is None or not credential.fits(mechanism, password):
            return False
        if len(self._right) >= PASSWORDS_MAX:
            self._right.clear()
        self._right[name] = (credential, self._digest(password))
        return True

    def _any(self, name: str) -> tuple[scram.Credential | None, scram.Mechanism]:
        for mechanism in (scram.SHA_256, scram.SHA_512):
            credential = self.credential(name, mechanism)
            if credential is not None:
                return credential, mechanism
        return None, scram.SHA_256

    def _digest(self, password: str) -> bytes:
        return hashlib.blake2b(password.encode(), key=self._key).digest()


class Logins:
    """Mechanisms and users of one listener, as its settings say.

    Raises:
        SettingError: they cannot be used.
    """

    def __init__(
        self,
        settings: "ListenerSettings",
        users: StoredUsers,
        clock: "Clock",
        tokens: "DelegationTokens | None" = None,
    ) -> None:
        self._settings = settings
        self._users = users
        self._tokens = tokens
        self._clock = clock
        self.mechanisms = self._enabled()
        self._plain_users: dict[str, str] = {}
        self.signed: SignedTokens | None = None
        """What checks signed tokens; it needs to be given keys."""
        self._unsecured = UnsecuredRules()
        if PLAIN in self.mechanisms:
            self._plain_users = self._module(PLAIN).users
        if OAUTHBEARER in self.mechanisms:
            self._prepare_bearer()

    @property
    def max_receive_bytes(self) -> int:
        """The largest frame before a login is complete."""
        return self._settings.number("sasl.server.max.receive.size")

    def max_session_ms(self, mechanism: str) -> int:
        """Return after how long a client has to log in again; 0 is never."""
        return self._settings.for_mechanism(mechanism).number("connections.max.reauth.ms")

    def begin(self, mechanism: str) -> Exchange:
        """Return a login by a mechanism that is enabled."""
        if mechanism == PLAIN:
            return PlainExchange(self._is_right)
        if mechanism == OAUTHBEARER:
            return OAuthBearerExchange(self._check_token)
        known = scram.BY_NAME[mechanism]
        tokens = self._tokens
        return ScramExchange(
            known,
            lambda name: self._users.credential(name, known),
            secrets.token_urlsafe(24),
            find_token=None if tokens is None else lambda name: tokens.credential(name, known),
        )

    def slow_part(self, exchange: Exchange, token: bytes) -> Callable[[], object] | None:
        """Return what is to be done in a thread before a token is evaluated, if anything is."""
        if isinstance(exchange, ScramExchange) and self._tokens is not None:
            return self._token_part(exchange, token, self._tokens)
        if not isinstance(exchange, PlainExchange):
            return None
        _, _, rest = token.decode("utf-8", "replace").partition("\0")
        name, _, password = rest.partition("\0")
        if name in self._plain_users or self._users.knows(name, password) is not None:
            return None
        return lambda: self._users.try_password(name, password)

    def _token_part(
        self, exchange: ScramExchange, message: bytes, tokens: "DelegationTokens"
    ) -> Callable[[], object] | None:
        name = exchange.token_of(message)
        if name is None or not tokens.needs_preparation(name, exchange.mechanism):
            return None
        return lambda: tokens.prepare(name, exchange.mechanism)

    def _is_right(self, name: str, password: str) -> bool:
        if name in self._plain_users:
            return same_password(self._plain_users[name], password)
        # What is not known by now was tried and is wrong.
        return self._users.knows(name, password) is True

    def _check_token(self, token: str) -> BearerToken:
        if self.signed is not None:
            return self.signed.check(token)
        return check_unsecured(token, self._unsecured, now_ms=self._clock.wall_ms())

    def _enabled(self) -> tuple[str, ...]:
        listener = self._settings.listener
        wanted = dict.fromkeys(self._settings.elements("sasl.enabled.mechanisms"))
        unknown = [name for name in wanted if name not in (*MECHANISMS, GSSAPI)]
        if unknown:
            raise SettingError(
                f"sasl.enabled.mechanisms: {unknown[0]} is none of {', '.join(MECHANISMS)}"
            )
        enabled = tuple(name for name in wanted if name != GSSAPI)
        if not enabled:
            raise SettingError(
                f"sasl.enabled.mechanisms: listener {listener} offers no login but GSSAPI "
                f"(Kerberos), which is not supported; name any of {', '.join(MECHANISMS)}"
            )
        if GSSAPI in wanted:
            logger.warning("listener %s does not offer GSSAPI: it is not supported", listener)
        return enabled

    def _module(self, mechanism: str) -> LoginModule:
        """Return the login module of a mechanism; one without options if there is none.

        Raises:
            SettingError: the line cannot be read.
        """
        text = self._settings.for_mechanism(mechanism).text("sasl.jaas.config")
        if text is None:
            return LoginModule(class_name="")
        try:
            return parse_jaas(text)
        except JaasError as error:
            raise SettingError(
                f"sasl.jaas.config of {self._settings.listener} and {mechanism}: {error}"
            ) from None

    def _prepare_bearer(self) -> None:
        settings = self._settings.for_mechanism(OAUTHBEARER)
        if settings.text(_ISSUER) is not None:
            self.signed = SignedTokens(settings)
            return
        self._unsecured = UnsecuredRules.of(self._module(OAUTHBEARER).options)
        logger.warning(
            "listener %s takes unsigned tokens: anybody is who they say; %s is for more than "
            "development",
            settings.listener,
            _ISSUER,
        )
