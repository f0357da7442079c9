"""What the applications are given: real text, written at a steady pace through restarts."""

from __future__ import annotations

import itertools
import threading
import time
from pydoc_data import topics as python_documentation
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.streams.output import ANSWER_S, end_offsets
from kafkalite.client.cluster import Client
from kafkalite.testing.processes import wait_until_true

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def text_lines() -> Iterator[tuple[str, str]]:
    """Give real text that every Python brings, its own documentation, without end: (key, line)."""
    for round_number in itertools.count():
        for name, text in python_documentation.topics.items():
            for line in text.splitlines():
                if line.strip():
                    yield f"{name} {round_number}" if round_number else name, line


class Feeder:
    """Writes lines of text at a steady pace, idempotently, through restarts of the broker."""

    def __init__(self, bootstrap: str, topic: str, lines_per_s: int) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._topic = topic
        self._lines_per_s = lines_per_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self.failures: list[KafkaError] = []
        self.sent = 0

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Return when all that was sent is in the log."""
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(ANSWER_S) == 0
        assert not self.failures, self.failures[0]

    def _feed(self) -> None:
        begin = time.monotonic()
        for key, line in text_lines():
            self._producer.produce(self._topic, line, key, on_delivery=self._on_delivery)
            self.sent += 1
            self._producer.poll(0)
            ahead_s = begin + self.sent / self._lines_per_s - time.monotonic()
            if self._stopping.wait(max(0.0, ahead_s)):
                return

    def _on_delivery(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self.failures.append(error)


def read_lines(bootstrap: str, topic: str) -> list[tuple[str, str]]:
    """Return all lines of a topic by partition and offset: what the application was given."""
    ends = end_offsets(AdminClient({"bootstrap.servers": bootstrap}), topic)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused-by-assign",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in ends])
        messages = []
        deadline = time.monotonic() + ANSWER_S
        while len(messages) < sum(ends.values()):
            assert time.monotonic() < deadline, f"{len(messages)} of {ends}"
            messages += consumer.consume(10_000, timeout=0.1)
    finally:
        consumer.close()
    messages.sort(key=lambda message: (message.partition(), message.offset()))
    return [(message.key().decode(), message.value().decode()) for message in messages]


def create_topics(bootstrap: str, *topics: str, partitions: int) -> None:
    """Create topics that keep everything, with as many replicas as the broker gives by itself."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(topic, partitions, -1, config={"retention.ms": "-1"}) for topic in topics]
    for future in admin.create_topics(new).values():
        future.result(ANSWER_S)
    for address in bootstrap.split(","):
        assert wait_until_true(lambda at=address: _knows(at, topics), ANSWER_S), address


def _knows(address: str, topics: Sequence[str]) -> bool:
    """Tell whether a broker has heard of topics and of their leaders."""
    with Client(address) as client:
        found = client.fetch_metadata(topics).topics
    return all(
        not topic.error_code and all(place.leader_id >= 0 for place in topic.partitions)
        for topic in found
    )
