"""The API's records: read, search, follow, write."""

import datetime as dt
import json
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, Final

import trio

from kafkalite.client.murmur import murmur2
from kafkalite.http.routing import HttpError, HttpRequest, HttpResponse, Route
from kafkalite.http.streams import EVENTS_TYPE, HEARTBEAT_S, event
from kafkalite.observe.answers import Routes, field
from kafkalite.observe.cluster import LATEST, Cluster, TopicView, check, retry, topic
from kafkalite.observe.decoding import encoded
from kafkalite.observe.records import Reading, ends_of, offsets_of, read_forward, read_newest
from kafkalite.observe.search import Filter, parse_filter
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch

LIMIT_MAX: Final = 1_000
PRODUCE_MAX_BYTES: Final = 8 * 1024 * 1024
FOLLOW_PAUSE_S: Final = 0.2
FOLLOW_PAUSE_MAX_S: Final = 1.0
"""Between looks for new records; it grows while there are none."""

FOLLOW_MAX: Final = 200
"""Records in one event."""


class MessageRoutes:
    """Answers about records."""

    def __init__(self, cluster: Cluster, now_ms: Any) -> None:
        self._cluster = cluster
        self._now_ms = now_ms

    def routes(self) -> list[Route]:
        """Return what is answered."""
        add = Routes(self._cluster)
        add.get("/topics/{topic}/messages", self._read)
        add.get("/topics/{topic}/messages/follow", self._follow)
        add.get("/topics/{topic}/messages/{partition}/{offset}", self._one)
        add.write(
            "POST", "/topics/{topic}/messages", self._produce, body_max_bytes=PRODUCE_MAX_BYTES
        )
        return add.list

    async def _read(self, request: HttpRequest) -> dict[str, Any]:
        """Answer one step of a search; `cursor` of the answer, given back, is the next step."""
        view = await topic(self._cluster, request.parameters["topic"])
        partitions = _partitions(view, request)
        limit = request.number("limit", 50, low=1, high=LIMIT_MAX)
        wanted = _filter(request)
        committed = request.flag("committed")
        starts, ends = await ends_of(self._cluster, view, partitions)
        where = request.text("from", "newest")
        cursor = _cursor(request, ends)
        if where == "newest":
            until = {p: min(end, cursor.get(p, end)) for p, end in ends.items()}
            # Those that are behind go first: there may not be time for all.
            until = dict(sorted(until.items(), key=lambda each: ends[each[0]] - each[1]))
            reading = await read_newest(
                self._cluster,
                view,
                starts,
                until,
                limit=limit,
                wanted=wanted,
                committed=committed,
            )
            done = all(at <= starts.get(p, 0) for p, at in reading.cursor.items())
            passed = sum(ends[p] - at for p, at in reading.cursor.items())
        else:
            begin = cursor or await self._begin(view, partitions, where, starts, ends)
            reading = await read_forward(
                self._cluster, view, begin, ends, limit=limit, wanted=wanted, committed=committed
            )
            done = all(at >= ends.get(p, 0) for p, at in reading.cursor.items())
            passed = sum(max(0, at - starts.get(p, 0)) for p, at in reading.cursor.items())
        return _step(view, reading, starts, ends, done=done, passed=passed)

    async def _begin(
        self,
        view: TopicView,
        partitions: list[int],
        where: str,
        starts: dict[int, int],
        ends: dict[int, int],
    ) -> dict[int, int]:
        """Return where to begin: `earliest`, `offset:N`, `time:...`."""
        kind, _, text = where.partition(":")
        if kind == "earliest":
            return dict(starts)
        if kind == "offset" and text.isdigit():
            wanted = int(text)
            return {p: min(max(wanted, start), ends.get(p, start)) for p, start in starts.items()}
        if kind == "time":
            found = await offsets_of(self._cluster, view, time_ms(text), partitions)
            return {p: at if at >= 0 else ends.get(p, 0) for p, at in found.items()}
        raise HttpError(400, f"from={where!r} is none of newest, earliest, offset:N, time:...")

    async def _one(self, request: HttpRequest) -> dict[str, Any]:
        view = await topic(self._cluster, request.parameters["topic"])
        place = request.parameters["partition"], request.parameters["offset"]
        if not all(text.isdigit() and len(text) < 19 for text in place):
            raise HttpError(404, "partition and offset are whole numbers")
        partition, offset = map(int, place)
        if not any(each.index == partition for each in view.partitions):
            raise HttpError(404, f"{view.name} has no partition {partition}")
        reading = await read_forward(
            self._cluster,
            view,
            {partition: offset},
            {partition: offset + 1},
            limit=1,
            wanted=Filter(),
        )
        if not reading.messages:
            raise HttpError(404, f"{view.name}-{partition} has no record at offset {offset}")
        return reading.messages[0]

    async def _follow(self, request: HttpRequest) -> HttpResponse:
        """Send records as they are written; `Last-Event-ID` goes on where it broke off."""
        view = await topic(self._cluster, request.parameters["topic"])
        partitions = _partitions(view, request)
        wanted = _filter(request)
        last = request.headers.get("last-event-id", "")
        cursor = await offsets_of(self._cluster, view, LATEST, partitions)
        if last:
            cursor |= _read_cursor(last, cursor)
        return HttpResponse(
            body=self._new_records(view, partitions, cursor, wanted),
            content_type=EVENTS_TYPE,
            is_stream=True,
        )

    async def _new_records(
        self, view: TopicView, partitions: list[int], cursor: dict[int, int], wanted: Filter
    ) -> AsyncGenerator[bytes, None]:
        yield b"retry: 1000\n\n"
        silent_s = 0.0
        pause_s = FOLLOW_PAUSE_S
        while True:
            try:
                view = await topic(self._cluster, view.name)
                ends = await offsets_of(self._cluster, view, LATEST, partitions)
                reading = await read_forward(
                    self._cluster, view, cursor, ends, limit=FOLLOW_MAX, wanted=wanted
                )
            except KafkaError as error:
                yield event("failed", {"message": str(error)})
                await trio.sleep(1)
                continue
            pause_s = min(pause_s * 1.5, FOLLOW_PAUSE_MAX_S)
            if reading.cursor != cursor:
                pause_s = FOLLOW_PAUSE_S
            cursor = reading.cursor
            if reading.messages:
                text = json.dumps({str(p): at for p, at in cursor.items()})
                body = event("messages", {"messages": reading.messages})
                yield b"id: " + text.encode() + b"\n" + body
                silent_s = 0.0
            elif silent_s >= HEARTBEAT_S:
                yield b": still here\n\n"
                silent_s = 0.0
            await trio.sleep(pause_s)
            silent_s += pause_s

    async def _produce(self, request: HttpRequest) -> dict[str, Any]:
        view = await topic(self._cluster, request.parameters["topic"])
        body = request.json()
        records = field(body, "records", list, [body])
        if not 0 < len(records) <= LIMIT_MAX:
            raise HttpError(400, f"from 1 to {LIMIT_MAX} records at a time")
        written = []
        for one in records:
            if not isinstance(one, dict):
                raise HttpError(400, "records is a list of objects")
            written.append(await retry(partial(self._write, view.name, one)))
        return {"topic": view.name, "written": written}

    async def _write(self, name: str, one: dict[str, Any]) -> dict[str, Any]:
        view = await topic(self._cluster, name)
        try:
            key = encoded(one.get("key"), field(one, "key_encoding", str, "text"))
            value = encoded(one.get("value"), field(one, "value_encoding", str, "text"))
            headers = [
                (str(each["name"]), encoded(each.get("value"), each.get("encoding", "text")))
                for each in field(one, "headers", list, [])
            ]
            codec = Codec[field(one, "compression", str, "none").upper()]
        except (ValueError, KeyError, TypeError) as error:
            raise HttpError(400, f"a record is not as it should be: {error}") from None
        index = field(one, "partition", int, None)
        if index is None:
            count = len(view.partitions)
            index = 0 if key is None else (murmur2(key) & 0x7FFFFFFF) % count
        leaders = {each.index: each.leader for each in view.partitions}
        if index not in leaders:
            raise HttpError(404, f"{view.name} has no partition {index}")
        timestamp = field(one, "timestamp", int, None)
        record = Record(0, self._now_ms() if timestamp is None else timestamp, key, value, headers)
        batch = build_batch([record], codec=codec)
        message = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    name=view.name,
                    partition_data=[PartitionProduceData(index=index, records=memoryview(batch))],
                )
            ],
        )
        answer = await self._cluster.ask(PRODUCE, message, broker=leaders[index])
        (result,) = answer.responses[0].partition_responses
        check(result.error_code, result.error_message or f"{view.name}-{index}")
        return {"partition": index, "offset": result.base_offset}


def _partitions(view: TopicView, request: HttpRequest) -> list[int]:
    indexes = [each.index for each in view.partitions]
    text = request.text("partition")
    if not text:
        return indexes
    wanted = [int(part) for part in text.split(",") if part.isdigit()]
    if not wanted or not set(wanted) <= set(indexes):
        raise HttpError(400, f"partition={text!r}: {view.name} has 0 to {len(indexes) - 1}")
    return wanted


def _filter(request: HttpRequest) -> Filter:
    try:
        return parse_filter(request.text("filter"))
    except ValueError as error:
        raise HttpError(400, str(error)) from None


def _cursor(request: HttpRequest, known: dict[int, int]) -> dict[int, int]:
    text = request.text("cursor")
    return _read_cursor(text, known) if text else {}


def _read_cursor(text: str, known: dict[int, int]) -> dict[int, int]:
    """Return offsets by partition.

    Raises:
        HttpError: 400, it is no cursor.
    """
    try:
        pairs = json.loads(text)
        return {int(p): int(at) for p, at in pairs.items() if int(p) in known and int(at) >= 0}
    except (ValueError, AttributeError, TypeError):
        raise HttpError(400, "cursor is none that was given out here") from None


def time_ms(text: str) -> int:
    """Return a time in ms since 1970: a number of ms, or ISO 8601, in UTC where nothing is said.

    Raises:
        HttpError: 400, it is neither.
    """
    if text.isdigit() and len(text) < 16:
        return int(text)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise HttpError(400, f"{text!r} is no time; write 2026-01-31T12:00 or ms") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return max(0, int(moment.timestamp() * 1_000))


def _step(
    view: TopicView,
    reading: Reading,
    starts: dict[int, int],
    ends: dict[int, int],
    *,
    done: bool,
    passed: int,
) -> dict[str, Any]:
    total = sum(max(0, end - starts.get(p, 0)) for p, end in ends.items())
    return {
        "topic": view.name,
        "messages": reading.messages,
        "scanned": reading.scanned,
        "passed": min(passed, total),
        "of": total,
        "done": done,
        "cursor": {str(p): at for p, at in sorted(reading.cursor.items())},
        "skipped": reading.skipped,
    }
