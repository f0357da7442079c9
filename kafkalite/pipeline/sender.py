"""The part of a replay that runs in Spark's Python workers: Arrow batches to a topic.

Spark's own Kafka sink cannot set a record's timestamp, so the records are sent by librdkafka
(confluent-kafka), which can; it keeps the order, is idempotent and waits for all in-sync replicas.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkalite.pipeline.pace import Pace

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

#: Columns that `sending` takes, in this order, and columns of the one row it returns per task.
SENT_SCHEMA = (
    "key BINARY, value BINARY, time LONG, partition INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
RESULT_SCHEMA = (
    "records LONG, bytes LONG, first_time LONG, last_time LONG, error STRING, started DOUBLE"
)

_FLUSH_SECONDS = 120
_CONNECT_SECONDS = 15
#: librdkafka's own default of `partition`: choose by key, or at random without one.
_ANY_PARTITION = -1


class SendFailed(Exception):
    """A record was not accepted; the message names the first error."""


@dataclass(slots=True, frozen=True, kw_only=True)
class SendPlan:
    """Work of one sender: target, pace and rows.

    Attributes:
        topic: the topic.
        producer: settings of librdkafka.
        pace: when records are due.
        started: wall clock (seconds) of the start of the replay; None in its first slice, which
            starts when its producer is connected and reports when that was.
        preceding: how many records the Spark partitions before each one hold, by its number.
    """

    topic: str
    producer: Mapping[str, Any]
    pace: Pace = field(default_factory=Pace)
    started: float | None = None
    preceding: Mapping[int, int] = field(default_factory=dict)


def producer_settings(bootstrap: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return librdkafka's settings for a replay; `options` win."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "kafkalite-replay",
        "enable.idempotence": True,
        # Keys land in the partition where Kafka's Java producer puts them.
        "partitioner": "murmur2_random",
        "compression.type": "lz4",
        "linger.ms": 20,
        # Without a bound in bytes, a million queued records of 1 MB would be kept in memory.
        "queue.buffering.max.kbytes": 65_536,
        "delivery.report.only.error": True,
        # Errors; librdkafka's notices about what it tries again would cut through the progress bar.
        "log_level": 3,
        **options,
    }


def sending(
    plan: SendPlan,
) -> "Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """Return the function for ``DataFrame.mapInArrow``: sends each row, yields one result row.

    A refused record ends the task with the reason in its result, not with an exception: Spark would
    try the task again, and so send what was accepted twice.
    """

    def send(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        from confluent_kafka import KafkaException, Producer
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        error = None
        sender = Sender(Producer, plan, index=plan.preceding.get(number, 0))
        try:
            sender.connect()
            for batch in batches:
                sender.send(*(column.to_pylist() for column in batch.columns))
            sender.finish()
        except SendFailed as failure:
            error = str(failure)
        except KafkaException as failure:
            error = f"{plan.topic}: {failure.args[0].str()}"
        columns = {name: pa.array([value], pa.int64()) for name, value in sender.result().items()}
        columns["error"] = pa.array([error], pa.string())
        columns["started"] = pa.array([sender.started], pa.float64())
        yield pa.RecordBatch.from_pydict(columns)

    return send


class Sender:
    """Sends the rows of one Spark partition in order.

    Args:
        make_producer: makes a producer of confluent_kafka's interface from its settings.
        plan: see `SendPlan`.
        index: how many records of the whole replay come before the first row.
        wall_clock: seconds; only looked at when the pace is limited.
    """

    def __init__(
        self,
        make_producer: Callable[[dict[str, Any]], Any],
        plan: SendPlan,
        *,
        index: int = 0,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._plan = plan
        self._index = index
        self._wall_clock = wall_clock
        self._failure: str | None = None
        self._records = self._bytes = 0
        self._first_time: int | None = None
        self._last_time: int | None = None
        self._producer = make_producer({**plan.producer, "on_delivery": self._on_delivery})
        self.started = wall_clock() if plan.started is None else plan.started

    def connect(self) -> None:
        """Connect before the first record if there is a pace to keep.

        It takes up to a second, which would be caught up in a burst.
        """
        if self._plan.pace.is_limited:
            self._producer.list_topics(self._plan.topic, _CONNECT_SECONDS)
            if self._plan.started is None:
                self.started = self._wall_clock()

    def send(
        self,
        keys: list[bytes | None],
        values: list[bytes | None],
        times: list[int | None],
        partitions: list[int | None],
        headers: list[list[dict[str, Any]] | None],
    ) -> None:
        """Queue rows, given as columns of equal length; blocks while the queue is full."""
        limited = self._plan.pace.is_limited
        for key, value, timestamp, partition, header in zip(
            keys, values, times, partitions, headers, strict=True
        ):
            if limited:
                self._wait_due(timestamp)
            self._produce(key, value, timestamp, partition, header)
            self._count(key, value, timestamp)
        self._producer.poll(0)
        self._check()

    def finish(self) -> None:
        """Wait until every queued record is acknowledged.

        Raises:
            SendFailed: one was refused, or the broker did not answer within two minutes.
        """
        left = self._producer.flush(_FLUSH_SECONDS)
        self._check()
        if left:
            raise SendFailed(f"{left} records were not acknowledged in {_FLUSH_SECONDS} s")

    def result(self) -> dict[str, int | None]:
        """Return the row that a task reports, by column of `RESULT_SCHEMA`."""
        return {
            "records": self._records,
            "bytes": self._bytes,
            "first_time": self._first_time,
            "last_time": self._last_time,
        }

    def _produce(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None,
        partition: int | None,
        header: list[dict[str, Any]] | None,
    ) -> None:
        options: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
        if header:
            options["headers"] = [(item["key"], item["value"]) for item in header]
        where = _ANY_PARTITION if partition is None else partition
        while True:
            try:
                self._producer.produce(self._plan.topic, value, key, where, **options)
            except BufferError:
                # The queue is full: wait for acknowledgements, which the poll also serves.
                self._producer.poll(0.1)
                self._check()
            else:
                return

    def _wait_due(self, timestamp: int | None) -> None:
        due = self.started + self._plan.pace.due_seconds(self._index, timestamp)
        while (left := due - self._wall_clock()) > 0:
            self._producer.poll(min(left, 1.0))
            self._check()

    def _count(self, key: bytes | None, value: bytes | None, timestamp: int | None) -> None:
        self._index += 1
        self._records += 1
        self._bytes += len(key or b"") + len(value or b"")
        if timestamp is not None:
            first, last = self._first_time, self._last_time
            self._first_time = timestamp if first is None else min(first, timestamp)
            self._last_time = timestamp if last is None else max(last, timestamp)

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = f"{message.topic()}: {error.str()}"

    def _check(self) -> None:
        if self._failure is not None:
            raise SendFailed(self._failure)
