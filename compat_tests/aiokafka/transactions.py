"""Transactions with aiokafka: a part of its driver."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import errors as kafka_errors

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
    def producers(self) -> dict[str, AIOKafkaProducer]:
        """The open producers by name."""
        return self.__dict__.setdefault("_producers", {})

    async def do_txn_open(
        self, producer: str, transactional_id: str, timeout_ms: int = 60000, **_: Any
    ) -> None:
        opened = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            request_timeout_ms=10000,
            retry_backoff_ms=20,
        )
        async with asyncio.timeout(WAIT_S):
            await opened.start()
        self.producers[producer] = opened

    async def do_txn_begin(self, producer: str) -> None:
        await self.producers[producer].begin_transaction()

    async def do_txn_commit(self, producer: str) -> None:
        async with asyncio.timeout(WAIT_S):
            await self.producers[producer].commit_transaction()

    async def do_txn_abort(self, producer: str) -> None:
        async with asyncio.timeout(WAIT_S):
            await self.producers[producer].abort_transaction()

    async def do_txn_close(self, producer: str) -> None:
        closed = self.producers.pop(producer)
        # Not stop(): that aborts an open transaction, and what is asked for is to vanish.
        closed._closed = True
        await closed._sender.close()
        await closed.client.close()

    async def do_txn_send(
        self, producer: str, topic: str, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        futures = [await self._send(producer, topic, record) for record in records]
        results: list[dict[str, Any]] = []
        async with asyncio.timeout(WAIT_S):
            outcomes = await asyncio.gather(*futures, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, kafka_errors.KafkaError):
                code, message = self.error_of(outcome)
                results.append({"error": {"code": code, "message": message}})
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                results.append({"partition": outcome.partition, "offset": outcome.offset})
        return {"results": results}

    async def _send(self, producer: str, topic: str, record: dict[str, Any]) -> asyncio.Future[Any]:
        return await self.producers[producer].send(
            topic,
            value=decode(record["value"]),
            key=decode(record["key"]),
            partition=record.get("partition"),
        )

    async def do_txn_transform(
        self, producer: str, group: str, source: str, target: str, count: int
    ) -> dict[str, Any]:
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_wait_ms=100,
        )
        await consumer.start()
        try:
            records: list[dict[str, Any]] = []
            try:
                async with asyncio.timeout(20):
                    while len(records) < count:
                        wanted = count - len(records)
                        batches = await consumer.getmany(timeout_ms=100, max_records=wanted)
                        for batch in batches.values():
                            records.extend(plain_record(record) for record in batch)
            except TimeoutError:
                message = f"{len(records)} of {count} records"
                raise OperationError("TIMEOUT", message) from None
            await self.producers[producer].begin_transaction()
            for record in records:
                await self._send(producer, target, transformed(record))
            offsets = {
                TopicPartition(topic, index): offset
                for (topic, index), offset in next_offsets(records).items()
            }
            await self.producers[producer].send_offsets_to_transaction(offsets, group)
            return {"records": records}
        finally:
            await consumer.stop()

    async def do_read_until(
        self, topic: str, partitions: list[int], isolation: str, last: str, timeout_ms: int = 20000
    ) -> dict[str, Any]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            enable_auto_commit=False,
            isolation_level=isolation,
            fetch_max_wait_ms=100,
        )
        await consumer.start()
        until = UntilLast(partitions, last, timeout_ms)
        try:
            assigned = [TopicPartition(topic, index) for index in partitions]
            consumer.assign(assigned)
            await consumer.seek_to_beginning(*assigned)
            while not until.is_over:
                for batch in (await consumer.getmany(timeout_ms=100)).values():
                    for record in batch:
                        until.add(plain_record(record))
            return until.reply()
        finally:
            await consumer.stop()
