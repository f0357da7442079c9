"""Driver of confluent-kafka; started as ``python -m compat_tests.confluent_kafka.driver``."""

from __future__ import annotations

import queue
import sys
import threading
import time
from concurrent.futures import Future
from typing import Any

import confluent_kafka as ck
from confluent_kafka import admin

from compat_tests import security
from compat_tests.confluent_kafka.transactions import Transactions, request_timeout
from compat_tests.driver_program import (
    DriverProgram,
    MemberEvents,
    OperationError,
    decode,
    decode_headers,
    encode,
)

_TIMESTAMP_TYPES = {
    ck.TIMESTAMP_CREATE_TIME: "create",
    ck.TIMESTAMP_LOG_APPEND_TIME: "append",
}
_OFFSETS = {"earliest": ck.OFFSET_BEGINNING, "latest": ck.OFFSET_END}
_LEVELS = {"earliest": "earliest", "latest": "latest", "max_timestamp": "max_timestamp"}


def _record(message: ck.Message) -> dict[str, Any]:
    kind, timestamp = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp,
        "timestamp_type": _TIMESTAMP_TYPES.get(kind),
        "key": encode(message.key()),
        "value": encode(message.value()),
        "headers": [[name, encode(value)] for name, value in message.headers() or ()],
    }


def _pairs(partitions: list[ck.TopicPartition]) -> list[tuple[str, int]]:
    return [(partition.topic, partition.partition) for partition in partitions]


#: Settings that members of the consumer protocol have from the broker.
_OF_THE_BROKER = ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms")


class Member:
    """A consumer polled in a thread; commits are carried out by that thread's consumer too."""

    def __init__(self, name: str, config: dict[str, Any], topics: list[str]) -> None:
        self.events = MemberEvents(name)
        # Who is assigned by the broker is so in steps.
        self.cooperative = config.get("partition.assignment.strategy") in (
            "cooperative-sticky",
            None,
        )
        self.consumer = ck.Consumer(config)
        self.consumer.subscribe(
            topics, on_assign=self.on_assign, on_revoke=self.on_revoke, on_lost=self.on_revoke
        )
        self.stopping = threading.Event()
        # A synchronous commit from another thread than the polling one never returns (2.16.1).
        self.commits: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def on_assign(self, consumer: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        if self.cooperative:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
        self.events.assigned(_pairs(partitions))

    def on_revoke(self, consumer: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        self.events.revoked(_pairs(partitions))
        if self.cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                messages = self.consumer.consume(500, timeout=0.05)
                for message in messages:
                    error = message.error()
                    if error is not None:
                        self.events.failed(error.code(), error.str())
                self.events.records([_record(m) for m in messages if m.error() is None])
                self._commit_asked()
        except ck.KafkaException as error:
            self.events.failed(error.args[0].code(), error.args[0].str())
        finally:
            self.consumer.close()

    def commit(self, offsets: dict[tuple[str, int], int], metadata: str | None) -> None:
        partitions = [
            ck.TopicPartition(topic, index, offset, metadata or "")
            for (topic, index), offset in offsets.items()
        ]
        done: Future[None] = Future()
        self.commits.put((partitions, done))
        done.result(30)

    def _commit_asked(self) -> None:
        while not self.commits.empty():
            partitions, done = self.commits.get()
            try:
                for partition in self.consumer.commit(offsets=partitions, asynchronous=False):
                    if partition.error is not None:
                        raise ck.KafkaException(partition.error)
            except ck.KafkaException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

    def close(self) -> None:
        self.stopping.set()
        self.thread.join()


class Program(Transactions, DriverProgram):
    """One method an operation of DRIVERS.md."""

    client_errors = (ck.KafkaException,)

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.base: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "topic.metadata.refresh.interval.ms": 5000,
            **security.for_librdkafka(),
        }
        token = security.wanted().get("token")
        if token is not None:
            self.base["oauth_cb"] = lambda _: (token, time.time() + 3600)
        self._admin: admin.AdminClient | None = None

    @property
    def admin(self) -> admin.AdminClient:
        if self._admin is None:
            self._admin = admin.AdminClient(self.base)
        return self._admin

    def error_of(self, error: BaseException) -> tuple[int | str, str]:
        reported = error.args[0]
        code = reported.code()
        local = {
            ck.KafkaError._UNKNOWN_TOPIC: 3,
            ck.KafkaError._UNKNOWN_PARTITION: 3,
            ck.KafkaError._INVALID_ARG: "INVALID_ARGUMENT",
            ck.KafkaError._FENCED: "PRODUCER_FENCED",
        }
        return local.get(code, code if code >= -1 else reported.name()), reported.str()

    def do_info(self) -> dict[str, Any]:
        return {"version": f"{ck.__version__} (librdkafka {ck.libversion()[0]})"}

    def do_produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: str = "all",
        codec: str = "none",
        idempotence: bool = False,
        max_request_bytes: int | None = None,
        request_timeout_ms: int | None = None,
    ) -> dict[str, Any]:
        config = {
            **self.base,
            **request_timeout(request_timeout_ms),
            "acks": acks,
            "compression.type": codec,
            "enable.idempotence": idempotence,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "message.timeout.ms": 20000,
        }
        if max_request_bytes is not None:
            config["message.max.bytes"] = max_request_bytes
        producer = ck.Producer(config)
        results: list[Any] = [None] * len(records)

        def on_delivery(position: int, error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is not None:
                code, text = self.error_of(ck.KafkaException(error))
                results[position] = {"error": {"code": code, "message": text}}
            else:
                results[position] = {"partition": message.partition(), "offset": message.offset()}

        for position, record in enumerate(records):
            options: dict[str, Any] = {}
            if record.get("partition") is not None:
                options["partition"] = record["partition"]
            if record.get("timestamp") is not None:
                options["timestamp"] = record["timestamp"]
            try:
                producer.produce(
                    topic,
                    decode(record["value"]),
                    decode(record["key"]),
                    headers=decode_headers(record.get("headers")),
                    on_delivery=lambda e, m, position=position: on_delivery(position, e, m),
                    **options,
                )
            except ck.KafkaException as error:
                code, text = self.error_of(error)
                results[position] = {"error": {"code": code, "message": text}}
        producer.flush(30)
        return {"results": results}

    def do_consume(
        self,
        topic: str,
        starts: dict[str, Any],
        count: int,
        timeout_ms: int = 20000,
        max_partition_bytes: int | None = None,
        reset: str = "earliest",
        rack: str = "",
        request_timeout_ms: int | None = None,
    ) -> dict[str, Any]:
        config = {
            **self.base,
            **request_timeout(request_timeout_ms),
            "group.id": "unused-by-assign",
            "enable.auto.commit": False,
            "auto.offset.reset": reset,
            "client.rack": rack,
        }
        if max_partition_bytes is not None:
            config["max.partition.fetch.bytes"] = max_partition_bytes
            config["fetch.max.bytes"] = max_partition_bytes
            config["message.max.bytes"] = max_partition_bytes
        consumer = ck.Consumer(config)
        try:
            consumer.assign(self._starts(consumer, topic, starts))
            records: list[dict[str, Any]] = []
            deadline = time.monotonic() + timeout_ms / 1000
            while len(records) < count:
                if time.monotonic() > deadline:
                    raise OperationError("TIMEOUT", f"{len(records)} of {count} records")
                for message in consumer.consume(count - len(records), timeout=0.1):
                    if message.error() is not None:
                        raise ck.KafkaException(message.error())
                    records.append(_record(message))
            return {"records": records}
        finally:
            consumer.close()

    def _starts(
        self, consumer: ck.Consumer, topic: str, starts: dict[str, Any]
    ) -> list[ck.TopicPartition]:
        partitions = []
        for index, start in starts.items():
            if isinstance(start, dict):
                asked = ck.TopicPartition(topic, int(index), start["timestamp"])
                found = consumer.offsets_for_times([asked], timeout=10)[0]
                if found.error is not None:
                    raise ck.KafkaException(found.error)
                partitions.append(found)
            else:
                offset = _OFFSETS.get(start, start)
                partitions.append(ck.TopicPartition(topic, int(index), offset))
        return partitions

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
        protocol: str = "classic",
        request_timeout_ms: int | None = None,
    ) -> Member:
        config = {
            **self.base,
            **request_timeout(request_timeout_ms),
            "client.id": member,
            "group.id": group,
            "partition.assignment.strategy": assignor,
            "auto.offset.reset": reset,
            "enable.auto.commit": auto_commit,
            "session.timeout.ms": session_timeout_ms,
            "heartbeat.interval.ms": 200,
            "fetch.wait.max.ms": 100,
        }
        if instance_id is not None:
            config["group.instance.id"] = instance_id
        if protocol == "consumer":
            config["group.protocol"] = protocol
            for name in _OF_THE_BROKER:
                del config[name]
        return Member(member, config, topics)

    def do_create_topic(
        self,
        topic: str,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: dict[str, str] | None = None,
    ) -> None:
        new = admin.NewTopic(topic, partitions, replication_factor, config=configs or {})
        self.admin.create_topics([new])[topic].result(30)

    def do_delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(30)

    def do_list_topics(self) -> dict[str, Any]:
        return {"topics": sorted(self.admin.list_topics(timeout=10).topics)}

    def do_describe_topic(self, topic: str) -> dict[str, Any]:
        found = self.admin.describe_topics(ck.TopicCollection([topic]))[topic].result(30)
        return {
            "partitions": {
                str(partition.id): {
                    "leader": partition.leader.id,
                    "replicas": [node.id for node in partition.replicas],
                    "isr": [node.id for node in partition.isr],
                }
                for partition in found.partitions
            }
        }

    def do_create_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions([admin.NewPartitions(topic, total)])[topic].result(30)

    def do_describe_configs(self, kind: str, name: str) -> dict[str, Any]:
        resource = admin.ConfigResource(admin.ResourceType[kind.upper()], name)
        entries = self.admin.describe_configs([resource])[resource].result(30)
        return {"configs": {key: entry.value for key, entry in entries.items()}}

    def do_alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        entries = [
            admin.ConfigEntry(name, value, incremental_operation=admin.AlterConfigOpType.SET)
            for name, value in configs.items()
        ]
        resource = admin.ConfigResource(
            admin.ResourceType.TOPIC, topic, incremental_configs=entries
        )
        self.admin.incremental_alter_configs([resource])[resource].result(30)

    def do_list_groups(self) -> dict[str, Any]:
        listed = self.admin.list_consumer_groups().result(30)
        if listed.errors:
            raise listed.errors[0]
        return {"groups": [group.group_id for group in listed.valid]}

    def do_describe_group(self, group: str) -> dict[str, Any]:
        found = self.admin.describe_consumer_groups([group])[group].result(30)
        return {
            "state": found.state.name,
            "protocol": found.partition_assignor,
            "members": [
                {
                    "client_id": member.client_id,
                    "instance_id": member.group_instance_id,
                    "partitions": _pairs(member.assignment.topic_partitions),
                }
                for member in found.members
            ],
        }

    def do_delete_group(self, group: str) -> None:
        self.admin.delete_consumer_groups([group])[group].result(30)

    def do_group_offsets(self, group: str) -> dict[str, Any]:
        asked = [ck.ConsumerGroupTopicPartitions(group)]
        found = self.admin.list_consumer_group_offsets(asked)[group].result(30)
        offsets: dict[str, dict[str, Any]] = {}
        for partition in found.topic_partitions:
            if partition.error is not None:
                raise ck.KafkaException(partition.error)
            offsets.setdefault(partition.topic, {})[str(partition.partition)] = {
                "offset": partition.offset,
                "metadata": partition.metadata or "",
            }
        return {"offsets": offsets}

    def do_alter_group_offsets(self, group: str, offsets: dict[str, dict[str, int]]) -> None:
        partitions = [
            ck.TopicPartition(topic, int(index), offset)
            for topic, by_partition in offsets.items()
            for index, offset in by_partition.items()
        ]
        asked = [ck.ConsumerGroupTopicPartitions(group, partitions)]
        done = self.admin.alter_consumer_group_offsets(asked)[group].result(30)
        for partition in done.topic_partitions:
            if partition.error is not None:
                raise ck.KafkaException(partition.error)

    def do_delete_records(self, topic: str, offsets: dict[str, int]) -> dict[str, Any]:
        partitions = [
            ck.TopicPartition(topic, int(index), offset) for index, offset in offsets.items()
        ]
        done = self.admin.delete_records(partitions)
        marks = {str(p.partition): future.result(30) for p, future in done.items()}
        return {"low_watermarks": {index: mark.low_watermark for index, mark in marks.items()}}

    def do_list_offsets(self, topic: str, at: dict[str, Any]) -> dict[str, Any]:
        asked = {
            ck.TopicPartition(topic, int(index)): getattr(admin.OffsetSpec, when)()
            if isinstance(when, str)
            else admin.OffsetSpec.for_timestamp(when)
            for index, when in at.items()
        }
        found = self.admin.list_offsets(asked)
        return {
            "offsets": {str(p.partition): future.result(30).offset for p, future in found.items()}
        }

    def do_describe_cluster(self) -> dict[str, Any]:
        found = self.admin.describe_cluster().result(30)
        return {
            "cluster_id": found.cluster_id,
            "controller": found.controller.id if found.controller else None,
            "brokers": [
                {"id": node.id, "host": node.host, "port": node.port} for node in found.nodes
            ],
        }


if __name__ == "__main__":
    Program(sys.argv[1]).run()
