"""Transactions with kafka-python: a part of its driver."""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors
from kafka.structs import OffsetAndMetadata

from compat_tests import security
from compat_tests.driver_program import OperationError, decode
from compat_tests.transaction_program import UntilLast, next_offsets, plain_record, transformed

WAIT_S = 30


class Transactions:
    """The transactional operations of DRIVERS.md."""

    bootstrap: str

    def error_of(self, error: BaseException) -> tuple[int | str, str]:
        """Is the driver's own."""
        raise NotImplementedError

    @property
    def producers(self) -> dict[str, KafkaProducer]:
        """The open producers by name."""
        return self.__dict__.setdefault("_producers", {})

    def do_txn_open(
        self, producer: str, transactional_id: str, timeout_ms: int = 60000, **_: Any
    ) -> None:
        opened = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            retry_backoff_ms=20,
        )
        opened.init_transactions()
        self.producers[producer] = opened

    def do_txn_begin(self, producer: str) -> None:
        self.producers[producer].begin_transaction()

    def do_txn_commit(self, producer: str) -> None:
        self.producers[producer].commit_transaction()

    def do_txn_abort(self, producer: str) -> None:
        self.producers[producer].abort_transaction()

    def do_txn_close(self, producer: str) -> None:
        self.producers.pop(producer).close(timeout=0)

    def do_txn_send(
        self, producer: str, topic: str, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        sender = self.producers[producer]
        futures = [
            sender.send(
                topic,
                value=decode(record["value"]),
                key=decode(record["key"]),
                partition=record.get("partition"),
            )
            for record in records
        ]
        results: list[dict[str, Any]] = []
        sender.flush(WAIT_S)
        for future in futures:
            try:
                sent = future.get(timeout=WAIT_S)
                results.append({"partition": sent.partition, "offset": sent.offset})
            except kafka_errors.KafkaError as error:
                code, message = self.error_of(error)
                results.append({"error": {"code": code, "message": message}})
        return {"results": results}

    def do_txn_transform(
        self, producer: str, group: str, source: str, target: str, count: int
    ) -> dict[str, Any]:
        consumer = KafkaConsumer(
            source,
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_wait_ms=100,
            max_poll_records=count,
        )
        try:
            records: list[dict[str, Any]] = []
            deadline = time.monotonic() + 20
            while len(records) < count:
                if time.monotonic() > deadline:
                    raise OperationError("TIMEOUT", f"{len(records)} of {count} records")
                # As long as the driver's members do, for the same reason.
                for batch in consumer.poll(timeout_ms=1_000).values():
                    records.extend(plain_record(record) for record in batch)
            del records[count:]
            self.do_txn_begin(producer)
            self.do_txn_send(producer, target, [transformed(record) for record in records])
            offsets = {
                TopicPartition(topic, index): OffsetAndMetadata(offset, "", -1)
                for (topic, index), offset in next_offsets(records).items()
            }
            # 2.x knows a group by its name alone.
            metadata = consumer.group_metadata() if hasattr(consumer, "group_metadata") else group
            self.producers[producer].send_offsets_to_transaction(offsets, metadata)
            return {"records": records}
        finally:
            consumer.close()

    def do_read_until(
        self, topic: str, partitions: list[int], isolation: str, last: str, timeout_ms: int = 20000
    ) -> dict[str, Any]:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            enable_auto_commit=False,
            isolation_level=isolation,
            fetch_max_wait_ms=100,
        )
        until = UntilLast(partitions, last, timeout_ms)
        try:
            assigned = [TopicPartition(topic, index) for index in partitions]
            consumer.assign(assigned)
            consumer.seek_to_beginning(*assigned)
            while not until.is_over:
                for batch in consumer.poll(timeout_ms=100).values():
                    for record in batch:
                        until.add(plain_record(record))
            return until.reply()
        finally:
            consumer.close()
