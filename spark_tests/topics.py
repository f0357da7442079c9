"""Topics for a test, made and filled by another client than the one under test (librdkafka)."""

import itertools
import time
import uuid
from collections.abc import Callable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

ANSWER_SECONDS = 30


def wait_until(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Return when the condition is true; asks often, because the broker has no event for it."""
    deadline = time.monotonic() + seconds
    pause = (0.005 * 1.5**step for step in itertools.count())
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}"
        time.sleep(min(0.2, next(pause)))


class Topics:
    """Makes topics of one cluster; those that it made are deleted by `close`."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._producers: dict[tuple, Producer] = {}
        self._made: list[str] = []

    def name(self, prefix: str = "t") -> str:
        """Return a name that no other test uses."""
        return f"{prefix}-{uuid.uuid4().hex[:10]}"

    def create(self, partitions: int = 1, *, name: str | None = None, **config: object) -> str:
        """Create a topic; config names are Kafka's with ``_`` for ``.``.

        Records are kept for ever unless the test says otherwise: many carry times long past.
        """
        name = name or self.name()
        config = {"retention_ms": -1, **config}
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, config=settings)
        self._admin.create_topics([topic])[name].result(ANSWER_SECONDS)
        self._made.append(name)
        wait_until(lambda: len(self._partitions(name)) == partitions, f"{name} has partitions")
        return name

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(ANSWER_SECONDS)

    def add_partitions(self, name: str, total: int) -> None:
        self._admin.create_partitions([NewPartitions(name, total)])[name].result(ANSWER_SECONDS)
        wait_until(lambda: len(self._partitions(name)) == total, f"{name} has {total} partitions")
        # Those that exist believe their metadata of the topic for minutes.
        self._producers.clear()

    def set_config(self, name: str, key: str, value: object) -> None:
        entry = ConfigEntry(key, str(value), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS)

    def delete_records(self, name: str, partition: int, before: int) -> None:
        """Delete the records of a partition whose offset is below `before`."""
        wanted = [TopicPartition(name, partition, before)]
        for future in self._admin.delete_records(wanted).values():
            future.result(ANSWER_SECONDS)

    def produce(self, name: str, *records: dict, **settings: object) -> None:
        """Send records (keyword arguments of librdkafka's produce) and wait until they are in."""
        settings = {key.replace("_", "."): value for key, value in settings.items()}
        cached = tuple(sorted(settings.items()))
        if cached not in self._producers:
            settings = {"bootstrap.servers": self.bootstrap, "linger.ms": 5, **settings}
            self._producers[cached] = Producer(settings)
        producer = self._producers[cached]
        errors = []
        for record in records:
            producer.produce(
                name, on_delivery=lambda error, _: error and errors.append(error), **record
            )
            producer.poll(0)
        assert producer.flush(ANSWER_SECONDS) == 0
        assert not errors, errors[0]

    def fill(self, name: str, count: int, *, first: int = 0, partitions: int = 1) -> list[str]:
        """Send values ``v<first>``… one after the other to each partition in turn; return them."""
        values = [f"v{number}" for number in range(first, first + count)]
        self.produce(
            name,
            *(
                {"value": value, "key": f"k{number}", "partition": number % partitions}
                for number, value in enumerate(values, first)
            ),
        )
        return values

    def create_compacted(self) -> tuple[str, dict[str, str]]:
        """Create a topic, fill it and wait until compaction left gaps; return what must be left.

        Keys k0 to k4 got values v0 to v24 in turn; the last five and a closing record remain.
        """
        name = self.create(
            cleanup_policy="compact",
            min_cleanable_dirty_ratio=0.01,
            segment_ms=1000,
            delete_retention_ms=0,
        )
        sent = [{"key": f"k{n % 5}", "value": f"v{n}", "timestamp": 1000 + n} for n in range(25)]
        self.produce(name, *sent)
        # A record so much later closes the segment; only closed ones are compacted.
        self.produce(name, {"key": "closing", "value": "v25", "timestamp": 100_000})
        wait_until(lambda: len(self.read(name)) == 6, f"{name} is compacted", 60)
        return name, {**{f"k{n % 5}": f"v{n}" for n in range(20, 25)}, "closing": "v25"}

    def watermarks(self, name: str, partition: int = 0) -> tuple[int, int]:
        """Return log start and end offset as the broker tells a consumer."""
        consumer = self._consumer()
        try:
            return consumer.get_watermark_offsets(TopicPartition(name, partition), ANSWER_SECONDS)
        finally:
            consumer.close()

    def read(self, name: str) -> list:
        """Return the messages of all partitions, by partition and offset."""
        ends = {part: self.watermarks(name, part)[1] for part in self._partitions(name)}
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(name, part, 0) for part in ends])
            left = {part for part, end in ends.items() if end > self.watermarks(name, part)[0]}
            found = []
            deadline = time.monotonic() + ANSWER_SECONDS
            while left:
                assert time.monotonic() < deadline, f"{name}: no end in {left}"
                for message in consumer.consume(10_000, 0.1):
                    assert not message.error(), message.error()
                    found.append(message)
                    if message.offset() + 1 >= ends[message.partition()]:
                        left.discard(message.partition())
        finally:
            consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def close(self) -> None:
        made = [name for name in dict.fromkeys(self._made) if self._partitions(name)]
        if made:
            for future in self._admin.delete_topics(made).values():
                future.exception(ANSWER_SECONDS)

    def _partitions(self, name: str) -> dict:
        topic = self._admin.list_topics(timeout=ANSWER_SECONDS).topics.get(name)
        return topic.partitions if topic is not None and topic.error is None else {}

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "spark-tests",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
