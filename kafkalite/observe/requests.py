"""Counts each request and its answer, and keeps the latest: the broker's journal (decision 0131).

Told by the dispatcher once for each answer. What it does there is a few additions; whatever costs
more, such as making text of a message, is done for those who look.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkalite.log.region import FileRegion
from kafkalite.observe.buckets import Buckets, bucket_of
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.network.dispatch import InFlightRequest
    from kafkalite.network.transport import Chunk

logger = logging.getLogger("kafkalite.requests")

ENTRY_BYTES: Final = 1_500
"""About what an entry holds beside the bytes of its request: messages, header, answer."""

PARTITIONS_MAX: Final = 200
"""So many elements of each list are searched for errors."""

RAW_MAX_BYTES: Final = 1024 * 1024
"""Of each message, so much is given to those who write packets down."""

WAITING: Final = frozenset({ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.SHARE_FETCH})
"""APIs that wait on purpose: they are slow only by what was done before."""

UNANSWERED: Final = frozenset({ApiKey.PRODUCE, ApiKey.ENVELOPE, ApiKey.FETCH})
"""APIs whose answer may be none, or not a message."""

SECRET: Final = frozenset(
    {
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.ENVELOPE,
    }
)
"""APIs whose messages hold passwords and tokens: only that they were asked is kept."""

SPECIAL: Final = SECRET | {ApiKey.FETCH}

FOLLOWER: Final = 1 << 20


class SizeOnly:
    """Stands for records that are not kept."""

    __slots__ = ("size_bytes",)

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self.size_bytes


class ApiCounts:
    """Counts of requests of one version of one API.

    Attributes:
        name: as Kafka's RequestMetrics have it.
        has_code: its answers have an error code of their own.
        is_special: something is to be looked at besides.
    """

    __slots__ = (
        "count",
        "errors",
        "has_code",
        "is_special",
        "name",
        "request_bytes",
        "response_bytes",
        "total",
        "version",
        "waited",
    )

    def __init__(self, name: str, version: int, *, has_code: bool, is_special: bool) -> None:
        self.name = name
        self.version = version
        self.has_code = has_code
        self.is_special = is_special
        self.count = 0
        self.errors: dict[int, int] = {}
        self.request_bytes = 0
        self.response_bytes = 0
        self.total = Buckets()
        self.waited = Buckets()


class Entry(NamedTuple):
    """One request and its answer, as the journal keeps them.

    Attributes:
        at_ms: wall clock when it was read.
        context: of its connection; only what does not change there holds for this request.
        total_us: from the beginning of its decoding until its answer was encoded.
        raw: both messages as they were on the wire, if somebody writes them down.
    """

    at_ms: int
    exchange: "InFlightRequest"
    context: "RequestContext"
    response_bytes: int
    total_us: int
    raw: tuple[bytes, bytes] | None

    @property
    def wait_us(self) -> int:
        """For replicas, new records, other members; part of the total."""
        exchange = self.exchange
        if not exchange.handled_s:
            return 0
        return max(0, self.total_us - int((exchange.handled_s - exchange.began_s) * 1e6))


class Requests:
    """Counts, journal and slow-request log of one broker.

    Args:
        max_bytes: of the journal; 0 keeps none.
        slow_ms: requests that took longer are logged; -1 for none.
    """

    def __init__(self, *, max_bytes: int, slow_ms: int) -> None:
        self.apis: dict[int, ApiCounts] = {}
        """By key * 256 + version; of followers' fetches with FOLLOWER added."""
        self.slow_us = slow_ms * 1_000 if slow_ms >= 0 else 2**62
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self.count = 0
        """Requests that were ever put into the journal; the number of the last of them."""
        self.slow_count = 0
        self._entries: deque[Entry] = deque()
        self._listeners: list[Callable[[int, Entry], object]] = []

    def on_answered(
        self,
        exchange: "InFlightRequest",
        chunks: "list[Chunk]",
        size: int,
        context: "RequestContext",
    ) -> None:
        """Count one; the dispatcher's observer. Every line here is paid for by each request."""
        header = exchange.header
        total_us = int((perf_counter() - exchange.began_s) * 1e6)
        place = (header.api_key << 8) + header.api_version
        counts = self.apis.get(place)
        if counts is None:
            counts = self._counts_of(place, exchange)
        if counts.is_special:
            counts = self._look_closer(counts, place, exchange)
        counts.count += 1
        counts.request_bytes += exchange.size_bytes
        counts.response_bytes += size
        total = counts.total
        total.sum_us += total_us
        total.counts[bucket_of(total_us)] += 1
        if exchange.handled_s:
            counts.waited.add(int((perf_counter() - exchange.handled_s) * 1e6))
        if counts.has_code and (code := exchange.result.error_code):
            counts.errors[code] = counts.errors.get(code, 0) + 1
        if total_us >= self.slow_us:
            self._on_slow(exchange, context, total_us)
        if self.max_bytes:
            raw = None
            if exchange.frame is not None:
                raw = (bytes(exchange.frame[:RAW_MAX_BYTES]), raw_bytes(chunks))
                exchange.frame = None
            self.count += 1
            entry = Entry(context.now_ms, exchange, context, size, total_us, raw)
            self._entries.append(entry)
            self.held_bytes += ENTRY_BYTES + exchange.size_bytes
            if self.held_bytes > self.max_bytes:
                self._drop_oldest()
            for listener in self._listeners:
                listener(self.count, entry)

    def _counts_of(self, place: int, exchange: "InFlightRequest") -> ApiCounts:
        key = exchange.handler.api.key
        name = NAMES[key]
        if key is ApiKey.FETCH:
            name = "FetchFollower" if place & FOLLOWER else "FetchConsumer"
        counts = self.apis[place] = ApiCounts(
            name,
            exchange.header.api_version,
            has_code="error_code" in exchange.handler.api.response.record.__slots__
            and key not in UNANSWERED | SECRET,
            is_special=key in SPECIAL,
        )
        return counts

    def _look_closer(self, counts: ApiCounts, place: int, exchange: "InFlightRequest") -> ApiCounts:
        request, key = exchange.request, exchange.handler.api.key
        if key in SECRET:
            exchange.request = exchange.result = exchange.frame = None
        if request is None or key in SECRET:
            return counts
        for topic in exchange.result.responses:
            for data in topic.partitions:
                if data.records:  # a piece of a file, which it would keep open
                    data.records = SizeOnly(len(data.records))
        if request.replica_id < 0 and request.replica_state.replica_id < 0:
            return counts
        found = self.apis.get(place | FOLLOWER)
        return self._counts_of(place | FOLLOWER, exchange) if found is None else found

    def _drop_oldest(self) -> None:
        while self._entries and self.held_bytes > self.max_bytes:
            gone = self._entries.popleft()
            self.held_bytes -= ENTRY_BYTES + gone.exchange.size_bytes

    def _on_slow(
        self, exchange: "InFlightRequest", context: "RequestContext", total_us: int
    ) -> None:
        key = exchange.handler.api.key
        if exchange.handled_s and key in WAITING:
            total_us = int((exchange.handled_s - exchange.began_s) * 1e6)
            if total_us < self.slow_us:
                return
        self.slow_count += 1
        logger.info(
            "slow request: %s v%d of client %r at %s:%d took %.1f ms",
            key.name,
            exchange.header.api_version,
            exchange.header.client_id,
            *context.peer_address[:2],
            total_us / 1_000,
            extra={
                "api": key.name,
                "client_id": exchange.header.client_id,
                "peer": context.peer_address[0],
                "duration_ms": round(total_us / 1_000, 1),
            },
        )

    # --- Looking ---------------------------------------------------------------------------------

    def latest(self) -> Iterator[tuple[int, Entry]]:
        """Yield what is kept with its number, the newest first; not to be held over a wait."""
        return zip(range(self.count, 0, -1), reversed(self._entries), strict=False)

    def get(self, number: int) -> Entry | None:
        """Return one entry, None if it is not kept any more."""
        index = number - (self.count - len(self._entries) + 1)
        return self._entries[index] if 0 <= index < len(self._entries) else None

    def subscribe(self, listener: Callable[[int, Entry], object]) -> Callable[[], None]:
        """Call `listener` with each new entry; returns a function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def rotate(self) -> None:
        """Let the distributions begin anew; to be called twice a minute."""
        for counts in self.apis.values():
            counts.total.rotate()
            counts.waited.rotate()


NAMES: Final = {key: key.name.title().replace("_", "") for key in ApiKey}
"""`CreateTopics` and so on."""


def raw_bytes(chunks: "list[Chunk]") -> bytes:
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
