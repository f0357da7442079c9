"""TLS over a socket without waiting: what stands where the socket stands (decision 0110).

OpenSSL works on memory here: ciphertext is put in and taken out, and nothing waits. So a connection
with TLS gets its turns from the poller as one without, and only its handshake is made in its task,
one step of all handshakes in a pass, that clients who are there already have their turns between.
"""

import contextlib
import os
import socket
import ssl
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import trio

from kafkalite.log.region import FileRegion
from kafkalite.network.poller import PolledTransport, ReadyQueue
from kafkalite.network.transport import GATHER_MAX_BYTES, SocketTransport

if TYPE_CHECKING:
    import select

CIPHERTEXT_BYTES: Final = 64 * 1024
"""Received at a time, and so the most that a connection is given in one turn."""

REST_MAX_S: Final = 0.005
"""For so long small requests that came together are worked on in one turn."""

HANDSHAKE_RECORD: Final = 0x16
"""First byte of what a client says that speaks TLS."""


class HandshakeFailed(Exception):
    """A peer that does not get in; the message says why."""


class TlsSocket:
    """A socket with TLS, as a transport needs it.

    Args:
        sock: connected and not blocking.
        context: of OpenSSL.
        server_side: whether the peer connected.
        server_name: of the peer, where it did not.
    """

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_name: str | None = None,
    ) -> None:
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_name
        )
        self._server_side = server_side
        self._unsent = memoryview(b"")
        """Ciphertext that the kernel did not take yet."""
        self._is_established = False
        self._has_received = False
        # What a socket has and TLS does not change.
        self.fileno = sock.fileno
        self.getsockname = sock.getsockname
        self.getpeername = sock.getpeername
        self.setsockopt = sock.setsockopt

    @property
    def has_more(self) -> bool:
        """Whether bytes that were received may give some more, of which the kernel knows nothing.

        Several records come in one segment, and a record may be longer than what was asked for.
        """
        return self._session.pending() > 0 or self._incoming.pending > 0

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's certificate in DER, None if it showed none."""
        return self._session.getpeercert(binary_form=True)

    @property
    def asked_name(self) -> str | None:
        """The name by which the client came, None if it told none."""
        name: str | None = getattr(self._session, "asked_name", None)
        return name

    def shake_hands(self) -> bool:
        """Go on with the handshake as far as can be; whether it is done.

        What is to be said is to be flushed then, also before a failure is told.

        Raises:
            HandshakeFailed: there will be no connection.
        """
        try:
            while True:
                try:
                    self._session.do_handshake()
                except ssl.SSLWantReadError:
                    self._receive()
                    continue
                self._is_established = True
                return True
        except (BlockingIOError, InterruptedError):
            return False
        except ssl.SSLError as error:
            raise HandshakeFailed(_reason(error)) from error
        except ssl.CertificateError as error:
            raise HandshakeFailed(str(error)) from error

    def recv_into(self, buffer: memoryview) -> int:
        """Decrypt into `buffer`; return how many bytes, 0 when the peer is done.

        Raises:
            BlockingIOError: none are there.
            OSError: the connection is broken, or what came is no TLS.
        """
        while True:
            try:
                return self._session.read(len(buffer), buffer)  # type: ignore[return-value]
            except ssl.SSLWantReadError:
                if not self._receive():
                    return 0
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return 0

    def encrypt(self, data: memoryview) -> None:
        """Take `data` to be sent by `flush`; not much at a time, since it is all held in memory."""
        self._session.write(data)

    def flush(self) -> bool:
        """Send what is encrypted; False if the kernel must first be waited for."""
        while True:
            if not self._unsent:
                if not self._outgoing.pending:
                    return True
                self._unsent = memoryview(self._outgoing.read())
            try:
                sent = self._socket.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                return False
            self._unsent = self._unsent[sent:]

    def recv(self, size: int, flags: int) -> bytes:
        """Receive past TLS: what is looked for is whether the peer is there."""
        return self._socket.recv(size, flags)

    def close(self) -> None:
        """Tell the peer that nothing more will come, if that can be done at once, and close."""
        if self._is_established and not self._unsent:
            with contextlib.suppress(OSError):
                # The peer's own farewell is not waited for.
                with contextlib.suppress(ssl.SSLError):
                    self._session.unwrap()
                self.flush()
        self._socket.close()

    def _receive(self) -> bool:
        """Take ciphertext from the socket; False at the end of it.

        Raises:
            BlockingIOError: there is none now.
        """
        if self._outgoing.pending:
            self.flush()
        data = self._socket.recv(CIPHERTEXT_BYTES)
        if not data:
            self._incoming.write_eof()
            if not self._is_established:
                raise HandshakeFailed("the peer closed the connection")
            return False
        if not self._has_received:
            self._has_received = True
            if self._server_side and data[0] != HANDSHAKE_RECORD:
                raise HandshakeFailed("the client does not speak TLS (security.protocol?)")
        self._incoming.write(data)
        return True


class TlsTransport(SocketTransport):
    """A connection with TLS whose owner waits for it; established by `establish`."""

    def __init__(self, sock: TlsSocket) -> None:
        # It is used as one; what it lacks is not used.
        super().__init__(sock)  # type: ignore[arg-type]
        self._tls = sock

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's certificate in DER, None if it showed none."""
        return self._tls.peer_certificate

    async def establish(self, turns: trio.CapacityLimiter) -> None:
        """Shake hands; the caller limits how long that may take.

        Args:
            turns: of which there is one: a step costs milliseconds, and between two of them
                everybody else has a turn.

        Raises:
            HandshakeFailed: the peer was not let in, or left.
            OSError: the connection broke.
        """
        while True:
            async with turns:
                try:
                    is_done = self._tls.shake_hands()
                except HandshakeFailed:
                    with contextlib.suppress(OSError):
                        self._tls.flush()  # why, for the peer
                    raise
                await trio.lowlevel.checkpoint()
            while not self._tls.flush():
                await trio.lowlevel.wait_writable(self._tls)
            if is_done:
                if self._tls.asked_name:
                    self.local_address = self._tls.asked_name, self.local_address[1]
                return
            await trio.lowlevel.wait_readable(self._tls)

    async def receive_into(self, buffer: memoryview) -> int:
        """Wait for bytes and put some into `buffer`; return how many, 0 when the peer is done."""
        while True:
            try:
                count = self._tls.recv_into(buffer)
            except (BlockingIOError, InterruptedError):
                await trio.lowlevel.wait_readable(self._tls)
                continue
            await trio.lowlevel.checkpoint()
            return count

    def _send_bytes(self, data: bytes | bytearray | memoryview, flags: int) -> Iterator[None]:
        del flags
        rest = memoryview(data)
        while rest:
            piece, rest = rest[:GATHER_MAX_BYTES], rest[GATHER_MAX_BYTES:]
            self._tls.encrypt(piece)
            while not self._tls.flush():
                yield
            self.sent_bytes += len(piece)

    def _send_file(self, region: FileRegion) -> Iterator[None]:
        source = region.fileno()
        position, remaining = region.position, len(region)
        while remaining:
            try:
                data = os.pread(source, min(remaining, GATHER_MAX_BYTES), position)
            except OSError as error:
                region.note_error(error)
                raise
            if not data:
                raise OSError(f"{region} ends {remaining} bytes early")
            yield from self._send_bytes(data, 0)
            position += len(data)
            remaining -= len(data)


class PolledTlsTransport(TlsTransport, PolledTransport):
    """A client's connection with TLS, whose turns come from a `Poller`."""

    def __init__(
        self,
        sock: socket.socket,
        epoll: "select.epoll",
        others: "dict[int, PolledTransport]",
        woken: ReadyQueue,
        *,
        tls: TlsSocket,
    ) -> None:
        PolledTransport.__init__(self, sock, epoll, others, woken)
        self._socket = tls  # type: ignore[assignment] # see TlsTransport
        self._tls = tls

    def on_readable(self) -> bool:
        """Let the connection receive and work; True if it has answers that are to be sent."""
        return self._take_rest(has_answers=super().on_readable())

    def resume(self) -> bool:
        """Let the connection look at what is delayed; True if it has answers to send."""
        return self._take_rest(has_answers=super().resume())

    def attended(self) -> None:
        """Give the turns that what came earlier is worth: the kernel will not tell of it."""
        if self._take_rest(has_answers=False):
            self.answer()

    def _take_rest(self, *, has_answers: bool) -> bool:
        """Give turns until all that was received is worked on, or must wait.

        Returns:
            Whether there are answers that are to be sent, and not by the connection's task.
        """
        end_s = time.monotonic() + REST_MAX_S
        while self.is_ready and self._tls.has_more:
            if time.monotonic() >= end_s:
                self.stop()  # its task goes on when others have had their turn
                break
            has_answers = super().on_readable() or has_answers
        return has_answers and self._served is not None


def _reason(error: ssl.SSLError) -> str:
    """Return what OpenSSL says, in words that lead somewhere where there are some."""
    reason = error.reason or str(error)
    hint = _HINTS.get(reason)
    return f"{reason} ({hint})" if hint else reason


_HINTS: Final = {
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the CA of this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept this broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client says that this broker's certificate has expired",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "ssl.client.auth=required, and the client has none",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate",
    "UNSUPPORTED_PROTOCOL": "ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "ssl.cipher.suites",
}
