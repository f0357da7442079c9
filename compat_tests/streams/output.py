"""What the applications committed: read as it comes, and compared with what it must be."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compat_tests.streams.application import Updates

ANSWER_S = 30

#: What a consumer reports while its broker is away, and deals with by itself.
_DISCONNECTED = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}


class Tail:
    """Reads what is committed to some topics as it comes, through restarts of the broker."""

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused-by-assign",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        metadata = self._consumer.list_topics(timeout=ANSWER_S).topics
        places = [(topic, index) for topic in topics for index in metadata[topic].partitions]
        self._consumer.assign([TopicPartition(topic, index, 0) for topic, index in places])
        self._topics = list(topics)
        self.updates: dict[str, Updates] = {topic: {} for topic in topics}
        #: (topic, partition, offset, value), as they came.
        self.records: list[tuple[str, int, int, str]] = []
        #: Where it found the end of a partition, markers included; not while there is more.
        self.ends: dict[tuple[str, int], int] = {}
        self._next_offsets: dict[tuple[str, int], int] = {}

    @property
    def count(self) -> int:
        """How many records it has read."""
        return len(self.records)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read_more(self, count: int, timeout: float) -> None:
        """Read on until so many more updates have come."""
        wanted = self.count + count
        self.read_until(lambda: self.count >= wanted, f"{count} more updates", timeout)

    def read_until(self, condition: Callable[[], bool], what: str, timeout: float) -> None:
        """Read on until the condition holds; `timeout` is for the time without a record."""
        deadline, known = time.monotonic() + timeout, self.count
        while not condition():
            if self.count > known:
                # However slow the machine is: it gets on.
                deadline, known = time.monotonic() + timeout, self.count
            assert time.monotonic() < deadline, (
                f"{what}: nothing came for {timeout} s; {self.count} read"
            )
            for message in self._consumer.consume(1000, timeout=0.1):
                error = message.error()
                if error is None:
                    self.ends.pop((message.topic(), message.partition()), None)
                    self._take(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self.ends[message.topic(), message.partition()] = message.offset()
                elif not error.retriable() and error.code() not in _DISCONNECTED:
                    raise KafkaException(error)

    def read_to_end(self, timeout: float) -> None:
        """Read to the end that the topics have now, nothing being written any more.

        Raises:
            AssertionError: a transaction is still open there, or the end is not reached.
        """
        stable, ends = (self._ends_for(level) for level in IsolationLevel)
        assert stable == ends, f"open transactions: {stable} of {ends}"
        self.read_until(lambda: self.ends == ends, f"end at {ends}", timeout)

    def _ends_for(self, isolation: IsolationLevel) -> dict[tuple[str, int], int]:
        return {
            (topic, index): end
            for topic in self._topics
            for index, end in end_offsets(self._admin, topic, isolation).items()
        }

    def _take(self, message: Any) -> None:
        place = (message.topic(), message.partition())
        assert message.offset() >= self._next_offsets.get(place, 0), f"{place} went back"
        self._next_offsets[place] = message.offset() + 1
        key, value = message.key().decode(), message.value().decode()
        self.updates[message.topic()].setdefault(key, []).append(value)
        self.records.append((*place, message.offset(), value))


def end_offsets(
    admin: AdminClient, topic: str, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
) -> dict[int, int]:
    """Return where each partition ends for readers of an isolation level."""
    indexes = admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
    asked = {TopicPartition(topic, index): OffsetSpec.latest() for index in indexes}
    found = admin.list_offsets(asked, isolation_level=isolation)
    return {place.partition: future.result(ANSWER_S).offset for place, future in found.items()}


def first_difference(expected: Updates, found: Updates) -> str | None:
    """Return the first key whose updates differ, told so that a person can look for it; or None."""
    for key in sorted(expected.keys() | found.keys()):
        wanted, got = expected.get(key, []), found.get(key, [])
        if wanted != got:
            at = next(
                (i for i, (a, b) in enumerate(zip(wanted, got, strict=False)) if a != b),
                min(len(wanted), len(got)),
            )
            return (
                f"{key!r}, update {at}: expected {wanted[at : at + 5]} of {len(wanted)}, "
                f"found {got[at : at + 5]} of {len(got)} after {got[max(0, at - 3) : at]}"
            )
    return None
