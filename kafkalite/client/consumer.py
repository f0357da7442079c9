"""Reading records: one Fetch at a time, from every leader in turn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

from kafkalite.client.cluster import Client
from kafkalite.client.errors import RETRIABLE, error_of
from kafkalite.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, beginnings, by_topic
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    BatchHeader,
    Record,
    iterate_batches,
    iterate_records,
    read_end_marker,
    read_whole_header,
)

FETCH_MAX_BYTES: Final = 8 * 1024 * 1024
PARTITION_MAX_BYTES: Final = 1024 * 1024
"""The most that one answer, and one partition in it, brings; one batch comes whole in any case."""

MAX_WAIT_MS: Final = 500
"""How long a broker that has nothing new holds its answer back; Kafka's own default."""


@dataclass(slots=True, frozen=True)
class ConsumedRecord:
    """One record as a consumer sees it; `timestamp` in ms, -1 for none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)


class Consumer:
    """Reads partitions from given offsets on; a member of no group.

    Args:
        client: the cluster.
        positions: the first offset to read of each partition.
        ends: stop before this offset, for the partitions named; without it reading never ends.
        isolation: READ_COMMITTED leaves out what belongs to transactions that are open or aborted.
    """

    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, int],
        *,
        ends: Mapping[TopicPartition, int] | None = None,
        isolation: int = READ_UNCOMMITTED,
    ) -> None:
        self._client = client
        self._ends = dict(ends or {})
        self._isolation = isolation
        self.positions = dict(positions)
        """The next offset of each partition. Moved when a record has been handed out."""
        self.skipped: list[str] = []
        """One line for each stretch of offsets that was gone before it could be read."""

    @property
    def done(self) -> bool:
        """Whether all partitions have been read up to their ends."""
        return not self._unfinished()

    def poll(self, *, max_wait_ms: int = MAX_WAIT_MS) -> Iterator[ConsumedRecord]:
        """Fetch once from every leader and yield what came, in the order of each partition.

        Yields nothing if nothing new was there within `max_wait_ms`.

        Raises:
            KafkaError: a partition cannot be read, or holds bytes that are no records.
        """
        led = self._client.by_leader(self._unfinished())
        for leader, places in led.items():
            request = self._request(places, max_wait_ms // len(led))
            connection = self._client.broker(leader)
            answer = connection.request(FETCH, request, wait_ms=max_wait_ms)
            yield from self._take(answer)

    def _unfinished(self) -> list[TopicPartition]:
        ends = self._ends
        return [p for p, at in self.positions.items() if p not in ends or at < ends[p]]

    def _request(self, places: list[TopicPartition], max_wait_ms: int) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=FETCH_MAX_BYTES,
            isolation_level=self._isolation,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(
                            partition=place.partition,
                            fetch_offset=self.positions[place],
                            partition_max_bytes=PARTITION_MAX_BYTES,
                        )
                        for place in members
                    ],
                )
                for topic, members in by_topic(places)
            ],
        )

    def _take(self, answer: FetchResponse) -> Iterator[ConsumedRecord]:
        error = error_of(answer.error_code)
        if error is not None:
            raise error
        for topic in answer.responses:
            for data in topic.partitions:
                place = TopicPartition(topic.topic, data.partition_index)
                error = error_of(data.error_code, str(place))
                if error is None:
                    yield from self._records(place, data)
                elif error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._skip_to_beginning(place)
                elif error.code in RETRIABLE:
                    self._client.forget_leaders([place.topic])
                    self._client.pause()
                else:
                    raise error

    def _skip_to_beginning(self, place: TopicPartition) -> None:
        """Go on where the partition begins now; what was asked for was deleted meanwhile."""
        at, beginning = self.positions[place], beginnings(self._client, [place])[place]
        if at >= beginning:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{place} has no offset {at}; it ends before that"
            )
        self.skipped.append(f"{place}: offsets {at} to {beginning - 1} are deleted")
        self.positions[place] = beginning

    def _records(self, place: TopicPartition, data: PartitionData) -> Iterator[ConsumedRecord]:
        if data.records is None:
            return
        end = self._ends.get(place, 2**63)
        committed = self._isolation == READ_COMMITTED
        aborted = (data.aborted_transactions or []) if committed else None
        for header, batch in visible_batches(cast("memoryview", data.records), aborted):
            for record in () if batch is None else iterate_records(batch):
                if record.offset >= end:
                    break
                if record.offset < self.positions[place]:
                    continue  # a batch comes whole, also where reading starts inside it
                self.positions[place] = record.offset + 1
                yield consumed(place, record)
            self.positions[place] = max(self.positions[place], min(header.next_offset, end))


class Aborted(Protocol):
    """A transaction that was aborted, of its producer's the first from `first_offset` on."""

    producer_id: int
    first_offset: int


def consumed(place: TopicPartition, record: Record) -> ConsumedRecord:
    """Return a record with the place it was read from."""
    return ConsumedRecord(
        place.topic,
        place.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        record.headers,
    )


def visible_batches(
    records: memoryview, aborted: Sequence[Aborted] | None
) -> Iterator[tuple[BatchHeader, memoryview | None]]:
    """Yield each whole batch with its header; None for one that consumers are not shown.

    These are transaction markers, and what belongs to the `aborted` transactions; all data is
    shown if `aborted` is None.
    """
    ranges = _AbortedRanges(aborted or ())
    for position, header in iterate_batches(records):
        batch = records[position : position + header.size]
        if header.is_control:
            ranges.on_control_batch(batch)
            yield header, None
        else:
            is_hidden = aborted is not None and ranges.covers(header)
            yield header, None if is_hidden else batch


class _AbortedRanges:
    """Which batches belong to aborted transactions, by the list that a Fetch answer carries.

    As Kafka's CompletedFetch: a producer is aborted from a transaction's first offset until its
    abort marker.
    """

    def __init__(self, transactions: Iterable[Aborted]) -> None:
        self._coming = sorted(transactions, key=lambda each: each.first_offset)
        self._producer_ids: set[int] = set()

    def covers(self, header: BatchHeader) -> bool:
        """Return whether consumers of READ_COMMITTED must not see this batch."""
        while self._coming and self._coming[0].first_offset <= header.last_offset:
            self._producer_ids.add(self._coming.pop(0).producer_id)
        return header.is_transactional and header.producer_id in self._producer_ids

    def on_control_batch(self, batch: memoryview) -> None:
        """Take note of a transaction's end."""
        header = read_whole_header(batch)
        marker = read_end_marker(batch) if len(batch) > BATCH_OVERHEAD else None
        if marker is not None and not marker.is_commit:
            self.covers(header)
            self._producer_ids.discard(header.producer_id)
