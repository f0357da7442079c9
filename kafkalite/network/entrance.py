"""How clients come in by a listener that is not open to everybody.

Made for such listeners only, so that a broker without them imports nothing of it.
"""

import logging
from typing import TYPE_CHECKING, Final

import trio

from kafkalite.api.context import ANONYMOUS
from kafkalite.network.tls import HandshakeFailed, TlsTransport
from kafkalite.security.names import NoUserName
from kafkalite.security.tls import TlsServer

if TYPE_CHECKING:
    from kafkalite.api.context import Services
    from kafkalite.config.listeners import Listener
    from kafkalite.network.sockets import MakeContext
    from kafkalite.network.transport import Transport

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

    def __init__(self, listener: "Listener", services: "Services", complaints: Complaints) -> None:
        self._listener = listener
        self._services = services
        self._complaints = complaints
        self._delay_s = services.config.int("connection.failed.authentication.delay.ms") / 1000
        settings = services.config.for_listener(listener.name)
        self._tls = TlsServer(settings, services.clock) if listener.is_encrypted else None
        self._turns = trio.CapacityLimiter(1)
        self._handshakes = 0

    @property
    def make_context(self) -> "MakeContext | None":
        """What makes OpenSSL's contexts for this listener; None if it does not encrypt."""
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

    def _named(self, certificate: bytes) -> str:
        assert self._tls is not None
        return f"User:{self._tls.user_name(certificate)}"

    def _complain(self, transport: "Transport", what: str) -> None:
        now_ms = self._services.clock.monotonic_ms()
        self._complaints.tell(transport.peer_address[0], what, now_ms=now_ms)
