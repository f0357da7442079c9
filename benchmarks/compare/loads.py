"""Starting the load generators: librdkafka, Apache's own tools, and prepared frames."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.process import RawClient, frame_of
from compat_tests.apache_kafka import KAFKA_4, java_command
from compat_tests.cache import cached_dir, digest_of
from kafkalite.wire.compression import Codec
from kafkalite.wire.header import decode_response_header
from kafkalite.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch

ROOT = Path(__file__).parent.parent.parent
TOOL_JVM_OPTIONS = ("-Xmx512m", "-XX:+UseG1GC")
PRODUCE_VERSION, FETCH_VERSION = 9, 4
RUN_SECONDS = 120
RECORD_BYTES = 100


# --- librdkafka ----------------------------------------------------------------------------------


def librdkafka(kind: str, **parameters: Any) -> dict[str, Any]:
    """Run one kind of `worker` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.compare.worker", kind, json.dumps(parameters)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{kind}: {done.stderr.strip()[-800:]}")
    return json.loads(done.stdout)


# --- Apache's tools ------------------------------------------------------------------------------


def java_tool(tool: str, *arguments: str) -> tuple[str, float]:
    """Run a tool to its end; return its output and the processor seconds of the Java machine."""
    command = java_command(KAFKA_4, tool, *arguments, jvm_options=TOOL_JVM_OPTIONS)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode()
        if process.returncode:
            errors.seek(0)
            raise RuntimeError(f"{tool}: {text[-500:]} {errors.read().decode()[-800:]}")
    return text, used.ru_utime + used.ru_stime


def java_producer(
    broker: BrokerUnderTest, topic: str, count: int, size: int, *, settings: tuple[str, ...] = ()
) -> dict[str, float]:
    """`ProducerPerformance`; the Java client's defaults are idempotent, acks=all, 16 KiB."""
    text, cpu = java_tool(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", str(count), "--record-size", str(size)),
        *("--throughput", "-1", "--bootstrap-server", broker.bootstrap),
        *(("--producer-props", *settings) if settings else ()),
    )
    found = re.findall(r"([\d.]+) records/sec.*?([\d.]+) ms avg latency", text)
    rate = float(found[-1][0])
    return {"rate": rate, "seconds": count / rate, "cpu": cpu}


def java_consumer(broker: BrokerUnderTest, topic: str, count: int) -> dict[str, float]:
    """`ConsumerPerformance`; its rate without the time that joining the group took."""
    text, cpu = java_tool(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic),
        *("--num-records", str(count), "--hide-header", "--timeout", "20000"),
    )
    fields = [f.strip() for f in text.strip().splitlines()[-1].split(",")]
    assert int(fields[4]) >= count, text
    return {"rate": float(fields[9]), "seconds": float(fields[7]) / 1000, "cpu": cpu}


def share_consumer(broker: BrokerUnderTest, topic: str, group: str, count: int) -> dict[str, float]:
    """`ShareConsumerPerformance` with implicit acknowledgement, until it has so many records."""
    text, cpu = java_tool(
        "kafka-share-consumer-perf-test",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group),
        *("--num-records", str(count), "--timeout", "20000"),
    )
    lines = [line.split(", ") for line in text.splitlines() if line.count(", ") >= 5]
    found = dict(zip(lines[0], lines[-1], strict=True))
    assert int(found["data.consumed.in.nMsg"]) >= count, text
    rate = float(found["nMsg.sec"])
    return {"rate": rate, "seconds": count / rate, "cpu": cpu}


# --- Prepared frames -----------------------------------------------------------------------------


def load_program() -> Path:
    """Return the compiled load generator; compiles on first use."""
    source = Path(__file__).parent / "load.c"

    def build(folder: Path) -> None:
        command = ["cc", "-O2", "-o", str(folder / "load"), str(source)]
        subprocess.run(command, check=True, capture_output=True)

    return cached_dir(f"load/{digest_of(source)}", build, lock="cc") / "load"


def prepared_batch(records: int, codec: Codec = Codec.NONE, *, size: int = RECORD_BYTES) -> bytes:
    """One record batch as a producer would send it."""
    text = (b"order 0123456789 of customer 42 shipped from hall seven " * (size // 50 + 2))[:size]
    # A time of now: old records would be judged by age.
    at = int(time.time() * 1000)
    return bytes(
        build_batch(
            [Record(i, at, None, b"%08d" % (i * 7919 % 10**8) + text[8:]) for i in range(records)],
            codec=codec,
        )
    )


def produce_frame(topic: str, partition: int, batch: bytes, *, acks: int = 1) -> bytes:
    """A Produce request of one batch."""
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    return frame_of(PRODUCE, PRODUCE_VERSION, request)


def fill_exactly(port: int, topic: str, partitions: int, batch_records: int, count: int) -> None:
    """Send batches to all partitions in turn until exactly so many records are stored."""
    batch = prepared_batch(batch_records)
    client = RawClient(("127.0.0.1", port))
    try:
        frames = [produce_frame(topic, partition, batch) for partition in range(partitions)]
        for number in range(count // batch_records):
            assert is_acknowledged(client.ask(frames[number % partitions]))
    finally:
        client.close()


def is_acknowledged(answer: bytes) -> bool:
    """Whether the answer to a frame of `produce_frame` tells of no error."""
    _, position = decode_response_header(PRODUCE, PRODUCE_VERSION, answer)
    response = PRODUCE.decode_response(PRODUCE_VERSION, answer, position)
    return not any(p.error_code for t in response.responses for p in t.partition_responses)


def send_frames(
    port: int, frames: list[bytes], *, connections: int, depth: int, seconds: float
) -> dict[str, float]:
    """Send the frames over and over; return what `load.c` prints."""
    with tempfile.NamedTemporaryFile() as file:
        for frame in frames:
            file.write(frame)
        file.flush()
        return _load("requests", "127.0.0.1", port, file.name, connections, depth, seconds)


def drain(
    port: int,
    topic: str,
    *,
    batch: bytes,
    batch_records: int,
    end_offset: int,
    max_bytes: int,
    seconds: float,
) -> dict[str, float]:
    """Fetch partition 0 from its beginning, again and again, without a look at the records."""
    marker = 0x0123456789ABCDEF
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(partition=0, fetch_offset=marker, partition_max_bytes=max_bytes)
                ],
            )
        ],
    )
    frame = frame_of(FETCH, FETCH_VERSION, request)
    offset_at = frame.index(marker.to_bytes(8, "big"))
    # size, correlation id, throttle time, topics, name, partitions, index, error, three numbers.
    records_at = 4 + 4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2 + 8 + 8 + 4
    return drain_frame(
        port, frame, offset_at, records_at, len(batch), batch_records, end_offset, seconds
    )


def drain_frame(
    port: int,
    frame: bytes,
    offset_at: int,
    records_at: int,
    batch_bytes: int,
    batch_records: int,
    end_offset: int,
    seconds: float,
) -> dict[str, float]:
    """Send a request again and again, each with the offset after the answer before."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(frame)
        file.flush()
        where = ("drain", "127.0.0.1", port, file.name, offset_at, records_at)
        return _load(*where, batch_bytes, batch_records, end_offset, 1, seconds)


def _load(*arguments: object) -> dict[str, float]:
    command = [str(load_program()), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode:
        raise RuntimeError(f"load {arguments[0]}: {done.stderr.strip()}")
    return json.loads(done.stdout)
