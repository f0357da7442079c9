"""Transactions with confluent-kafka: a part of its driver."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka as ck

from compat_tests.driver_program import OperationError, decode, encode
from compat_tests.transaction_program import UntilLast, next_offsets, transformed

WAIT_S = 30


def _record(message: ck.Message) -> dict[str, Any]:
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "key": encode(message.key()),
        "value": encode(message.value()),
        "headers": [],
    }


def request_timeout(timeout_ms: int | None) -> dict[str, int]:
    """Return the settings by which an answer is waited for so long; none for None."""
    return {} if timeout_ms is None else {"socket.timeout.ms": timeout_ms}


class Transactions:
    """The transactional operations of DRIVERS.md."""

    base: dict[str, Any]

    def error_of(self, error: BaseException) -> tuple[int | str, str]:
        """Is the driver's own."""
        raise NotImplementedError

    @property
    def producers(self) -> dict[str, ck.Producer]:
        """The open producers by name."""
        return self.__dict__.setdefault("_producers", {})

    def do_txn_open(
        self,
        producer: str,
        transactional_id: str,
        timeout_ms: int = 60000,
        request_timeout_ms: int | None = None,
        **_: Any,
    ) -> None:
        opened = ck.Producer(
            {
                **self.base,
                **request_timeout(request_timeout_ms),
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": min(timeout_ms, 20000),
                "partitioner": "murmur2_random",
                "linger.ms": 1,
            }
        )
        opened.init_transactions(WAIT_S)
        self.producers[producer] = opened

    def do_txn_begin(self, producer: str) -> None:
        self.producers[producer].begin_transaction()

    def do_txn_commit(self, producer: str) -> None:
        self.producers[producer].commit_transaction(WAIT_S)

    def do_txn_abort(self, producer: str) -> None:
        self.producers[producer].abort_transaction(WAIT_S)

    def do_txn_close(self, producer: str) -> None:
        # Dropped as it is: closing would abort an open transaction.
        closed = self.producers.pop(producer)
        closed.purge()

    def do_txn_send(
        self, producer: str, topic: str, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        sender = self.producers[producer]
        results: list[Any] = [None] * len(records)

        def on_delivery(position: int, error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is None:
                results[position] = {"partition": message.partition(), "offset": message.offset()}
            else:
                code, text = self.error_of(ck.KafkaException(error))
                results[position] = {"error": {"code": code, "message": text}}

        for position, record in enumerate(records):
            sender.produce(
                topic,
                decode(record["value"]),
                decode(record["key"]),
                on_delivery=lambda e, m, position=position: on_delivery(position, e, m),
                **({} if record.get("partition") is None else {"partition": record["partition"]}),
            )
        # Not flush(): in 2.16.1 that raises, of a fenced producer, what is no exception at all.
        deadline = time.monotonic() + WAIT_S
        while len(sender) and time.monotonic() < deadline:
            sender.poll(0.05)
        return {"results": results}

    def do_txn_transform(
        self, producer: str, group: str, source: str, target: str, count: int
    ) -> dict[str, Any]:
        consumer = ck.Consumer(
            {
                **self.base,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
            }
        )
        try:
            consumer.subscribe([source])
            records: list[dict[str, Any]] = []
            deadline = time.monotonic() + 20
            while len(records) < count:
                if time.monotonic() > deadline:
                    raise OperationError("TIMEOUT", f"{len(records)} of {count} records")
                for message in consumer.consume(count - len(records), timeout=0.1):
                    if message.error() is not None:
                        raise ck.KafkaException(message.error())
                    records.append(_record(message))
            self.do_txn_begin(producer)
            self.do_txn_send(producer, target, [transformed(record) for record in records])
            offsets = [
                ck.TopicPartition(topic, index, offset)
                for (topic, index), offset in next_offsets(records).items()
            ]
            metadata = consumer.consumer_group_metadata()
            self.producers[producer].send_offsets_to_transaction(offsets, metadata, WAIT_S)
            return {"records": records}
        finally:
            consumer.close()

    def do_read_until(
        self, topic: str, partitions: list[int], isolation: str, last: str, timeout_ms: int = 20000
    ) -> dict[str, Any]:
        consumer = ck.Consumer(
            {
                **self.base,
                "group.id": "unused-by-assign",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "fetch.wait.max.ms": 100,
            }
        )
        until = UntilLast(partitions, last, timeout_ms)
        try:
            start = ck.OFFSET_BEGINNING
            consumer.assign([ck.TopicPartition(topic, index, start) for index in partitions])
            while not until.is_over:
                for message in consumer.consume(500, timeout=0.1):
                    if message.error() is not None:
                        raise ck.KafkaException(message.error())
                    until.add(_record(message))
            return until.reply()
        finally:
            consumer.close()
