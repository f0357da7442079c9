"""One TCP connection to one broker: a request out, its answer in, then the next."""

import contextlib
import socket
import struct
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kafkalite.client.errors import ClientError
from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.header import decode_response_header, encode_request_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from kafkalite.wire.schema import Structure
from kafkalite.wire.versions import VERSION_CAPS

if TYPE_CHECKING:
    from kafkalite.client.login import Credentials

Request = TypeVar("Request", bound=Structure)
Response = TypeVar("Response", bound=Structure)

RESPONSE_MAX_BYTES: Final = 256 * 1024 * 1024
"""A longer answer is refused: no request of this client asks for a quarter of it."""

_SIZE: Final = struct.Struct(">i")


class Connection:
    """A connection that knows which versions its broker speaks.

    Args:
        host: name or address.
        port: TCP port.
        client_id: what the broker sees as `client.id`.
        timeout_ms: the most that connecting, and each answer, may take.
        credentials: for TLS and a login, where that is wanted.

    Raises:
        KafkaError: the login was refused.
        ClientError: nothing answers there, or what answers is no Kafka broker.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_ms: int,
        credentials: "Credentials | None" = None,
    ) -> None:
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._correlation_id = 0
        self.closed = False
        try:
            self._socket = socket.create_connection((host, port), timeout_ms / 1000)
        except OSError as error:
            raise ClientError(f"cannot connect to {self.address}: {_reason(error)}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._versions: dict[int, tuple[int, int]] = {ApiKey.API_VERSIONS: (0, 0)}
        try:
            if credentials is not None:
                self._secure(credentials, host)
            self._negotiate()
            if credentials is not None and credentials.logs_in:
                self._log_in(credentials)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close; a connection that failed is closed already."""
        self.closed = True
        with contextlib.suppress(OSError):
            self._socket.close()

    def supports(self, api: Api[Any, Any]) -> bool:
        """Say whether broker and client have a version of `api` in common."""
        return self._common_version(api) is not None

    def version_of(self, api: Api[Any, Any]) -> int:
        """Return the version that requests of `api` are sent in: the highest both sides know.

        Raises:
            ClientError: there is none.
        """
        version = self._common_version(api)
        if version is None:
            raise ClientError(f"the broker at {self.address} does not support {api.key.name}")
        return version

    def request(
        self, api: Api[Request, Response], message: Request, *, wait_ms: int = 0
    ) -> Response:
        """Send a request and return its answer.

        Args:
            api: what to ask.
            message: the request.
            wait_ms: how long the broker was asked to take; added to the connection's timeout.

        Raises:
            ClientError: no answer came in time, or none that could be read. The connection is
                closed, since an answer that comes later would be taken for the next one's.
        """
        version = self.send(api, message)
        try:
            frame = self._receive_frame((self._timeout_ms + wait_ms) / 1000)
            correlation_id, position = decode_response_header(api, version, frame)
            if correlation_id != self._correlation_id:
                raise MalformedMessage(
                    f"correlation id {correlation_id} instead of {self._correlation_id}"
                )
            return api.decode_response(version, frame, position)
        except (OSError, MalformedMessage) as error:
            self.close()
            what = f"{api.key.name} v{version}"
            raise ClientError(
                f"no answer to {what} from {self.address}: {_reason(error)}"
            ) from error

    def send(self, api: Api[Request, Any], message: Request) -> int:
        """Send a request whose answer is read by `request`, or never comes (acks=0).

        Returns:
            The version that it was sent in.
        """
        version = self.version_of(api)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(
            api, version, correlation_id=self._correlation_id, client_id=self._client_id
        )
        # Records are the only chunks that might be no bytes, and here they always are.
        chunks = cast("list[bytes]", api.encode_request(version, message))
        size = len(header) + sum(map(len, chunks))
        try:
            self._socket.settimeout(self._timeout_ms / 1000)
            self._socket.sendall(b"".join([_SIZE.pack(size), header, *chunks]))
        except OSError as error:
            self.close()
            raise ClientError(
                f"cannot send {api.key.name} to {self.address}: {_reason(error)}"
            ) from error
        return version

    def _common_version(self, api: Api[Any, Any]) -> int | None:
        lowest, highest = self._versions.get(api.key, (0, -1))
        version = min(highest, api.versions[1], VERSION_CAPS.get(api.key, 0x7FFF))
        return version if version >= max(lowest, api.versions[0]) else None

    def _negotiate(self) -> None:
        # Version 0 needs no negotiation itself: every broker since 0.10 answers it.
        answer = self.request(API_VERSIONS, ApiVersionsRequest())
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code), f"from {self.address}")
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys
        }

    def _secure(self, credentials: "Credentials", host: str) -> None:
        try:
            self._socket = credentials.wrap(self._socket, host)
        except OSError as error:
            reason = getattr(error, "verify_message", "") or _reason(error)
            raise ClientError(f"no TLS connection to {self.address}: {reason}") from error

    def _log_in(self, credentials: "Credentials") -> None:
        greeting = self.request(
            SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=credentials.mechanism)
        )
        if greeting.error_code:
            offered = ", ".join(greeting.mechanisms) or "no login at all"
            raise KafkaError(ErrorCode(greeting.error_code), f"{self.address} offers {offered}")

        def send(token: bytes) -> bytes:
            answer = self.request(SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=token))
            if answer.error_code:
                raise KafkaError(ErrorCode(answer.error_code), answer.error_message or "")
            return answer.auth_bytes

        credentials.log_in(send)

    def _receive_frame(self, timeout_s: float) -> memoryview:
        deadline = time.monotonic() + timeout_s
        (size,) = _SIZE.unpack(self._receive(_SIZE.size, deadline))
        if not 0 <= size <= RESPONSE_MAX_BYTES:
            raise MalformedMessage(f"a frame of {size} bytes; is this a Kafka broker, without TLS?")
        return self._receive(size, deadline)

    def _receive(self, size: int, deadline: float) -> memoryview:
        view = memoryview(bytearray(size))
        position = 0
        while position < size:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            count = self._socket.recv_into(view[position:])
            if not count:
                raise ConnectionResetError("the broker closed the connection")
            position += count
        return view


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
