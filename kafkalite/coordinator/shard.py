"""Parts of a coordinator: shards (one partition of an internal topic each), and time.

A shard is a state machine on a log. `handle` and `on_time` decide, `replay` changes hard state, in
service and in recovery alike. A shard holds no futures: whoever waits is an integer, its ticket.
"""

import heapq
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, NamedTuple, NewType, Protocol, TypeVar

Answer_co = TypeVar("Answer_co", covariant=True)


class Event(Generic[Answer_co]):
    """Something that a shard is asked or told; the parameter is the type of its answer."""

    __slots__ = ()


Ticket = NewType("Ticket", int)
"""Names one request that wants an answer; never used twice by a runtime."""

NO_PRODUCER_ID = -1


class Now(NamedTuple):
    """The moment of an event, on both clocks.

    Deadlines are monotonic, so that setting the machine's clock ends no session; what goes into
    records is wall time, because it is compared after a restart.
    """

    monotonic_ms: int
    wall_ms: int


@dataclass(slots=True)
class StoredRecord:
    """One record of an internal topic, decoded. `value` is None for a tombstone."""

    key: object
    value: object | None
    offset: int = -1
    """Place in the log; set by the runtime before `replay`."""
    producer_id: int = NO_PRODUCER_ID
    """Whose transaction this belongs to; it counts when the transaction is committed."""


@dataclass(slots=True)
class Result:
    """Outcome of an event: records to append, then replies to give and effects to perform.

    A reply is a response message, or a KafkaError for the requester to be refused with. Replies
    leave when the records are below the high watermark; without records, when everything that was
    written before is. So every answer describes committed state.

    The log may refuse the records before anything of them is written: it is full, or too few
    replicas are in sync. They are then not replayed, and all replies become refusals, which leave
    at once. A shard must be able to go on from there: what its timers brought about is brought
    about again by another timer.
    """

    records: Sequence[StoredRecord] = ()
    replies: Sequence[tuple[Ticket, object]] = ()
    atomic: bool = True
    """The records go into one batch; otherwise they may be spread over several."""
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    at_once: bool = False
    """The replies do not wait for what was written before: they say nothing about it."""
    effects: Sequence[object] = ()
    """What others are to do once the records are below the high watermark. Not done if the records
    were refused, and lost with the shard: `on_loaded` brings forth again what may be missing."""


NOTHING = Result()
"""The result of an event that leads to nothing."""


class Shard(Protocol):
    """The core of one partition's coordinator. Pure: no clock, no I/O."""

    def handle(self, event: Event[object], ticket: Ticket, now: Now) -> Result:
        """Decide about `event`; a `KafkaError` raised here means that nothing has changed."""
        ...

    def on_loaded(self, now: Now) -> Result:
        """Start timers; called once, when everything in the log was replayed."""
        ...

    def on_time(self, now: Now) -> Result:
        """Fire at most one due timer; to be called until `next_deadline_ms` is in the future."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Return the monotonic time before which `on_time` has nothing to do."""
        ...

    def replay(self, record: StoredRecord) -> None:
        """Make `record` part of the hard state."""
        ...

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """End the open transaction of `producer_id` (rule 111)."""
        ...


class RecordCodec(Protocol):
    """Between a shard's records and the bytes of key and value."""

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        """Return key and value."""
        ...

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """Return the record; None for a kind that is not known here, which is skipped."""
        ...


class ShardKind(Protocol):
    """Shards of one internal topic, as the runtime needs them."""

    @property
    def topic(self) -> str:
        """Name of the internal topic."""
        ...

    @property
    def codec(self) -> RecordCodec:
        """Codec of the topic's records."""
        ...

    def new_shard(self, partition: int) -> Shard:
        """Return the empty shard of a partition."""
        ...

    def event_for_disconnect(self, connection_id: int) -> Event[object] | None:
        """Return the event that tells a shard of a client's end; None if shards do not care."""
        ...

    def event_for_deleted_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return the event that tells a shard of deleted topics; None if shards do not care."""
        ...

    def event_for_changed_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return the event that tells a shard of topics created, changed or deleted, or None.

        Only shards that are ready hear of it: who is loaded afterwards has to look for himself.
        """
        ...


Key = TypeVar("Key", bound=Hashable)


class _Timer(Generic[Key]):
    __slots__ = ("deadline_ms", "key", "queued_ms")

    def __init__(self, key: Key, deadline_ms: int) -> None:
        self.key = key
        self.deadline_ms: int | None = deadline_ms
        self.queued_ms = deadline_ms


class Timers(Generic[Key]):
    """Deadlines by key, made for timers that are put off again and again.

    Invariant: every live timer is in the heap once at `queued_ms` <= its deadline. Putting it off
    is one dictionary look-up; the heap is put right when the old time comes.
    """

    __slots__ = ("_heap", "_sequence", "_timers")

    def __init__(self) -> None:
        self._timers: dict[Key, _Timer[Key]] = {}
        self._heap: list[tuple[int, int, _Timer[Key]]] = []
        self._sequence = 0

    def schedule(self, key: Key, deadline_ms: int) -> None:
        """Set the one deadline of `key`, in place of any before."""
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = _Timer(key, deadline_ms)
            self._push(timer, deadline_ms)
            return
        timer.deadline_ms = deadline_ms
        if deadline_ms < timer.queued_ms:
            self._push(timer, deadline_ms)

    def cancel(self, key: Key) -> None:
        """Forget the deadline of `key`, if it has one."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.deadline_ms = None

    def deadline_ms(self, key: Key) -> int | None:
        """Return the deadline of `key`."""
        timer = self._timers.get(key)
        return None if timer is None else timer.deadline_ms

    def next_deadline_ms(self) -> int | None:
        """Return a time before which nothing is due; None if there is no timer."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Key | None:
        """Remove and return the key that is due for longest; None if nothing is."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            queued_ms, _, timer = heapq.heappop(heap)
            if timer.deadline_ms is None or queued_ms != timer.queued_ms:
                continue  # cancelled, or queued for an earlier time since
            if timer.deadline_ms > now_ms:
                self._push(timer, timer.deadline_ms)
                continue
            timer.deadline_ms = None
            del self._timers[timer.key]
            return timer.key
        return None

    def _push(self, timer: _Timer[Key], at_ms: int) -> None:
        timer.queued_ms = at_ms
        self._sequence += 1  # keeps timers of one millisecond in the order they were set
        heapq.heappush(self._heap, (at_ms, self._sequence, timer))


@lru_cache(maxsize=4096)
def partition_for(key: str, partition_count: int) -> int:
    """Return the partition of an internal topic that a group or transactional id belongs to.

    As Kafka has it: Java's String.hashCode, made positive, where the one number that has no
    positive counterpart counts as 0 (rules 101, 124).
    """
    units = key.encode("utf-16-be", "surrogatepass")
    code = 0
    for position in range(0, len(units), 2):
        code = (31 * code + (units[position] << 8) + units[position + 1]) & 0xFFFFFFFF
    magnitude = code if code < 1 << 31 else (1 << 32) - code
    return 0 if magnitude == 1 << 31 else magnitude % partition_count
