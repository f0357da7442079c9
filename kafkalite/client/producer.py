"""Writing records: gathered into one batch a partition, sent when enough are there."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kafkalite.client.cluster import Client
from kafkalite.client.errors import RETRIABLE, ClientError, error_of
from kafkalite.client.murmur import murmur2
from kafkalite.types import TopicPartition
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch

BATCH_BYTES: Final = 256 * 1024
"""Records of one partition are sent when they reach this; a quarter of the 1 MiB that brokers
accept by default (`message.max.bytes`)."""

PENDING_MAX_BYTES: Final = 4 * 1024 * 1024
"""Records of all partitions are sent when they reach this: the bound of what is held here."""

RECORD_OVERHEAD_BYTES: Final = 16
"""About what a record costs beside its key, value and headers."""

ALL: Final = -1
"""`acks`: the leader answers when all in-sync replicas have the records."""


@dataclass(slots=True)
class _Batch:
    records: list[Record] = field(default_factory=list)
    size_bytes: int = 0


class Producer:
    """Writes to one topic.

    Records are sent again only after an answer that says that they were not stored (the leader
    has moved). An answer that never comes is an error: they may or may not have been stored.

    Args:
        client: the cluster.
        topic: its name; created by the broker if it does not exist and the broker is set so.
        acks: -1 (all), 1 or 0, as in Kafka's producers.
        codec: compression of the batches.
        timeout_ms: how long the leader may wait for its replicas.
    """

    def __init__(
        self,
        client: Client,
        topic: str,
        *,
        acks: int = ALL,
        codec: Codec = Codec.NONE,
        timeout_ms: int = 30_000,
    ) -> None:
        self._client = client
        self._topic = topic
        self._acks = acks
        self._codec = codec
        self._timeout_ms = timeout_ms
        found = client.topic(topic, auto_create=True)
        self.partition_count = len(found.partitions)
        self._pending: dict[int, _Batch] = {}
        self._pending_bytes = 0
        self._keyless_partition = 0
        self.record_count = 0
        """Records that were sent, and acknowledged unless acks is 0."""

    def send(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Take a record; it is sent together with others, at the latest by `flush`.

        Args:
            value: None is a tombstone.
            key: decides the partition as in Kafka's Java client, if none is given.
            headers: in the order in which consumers see them.
            partition: where to; by default the key's, and without a key each batch goes to another.
            timestamp_ms: time of creation; now if None.

        Raises:
            ClientError: there is no such partition.
        """
        if partition is None:
            partition = self._keyless_partition if key is None else self._partition_of(key)
        if not 0 <= partition < self.partition_count:
            raise ClientError(
                f"topic {self._topic!r} has no partition {partition}; "
                f"it has {self.partition_count}, counted from 0"
            )
        batch = self._pending.setdefault(partition, _Batch())
        timestamp = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        batch.records.append(Record(len(batch.records), timestamp, key, value, list(headers)))
        size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
        size += sum(len(name) + len(content or b"") + 4 for name, content in headers)
        batch.size_bytes += size
        self._pending_bytes += size
        if batch.size_bytes >= BATCH_BYTES or self._pending_bytes >= PENDING_MAX_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send what was taken and wait until it is acknowledged.

        Raises:
            KafkaError: the broker refuses a batch.
            ClientError: no answer.
        """
        batches = {
            TopicPartition(self._topic, index): (
                build_batch(batch.records, codec=self._codec),
                len(batch.records),
            )
            for index, batch in self._pending.items()
        }
        self._pending.clear()
        self._pending_bytes = 0
        self._keyless_partition = (self._keyless_partition + 1) % self.partition_count
        if batches:
            self._client.retry(lambda: self._send(batches))

    def _partition_of(self, key: bytes) -> int:
        return (murmur2(key) & 0x7FFFFFFF) % self.partition_count

    def _send(self, batches: dict[TopicPartition, tuple[bytearray, int]]) -> None:
        """Send every batch to its leader; those that were stored leave `batches`."""
        for leader, places in self._client.by_leader(list(batches)).items():
            request = ProduceRequest(
                acks=self._acks,
                timeout_ms=self._timeout_ms,
                topic_data=[
                    TopicProduceData(
                        name=self._topic,
                        partition_data=[
                            PartitionProduceData(
                                index=place.partition, records=memoryview(batches[place][0])
                            )
                            for place in places
                        ],
                    )
                ],
            )
            connection = self._client.broker(leader)
            if self._acks == 0:
                connection.send(PRODUCE, request)
                for place in places:
                    self.record_count += batches.pop(place)[1]
                continue
            answer = connection.request(PRODUCE, request, wait_ms=self._timeout_ms)
            moved: KafkaError | None = None
            for topic in answer.responses:
                for result in topic.partition_responses:
                    error = _error(self._topic, result)
                    if error is None:
                        place = TopicPartition(self._topic, result.index)
                        self.record_count += batches.pop(place)[1]
                    elif error.code in RETRIABLE:
                        moved = error
                    else:
                        raise error
            if moved is not None:
                self._client.forget_leaders([self._topic])
                raise moved


def _error(topic: str, result: PartitionProduceResponse) -> KafkaError | None:
    message = f"{topic}-{result.index}"
    if result.error_message:
        message += f": {result.error_message}"
    for bad in result.record_errors[:1]:
        if bad.batch_index_error_message:
            message += f" (record {bad.batch_index}: {bad.batch_index_error_message})"
    return error_of(result.error_code, message)
