"""Driver of kcat: runs the program for each operation; ``python -m compat_tests.kcat.driver``.

kcat speaks bytes on its pipes, so records go in between long random delimiters and come out with
their lengths in front.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, TYPE_CHECKING, Any

from compat_tests import security
from compat_tests.driver_program import (
    DriverProgram,
    MemberEvents,
    OperationError,
    decode,
    encode,
)
from compat_tests.transaction_program import UntilLast

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY_END = "-key-ends-here-7d1f-"
_RECORD_END = "-record-ends-here-7d1f-"
#: Lengths first, then the bytes; headers have none and end with the line.
_FORMAT = "%t %p %o %T %K %S\\n%k%s%h\\n"
_DELIVERED = re.compile(r"Message delivered to partition (\d+) \(offset (-?\d+)\)")
_DELIVERY_FAILED = re.compile(r"Delivery failed for message: (.*)")
_REBALANCED = re.compile(
    r"% Group \S+ rebalanced.*?(assigned|revoked|assignment|revoke)\b.*?: (?!assigned|revoked)(.*)"
)
_PARTITION = re.compile(r"(\S+) \[(\d+)\]")
_ERRORS = {
    "Message size too large": "MESSAGE_TOO_LARGE",
    "Unknown topic or partition": "UNKNOWN_TOPIC_OR_PARTITION",
    "Unknown partition": "UNKNOWN_TOPIC_OR_PARTITION",
    "Broker failed to validate record": "INVALID_RECORD",
}


def _code_of(text: str) -> str:
    return next((code for words, code in _ERRORS.items() if words in text), "CLIENT")


def _read_records(pipe: IO[bytes]) -> Iterator[dict[str, Any]]:
    for line in pipe:
        topic, partition, offset, timestamp, key_size, value_size = line.decode().split()
        key = pipe.read(int(key_size)) if int(key_size) >= 0 else None
        value = pipe.read(int(value_size)) if int(value_size) >= 0 else None
        yield {
            "topic": topic,
            "partition": int(partition),
            "offset": int(offset),
            "timestamp": int(timestamp),
            "timestamp_type": None,
            "key": encode(key),
            "value": encode(value),
            "headers": _headers(pipe.readline()[:-1]),
        }


def _headers(text: bytes) -> list[list[str | None]]:
    headers: list[list[str | None]] = []
    for pair in text.split(b",") if text else ():
        name, _, value = pair.partition(b"=")
        headers.append([name.decode(), encode(None if value == b"NULL" else value)])
    return headers


class Member:
    """A running ``kcat -G``; it tells rebalances on stderr."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.events = MemberEvents(name)
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        self.readers = [
            threading.Thread(target=self.read_records, daemon=True),
            threading.Thread(target=self.read_rebalances, daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def read_records(self) -> None:
        assert self.process.stdout is not None
        for record in _read_records(self.process.stdout):
            self.events.records([record])

    def read_rebalances(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            line = raw.decode(errors="replace")
            sys.stderr.write(line)
            found = _REBALANCED.match(line)
            if found:
                partitions = [(topic, int(index)) for topic, index in _PARTITION.findall(found[2])]
                change = self.events.assigned if "assign" in found[1] else self.events.revoked
                change(partitions)
            elif line.startswith("% ERROR"):
                self.events.failed(_code_of(line), line.strip())

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
        for reader in self.readers:
            reader.join(5)


class Program(DriverProgram):
    """One method an operation of DRIVERS.md."""

    def __init__(self, bootstrap: str, kcat: str) -> None:
        super().__init__(bootstrap)
        self.kcat = [kcat, "-b", bootstrap]
        for name, value in security.for_librdkafka().items():
            self.kcat += ["-X", f"{name}={value}"]

    def do_info(self) -> dict[str, Any]:
        done = subprocess.run([self.kcat[0], "-V"], capture_output=True, text=True, check=False)
        found = re.search(r"Version (\S+) .*librdkafka (\S+)", done.stdout + done.stderr)
        assert found is not None
        return {"version": f"{found[1]} (librdkafka {found[2]})"}

    def do_produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: str = "all",
        codec: str = "none",
        idempotence: bool = False,
        max_request_bytes: int | None = None,
    ) -> dict[str, Any]:
        command = [*self.kcat, "-P", "-t", topic, "-vvv", "-D", _RECORD_END, "-z", codec]
        command += ["-X", f"acks={acks}", "-X", "linger.ms=20", "-X", "message.timeout.ms=20000"]
        command += ["-X", "partitioner=murmur2_random"]
        command += ["-X", f"enable.idempotence={str(idempotence).lower()}"]
        if max_request_bytes is not None:
            command += ["-X", f"message.max.bytes={max_request_bytes}"]
        results: list[dict[str, Any]] = []
        # One process for records that differ in nothing that is a word of the command line. Without
        # a partition each has its own, as deliveries tell the partition and not the record.
        for _, group in itertools.groupby(enumerate(records), lambda one: _shape(*one)):
            results.extend(self._produce_alike(command, [record for _, record in group]))
        return {"results": results}

    def _produce_alike(
        self, command: list[str], records: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        first = records[0]
        command = list(command)
        if first.get("partition") is not None:
            command += ["-p", str(first["partition"])]
        for name, value in first.get("headers") or ():
            command += ["-H", f"{name}={(decode(value) or b'').decode()}"]
        if first["key"] is not None:
            command += ["-K", _KEY_END]
        if first["value"] is None:
            command += ["-Z"]
        lines = []
        for record in records:
            key = (
                b"" if record["key"] is None else (decode(record["key"]) or b"") + _KEY_END.encode()
            )
            lines.append(key + (decode(record["value"]) or b"") + _RECORD_END.encode())
        with tempfile.TemporaryFile() as source:
            source.write(b"".join(lines))
            source.seek(0)
            done = subprocess.run(command, stdin=source, capture_output=True, check=False)
        text = done.stderr.decode(errors="replace")
        sys.stderr.write(text[-2000:])
        failed = _DELIVERY_FAILED.search(text) or re.search(r"% ERROR: (.*)", text)
        if failed:
            error = {"code": _code_of(failed[1]), "message": failed[1]}
            return [{"error": error} for _ in records]
        delivered = [(int(p), int(o)) for p, o in _DELIVERED.findall(text)]
        if len(delivered) != len(records):
            raise OperationError("CLIENT", text[-500:])
        return [{"partition": partition, "offset": offset} for partition, offset in delivered]

    def do_consume(
        self,
        topic: str,
        starts: dict[str, Any],
        count: int,
        timeout_ms: int = 20000,
        max_partition_bytes: int | None = None,
        reset: str = "earliest",
    ) -> dict[str, Any]:
        command = [*self.kcat, "-C", "-t", topic, "-q", "-f", _FORMAT, "-u"]
        command += ["-X", f"auto.offset.reset={reset}", "-X", "fetch.wait.max.ms=100"]
        arguments = (command, starts, count, timeout_ms, max_partition_bytes)
        try:
            return self._consume_once(*arguments)
        except OperationError as error:
            if not str(error).startswith("0 of"):
                raise
            # Its librdkafka (2.0) now and then does not go on after an offset was out of range.
            sys.stderr.write(f"kcat stood still for {timeout_ms} ms and is started again\n")
            return self._consume_once(*arguments)

    def _consume_once(
        self,
        command: list[str],
        starts: dict[str, Any],
        count: int,
        timeout_ms: int,
        max_partition_bytes: int | None,
    ) -> dict[str, Any]:
        if max_partition_bytes is not None:
            for name in ("max.partition.fetch.bytes", "fetch.max.bytes", "message.max.bytes"):
                command += ["-X", f"{name}={max_partition_bytes}"]
        processes = [
            subprocess.Popen(
                [*command, "-p", index, "-o", _start(start)],
                stdout=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
            )
            for index, start in starts.items()
        ]
        records: list[dict[str, Any]] = []
        enough = threading.Condition()

        def read(process: subprocess.Popen[bytes]) -> None:
            assert process.stdout is not None
            for record in _read_records(process.stdout):
                with enough:
                    records.append(record)
                    enough.notify()

        readers = [threading.Thread(target=read, args=(one,), daemon=True) for one in processes]
        for reader in readers:
            reader.start()
        try:
            with enough:
                if not enough.wait_for(lambda: len(records) >= count, timeout_ms / 1000):
                    raise OperationError("TIMEOUT", f"{len(records)} of {count} records")
                return {"records": records[:count]}
        finally:
            for process in processes:
                process.kill()
                process.wait()

    def do_read_until(
        self, topic: str, partitions: list[int], isolation: str, last: str, timeout_ms: int = 20000
    ) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_ms / 1000
        command = [*self.kcat, "-C", "-t", topic, "-q", "-f", _FORMAT, "-o", "beginning", "-e"]
        command += ["-X", f"isolation.level={isolation}", "-X", "fetch.wait.max.ms=100"]
        # To the end of each partition, as the isolation level has it, again and again.
        while True:
            until = UntilLast(partitions, last, timeout_ms)
            for index in partitions:
                done = subprocess.run([*command, "-p", str(index)], capture_output=True, check=True)
                for record in _read_records(io.BytesIO(done.stdout)):
                    until.add(record)
            if until.reply()["reached"] or time.monotonic() > deadline:
                return until.reply()
            time.sleep(0.1)

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
        settings = {
            "client.id": member,
            "partition.assignment.strategy": assignor,
            "auto.offset.reset": reset,
            "enable.auto.commit": str(auto_commit).lower(),
            "session.timeout.ms": session_timeout_ms,
            "heartbeat.interval.ms": 200,
            "fetch.wait.max.ms": 100,
        }
        if instance_id is not None:
            settings["group.instance.id"] = instance_id
        command = [*self.kcat, "-f", _FORMAT, "-u"]
        for name, value in settings.items():
            command += ["-X", f"{name}={value}"]
        return Member(member, [*command, "-G", group, *topics])

    def do_list_topics(self) -> dict[str, Any]:
        return {"topics": [topic["topic"] for topic in self._metadata()["topics"]]}

    def do_describe_topic(self, topic: str) -> dict[str, Any]:
        (found,) = self._metadata("-t", topic)["topics"]
        if "error" in found:
            raise OperationError(_code_of(found["error"]), found["error"])
        return {
            "partitions": {
                str(partition["partition"]): {
                    "leader": partition["leader"],
                    "replicas": [replica["id"] for replica in partition["replicas"]],
                    "isr": [replica["id"] for replica in partition["isrs"]],
                }
                for partition in found["partitions"]
            }
        }

    def do_list_offsets(self, topic: str, at: dict[str, Any]) -> dict[str, Any]:
        times = {"earliest": -2, "latest": -1}
        command = [*self.kcat, "-Q"]
        for index, when in at.items():
            command += ["-t", f"{topic}:{index}:{times.get(when, when)}"]
        text = self._run(command)
        found = re.findall(r"\[(\d+)\] offset (-?\d+)", text)
        return {"offsets": {index: int(offset) for index, offset in found}}

    def do_describe_cluster(self) -> dict[str, Any]:
        found = self._metadata()
        brokers = []
        for broker in found["brokers"]:
            host, _, port = broker["name"].rpartition(":")
            brokers.append({"id": broker["id"], "host": host, "port": int(port)})
        return {"cluster_id": None, "controller": found["controllerid"], "brokers": brokers}

    def _metadata(self, *arguments: str) -> dict[str, Any]:
        return dict(json.loads(self._run([*self.kcat, "-L", "-J", *arguments])))

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode != 0:
            raise OperationError(_code_of(done.stderr), done.stderr.strip()[-300:])
        return done.stdout


def _shape(position: int, record: dict[str, Any]) -> tuple[Any, ...]:
    unknown_partition = record.get("partition") is None and record["key"] is not None
    return (
        record.get("partition"),
        record["key"] is None,
        record["value"] is None,
        json.dumps(record.get("headers")),
        position if unknown_partition else None,
    )


def _start(start: Any) -> str:
    if isinstance(start, dict):
        return f"s@{start['timestamp']}"
    return "beginning" if start == "earliest" else str(start)


if __name__ == "__main__":
    Program(sys.argv[2], sys.argv[1]).run()
