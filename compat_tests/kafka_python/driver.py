"""Driver of kafka-python 3 (and 2.3, but for admin calls that 3.x renamed).

Started as ``python -m compat_tests.kafka_python.driver``.
"""

from __future__ import annotations

import logging
import queue
import re
import sys
import threading
import time
from concurrent.futures import Future
from typing import Any

import kafka
from kafka import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.structs import OffsetAndMetadata

from compat_tests import security
from compat_tests.driver_program import (
    DriverProgram,
    MemberEvents,
    OperationError,
    decode,
    decode_headers,
    encode,
)
from compat_tests.kafka_python.transactions import Transactions

_ASSIGNORS: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
}
try:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
except ImportError:  # kafka-python 2.x
    pass
else:
    _ASSIGNORS["cooperative-sticky"] = CooperativeStickyAssignor

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
    """A consumer that one thread polls; commits are handed to that thread."""

    def __init__(self, name: str, topics: list[str], config: dict[str, Any]) -> None:
        self.events = MemberEvents(name)
        self.consumer = KafkaConsumer(**config)
        self.consumer.subscribe(topics, listener=self)
        for topic in topics:
            # It may join, as leader assign nothing for want of metadata, and not notice when that
            # comes (3.0.12, one time in twelve against Apache Kafka too).
            self.consumer.partitions_for_topic(topic)
        self.stopping = threading.Event()
        self.commits: queue.SimpleQueue[tuple[dict[Any, Any], Future[None]]] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.events.assigned([tuple(partition) for partition in assigned])

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.events.revoked([tuple(partition) for partition in revoked])

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                # kafka-python 3.0.12 loses its assignment for good when a poll's time is up while
                # it waits for the answer to SyncGroup; so the time is long for a busy machine.
                for records in self.consumer.poll(timeout_ms=500).values():
                    self.events.records([_record(record) for record in records])
                self._commit_asked()
        except kafka_errors.KafkaError as error:
            code, message = Program.error_of(None, error)  # type: ignore[arg-type]
            self.events.failed(code, message)
        finally:
            self.consumer.close()

    def _commit_asked(self) -> None:
        while not self.commits.empty():
            offsets, done = self.commits.get()
            try:
                self.consumer.commit(offsets)
            except kafka_errors.KafkaError as error:
                done.set_exception(error)
            else:
                done.set_result(None)

    def commit(self, offsets: dict[tuple[str, int], int], metadata: str | None) -> None:
        done: Future[None] = Future()
        asked = {
            TopicPartition(*partition): OffsetAndMetadata(offset, metadata or "", -1)
            for partition, offset in offsets.items()
        }
        self.commits.put((asked, done))
        done.result(30)

    def close(self) -> None:
        self.stopping.set()
        self.thread.join()


class Program(Transactions, DriverProgram):
    """One method an operation of DRIVERS.md."""

    client_errors = (kafka_errors.KafkaError,)

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        if security.wanted():  # why it does not get in, it tells its log alone
            logging.basicConfig(level=logging.INFO)
        self._admin: KafkaAdminClient | None = None

    @property
    def admin(self) -> KafkaAdminClient:
        if self._admin is None:
            self._admin = KafkaAdminClient(
                bootstrap_servers=self.bootstrap, **security.for_python()
            )
        return self._admin

    def error_of(self, error: BaseException) -> tuple[int | str, str]:
        code = getattr(error, "errno", None)
        return ("CLIENT" if code is None else code), f"{type(error).__name__}: {error}"

    def do_info(self) -> dict[str, Any]:
        return {"version": kafka.__version__}

    def do_produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: str = "all",
        codec: str = "none",
        idempotence: bool = False,
        max_request_bytes: int | None = None,
    ) -> dict[str, Any]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            acks={"0": 0, "1": 1, "all": "all"}[acks],
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotence,
            linger_ms=20,
            max_request_size=max_request_bytes or 1048576,
        )
        results: list[dict[str, Any]] = []
        try:
            futures = [self._send(producer, topic, record) for record in records]
            producer.flush(30)
            for future in futures:
                if isinstance(future, kafka_errors.KafkaError):
                    code, message = self.error_of(future)
                    results.append({"error": {"code": code, "message": message}})
                    continue
                try:
                    sent = future.get(timeout=30)
                    results.append({"partition": sent.partition, "offset": sent.offset})
                except kafka_errors.KafkaError as error:
                    code, message = self.error_of(error)
                    results.append({"error": {"code": code, "message": message}})
        finally:
            producer.close(timeout=5)
        return {"results": results}

    def _send(self, producer: KafkaProducer, topic: str, record: dict[str, Any]) -> Any:
        try:
            return producer.send(
                topic,
                value=decode(record["value"]),
                key=decode(record["key"]),
                headers=decode_headers(record.get("headers")),
                partition=record.get("partition"),
                timestamp_ms=record.get("timestamp"),
            )
        except kafka_errors.KafkaError as error:
            return error

    def do_consume(
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
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            **security.for_python(),
            enable_auto_commit=False,
            auto_offset_reset=reset,
            **limits,
        )
        try:
            consumer.assign([TopicPartition(topic, int(index)) for index in starts])
            self._seek(consumer, topic, starts)
            records: list[dict[str, Any]] = []
            deadline = time.monotonic() + timeout_ms / 1000
            while len(records) < count:
                if time.monotonic() > deadline:
                    raise OperationError("TIMEOUT", f"{len(records)} of {count} records")
                for batch in consumer.poll(timeout_ms=100).values():
                    records.extend(_record(record) for record in batch)
            return {"records": records[:count]}
        finally:
            consumer.close()

    def _seek(self, consumer: KafkaConsumer, topic: str, starts: dict[str, Any]) -> None:
        for index, start in starts.items():
            partition = TopicPartition(topic, int(index))
            if start == "earliest":
                consumer.seek_to_beginning(partition)
            elif isinstance(start, dict):
                asked = {partition: start["timestamp"]}
                found = consumer.offsets_for_times(asked)[partition]
                consumer.seek(partition, found.offset)
            else:
                consumer.seek(partition, start)

    def make_member(
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
            "partition_assignment_strategy": [_ASSIGNORS[assignor]],
            "auto_offset_reset": reset,
            "enable_auto_commit": auto_commit,
            "session_timeout_ms": session_timeout_ms,
            "heartbeat_interval_ms": 200,
            "fetch_max_wait_ms": 100,
        }
        return Member(member, topics, config)

    def do_create_topic(
        self,
        topic: str,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: dict[str, str] | None = None,
    ) -> None:
        self.admin.create_topics(
            {
                topic: {
                    "num_partitions": partitions,
                    "replication_factor": replication_factor,
                    "configs": configs or {},
                }
            }
        )

    def do_delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])

    def do_list_topics(self) -> dict[str, Any]:
        return {"topics": sorted(self.admin.list_topics())}

    def do_describe_topic(self, topic: str) -> dict[str, Any]:
        (found,) = self.admin.describe_topics([topic])
        self._check(found["error_code"], topic)
        return {
            "partitions": {
                str(partition["partition_index"]): {
                    "leader": partition["leader_id"],
                    "replicas": partition["replica_nodes"],
                    "isr": partition["isr_nodes"],
                }
                for partition in found["partitions"]
            }
        }

    def do_create_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions({topic: total})

    def do_describe_configs(self, kind: str, name: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        found = self.admin.describe_configs([resource], config_filter="all")[kind][name]
        return {"configs": {key: entry["value"] for key, entry in found.items()}}

    def do_alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        # Or it would refuse an unknown setting itself, and the broker's answer is what is tested.
        found = self.admin.alter_configs([resource], raise_on_unknown=False)
        outcome = found["topic"][topic]
        if outcome != "OK":
            raise OperationError(_screaming_name(outcome.split(":")[0]), outcome)

    def do_list_groups(self) -> dict[str, Any]:
        return {"groups": [group["group_id"] for group in self.admin.list_groups()]}

    def do_describe_group(self, group: str) -> dict[str, Any]:
        found = self.admin.describe_groups([group])[group]
        if found["error"]:
            raise OperationError(_screaming_name(found["error"]), found["error"])
        return {
            "state": found["group_state"],
            "protocol": found["protocol_data"],
            "members": [
                {
                    "client_id": member["client_id"],
                    "instance_id": member["group_instance_id"],
                    "partitions": _assigned(member["member_assignment"]),
                }
                for member in found["members"]
            ],
        }

    def do_delete_group(self, group: str) -> None:
        outcome = self.admin.delete_groups([group])[group]
        if outcome != "OK":
            raise OperationError(_screaming_name(outcome), outcome)

    def do_group_offsets(self, group: str) -> dict[str, Any]:
        offsets: dict[str, dict[str, Any]] = {}
        for partition, committed in self.admin.list_group_offsets(group)[group].items():
            entry = {"offset": committed.offset, "metadata": committed.metadata or ""}
            offsets.setdefault(partition.topic, {})[str(partition.partition)] = entry
        return {"offsets": offsets}

    def do_alter_group_offsets(self, group: str, offsets: dict[str, dict[str, int]]) -> None:
        asked = {
            TopicPartition(topic, int(index)): OffsetAndMetadata(offset, "", -1)
            for topic, by_partition in offsets.items()
            for index, offset in by_partition.items()
        }
        self._check_all(self.admin.alter_group_offsets(group, asked))

    def do_delete_group_offsets(self, group: str, topic: str, partitions: list[int]) -> None:
        asked = [TopicPartition(topic, index) for index in partitions]
        self._check_all(self.admin.delete_group_offsets(group, asked))

    def do_delete_records(self, topic: str, offsets: dict[str, int]) -> dict[str, Any]:
        asked = {TopicPartition(topic, int(index)): offset for index, offset in offsets.items()}
        done = self.admin.delete_records(asked)
        return {
            "low_watermarks": {
                str(p.partition): entry["low_watermark"] for p, entry in done.items()
            }
        }

    def do_list_offsets(self, topic: str, at: dict[str, Any]) -> dict[str, Any]:
        from kafka.admin import OffsetSpec

        asked = {
            TopicPartition(topic, int(index)): OffsetSpec[when.upper()]
            if isinstance(when, str)
            else when
            for index, when in at.items()
        }
        found = self.admin.list_partition_offsets(asked)
        return {"offsets": {str(p.partition): entry.offset for p, entry in found.items()}}

    def do_describe_cluster(self) -> dict[str, Any]:
        found = self.admin.describe_cluster()
        return {
            "cluster_id": found["cluster_id"],
            "controller": found["controller_id"],
            "brokers": [
                {"id": node["broker_id"], "host": node["host"], "port": node["port"]}
                for node in found["brokers"]
            ],
        }

    def _check(self, code: int, message: str) -> None:
        if code:
            raise OperationError(code, message)

    def _check_all(self, outcomes: dict[Any, type[kafka_errors.KafkaError]]) -> None:
        for partition, outcome in outcomes.items():
            self._check(outcome.errno, str(partition))


def _assigned(assignment: Any) -> list[tuple[str, int]]:
    if not assignment:
        return []
    return [
        (entry["topic"], index)
        for entry in assignment["assigned_partitions"]
        for index in entry["partitions"]
    ]


def _screaming_name(text: str) -> str:
    """Return Kafka's name of an error class such as ``[Error 69] GroupIdNotFoundError``."""
    for name in re.findall(r"\w+", text):
        found = getattr(kafka_errors, name, None)
        if isinstance(found, type) and issubclass(found, kafka_errors.KafkaError):
            return str(getattr(found, "message", name))
    return text


if __name__ == "__main__":
    Program(sys.argv[1]).run()
