"""Driver of aiokafka; started as ``python -m compat_tests.aiokafka.driver``."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka import errors as kafka_errors
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from compat_tests import security
from compat_tests.aiokafka.transactions import Transactions
from compat_tests.driver_program import (
    DriverProgram,
    MemberEvents,
    OperationError,
    decode,
    decode_headers,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

_ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
_TIMESTAMP_TYPES = {0: "create", 1: "append"}


def _record(record: Any) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": _TIMESTAMP_TYPES.get(record.timestamp_type),
        "key": encode(record.key),
        "value": encode(record.value),
        "headers": [[name, encode(value)] for name, value in record.headers],
    }


class Member(ConsumerRebalanceListener):
    """A consumer that a task of the driver's loop reads."""

    def __init__(self, name: str, topics: list[str], config: dict[str, Any]) -> None:
        self.events = MemberEvents(name)
        self.topics = topics
        self.config = config
        self.stopping = False

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.events.assigned([tuple(partition) for partition in assigned])

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.events.revoked([tuple(partition) for partition in revoked])

    async def start(self) -> None:
        self.consumer = AIOKafkaConsumer(**self.config)
        self.consumer.subscribe(self.topics, listener=self)
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        try:
            await self.consumer.start()
            while not self.stopping:
                for records in (await self.consumer.getmany(timeout_ms=50)).values():
                    self.events.records([_record(record) for record in records])
        except kafka_errors.KafkaError as error:
            self.events.failed(getattr(error, "errno", "CLIENT"), str(error))

    async def commit(self, offsets: dict[tuple[str, int], int], metadata: str | None) -> None:
        asked = {
            TopicPartition(*partition): (offset, metadata or "")
            for partition, offset in offsets.items()
        }
        await self.consumer.commit(asked)

    async def close(self) -> None:
        self.stopping = True
        await self.task
        await self.consumer.stop()


class Program(Transactions, DriverProgram):
    """One method an operation of DRIVERS.md; coroutines run on a loop in a thread."""

    client_errors = (kafka_errors.KafkaError,)

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._admin: AIOKafkaAdminClient | None = None

    def await_result(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def perform(self, operation: Any, arguments: dict[str, Any]) -> Any:
        result = operation(**arguments)
        return self.await_result(result) if asyncio.iscoroutine(result) else result

    async def admin(self) -> AIOKafkaAdminClient:
        if self._admin is None:
            self._admin = AIOKafkaAdminClient(
                bootstrap_servers=self.bootstrap, **security.for_python()
            )
            await self._admin.start()
        return self._admin

    def error_of(self, error: BaseException) -> tuple[int | str, str]:
        # An error of its own making, which stands for two of the broker's.
        own = "PRODUCER_FENCED" if isinstance(error, kafka_errors.ProducerFenced) else "CLIENT"
        return getattr(error, "errno", own), f"{type(error).__name__}: {error}"

    def do_info(self) -> dict[str, Any]:
        return {"version": aiokafka.__version__}

    async def do_produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: str = "all",
        codec: str = "none",
        idempotence: bool = False,
        max_request_bytes: int | None = None,
    ) -> dict[str, Any]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            acks={"0": 0, "1": 1, "all": "all"}[acks],
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotence,
            linger_ms=20,
            max_request_size=max_request_bytes or 1048576,
            request_timeout_ms=10000,
        )
        await producer.start()
        sent: list[Any] = []
        try:
            for record in records:
                try:
                    future = await producer.send(
                        topic,
                        value=decode(record["value"]),
                        key=decode(record["key"]),
                        headers=decode_headers(record.get("headers")),
                        partition=record.get("partition"),
                        timestamp_ms=record.get("timestamp"),
                    )
                except kafka_errors.KafkaError as error:
                    sent.append(error)
                else:
                    sent.append(future)
            outcomes = await asyncio.gather(
                *(one for one in sent if not isinstance(one, kafka_errors.KafkaError)),
                return_exceptions=True,
            )
        finally:
            await producer.stop()
        arrived = iter(outcomes)
        results: list[dict[str, Any]] = []
        for one in sent:
            outcome = one if isinstance(one, kafka_errors.KafkaError) else next(arrived)
            if isinstance(outcome, kafka_errors.KafkaError):
                code, message = self.error_of(outcome)
                results.append({"error": {"code": code, "message": message}})
            elif outcome is None:  # acks=0: nothing is known of it
                results.append({"partition": -1, "offset": -1})
            else:
                results.append({"partition": outcome.partition, "offset": outcome.offset})
        return {"results": results}

    async def do_consume(
        self,
        topic: str,
        starts: dict[str, Any],
        count: int,
        timeout_ms: int = 20000,
        max_partition_bytes: int | None = None,
        reset: str = "earliest",
    ) -> dict[str, Any]:
        limits = {}
        if max_partition_bytes is not None:
            limits = {
                "max_partition_fetch_bytes": max_partition_bytes,
                "fetch_max_bytes": max_partition_bytes,
            }
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            enable_auto_commit=False,
            auto_offset_reset=reset,
            **limits,
        )
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, int(index)) for index in starts])
            for index, start in starts.items():
                await self._seek(consumer, TopicPartition(topic, int(index)), start)
            records: list[dict[str, Any]] = []
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_ms / 1000):
                    while len(records) < count:
                        batches = await consumer.getmany(timeout_ms=100)
                        for batch in batches.values():
                            records.extend(_record(record) for record in batch)
            if len(records) < count:
                raise OperationError("TIMEOUT", f"{len(records)} of {count} records")
            return {"records": records[:count]}
        finally:
            await consumer.stop()

    async def _seek(
        self, consumer: AIOKafkaConsumer, partition: TopicPartition, start: Any
    ) -> None:
        if start == "earliest":
            await consumer.seek_to_beginning(partition)
        elif isinstance(start, dict):
            asked = {partition: start["timestamp"]}
            consumer.seek(partition, (await consumer.offsets_for_times(asked))[partition].offset)
        else:
            consumer.seek(partition, start)

    async def do_member_open(self, member: str, **options: Any) -> None:
        self.members[member] = self._member(member, **options)
        await self.members[member].start()

    def _member(
        self,
        member: str,
        group: str,
        topics: list[str],
        instance_id: str | None = None,
        assignor: str = "range",
        reset: str = "earliest",
        auto_commit: bool = False,
        session_timeout_ms: int = 10000,
    ) -> Member:
        config = {
            "bootstrap_servers": self.bootstrap,
            **security.for_python(),
            "client_id": member,
            "group_id": group,
            "group_instance_id": instance_id,
            "partition_assignment_strategy": (_ASSIGNORS[assignor],),
            "auto_offset_reset": reset,
            "enable_auto_commit": auto_commit,
            "session_timeout_ms": session_timeout_ms,
            "heartbeat_interval_ms": 200,
            "fetch_max_wait_ms": 100,
        }
        return Member(member, topics, config)

    async def do_member_commit(
        self, member: str, offsets: dict[str, dict[str, int]], metadata: str | None = None
    ) -> None:
        flat = {
            (topic, int(index)): offset
            for topic, by_partition in offsets.items()
            for index, offset in by_partition.items()
        }
        await self.members[member].commit(flat, metadata)

    async def do_member_close(self, member: str) -> None:
        await self.members.pop(member).close()

    async def do_create_topic(
        self,
        topic: str,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: dict[str, str] | None = None,
    ) -> None:
        new = NewTopic(topic, partitions, replication_factor, topic_configs=configs or {})
        response = await (await self.admin()).create_topics([new])
        for _, code, *message in response.topic_errors:
            _check(code, str(message))

    async def do_delete_topic(self, topic: str) -> None:
        response = await (await self.admin()).delete_topics([topic])
        for name, code in response.topic_error_codes:
            _check(code, name)

    async def do_list_topics(self) -> dict[str, Any]:
        return {"topics": sorted(await (await self.admin()).list_topics())}

    async def do_describe_topic(self, topic: str) -> dict[str, Any]:
        (found,) = await (await self.admin()).describe_topics([topic])
        _check(found["error_code"], topic)
        return {
            "partitions": {
                str(partition["partition"]): {
                    "leader": partition["leader"],
                    "replicas": partition["replicas"],
                    "isr": partition["isr"],
                }
                for partition in found["partitions"]
            }
        }

    async def do_create_partitions(self, topic: str, total: int) -> None:
        await (await self.admin()).create_partitions({topic: NewPartitions(total)})

    async def do_describe_configs(self, kind: str, name: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        (response,) = await (await self.admin()).describe_configs([resource])
        code, message, _, _, entries = response.resources[0]
        _check(code, message)
        return {"configs": {entry[0]: entry[1] for entry in entries}}

    async def do_alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        (response,) = await (await self.admin()).alter_configs([resource])
        code, message, *_ = response.resources[0]
        _check(code, message)

    async def do_list_groups(self) -> dict[str, Any]:
        return {"groups": [entry[0] for entry in await (await self.admin()).list_consumer_groups()]}

    async def do_describe_group(self, group: str) -> dict[str, Any]:
        (response,) = await (await self.admin()).describe_consumer_groups([group])
        code, _, state, _, protocol, members, *_ = response.groups[0]
        _check(code, group)
        return {
            "state": state,
            "protocol": protocol,
            "members": [_described_member(member) for member in members],
        }

    async def do_group_offsets(self, group: str) -> dict[str, Any]:
        offsets: dict[str, dict[str, Any]] = {}
        found = await (await self.admin()).list_consumer_group_offsets(group)
        for partition, committed in found.items():
            entry = {"offset": committed.offset, "metadata": committed.metadata or ""}
            offsets.setdefault(partition.topic, {})[str(partition.partition)] = entry
        return {"offsets": offsets}

    async def do_delete_records(self, topic: str, offsets: dict[str, int]) -> dict[str, Any]:
        asked = {
            TopicPartition(topic, int(index)): RecordsToDelete(offset)
            for index, offset in offsets.items()
        }
        done = await (await self.admin()).delete_records(asked)
        return {"low_watermarks": {str(p.partition): mark for p, mark in done.items()}}

    async def do_list_offsets(self, topic: str, at: dict[str, Any]) -> dict[str, Any]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, **security.for_python())
        await consumer.start()
        offsets = {}
        try:
            for index, when in at.items():
                partition = TopicPartition(topic, int(index))
                if when == "earliest":
                    offsets[index] = (await consumer.beginning_offsets([partition]))[partition]
                elif when == "latest":
                    offsets[index] = (await consumer.end_offsets([partition]))[partition]
                else:
                    found = (await consumer.offsets_for_times({partition: when}))[partition]
                    offsets[index] = -1 if found is None else found.offset
        finally:
            await consumer.stop()
        return {"offsets": offsets}

    async def do_describe_cluster(self) -> dict[str, Any]:
        found = await (await self.admin()).describe_cluster()
        return {
            "cluster_id": found.get("cluster_id"),
            "controller": found["controller_id"],
            "brokers": [
                {"id": node["node_id"], "host": node["host"], "port": node["port"]}
                for node in found["brokers"]
            ],
        }


def _check(code: int, message: str) -> None:
    if code:
        raise OperationError(code, message)


def _described_member(member: tuple[Any, ...]) -> dict[str, Any]:
    client_id, assignment = member[-4], member[-1]
    partitions: list[tuple[str, int]] = []
    if assignment:
        decoded = ConsumerProtocolMemberAssignment.decode(assignment)
        partitions = [tuple(partition) for partition in decoded.partitions()]
    return {"client_id": client_id, "instance_id": None, "partitions": partitions}


if __name__ == "__main__":
    Program(sys.argv[1]).run()
