"""Counts each request and its answer, and keeps the latest: the broker's journal (decision 0131).

Told by the dispatcher of each answer, which it takes note of. Notes are counted many at a time, and
whatever costs more, such as making text of a message, is done for those who look (decision 0135).
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import compress
from math import inf
from operator import attrgetter, itemgetter, sub
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkalite.log.region import FileRegion
from kafkalite.observe.buckets import Buckets
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.network.in_flight import InFlightRequest
    from kafkalite.network.transport import Chunk

logger = logging.getLogger("kafkalite.requests")

ENTRY_BYTES: Final = 1_500
"""About what an entry holds beside the bytes of its request: messages, header, a small answer."""

OBJECT_BYTES: Final = 8
"""About what a decoded answer holds for each of its bytes: a partition of Metadata has 40 of them,
and is 350 bytes of objects."""

PARTITION_BYTES: Final = 48
"""Of an answer to Fetch, without records."""

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

FETCHES: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})
"""APIs whose answers hold records."""

SPECIAL: Final = frozenset(map(int, SECRET | FETCHES))
"""APIs whose messages are not kept as they are."""

FOLLOWER: Final = 1

NOTES_MIN: Final = 16
NOTES_MAX: Final = 32
LARGE_BYTES: Final = 64 * 1024
"""Notes wait until there are NOTES_MIN and nobody waits for an answer, or NOTES_MAX, or one of a
request of so many bytes."""

_EXCHANGE, _SIZE, _END, _FLAG, _KEPT = map(itemgetter, (0, 1, 2, 5, 7))
_KEY, _VERSION = attrgetter("header.api_key"), attrgetter("header.api_version")
_REQUEST_BYTES, _BEGAN, _HANDLED = map(attrgetter, ("size_bytes", "began_s", "handled_s"))

Raw = tuple[bytes, bytes]
Note = tuple["InFlightRequest", int, float, "RequestContext", int, int, Raw | None, int]
"""Request, bytes of the answer, `perf_counter` at its end, connection, wall clock, flag, raw, and
how many bytes of the answer are kept."""


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
    """

    __slots__ = (
        "count",
        "errors",
        "has_code",
        "local",
        "name",
        "request_bytes",
        "response_bytes",
        "total",
        "version",
        "waited",
    )

    def __init__(self, name: str, version: int, *, has_code: bool) -> None:
        self.name = name
        self.version = version
        self.has_code = has_code
        self.count = 0
        self.errors: dict[int, int] = {}
        self.request_bytes = 0
        self.response_bytes = 0
        self.total = Buckets()
        self.local = Buckets()
        self.waited = Buckets()

    def count_errors(self, exchanges: "Iterable[InFlightRequest]") -> None:
        """Count the codes that answers have, but for NONE; not of what another broker answered."""
        for each in exchanges:
            code = getattr(each.result, "error_code", 0)
            if code:
                self.errors[code] = self.errors.get(code, 0) + 1


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
        self._apis: dict[tuple[int, int, int], ApiCounts] = {}
        """By key, version and flag (FOLLOWER or 0)."""
        self._slow_s = slow_ms / 1_000 if slow_ms >= 0 else inf
        self.max_bytes = max_bytes
        self._held_bytes = 0
        self._count = 0
        self._slow_count = 0
        self._notes: list[Note] = []
        self._looked = 0
        self._has_pauses = False
        self._is_hasty = True
        """Each note is looked at when it is made: there are listeners, or no pauses."""
        self._journal: deque[Note] = deque()
        self._listeners: list[Callable[[int, Entry], object]] = []

    def on_answered(
        self,
        exchange: "InFlightRequest",
        chunks: "list[Chunk]",
        size: int,
        context: "RequestContext",
    ) -> None:
        """Take note of one; the dispatcher's observer. Each request pays for every line here."""
        notes = self._notes
        if exchange.header.api_key in SPECIAL or self._is_hasty:
            end_s = perf_counter()
            flag, kept = 0, size
            if exchange.header.api_key in SPECIAL:
                flag, kept = _strip(exchange)
            raw = _raw(exchange, chunks) if self._listeners else None
            if raw is not None:
                kept += sum(map(len, raw)) // OBJECT_BYTES
            notes.append((exchange, size, end_s, context, context.now_ms, flag, raw, kept))
            if self._is_hasty and (self._listeners or self._is_urgent(notes)):
                self.settle()
                return
        else:
            notes.append((exchange, size, perf_counter(), context, context.now_ms, 0, None, size))
        if len(notes) >= NOTES_MAX:
            self.settle()

    def on_pause(self) -> None:
        """Count what was noted if it is worth while: nobody waits for an answer.

        Who calls this calls it whenever that is so; without a caller notes are counted sooner.
        """
        self._has_pauses = True
        self._is_hasty = bool(self._listeners)
        notes = self._notes
        if notes and self._is_urgent(notes):
            self.settle()

    def _is_urgent(self, notes: list[Note]) -> bool:
        """Whether there are enough to count, or one since the last look was slow or large."""
        if len(notes) >= NOTES_MIN:
            return True
        looked, self._looked = self._looked, len(notes)
        return any(
            note[2] - note[0].began_s > self._slow_s or note[0].size_bytes > LARGE_BYTES
            for note in notes[looked:]
        )

    def settle(self) -> None:
        """Count what was noted, and put it into the journal.

        Nearly all of it is done by functions of C: a loop over the notes would cost twice as much.
        """
        notes, self._notes, self._looked = self._notes, [], 0
        exchanges = [*map(_EXCHANGE, notes)]
        places = [
            *zip(map(_KEY, exchanges), map(_VERSION, exchanges), map(_FLAG, notes), strict=True)
        ]
        sizes = [*map(_REQUEST_BYTES, exchanges)]
        seconds = [*map(sub, map(_END, notes), map(_BEGAN, exchanges))]
        for place in dict.fromkeys(places):
            own = [*map(place.__eq__, places)]
            mine = [*compress(exchanges, own)]
            counts = self._apis.get(place)
            if counts is None:
                counts = self._counts_of(place, mine[0])
            counts.count += len(mine)
            counts.request_bytes += sum(compress(sizes, own))
            counts.response_bytes += sum(compress(map(_SIZE, notes), own))
            totals = [*compress(seconds, own)]
            counts.total.add_seconds(totals)
            handled = [*map(_HANDLED, mine)]
            if not any(handled):
                counts.local.add_seconds(totals)
            else:
                began = map(_BEGAN, mine)
                each = zip(handled, began, totals, strict=True)
                counts.local.add_seconds([(at_s - b_s) if at_s else t for at_s, b_s, t in each])
                ends = compress(map(_END, notes), own)
                counts.waited.add_seconds(
                    [e - at for e, at in zip(ends, handled, strict=True) if at]
                )
            if counts.has_code:
                counts.count_errors(mine)
        if seconds and max(seconds) > self._slow_s:
            for note, took_s in zip(notes, seconds, strict=True):
                if took_s > self._slow_s:
                    self._on_slow(note[0], note[3], int(took_s * 1e6))
        if self.max_bytes:
            self._keep(notes, sum(sizes))

    def _keep(self, notes: list[Note], request_bytes: int) -> None:
        journal = self._journal
        journal += notes
        self._count += len(notes)
        self._held_bytes += (
            request_bytes + ENTRY_BYTES * len(notes) + OBJECT_BYTES * sum(map(_KEPT, notes))
        )
        while self._held_bytes > self.max_bytes:
            oldest = journal.popleft()
            self._held_bytes -= ENTRY_BYTES + oldest[0].size_bytes + OBJECT_BYTES * oldest[7]
        if self._listeners:
            first = self._count - len(notes) + 1
            for number, note in enumerate(notes, first):
                for listener in self._listeners:
                    listener(number, _entry(note))

    def _counts_of(self, place: tuple[int, int, int], exchange: "InFlightRequest") -> ApiCounts:
        key = exchange.handler.api.key
        name = NAMES[key]
        if key is ApiKey.FETCH:
            name = "FetchFollower" if place[2] == FOLLOWER else "FetchConsumer"
        counts = self._apis[place] = ApiCounts(
            name,
            place[1],
            has_code="error_code" in exchange.handler.api.response.record.__slots__
            and key not in UNANSWERED | SECRET,
        )
        return counts

    def _on_slow(
        self, exchange: "InFlightRequest", context: "RequestContext", total_us: int
    ) -> None:
        key = exchange.handler.api.key
        if exchange.handled_s and key in WAITING:
            total_us = int((exchange.handled_s - exchange.began_s) * 1e6)
            if total_us < self._slow_s * 1e6:
                return
        self._slow_count += 1
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

    @property
    def apis(self) -> "Mapping[tuple[int, int, int], ApiCounts]":
        """Counts by API."""
        self.settle()
        return self._apis

    @property
    def count(self) -> int:
        """Requests that were ever put into the journal; the number of the last of them."""
        self.settle()
        return self._count

    @property
    def held_bytes(self) -> int:
        """About what the journal holds."""
        self.settle()
        return self._held_bytes

    @property
    def slow_count(self) -> int:
        """Requests that were slow."""
        self.settle()
        return self._slow_count

    def latest(self) -> Iterator[tuple[int, Entry]]:
        """Yield what is kept with its number, the newest first; not to be held over a wait."""
        self.settle()
        entries = map(_entry, reversed(self._journal))
        return zip(range(self._count, 0, -1), entries, strict=False)

    def get(self, number: int) -> Entry | None:
        """Return one entry, None if it is not kept any more."""
        self.settle()
        index = number - (self._count - len(self._journal) + 1)
        return _entry(self._journal[index]) if 0 <= index < len(self._journal) else None

    def subscribe(self, listener: Callable[[int, Entry], object]) -> Callable[[], None]:
        """Call `listener` with each new entry; returns a function that ends it."""
        self.settle()
        self._listeners.append(listener)
        self._is_hasty = True

        def end() -> None:
            self._listeners.remove(listener)
            self._is_hasty = bool(self._listeners) or not self._has_pauses

        return end

    def rotate(self) -> None:
        """Let the distributions begin anew; to be called twice a minute."""
        for counts in self.apis.values():
            counts.total.rotate()
            counts.local.rotate()
            counts.waited.rotate()


def _strip(exchange: "InFlightRequest") -> tuple[int, int]:
    """Take out of a special request what is not to be kept.

    Returns:
        Its flag, and about how many bytes of the answer stay.
    """
    key, request, response = exchange.header.api_key, exchange.request, exchange.response
    if key not in FETCHES:
        exchange.request = exchange.result = exchange.frame = None
        return 0, 0
    if request is None or response is None:
        return 0, 0
    exchange.result = response  # without the bytes that it was encoded to
    kept = 0
    for topic in response.responses:
        kept += PARTITION_BYTES * len(topic.partitions)
        for data in topic.partitions:
            if data.records:  # a piece of a file, which it would keep open
                data.records = SizeOnly(len(data.records))
    if key != ApiKey.FETCH:
        return 0, kept
    is_consumer = request.replica_id < 0 and request.replica_state.replica_id < 0
    return 0 if is_consumer else FOLLOWER, kept


def _raw(exchange: "InFlightRequest", chunks: "list[Chunk]") -> Raw | None:
    frame, exchange.frame = exchange.frame, None
    if frame is None:
        return None
    return bytes(frame[:RAW_MAX_BYTES]), raw_bytes(chunks)


def _entry(note: Note) -> Entry:
    exchange, size, end_s, context, at_ms, _, raw, _ = note
    total_us = int((end_s - exchange.began_s) * 1e6)
    return Entry(at_ms, exchange, context, size, total_us, raw)


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
