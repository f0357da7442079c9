"""Counts each request and its answer, and keeps the latest: the broker's journal (decision 0131).

Told by the dispatcher of each answer, which it takes note of. Notes are counted many at a time, and
whatever costs more, such as making text of a message, is done for those who look (decision 0135).
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, compress
from math import inf
from operator import attrgetter, sub
from typing import TYPE_CHECKING, Final

from kafkalite.api.handler import FETCHES, SECRET
from kafkalite.observe.buckets import Buckets
from kafkalite.observe.entries import ENTRY_BYTES, Entry, SizeOnly, raw_bytes
from kafkalite.wire.api import ApiKey

if TYPE_CHECKING:
    from kafkalite.network.dispatch import Dispatcher
    from kafkalite.network.in_flight import InFlightRequest

logger = logging.getLogger("kafkalite.requests")

WAITING: Final = frozenset({ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.SHARE_FETCH})
"""APIs that wait on purpose: they are slow only by what was done before."""

UNANSWERED: Final = frozenset({ApiKey.PRODUCE, ApiKey.ENVELOPE, ApiKey.FETCH})
"""APIs whose answer may be none, or not a message."""

NOTES_MIN: Final = 4
LARGE_BYTES: Final = 64 * 1024
"""Notes wait until there are NOTES_MIN and nobody waits for an answer, or one of a request of so
many bytes. So few take less time than a client does to ask again; under load there are more."""

SECONDS_MAX: Final = 500
"""Durations that are put in order at a time, which costs less for each than a few do."""

BLOCKS_MIN: Final = 8
"""The journal has at least so many blocks, of which it drops the oldest."""

_END, _BEGAN, _HANDLED, _FRAME, _CHUNKS = map(
    attrgetter, ("end_s", "began_s", "handled_s", "frame", "chunks")
)
_HEADER, _PLACE = attrgetter("header"), attrgetter("api_key", "api_version")

Place = tuple[int, int]


class ApiCounts:
    """Counts of requests of one version of one API.

    Attributes:
        name: as Kafka's RequestMetrics have it.
        has_code: its answers have an error code of their own.
        total: how long they took, up to the last `add_up`.
        local: the same without what they waited for.
    """

    __slots__ = (
        "_seconds",
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
        self._seconds: list[float] = []

    def add(self, exchanges: "list[InFlightRequest]", seconds: list[float]) -> int:
        """Count requests, which took so long; return the bytes of them and of their answers.

        Nearly all of it is done by functions of C: a loop over them would cost twice as much.
        """
        received = sum(map(len, map(_FRAME, exchanges)))
        sent = sum(map(len, chain.from_iterable(map(_CHUNKS, exchanges))))
        self.count += len(exchanges)
        self.request_bytes += received
        self.response_bytes += sent
        handled = [*map(_HANDLED, exchanges)]
        if not any(handled):
            self._seconds += seconds
            if len(self._seconds) > SECONDS_MAX:
                self.add_up()
        else:
            self.total.add_seconds(seconds)
            each = zip(handled, map(_BEGAN, exchanges), seconds, strict=True)
            self.local.add_seconds([(at_s - b_s) if at_s else t for at_s, b_s, t in each])
            ends = map(_END, exchanges)
            self.waited.add_seconds([e - at for e, at in zip(ends, handled, strict=True) if at])
        if self.has_code:
            self.count_errors(exchanges)
        return received + sent

    def add_up(self) -> None:
        """Let `total` and `local` have all that was added."""
        self.total.add_seconds(self._seconds, self.local)
        self._seconds.clear()

    def count_errors(self, exchanges: "Iterable[InFlightRequest]") -> None:
        """Count the codes that answers have, but for NONE; not of what another broker answered."""
        for each in exchanges:
            code = getattr(each.result, "error_code", 0)
            if code:
                self.errors[code] = self.errors.get(code, 0) + 1


class Requests:
    """Counts, journal and slow-request log of one broker.

    Args:
        max_bytes: of the journal; 0 keeps none.
        slow_ms: requests that took longer are logged; -1 for none.

    Attributes:
        keeps_raw: somebody writes packets down, and wants the records that were fetched, too.
    """

    def __init__(self, *, max_bytes: int, slow_ms: int) -> None:
        self._apis: dict[tuple[int, int, bool], ApiCounts] = {}
        """By key, version and whether a follower asked."""
        self._slow_s = slow_ms / 1_000 if slow_ms >= 0 else inf
        self.max_bytes = max_bytes
        self.keeps_raw = False
        self._held_bytes = 0
        self._count = 0
        self._slow_count = 0
        self._notes: list[InFlightRequest] = []
        self._looked = 0
        self._has_pauses = False
        self._dispatcher: Dispatcher | None = None
        self._journal: deque[tuple[int, list[InFlightRequest]]] = deque()
        """Blocks of requests, and what each holds."""
        self._listeners: list[Callable[[int, Entry], object]] = []

    def watch(self, dispatcher: "Dispatcher") -> None:
        """Be told of the requests of a dispatcher."""
        dispatcher.on_answered = self.on_answered
        self._dispatcher = dispatcher
        self._note_haste()

    @property
    def _is_hasty(self) -> bool:
        """Whether each request is looked at when it is answered."""
        return bool(self._listeners) or not self._has_pauses

    def _note_haste(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher.keep_notes(None if self._is_hasty else self._notes, self.settle)

    def on_answered(self, exchange: "InFlightRequest") -> None:
        """Take note of one; the dispatcher's observer for those that it does not note itself."""
        if not exchange.handler.is_plain:
            self._strip(exchange)
        notes = self._notes
        notes.append(exchange)
        if self._is_hasty and (self._listeners or self._is_urgent()):
            self.settle()

    def on_pause(self) -> None:
        """Count what was noted if it is worth while: nobody waits for an answer.

        Who calls this calls it whenever that is so; without a caller notes are counted sooner.
        """
        if not self._has_pauses:
            self._has_pauses = True
            self._note_haste()
        if len(self._notes) > self._looked and self._is_urgent():
            self.settle()

    def _is_urgent(self) -> bool:
        """Whether there are enough to count, or one since the last look was slow or large."""
        notes, slow_s = self._notes, self._slow_s
        if len(notes) >= NOTES_MIN:
            return True
        looked, self._looked = self._looked, len(notes)
        for exchange in notes[looked:]:
            if exchange.end_s - exchange.began_s > slow_s or len(exchange.frame) > LARGE_BYTES:
                return True
        return False

    def settle(self) -> None:
        """Count what was noted, and put it into the journal."""
        exchanges = [*self._notes]
        if not exchanges:
            return
        self._notes.clear()
        self._looked = 0
        seconds = [*map(sub, map(_END, exchanges), map(_BEGAN, exchanges))]
        places = [*map(_PLACE, map(_HEADER, exchanges))]
        first = places[0]
        if places.count(first) == len(places):
            held = self._count_place(first, exchanges, seconds)
        else:
            held = 0
            for place in dict.fromkeys(places):
                own = [*map(place.__eq__, places)]
                mine = [*compress(exchanges, own)]
                held += self._count_place(place, mine, [*compress(seconds, own)])
        if max(seconds) > self._slow_s:
            for exchange, took_s in zip(exchanges, seconds, strict=True):
                if took_s > self._slow_s:
                    self._on_slow(exchange, int(took_s * 1e6))
        if self.max_bytes:
            self._keep(exchanges, held)

    def _count_place(
        self, place: Place, exchanges: "list[InFlightRequest]", seconds: list[float]
    ) -> int:
        """Count requests of one version of one API, and let go what is kept as bytes.

        Returns:
            About how many bytes of memory are left of them.
        """
        if place[0] == ApiKey.FETCH:
            return self._count_fetches(place, exchanges, seconds)
        size_bytes = self._counts_of(place, exchanges[0]).add(exchanges, seconds)
        if size_bytes > LARGE_BYTES or not exchanges[0].handler.is_plain:
            return sum(map(_free_small, exchanges))
        for exchange in exchanges:
            exchange.request = None
            if exchange.chunks:
                exchange.result = None
        return size_bytes + ENTRY_BYTES * len(exchanges)

    def _count_fetches(
        self, place: Place, exchanges: "list[InFlightRequest]", seconds: list[float]
    ) -> int:
        are_followers = [*map(_is_follower, exchanges)]
        for is_follower in {*are_followers}:
            own = [*map(is_follower.__eq__, are_followers)]
            mine = [*compress(exchanges, own)]
            counts = self._counts_of(place, mine[0], is_follower=is_follower)
            counts.add(mine, [*compress(seconds, own)])
        return sum(map(_free_small, exchanges))

    def _keep(self, exchanges: "list[InFlightRequest]", held_bytes: int) -> None:
        journal = self._journal
        if held_bytes * BLOCKS_MIN > self.max_bytes:
            blocks = [(Entry(each).held_bytes, [each]) for each in exchanges]
            journal += blocks
            held_bytes = sum(held for held, _ in blocks)
        else:
            journal.append((held_bytes, exchanges))
        self._count += len(exchanges)
        self._held_bytes += held_bytes
        while self._held_bytes > self.max_bytes:
            self._held_bytes -= journal.popleft()[0]
        if self._listeners:
            for number, exchange in enumerate(exchanges, self._count - len(exchanges) + 1):
                entry = Entry(exchange)
                for listener in self._listeners:
                    listener(number, entry)

    def _counts_of(
        self, place: Place, exchange: "InFlightRequest", *, is_follower: bool = False
    ) -> ApiCounts:
        counts = self._apis.get((*place, is_follower))
        if counts is None:
            api = exchange.handler.api
            name = NAMES[api.key]
            if api.key is ApiKey.FETCH:
                name = "FetchFollower" if is_follower else "FetchConsumer"
            counts = self._apis[(*place, is_follower)] = ApiCounts(
                name,
                place[1],
                has_code="error_code" in api.response.record.__slots__
                and api.key not in UNANSWERED | SECRET,
            )
        return counts

    def _on_slow(self, exchange: "InFlightRequest", total_us: int) -> None:
        key = exchange.handler.api.key
        if exchange.handled_s and key in WAITING:
            total_us = int((exchange.handled_s - exchange.began_s) * 1e6)
            if total_us < self._slow_s * 1e6:
                return
        self._slow_count += 1
        context = exchange.context
        assert context is not None
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

    def _strip(self, exchange: "InFlightRequest") -> None:
        """Take out of a request what is not to be kept."""
        key, chunks = exchange.header.api_key, exchange.chunks
        size_bytes = sum(map(len, chunks))
        if key in SECRET:
            exchange.request = exchange.result = None
            exchange.frame, exchange.chunks = SizeOnly(len(exchange.frame)), (SizeOnly(size_bytes),)
            return
        exchange.chunks = (SizeOnly(size_bytes, raw_bytes(chunks) if self.keeps_raw else None),)
        response = exchange.result = exchange.response  # without what it was encoded to
        if key in FETCHES and response is not None:
            for topic in response.responses:
                for data in topic.partitions:
                    if data.records:  # a piece of a file, which it would keep open
                        data.records = SizeOnly(len(data.records))

    # --- Looking ---------------------------------------------------------------------------------

    @property
    def apis(self) -> "Mapping[tuple[int, int, bool], ApiCounts]":
        """Counts by API."""
        self.settle()
        for counts in self._apis.values():
            counts.add_up()
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
        blocks = (reversed(exchanges) for _, exchanges in reversed(self._journal))
        entries = map(Entry, chain.from_iterable(blocks))
        return zip(range(self._count, 0, -1), entries, strict=False)

    def get(self, number: int) -> Entry | None:
        """Return one entry, None if it is not kept any more."""
        self.settle()
        begin = self._count + 1
        for _, exchanges in reversed(self._journal):
            begin -= len(exchanges)
            if begin <= number < begin + len(exchanges):
                return Entry(exchanges[number - begin])
        return None

    def subscribe(self, listener: Callable[[int, Entry], object]) -> Callable[[], None]:
        """Call `listener` with each new entry; returns a function that ends it."""
        self.settle()
        self._listeners.append(listener)
        self._note_haste()

        def end() -> None:
            self._listeners.remove(listener)
            self._note_haste()

        return end

    def rotate(self) -> None:
        """Let the distributions begin anew; to be called twice a minute."""
        for counts in self.apis.values():
            counts.total.rotate()
            counts.local.rotate()
            counts.waited.rotate()


def _is_follower(exchange: "InFlightRequest") -> bool:
    request = exchange.request
    if request is None:
        return False
    return bool(request.replica_id >= 0 or request.replica_state.replica_id >= 0)


def _free_small(exchange: "InFlightRequest") -> int:
    """Let go what is kept as bytes, if it is not too large to be decoded in a turn.

    Returns:
        About what is held of it.
    """
    if len(exchange.frame) <= LARGE_BYTES:
        exchange.request = None
    size_bytes = sum(map(len, exchange.chunks))
    if exchange.handler.is_plain and size_bytes <= LARGE_BYTES:
        exchange.result = exchange.result if not exchange.chunks else None
    else:
        exchange.result = exchange.response
        if not isinstance(exchange.chunks[0], SizeOnly):
            exchange.chunks = (SizeOnly(size_bytes),)
    return Entry(exchange).held_bytes


NAMES: Final = {key: key.name.title().replace("_", "") for key in ApiKey}
"""`CreateTopics` and so on."""
