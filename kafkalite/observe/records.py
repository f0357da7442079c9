"""Reading records for people: from an offset, a time or the end, searched in bounded steps.

A search is a sequence of answers: each says how far it got, and where the next one goes on. Nothing
is kept here between them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import trio

from kafkalite.client.consumer import visible_batches
from kafkalite.http.slices import Slices
from kafkalite.observe.cluster import (
    EARLIEST,
    LATEST,
    PAUSE_S,
    Cluster,
    TopicView,
    check,
    list_offsets,
    records_of,
)
from kafkalite.observe.decoding import SHOWN_MAX_BYTES, decoded, internal
from kafkalite.observe.rendering import message_json
from kafkalite.observe.search import Filter, plain_json
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafkalite.wire.records import (
    BatchHeader,
    Record,
    iterate_records,
)

if TYPE_CHECKING:
    from kafkalite.registry.lookup import SchemaLookup

FETCH_BYTES: Final = 256 * 1024
"""Read of one partition at a time; about a millisecond to decode."""

STEP_S: Final = 0.5
"""A search answers after so long, found or not, and is continued by whoever asked."""

BACK_OFFSETS: Final = 2_000
"""A search from the end goes back so far in one step."""

BACK_MIN: Final = 100
"""It begins with so many, which it reads whatever time that takes."""

THROTTLED_MAX_S: Final = 20.0
"""A search waits for its quota so long, and then tells of it."""

READ_COMMITTED: Final = 1
BATCH_MAX_BYTES: Final = 64 * 1024 * 1024
"""A batch that is larger when it is unpacked is not opened."""


@dataclass(slots=True)
class Reading:
    """Records found in one step.

    Attributes:
        cursor: the next offset of each partition.
        scanned: offsets passed over, matching or not.
    """

    cursor: dict[int, int]
    messages: list[dict[str, Any]] = field(default_factory=list)
    scanned: int = 0
    skipped: list[str] = field(default_factory=list)


async def offsets_of(
    cluster: Cluster, view: TopicView, timestamp: int, partitions: list[int]
) -> dict[int, int]:
    """Return the first offsets at or after a time (or ends) by partition, -1 for none."""
    found = await list_offsets(cluster, [view], timestamp, partitions={view.name: partitions})
    return {place.partition: each.offset for place, each in found.items()}


async def ends_of(
    cluster: Cluster, view: TopicView, partitions: list[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return (first, end) offsets by partition."""
    return (
        await offsets_of(cluster, view, EARLIEST, partitions),
        await offsets_of(cluster, view, LATEST, partitions),
    )


async def read_forward(
    cluster: Cluster,
    view: TopicView,
    cursor: Mapping[int, int],
    ends: Mapping[int, int],
    *,
    limit: int,
    wanted: Filter,
    committed: bool = False,
    step_s: float | None = None,
) -> Reading:
    """Read from `cursor` on until `limit` records match, all ends are reached, or time is up.

    Partitions take turns, so that none is left behind by a long one.
    """
    reading = Reading(dict(cursor))
    leaders = {each.index: each.leader for each in view.partitions}
    deadline_s = perf_counter() + (STEP_S if step_s is None else step_s)
    slices = Slices()
    while True:
        open_ones = [p for p, at in reading.cursor.items() if at < ends.get(p, 0)]
        if not open_ones:
            return reading
        for index in open_ones:
            await _read_some(
                cluster,
                TopicPartition(view.name, index),
                leaders.get(index, -1),
                reading,
                end=ends[index],
                limit=limit,
                wanted=wanted,
                committed=committed,
                slices=slices,
            )
            if len(reading.messages) >= limit or perf_counter() >= deadline_s:
                return reading


async def _read_some(
    cluster: Cluster,
    place: TopicPartition,
    leader: int,
    reading: Reading,
    *,
    end: int,
    limit: int,
    wanted: Filter,
    committed: bool,
    slices: Slices,
) -> None:
    """Read one piece of one partition into `reading`."""
    at = reading.cursor[place.partition]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES,
        isolation_level=READ_COMMITTED if committed else 0,
        topics=[
            FetchTopic(
                topic=place.topic,
                partitions=[
                    FetchPartition(
                        partition=place.partition,
                        fetch_offset=at,
                        partition_max_bytes=FETCH_BYTES,
                    )
                ],
            )
        ],
    )
    (data,) = (await _fetched(cluster, request, leader)).responses[0].partitions
    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and data.log_start_offset > at:
        reading.cursor[place.partition] = data.log_start_offset
        return
    check(data.error_code, str(place))
    aborted = (data.aborted_transactions or []) if committed else None
    schemas = cluster.schemas
    json_of = None if schemas is None else partial(_json_of, schemas)
    moved = at
    for header, batch in visible_batches(records_of(data.records), aborted):
        if batch is not None:
            for record in _records(header, batch, place, reading):
                if not at <= record.offset < end:
                    continue
                moved = record.offset + 1
                if schemas is not None:
                    await schemas.load(record.key, record.value)
                if wanted.matches(record, json_of):
                    reading.messages.append(record_json(place, header, record, schemas))
                    if len(reading.messages) >= limit:
                        reading.scanned += moved - at
                        reading.cursor[place.partition] = moved
                        return
                await slices.breathe()
        moved = max(moved, min(header.next_offset, end))
        await slices.breathe()
    if moved == at:
        moved = end  # what is left is not there for this reader, such as an open transaction
    reading.scanned += moved - at
    reading.cursor[place.partition] = moved


async def _fetched(cluster: Cluster, request: FetchRequest, leader: int) -> FetchResponse:
    """Return an answer that has the partition: not that to a client over its quota (rule 561)."""
    with trio.move_on_after(THROTTLED_MAX_S):
        while True:
            answer = await cluster.ask(FETCH, request, broker=leader)
            check(answer.error_code)
            if answer.responses:
                return answer
            await trio.sleep(max(answer.throttle_time_ms / 1_000, PAUSE_S))
    raise KafkaError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        f"no records are told for {THROTTLED_MAX_S:.0f} s: the quota of this client "
        "(consumer_byte_rate) is too small",
    )


def _records(
    header: BatchHeader, batch: memoryview, place: TopicPartition, reading: Reading
) -> Iterator[Record]:
    """Yield the records of a batch; one that cannot be opened is noted and passed over."""
    try:
        yield from iterate_records(batch, max_bytes=BATCH_MAX_BYTES)
    except KafkaError as error:
        reading.skipped.append(f"{place} from offset {header.base_offset}: {error}")


def _json_of(schemas: "SchemaLookup", value: bytes | None) -> Any:
    """Return the JSON that a value is, by its schema or by itself."""
    if value is not None and len(value) <= SHOWN_MAX_BYTES:
        known = schemas.decode(value)
        if known is not None and not known.problem:
            return known.value
    return plain_json(value)


def record_json(
    place: TopicPartition,
    header: BatchHeader,
    record: Record,
    schemas: "SchemaLookup | None" = None,
) -> dict[str, Any]:
    """Return a record as the API tells it."""
    found: dict[str, Any] = {
        "partition": place.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": decoded(record.key, schemas),
        "value": decoded(record.value, schemas),
        "headers": [{"name": name, **decoded(value)} for name, value in record.headers],
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "is_transactional": header.is_transactional,
        "compression": header.codec.name.lower(),
    }
    inside = internal(place.topic, record.key, record.value)
    if inside is not None:
        for name, message in zip(("key", "value"), inside, strict=True):
            if message is not None:
                found[name] = {
                    "type": "json",
                    "value": {"is": type(message).__name__, **message_json(message)},
                    "size": found[name]["size"],
                }
    return found


async def read_newest(
    cluster: Cluster,
    view: TopicView,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    *,
    limit: int,
    wanted: Filter,
    committed: bool = False,
) -> Reading:
    """Read the last records of each partition; those that match, the newest first.

    `cursor` is where that began, so that older ones are found by asking again with it as the end:
    everything from there on was read. Without a filter these are so many of each partition, as the
    newest of all are wanted; with one as many as there is time for, in the order of `ends`.
    """
    whole = Reading(dict(ends))
    deadline_s = perf_counter() + STEP_S
    for index, end in ends.items():
        at, start = end, starts.get(index, 0)
        back = BACK_MIN if wanted.conditions else limit
        last = max(start, end - (BACK_OFFSETS if wanted.conditions else limit))
        while at > last:
            begin = max(last, at - back)
            piece = await read_forward(
                cluster,
                view,
                {index: begin},
                {index: at},
                limit=at - begin,
                wanted=wanted,
                committed=committed,
                step_s=inf,
            )
            whole.messages += piece.messages
            whole.scanned += piece.scanned
            whole.skipped += piece.skipped
            whole.cursor[index] = at = begin
            back *= 2
            if wanted.conditions and perf_counter() >= deadline_s:
                return _newest_first(whole)
    return _newest_first(whole)


def _newest_first(reading: Reading) -> Reading:
    reading.messages.sort(key=lambda each: (each["timestamp"], each["offset"]), reverse=True)
    return reading
