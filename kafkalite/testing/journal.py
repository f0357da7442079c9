"""Journal of requests to a broker under test, and of reads under way.

The requests themselves are in the broker's own journal (`observe/requests.py`), from the moment in
which they are answered; here is what is still to be answered, and who reads what.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import trio

from kafkalite.observe.entries import Entry, error_names
from kafkalite.types import ZERO_UUID, TopicPartition
from kafkalite.wire.api import ApiKey
from kafkalite.wire.messages.fetch import FetchRequest
from kafkalite.wire.messages.list_offsets import ListOffsetsRequest

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.network.in_flight import InFlightRequest
    from kafkalite.observe.requests import Requests

BYTES_MAX: Final = 32 * 1024 * 1024
"""What a test's broker keeps of the latest requests: they hold the records sent."""

OPEN_MAX: Final = 1_000
"""Requests without an answer that are remembered; of some the client is gone."""

READERS_MAX: Final = 4_096
"""Connections whose fetching is remembered; the one that has been silent longest is forgotten."""

FULL_FETCH_EPOCHS: Final = (-1, 0)
"""Session epochs of a Fetch that names all of its partitions (KIP-227)."""


@dataclass(slots=True, frozen=True, kw_only=True)
class SeenRequest:
    """A request that the broker got; `message` has the fields of Kafka's definition.

    Attributes:
        timestamp_ms: the broker's wall clock when it came.
        began_s: `time.perf_counter` then.
        message: None where it holds secrets.
        response: None while there is none.
        errors: names of the errors anywhere in the response, each once.
        duration_ms: until it was answered; None while it is not.
    """

    api: ApiKey
    version: int
    client_id: str
    connection_id: int
    timestamp_ms: int
    began_s: float
    message: Any
    response: Any = None
    errors: tuple[str, ...] = ()
    duration_ms: float | None = None


@dataclass(slots=True)
class _Reader:
    """Fetches of one connection."""

    client_id: str
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    fetched_at: int = 0
    """Number of its last Fetch, in the order of all requests."""
    positioned_at: dict[TopicPartition, int] = field(default_factory=dict)
    """Number of its last ListOffsets for a partition."""


@dataclass(slots=True)
class _Wait:
    predicate: Callable[[], bool]
    event: trio.Event


class Journal:
    """Observes a broker's dispatcher; lives in the broker's thread.

    Args:
        topic_name: gives the name of a topic ID, None if there is no such topic.
    """

    def __init__(self, topic_name: Callable[[UUID], str | None]) -> None:
        self._topic_name = topic_name
        self._requests: Requests | None = None
        self._first = 1
        """Number of the first request that was not forgotten."""
        self._open: dict[int, tuple[InFlightRequest, RequestContext, int]] = {}
        """By identity: requests that have no answer yet."""
        self._count = 0
        self._readers: dict[int, _Reader] = {}
        self._synced_at: dict[tuple[str, str], int] = {}
        self._assigned: dict[tuple[str, str], frozenset[TopicPartition]] = {}
        self._waits: list[_Wait] = []

    def attach(self, requests: "Requests") -> None:
        """Find what is answered in the broker's own journal."""
        self.clear()
        self._requests, self._first = requests, 1
        requests.subscribe(lambda _, entry: self._open.pop(id(entry.exchange), None))

    def observe(
        self, exchange: "InFlightRequest", size_bytes: int, context: "RequestContext"
    ) -> None:
        """Take note of a request; the dispatcher's observer."""
        del size_bytes
        message = exchange.request
        api = exchange.handler.api.key
        self._count += 1
        if exchange.began_s:  # not a part of a large one
            self._open[id(exchange)] = (exchange, context, context.now_ms)
            if len(self._open) > OPEN_MAX:
                del self._open[next(iter(self._open))]
        if api is ApiKey.FETCH:
            self._on_fetch(message, context)
        elif api is ApiKey.LIST_OFFSETS:
            self._on_list_offsets(message, context)
        elif api is ApiKey.SYNC_GROUP:
            self._on_sync(message.group_id, message.member_id)
        elif api is ApiKey.STREAMS_GROUP_HEARTBEAT and message.active_tasks:
            # Sent when a Streams thread has taken up what it was assigned.
            self._on_sync(message.group_id, message.member_id)
        for wait in self._waits:
            if wait.predicate():
                wait.event.set()

    def find(self, *, api: ApiKey | None = None, client_id: str | None = None) -> list[SeenRequest]:
        """Return the requests kept, in the order in which they came; the open ones, too."""
        kept = [] if self._requests is None else [*self._requests.latest()]

        def is_wanted(exchange: "InFlightRequest") -> bool:
            return (api is None or exchange.handler.api.key is api) and (
                client_id is None or exchange.header.client_id == client_id
            )

        found = [
            _answered(entry)
            for number, entry in kept
            if number >= self._first and is_wanted(entry.exchange)
        ]
        found += [_open(*each) for each in self._open.values() if is_wanted(each[0])]
        return sorted(found, key=lambda request: request.began_s)

    def clear(self) -> None:
        """Forget the requests; who reads what is still known."""
        self._open.clear()
        if self._requests is not None:
            self._first = self._requests.count + 1

    def note_assigned(
        self, group_id: str, member_id: str, partitions: Iterable[TopicPartition]
    ) -> None:
        """Take note of what a member of a consumer group has now, which no request tells.

        Seen for the first time, or for the first time so, it is new since the last request.
        """
        key, has = (group_id, member_id), frozenset(partitions)
        if self._assigned.get(key) != has:
            self._assigned[key] = has
            self._on_sync(group_id, member_id)
        if len(self._assigned) > READERS_MAX:
            del self._assigned[next(iter(self._assigned))]

    def reads_since_sync(
        self,
        group_id: str,
        member_id: str,
        client_id: str,
        partitions: Iterable[TopicPartition],
    ) -> bool:
        """Whether a member knows where to read these partitions, since it got its assignment.

        A consumer that starts at `latest` asks where that is (ListOffsets) after it knows its
        assignment, and misses what is written before it asks. One that fetches knows already.
        """
        synced_at = self._synced_at.get((group_id, member_id))
        if synced_at is None:
            return False
        reading: set[TopicPartition] = set()
        for reader in self._readers.values():
            if reader.client_id == client_id:
                reading.update(p for p, at in reader.positioned_at.items() if at > synced_at)
                if reader.fetched_at > synced_at:
                    reading.update(reader.partitions)
        return reading.issuperset(partitions)

    async def wait_until(self, predicate: Callable[[], bool]) -> None:
        """Return when the predicate holds; looked at after each request. Has no deadline."""
        if predicate():
            return
        wait = _Wait(predicate, trio.Event())
        self._waits.append(wait)
        try:
            await wait.event.wait()
        finally:
            self._waits.remove(wait)

    def _on_sync(self, group_id: str, member_id: str) -> None:
        self._synced_at[group_id, member_id] = self._count
        if len(self._synced_at) > READERS_MAX:
            del self._synced_at[next(iter(self._synced_at))]

    def _on_list_offsets(self, message: ListOffsetsRequest, context: "RequestContext") -> None:
        reader = self._reader(context)
        for topic in message.topics:
            for partition in topic.partitions:
                place = TopicPartition(topic.name, partition.partition_index)
                reader.positioned_at[place] = self._count

    def _reader(self, context: "RequestContext") -> _Reader:
        reader = self._readers.pop(context.connection_id, None) or _Reader(context.client_id)
        # Put in again at the end: the order of the dict is that of the last request.
        self._readers[context.connection_id] = reader
        if len(self._readers) > READERS_MAX:
            del self._readers[next(iter(self._readers))]
        return reader

    def _on_fetch(self, message: FetchRequest, context: "RequestContext") -> None:
        reader = self._reader(context)
        if message.session_epoch in FULL_FETCH_EPOCHS:
            reader.partitions.clear()
        for topic in message.forgotten_topics_data:
            name = self._name(topic.topic, topic.topic_id)
            for index in topic.partitions:
                reader.partitions.pop(TopicPartition(name, index), None)
        for named in message.topics:
            name = self._name(named.topic, named.topic_id)
            for partition in named.partitions:
                reader.partitions[TopicPartition(name, partition.partition)] = None
        reader.fetched_at = self._count

    def _name(self, name: str, topic_id: UUID) -> str:
        return name if topic_id == ZERO_UUID else self._topic_name(topic_id) or ""


def _answered(entry: Entry) -> SeenRequest:
    exchange, response = entry.exchange, entry.response
    return SeenRequest(
        api=entry.api,
        version=exchange.header.api_version,
        client_id=exchange.header.client_id,
        connection_id=entry.context.connection_id,
        timestamp_ms=entry.at_ms,
        began_s=exchange.began_s,
        message=entry.request,
        response=response,
        errors=tuple(error_names(response)),
        duration_ms=entry.total_us / 1_000,
    )


def _open(exchange: "InFlightRequest", context: "RequestContext", at_ms: int) -> SeenRequest:
    return SeenRequest(
        api=exchange.handler.api.key,
        version=exchange.header.api_version,
        client_id=exchange.header.client_id,
        connection_id=context.connection_id,
        timestamp_ms=at_ms,
        began_s=exchange.began_s,
        message=exchange.request,
    )


def find_api(name: str | ApiKey) -> ApiKey:
    """Return an API by its name as Kafka's documentation writes it, or as the enum does."""
    if isinstance(name, ApiKey):
        return name
    wanted = name.replace("_", "").lower()
    for key in ApiKey:
        if key.name.replace("_", "").lower() == wanted:
            return key
    raise ValueError(f"Kafka has no API named {name!r}")
