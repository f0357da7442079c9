"""Clients of other brokers: a connection for each broker and channel; the controller's client.

Requests on a connection go out one after another: who needs many answers at once asks for many
things in one request, as the protocol between brokers does. Nothing here tries again but the
`ControllerClient`; whoever asks knows best what to do when there is no answer.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import trio

from kafkalite.api.envelope import holds_error
from kafkalite.meta.image import Image
from kafkalite.meta.peers import CONTROL_CHANNEL, Peers
from kafkalite.network.sockets import Network
from kafkalite.network.transport import Chunk, Transport
from kafkalite.wire.api import Api
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.framing import SIZE_PREFIX
from kafkalite.wire.header import decode_response_header, encode_request_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from kafkalite.wire.schema import Structure

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig
    from kafkalite.peers.credentials import PeerCredentials

Request = TypeVar("Request", bound=Structure)
Response = TypeVar("Response", bound=Structure)

RECONNECT_BACKOFF_MS: Final = 50
RECONNECT_BACKOFF_MAX_MS: Final = 1_000
"""Between attempts to connect to a broker that is not there: those of Kafka's client."""

CONTROLLER_BACKOFF_MS: Final = 50
CONTROLLER_BACKOFF_MAX_MS: Final = 1_000
"""Between two questions to a controller that does not answer; a new one is asked at once."""

SCRATCH_SIZE: Final = 16 * 1024
"""Answers up to here are received as they come; a longer one into a buffer of its size."""

SESSION_USED: Final = 0.85
"""Of a session's life, after which another connection is made and logs in anew."""

LOOPBACK: Final = "127.0.0.1"

_NO_VERSIONS: Final[dict[int, tuple[int, int]]] = {}
_CONNECTION_ERRORS = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass(slots=True, frozen=True, kw_only=True)
class PeerSettings:
    """Limits of the connections to other brokers.

    Attributes:
        listener: name of the listener by which brokers reach each other.
        client_id: what the others see as `client.id`.
        connect_timeout_ms: socket.connection.setup.timeout.ms.
        response_max_bytes: a longer answer closes the connection.
        idle_max_ms: a connection that was silent for longer is not used again, because the other
            side is about to close it; -1 is no limit.
        loopback: host of a broker that advertises none, which can only be on this machine.
        credentials: what this broker shows to the others; None where they ask for nothing.
    """

    listener: str
    client_id: str
    connect_timeout_ms: int = 10_000
    response_max_bytes: int = 128 * 1024 * 1024
    idle_max_ms: int = 300_000
    loopback: str = LOOPBACK
    credentials: "PeerCredentials | None" = None


def peer_settings(config: "BrokerConfig") -> PeerSettings:
    """Return the limits that a broker's settings give.

    Raises:
        SettingError: brokers are to come in by a listener that this one cannot.
    """
    credentials = None
    if any(one.protocol != "PLAINTEXT" for one in config.listeners):
        # Other brokers do without.
        from kafkalite.peers.credentials import peer_credentials

        credentials = peer_credentials(config)
    idle_ms = config.int("connections.max.idle.ms")
    return PeerSettings(
        listener=config.inter_broker_listener,
        client_id=f"broker-{config.node_id}",
        connect_timeout_ms=config.int("socket.connection.setup.timeout.ms"),
        # A Fetch may hold one batch beyond its limit, which came in a request.
        response_max_bytes=config.int("replica.fetch.response.max.bytes")
        + config.int("socket.request.max.bytes"),
        idle_max_ms=idle_ms // 2 if idle_ms > 0 else -1,
        credentials=credentials,
    )


class BrokerEndpoint(NamedTuple):
    """Address of a broker now; another epoch is another process, though perhaps at this address."""

    host: str
    port: int
    broker_epoch: int


class PeerClients:
    """Asks other brokers (`Peers`), each at where the metadata says that it is."""

    def __init__(
        self, network: Network, image: Callable[[], Image], *, settings: PeerSettings
    ) -> None:
        self._network = network
        self._image = image
        self._settings = settings
        self._channels: dict[tuple[int, str], _Channel] = {}

    async def request(
        self,
        broker_id: int,
        api: Api[Request, Response],
        message: Request,
        *,
        timeout_ms: int,
        channel: str = CONTROL_CHANNEL,
    ) -> Response:
        """Ask a broker and return its answer; see `Peers.request`.

        Cancelled while the answer is awaited, it closes the connection: the answer might come when
        another one is expected.
        """
        self._endpoint(broker_id)
        one = self._channels.get((broker_id, channel))
        if one is None:
            one = self._channels[broker_id, channel] = _Channel(self._network, self._settings)
        try:
            with trio.move_on_after(timeout_ms / 1000):
                return await one.request(lambda: self._endpoint(broker_id), api, message)
        except (*_CONNECTION_ERRORS, MalformedMessage) as error:
            reason = str(error) or type(error).__name__
            raise _unreachable(broker_id, api, f"{one.address}: {reason}") from error
        raise _unreachable(broker_id, api, f"{one.address}: no answer within {timeout_ms} ms")

    def on_changes(self, changes: Iterable[object], image: Image) -> None:
        """Close connections to brokers that are gone or elsewhere; a subscriber of metadata."""
        del changes
        for (broker_id, name), channel in list(self._channels.items()):
            endpoint = self._endpoint_in(image, broker_id)
            if endpoint is None:
                del self._channels[broker_id, name]
                channel.close()
            else:
                channel.move_to(endpoint)

    def close(self) -> None:
        """Close all connections; who waits for an answer gets NETWORK_EXCEPTION."""
        for channel in self._channels.values():
            channel.close()

    def _endpoint(self, broker_id: int) -> BrokerEndpoint:
        endpoint = self._endpoint_in(self._image(), broker_id)
        if endpoint is None:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"broker {broker_id} is not alive, or has no listener {self._settings.listener}",
            )
        return endpoint

    def _endpoint_in(self, image: Image, broker_id: int) -> BrokerEndpoint | None:
        broker = image.brokers.get(broker_id)
        found = None if broker is None else broker.endpoints.get(self._settings.listener)
        if broker is None or found is None:
            return None
        host, port = found
        return BrokerEndpoint(host or self._settings.loopback, port, broker.broker_epoch)


class ControllerClient:
    """Asks the controller (`ControllerChannel`), and its successor where it was deposed."""

    def __init__(self, peers: Peers, image: Callable[[], Image], *, channel: str) -> None:
        self._peers = peers
        self._image = image
        self._channel = channel
        self._moved = trio.Event()

    async def request(
        self, api: Api[Request, Response], message: Request, *, timeout_ms: int
    ) -> Response:
        """Ask until there is an answer other than NOT_CONTROLLER; see `ControllerChannel`."""
        end = trio.current_time() + timeout_ms / 1000
        backoff_ms = CONTROLLER_BACKOFF_MS
        while True:
            moved = self._moved
            asked = self._image().controller_id
            try:
                return await self._ask(asked, api, message, _until_ms(end))
            except KafkaError as refused:
                error = refused
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                raise error
            if trio.current_time() + backoff_ms / 1000 >= end:
                raise error
            if self._image().controller_id in (asked, -1):
                with trio.move_on_after(backoff_ms / 1000):
                    await moved.wait()
            backoff_ms = min(2 * backoff_ms, CONTROLLER_BACKOFF_MAX_MS)

    def on_changes(self, changes: Iterable[object], image: Image) -> None:
        """Wake those who wait for another controller; a subscriber of metadata."""
        del changes, image
        self._moved.set()
        self._moved = trio.Event()

    async def _ask(
        self, broker_id: int, api: Api[Request, Response], message: Request, timeout_ms: int
    ) -> Response:
        if broker_id < 0:
            await trio.lowlevel.checkpoint()
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "no broker is the controller")
        answer = await self._peers.request(
            broker_id, api, message, timeout_ms=timeout_ms, channel=self._channel
        )
        if holds_error(answer, ErrorCode.NOT_CONTROLLER):
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"broker {broker_id} says that it is not the controller"
            )
        return answer


class _Channel:
    """One connection to one broker, made when it is needed.

    Invariant: while nobody holds the lock, there is no answer to come on the connection.
    """

    def __init__(self, network: Network, settings: PeerSettings) -> None:
        self._network = network
        self._settings = settings
        self._turn = trio.Lock()
        self._endpoint: BrokerEndpoint | None = None
        self._transport: Transport | None = None
        self._versions = _NO_VERSIONS
        """Of the other side, by API key; empty if it does not tell, and is taken to be as ours."""
        self._correlation_id = 0
        self._scratch = memoryview(bytearray(SCRATCH_SIZE))
        self._used = 0.0
        self._failures = 0
        self._session_end = math.inf
        self._connect_after = 0.0
        """Times of trio's clock: of the last answer, and before which not to connect again."""

    @property
    def address(self) -> str:
        """Address of the broker, for messages."""
        return "nowhere" if self._endpoint is None else f"{self._endpoint[0]}:{self._endpoint[1]}"

    async def request(
        self,
        find_endpoint: Callable[[], BrokerEndpoint],
        api: Api[Request, Response],
        message: Request,
    ) -> Response:
        """Send a request when it is its turn, and return the answer."""
        try:
            self._turn.acquire_nowait()  # a task switch less than to wait for nobody
        except trio.WouldBlock:
            await self._turn.acquire()
        try:
            self.move_to(find_endpoint())
            transport = await self._connected()
            answer = await self._exchange(transport, api, self._version_of(api), message)
        except KafkaError:
            raise
        except BaseException:
            self._drop()
            raise
        finally:
            self._turn.release()
        self._used = trio.current_time()
        return answer

    def move_to(self, endpoint: BrokerEndpoint) -> None:
        """Be connected to nowhere else; a new place may be tried at once."""
        if endpoint != self._endpoint:
            self._drop()
            self._endpoint = endpoint
            self._failures = 0
            self._connect_after = 0.0

    def close(self) -> None:
        """Close the connection; a request that is under way fails."""
        self._drop()
        self._endpoint = None

    def _drop(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    async def _connected(self) -> Transport:
        idle_max_ms = self._settings.idle_max_ms
        if trio.current_time() > self._session_end:
            self._drop()
        if 0 < idle_max_ms / 1000 < trio.current_time() - self._used:
            self._drop()
        if self._transport is not None:
            return self._transport
        await trio.sleep_until(self._connect_after)
        endpoint = self._endpoint
        if endpoint is None:
            raise ConnectionResetError("closed")
        try:
            with trio.fail_after(self._settings.connect_timeout_ms / 1000):
                transport = await self._connect(endpoint)
                if self._endpoint is not endpoint:
                    transport.close()
                    raise ConnectionResetError("the broker has moved")
                self._transport = transport
                await self._negotiate(transport)
                credentials = self._settings.credentials
                if credentials is not None and credentials.logs_in:
                    await self._log_in(credentials, transport)
        except BaseException as error:
            self._failures += 1
            backoff_ms = RECONNECT_BACKOFF_MS * 2 ** min(self._failures - 1, 10)
            self._connect_after = (
                trio.current_time() + min(backoff_ms, RECONNECT_BACKOFF_MAX_MS) / 1000
            )
            if isinstance(error, trio.TooSlowError):
                limit_ms = self._settings.connect_timeout_ms
                raise TimeoutError(f"no connection within {limit_ms} ms") from error
            raise
        self._failures = 0
        return transport

    async def _connect(self, endpoint: BrokerEndpoint) -> Transport:
        credentials = self._settings.credentials
        if credentials is None:
            return await self._network.connect(endpoint.host, endpoint.port)
        make_context = credentials.make_context
        return await self._network.connect(endpoint.host, endpoint.port, tls=make_context)

    async def _log_in(self, credentials: "PeerCredentials", transport: Transport) -> None:
        """Log in; the session is used for as long as the other side says, less a little."""
        self._session_end = math.inf
        greeting = await self._exchange(
            transport, SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=credentials.mechanism)
        )
        if greeting.error_code:
            raise OSError(f"offers no login by {credentials.mechanism}")

        async def send(token: bytes) -> bytes:
            request = SaslAuthenticateRequest(auth_bytes=token)
            answer = await self._exchange(transport, SASL_AUTHENTICATE, 1, request)
            if answer.error_code:
                raise OSError(answer.error_message or ErrorCode(answer.error_code).name)
            if answer.session_lifetime_ms > 0:
                lifetime_s = answer.session_lifetime_ms * SESSION_USED / 1_000
                self._session_end = trio.current_time() + lifetime_s
            return answer.auth_bytes

        await credentials.log_in(send)

    async def _negotiate(self, transport: Transport) -> None:
        # Version 0 needs no negotiation itself. Brokers of one version have no need of any of it;
        # while they are updated one by one they have.
        answer = await self._exchange(transport, API_VERSIONS, 0, ApiVersionsRequest())
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys
        }
        if answer.error_code:
            self._versions = _NO_VERSIONS

    def _version_of(self, api: Api[Any, Any]) -> int:
        lowest, highest = self._versions.get(api.key, (0, -1)) if self._versions else api.versions
        version = min(highest, api.versions[1])
        if version < max(lowest, api.versions[0]):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self.address} has no version of {api.key.name} that this broker has",
            )
        return version

    async def _exchange(
        self, transport: Transport, api: Api[Request, Response], version: int, message: Request
    ) -> Response:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(
            api,
            version,
            correlation_id=self._correlation_id,
            client_id=self._settings.client_id,
        )
        chunks = cast("list[Chunk]", api.encode_request(version, message))
        size = len(header) + sum(map(len, chunks))
        await transport.send([SIZE_PREFIX.pack(size) + header, *chunks])
        frame = await self._receive(transport)
        correlation_id, position = decode_response_header(api, version, frame)
        if correlation_id != self._correlation_id:
            raise MalformedMessage(f"the answer to {correlation_id}, not {self._correlation_id}")
        return api.decode_response(version, frame, position)

    async def _receive(self, transport: Transport) -> memoryview:
        """Return the frame of an answer, without its size, in memory of its own."""
        scratch = self._scratch
        filled = 0
        while filled < SIZE_PREFIX.size:
            count = await transport.receive_into(scratch[filled:])
            if not count:
                raise _closed()
            filled += count
        (size,) = SIZE_PREFIX.unpack_from(scratch)
        if not 0 <= size <= self._settings.response_max_bytes:
            raise MalformedMessage(f"an answer of {size} bytes")
        start, end = SIZE_PREFIX.size, SIZE_PREFIX.size + size
        if filled > end:
            raise MalformedMessage(f"{filled - end} bytes more than the answer")
        frame = memoryview(bytearray(size))
        count = filled - start
        frame[:count] = scratch[start:filled]
        if not await transport.receive_all(frame[count:]):
            raise _closed()
        return frame


def _closed() -> ConnectionResetError:
    return ConnectionResetError("the broker closed the connection")


def _until_ms(end: float) -> int:
    return max(0, round((end - trio.current_time()) * 1000))


def _unreachable(broker_id: int, api: Api[Any, Any], reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.NETWORK_EXCEPTION, f"{api.key.name} to broker {broker_id} at {reason}"
    )
