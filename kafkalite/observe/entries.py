"""Requests and answers as the journal keeps them: as bytes, decoded for who looks."""

from typing import TYPE_CHECKING, Any, Final

from kafkalite.api.handler import FETCHES
from kafkalite.log.region import FileRegion
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, MalformedMessage
from kafkalite.wire.header import decode_request_header, decode_response_header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkalite.api.context import RequestContext
    from kafkalite.network.in_flight import InFlightRequest
    from kafkalite.network.transport import Chunk

ENTRY_BYTES: Final = 700
"""About what an entry holds beside the bytes of its request and of its answer."""

OBJECT_BYTES: Final = 8
"""About what a decoded message holds for each of its bytes: a partition of Metadata has 40 of them,
and is 350 bytes of objects."""

PARTITION_BYTES: Final = 48
"""Of an answer to Fetch, without records."""

PARTITIONS_MAX: Final = 200
"""So many elements of each list are searched for errors."""

RAW_MAX_BYTES: Final = 1024 * 1024
"""Of each message, so much is given to those who write packets down."""

SIZE_PREFIX_BYTES: Final = 4

Raw = tuple[bytes, bytes]


class SizeOnly:
    """Stands for bytes that are not kept, or, as `raw`, only for those who write packets down."""

    __slots__ = ("raw", "size_bytes")

    def __init__(self, size_bytes: int, raw: bytes | None = None) -> None:
        self.size_bytes = size_bytes
        self.raw = raw

    def __len__(self) -> int:
        return self.size_bytes


class Entry:
    """One request and its answer, as the journal keeps them; decoded for who looks.

    Attributes:
        exchange: without request and result, if it has the bytes of both.
        events: what those are sent who follow, by how much of it they want.
    """

    __slots__ = ("_messages", "events", "exchange")

    def __init__(self, exchange: "InFlightRequest") -> None:
        self.exchange = exchange
        self.events: dict[tuple[bool, bool], bytes] = {}
        self._messages: tuple[Any, Any] | None = None

    @property
    def api(self) -> ApiKey:
        """Its API."""
        key: ApiKey = self.exchange.handler.api.key
        return key

    @property
    def at_ms(self) -> int:
        """Wall clock when it was read."""
        return self.exchange.at_ms

    @property
    def context(self) -> "RequestContext":
        """Of its connection; only what does not change there holds for this request."""
        assert self.exchange.context is not None
        return self.exchange.context

    @property
    def request_bytes(self) -> int:
        """Size of the request."""
        return len(self.exchange.frame)

    @property
    def response_bytes(self) -> int:
        """Size of the answer."""
        return sum(map(len, self.exchange.chunks))

    @property
    def total_us(self) -> int:
        """From the beginning of its decoding until its answer was encoded."""
        return int((self.exchange.end_s - self.exchange.began_s) * 1e6)

    @property
    def wait_us(self) -> int:
        """For replicas, new records, other members; part of the total."""
        exchange = self.exchange
        if not exchange.handled_s:
            return 0
        return max(0, self.total_us - int((exchange.handled_s - exchange.began_s) * 1e6))

    @property
    def request(self) -> Any:
        """The request; None if it holds secrets."""
        return self._decoded()[0]

    @property
    def response(self) -> Any:
        """The answer, or what stands for it; None if it holds secrets."""
        return self._decoded()[1]

    @property
    def raw(self) -> Raw | None:
        """Both messages as they were on the wire, as far as they are kept so."""
        frame, chunks = self.exchange.frame, self.exchange.chunks
        if isinstance(frame, SizeOnly):
            return None
        if chunks and isinstance(chunks[0], SizeOnly):
            kept = chunks[0].raw
            return None if kept is None else (bytes(frame[:RAW_MAX_BYTES]), kept)
        return bytes(frame[:RAW_MAX_BYTES]), raw_bytes(chunks)

    @property
    def held_bytes(self) -> int:
        """About what is held by keeping it."""
        exchange = self.exchange
        held = ENTRY_BYTES
        if exchange.request is not None:
            is_mostly_records = exchange.header.api_key == ApiKey.PRODUCE
            held += len(exchange.frame) * (1 if is_mostly_records else OBJECT_BYTES)
        elif not isinstance(exchange.frame, SizeOnly):
            held += len(exchange.frame)
        for chunk in exchange.chunks:
            held += len(chunk) if not isinstance(chunk, SizeOnly) else len(chunk.raw or b"")
        response = exchange.response
        if response is not None and exchange.header.api_key in FETCHES:
            partitions = sum(len(topic.partitions) for topic in response.responses)
            held += OBJECT_BYTES * PARTITION_BYTES * partitions
        elif response is not None:
            held += OBJECT_BYTES * self.response_bytes
        return held

    def _decoded(self) -> tuple[Any, Any]:
        if self._messages is None:
            self._messages = _request(self.exchange), _response(self.exchange)
        return self._messages


def _request(exchange: "InFlightRequest") -> Any:
    if exchange.request is not None or isinstance(exchange.frame, SizeOnly):
        return exchange.request
    try:
        header, position = decode_request_header(exchange.frame)
        buffer = memoryview(exchange.frame)
        return exchange.handler.api.decode_request(header.api_version, buffer, position)
    except MalformedMessage:
        return None


def _response(exchange: "InFlightRequest") -> Any:
    chunks = exchange.chunks
    if exchange.result is not None or not chunks or isinstance(chunks[0], SizeOnly):
        return exchange.response
    api, version = exchange.handler.api, exchange.header.api_version
    answer = memoryview(b"".join(chunks))[SIZE_PREFIX_BYTES:]
    try:
        _, position = decode_response_header(api, version, answer)
        return api.decode_response(version, answer, position)
    except MalformedMessage:
        return None


def raw_bytes(chunks: "Sequence[Chunk]") -> bytes:
    """Return the answer's bytes, its records among them, up to a bound."""
    pieces: list[bytes] = []
    left = RAW_MAX_BYTES
    for chunk in chunks:
        if isinstance(chunk, FileRegion):
            region = FileRegion(chunk.file, chunk.position, min(left, len(chunk)))
            piece = region.read() if len(region) else b""
        else:
            piece = bytes(chunk[:left])
        pieces.append(piece)
        left -= len(piece)
        if left <= 0:
            break
    return b"".join(pieces)


def error_names(message: object) -> list[str]:
    """Return the names of the errors anywhere in an answer, each once, but NONE."""
    found: dict[str, None] = {}
    _collect_errors(message, found)
    return list(found)


def _collect_errors(value: object, found: dict[str, None]) -> None:
    if isinstance(value, list):
        for each in value[:PARTITIONS_MAX]:
            _collect_errors(each, found)
        return
    for name in getattr(type(value), "__slots__", ()):
        each = getattr(value, name, None)
        if name == "error_code" and isinstance(each, int) and each:
            try:
                found[ErrorCode(each).name] = None
            except ValueError:
                found[str(each)] = None
        elif isinstance(each, list) or hasattr(type(each), "__slots__"):
            _collect_errors(each, found)
