"""How clients come in by a listener that is not open to everybody.

Made for such listeners only, so that a broker without them imports nothing of it.
"""

import logging
from typing import TYPE_CHECKING, Final

import trio

from kafkalite.api.context import ANONYMOUS
from kafkalite.network.issuer import IssuerKeys
from kafkalite.network.login import Login
from kafkalite.network.tls import HandshakeFailed, TlsTransport
from kafkalite.security.exchanges import OAUTHBEARER
from kafkalite.security.logins import Logins, StoredUsers
from kafkalite.security.names import NoUserName
from kafkalite.security.tls import TlsServer

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext, Services
    from kafkalite.config.listeners import Listener
    from kafkalite.network.sockets import MakeContext
    from kafkalite.network.transport import Transport
    from kafkalite.wire.framing import Framer

logger = logging.getLogger("kafkalite.server")

HANDSHAKE_TIMEOUT_S: Final = 10.0
"""A client that has not finished its TLS handshake by then is gone, or never meant to."""

HANDSHAKES_MAX: Final = 500
"""Unfinished at a time on a listener; who comes then is turned away, and comes again."""

REPEATED_AFTER_MS: Final = 60_000
REMEMBERED_MAX: Final = 1_000
"""What a host does wrong is told once a minute, of so many hosts: clients try again for ever."""


class Complaints:
    """Lines for the operator about clients that do not get in, each once a minute and host."""

    def __init__(self) -> None:
        self._told_ms: dict[tuple[str, str], int] = {}

    def tell(self, host: str, what: str, *, now_ms: int) -> None:
        """Log what is wrong with a client, unless that was done a moment ago."""
        known_ms = self._told_ms.get((host, what))
        if known_ms is not None and now_ms - known_ms < REPEATED_AFTER_MS:
            return
        if len(self._told_ms) >= REMEMBERED_MAX:
            self._told_ms.clear()
        self._told_ms[host, what] = now_ms
        logger.warning("refusing a client from %s: %s", host, what)


class Entrance:
    """Turns whoever connected to one listener into somebody with a name, or away.

    Raises:
        SettingError: the listener cannot work with its settings.
    """

    def __init__(
        self,
        listener: "Listener",
        services: "Services",
        *,
        users: StoredUsers,
        complaints: Complaints,
    ) -> None:
        self._listener = listener
        self._services = services
        self._complaints = complaints
        self._delay_s = services.config.int("connection.failed.authentication.delay.ms") / 1000
        settings = services.config.for_listener(listener.name)
        self._tls = TlsServer(settings, services.clock) if listener.is_encrypted else None
        self._logins: Logins | None = None
        self._keys: IssuerKeys | None = None
        if listener.is_authenticated:
            self._logins = Logins(settings, users, services.clock, services.tokens)
            if self._logins.signed is not None:
                self._keys = IssuerKeys(settings.for_mechanism(OAUTHBEARER), self._logins.signed)
        self._turns = trio.CapacityLimiter(1)
        self._handshakes = 0

    @property
    def make_context(self) -> "MakeContext | None":
        """Maker of OpenSSL's contexts for this listener; None if it does not encrypt."""
        return None if self._tls is None else self._tls.context

    async def shake_hands(self, transport: "Transport") -> str | None:
        """Return who has connected, as far as TLS tells; None if they were turned away."""
        assert self._tls is not None
        assert isinstance(transport, TlsTransport)
        if self._handshakes >= HANDSHAKES_MAX:
            self._complain(transport, f"{HANDSHAKES_MAX} handshakes are not finished yet")
            return None
        self._handshakes += 1
        try:
            with trio.fail_after(HANDSHAKE_TIMEOUT_S):
                await transport.establish(self._turns)
            certificate = transport.peer_certificate
            return ANONYMOUS if certificate is None else self._named(certificate)
        except HandshakeFailed as error:
            self._complain(transport, f"TLS handshake on {self._listener.name}: {error}")
        except NoUserName as error:
            self._complain(transport, f"its certificate gives no user: {error}")
        except trio.TooSlowError:
            self._complain(transport, f"no TLS handshake within {HANDSHAKE_TIMEOUT_S:.0f} s")
        except (OSError, trio.ClosedResourceError) as error:
            logger.debug("%s:%d went away: %s", *transport.peer_address, error)
            return None
        finally:
            self._handshakes -= 1
        await trio.sleep(self._delay_s)  # who tries again at once costs less (rule 524)
        return None

    async def run(self) -> None:
        """Keep up to date what the settings only say where to find, until cancelled."""
        if self._keys is not None:
            await self._keys.run()

    def login(self, context: "RequestContext", framer: "Framer") -> Login:
        """Return the login of a new client, whose frames may not be large until it is in."""
        assert self._logins is not None
        most, framer.max_frame_bytes = framer.max_frame_bytes, self._logins.max_receive_bytes

        def let_in() -> None:
            framer.max_frame_bytes = most

        def complain(what: str) -> None:
            now_ms = self._services.clock.monotonic_ms()
            self._complaints.tell(context.peer_address[0], what, now_ms=now_ms)

        clock = self._services.clock
        return Login(self._logins, clock, on_failure=complain, on_complete=let_in)

    def _named(self, certificate: bytes) -> str:
        assert self._tls is not None
        return f"User:{self._tls.user_name(certificate)}"

    def _complain(self, transport: "Transport", what: str) -> None:
        now_ms = self._services.clock.monotonic_ms()
        self._complaints.tell(transport.peer_address[0], what, now_ms=now_ms)
