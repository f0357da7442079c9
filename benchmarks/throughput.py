"""How much goes through: one producer with default batching, and one request at a time."""

import os
import time

from confluent_kafka import Producer

from benchmarks.process import BrokerProcess, RawClient, frame_of, metadata_frame, running
from benchmarks.result import Result
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch

RECORD_BYTES = 100
PRODUCER_RECORDS = 2_000_000
PRODUCE_VERSION = 9
REQUESTS_SECONDS = 3.0


def producer() -> list[Result]:
    """One confluent-kafka producer: whoever is busy all the time is the limit."""
    with running() as broker:
        _create(broker, "records")
        settings = {"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 500_000}
        client = Producer({**settings, "log_level": 3})
        client.produce("records", b"warm")
        client.flush()
        value = bytes(RECORD_BYTES)
        broker_before, client_before = broker.cpu_seconds(), time.process_time()
        began = time.perf_counter()
        for _ in range(PRODUCER_RECORDS):
            while True:
                try:
                    client.produce("records", value)
                    break
                except BufferError:
                    client.poll(0.01)
        client.flush()
        seconds = time.perf_counter() - began
        broker_share = (broker.cpu_seconds() - broker_before) / seconds
        client_share = (time.process_time() - client_before) / seconds
    return [
        Result(
            what=f"confluent-kafka producer, {RECORD_BYTES}-byte records, default batching",
            value=PRODUCER_RECORDS / seconds,
            unit="records/s",
            note=f"broker busy {broker_share:.0%} of the time, client {client_share:.0%}",
        )
    ]


def requests_one_in_flight() -> list[Result]:
    """A client that waits for each answer, with frames made beforehand."""
    batch = build_batch([Record(0, int(time.time() * 1000), None, bytes(RECORD_BYTES))])
    produce = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name="records", partition_data=[PartitionProduceData(index=0, records=batch)]
            )
        ],
    )
    with running() as broker:
        _create(broker, "records")
        return [
            Result(what=f"{name}, one in flight", value=rate, unit="requests/s", note=note)
            for name, (rate, note) in {
                "Metadata": _rate(broker, metadata_frame()),
                "Produce of one record, acks=all": _rate(
                    broker, frame_of(PRODUCE, PRODUCE_VERSION, produce)
                ),
            }.items()
        ]


def _rate(broker: BrokerProcess, frame: bytes) -> tuple[float, str]:
    client = RawClient(broker.address, frame)
    for _ in range(100):
        client.ask()
    count = 0
    busy_before = broker.cpu_seconds()
    began = time.perf_counter()
    while (seconds := time.perf_counter() - began) < REQUESTS_SECONDS:
        for _ in range(100):
            client.ask()
        count += 100
    busy = (broker.cpu_seconds() - busy_before) / seconds
    client.close()
    return count / seconds, f"broker busy {busy:.0%} of the time, {os.cpu_count()} cores"


def _create(broker: BrokerProcess, topic: str) -> None:
    with Client(broker.bootstrap) as client:
        create_topic(client, topic)
