"""Load from librdkafka in a process of its own: `python -m benchmarks.compare.worker KIND JSON`.

Prints one JSON object, which names the processor time of this process: whoever is busy all the
time is the limit.
"""

import json
import resource
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

MESSAGES_AT_ONCE = 2_000


def produce(bootstrap: str, topic: str, count: int, size: int, settings: dict) -> dict[str, Any]:
    """Send so many records of so many bytes as fast as librdkafka takes them."""
    producer = Producer(
        {
            **_where(bootstrap),
            "log_level": 2,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 1_000_000,
            "linger.ms": 5,
            **settings,
        }
    )
    producer.list_topics(topic, timeout=10)
    # Not all the same, and not beyond compression: a counter, then text.
    text = (b"order 0123456789 of customer 42 shipped from hall seven " * (size // 50 + 2))[:size]
    messages = [
        {"value": struct.pack(">Q", i * 2654435761 % 2**64) + text[8:]}
        for i in range(MESSAGES_AT_ONCE)
    ]
    cpu, began, sent = _cpu(), time.perf_counter(), 0
    while sent < count:
        wanted = min(MESSAGES_AT_ONCE, count - sent)
        batch = messages if wanted == MESSAGES_AT_ONCE else messages[:wanted]
        # Where the queue is full part of it is taken; the rest is marked with an error.
        taken = producer.produce_batch(topic, batch)
        sent += taken
        if taken < wanted:
            producer.poll(0.005)
    left = producer.flush(60)
    seconds = time.perf_counter() - began
    assert left == 0, f"{left} records were not acknowledged"
    return {"seconds": seconds, "count": sent, "cpu": _cpu() - cpu}


def consume(
    bootstrap: str, topic: str, partitions: int, count: int, settings: dict
) -> dict[str, Any]:
    """Read so many records from the beginning; the time begins with the first."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "measured",
            "enable.auto.commit": False,
            "log_level": 2,
            # By default it stops fetching for a second whenever its queue is full.
            "fetch.queue.backoff.ms": 10,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    assert consumer.consume(1, timeout=20), "nothing came"
    cpu, began, got = _cpu(), time.perf_counter(), 1
    while got < count:
        messages = consumer.consume(10_000, timeout=10)
        assert messages, f"nothing came after {got} of {count} records"
        for message in messages:
            error = message.error()
            assert error is None or error.code() == KafkaError._PARTITION_EOF, error
        got += len(messages)
    seconds, cpu = time.perf_counter() - began, _cpu() - cpu
    consumer.close()
    return {"seconds": seconds, "count": got, "cpu": cpu}


def consume_in_group(
    bootstrap: str, topic: str, members: int, count: int, settings: dict
) -> dict[str, Any]:
    """Read so many records with the members of one group, each in a thread.

    The time begins when each of them has its share of the partitions.
    """
    group = f"measured-{time.time_ns()}"
    began: list[float] = []
    shares, got = [0] * members, [0] * members
    failures: list[BaseException] = []

    def read(member: int) -> None:
        def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
            shares[member] = len(partitions)

        def revoked(*_: object) -> None:
            shares[member] = 0

        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 2,
                "fetch.queue.backoff.ms": 10,
                **settings,
            }
        )
        try:
            consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
            deadline = time.monotonic() + 30
            # Polling goes on, or nobody else could join.
            while not (all(shares) or failures):
                consumer.consume(1, timeout=0.01)
                assert time.monotonic() < deadline, f"shares are {shares} after 30 s"
            began.append(time.perf_counter())
            while sum(got) < count and not failures:
                got[member] += len(consumer.consume(10_000, timeout=0.05))
        except BaseException as error:
            failures.append(error)
        finally:
            consumer.close()

    threads = [threading.Thread(target=read, args=(member,)) for member in range(members)]
    cpu = _cpu()
    for thread in threads:
        thread.start()
    while sum(got) < count and not failures:
        time.sleep(0.002)
    ended, cpu = time.perf_counter(), _cpu() - cpu
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return {"seconds": ended - min(began), "count": count, "cpu": cpu}


def both(**parameters: Any) -> dict[str, Any]:
    """Produce and consume at the same time, each in a thread."""
    found: dict[str, Any] = {}
    shared = {name: parameters[name] for name in ("bootstrap", "topic", "count")}
    reader = threading.Thread(
        target=lambda: found.update(
            consume(**shared, partitions=parameters["partitions"], settings={})
        )
    )
    cpu, began = _cpu(), time.perf_counter()
    reader.start()
    produce(**shared, size=parameters["size"], settings=parameters["settings"])
    reader.join()
    assert found, "the consumer failed"
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "count": parameters["count"], "cpu": _cpu() - cpu}


def latency(
    bootstrap: str, topic: str, count: int, size: int, rate: float, settings: dict
) -> dict[str, Any]:
    """From `produce` to the consumer's `poll`, at a rate; one at a time where the rate is 0."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "log_level": 2, "linger.ms": 0, **settings}
    )
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "measured", "log_level": 2})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    times: list[int] = []
    rest = bytes(size - 8)

    def send() -> None:
        producer.produce(topic, struct.pack(">q", time.perf_counter_ns()) + rest, partition=0)

    def take() -> None:
        message = consumer.poll(10)
        assert message is not None, "the record did not come"
        assert message.error() is None, message.error()
        times.append(time.perf_counter_ns() - struct.unpack_from(">q", message.value())[0])

    warm_up = max(50, count // 10)
    for _ in range(50):  # both ends are connected before the clock counts
        send()
        take()
    times.clear()
    cpu = _cpu()
    if rate == 0:
        for _ in range(warm_up + count):
            send()
            take()
    else:
        reader = threading.Thread(target=lambda: [take() for _ in range(warm_up + count)])
        reader.start()
        due = time.perf_counter()
        for _ in range(warm_up + count):
            due += 1 / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            send()
            producer.poll(0)
        reader.join()
    cpu = _cpu() - cpu
    producer.flush(10)
    consumer.close()
    times = sorted(times[warm_up:])
    shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    found = {name: times[int(share * len(times))] / 1e6 for name, share in shares.items()}
    return {**found, "cpu": cpu, "count": count}


def _where(bootstrap: str) -> dict[str, Any]:
    """Return how to reach a broker; the mock cluster is made by the client itself."""
    if bootstrap == "librdkafka mock":
        return {"test.mock.num.brokers": 1}
    return {"bootstrap.servers": bootstrap}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "produce": produce,
    "consume": consume,
    "consume_in_group": consume_in_group,
    "both": both,
    "latency": latency,
}

if __name__ == "__main__":
    print(json.dumps(KINDS[sys.argv[1]](**json.loads(sys.argv[2]))))
