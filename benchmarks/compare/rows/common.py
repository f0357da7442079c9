"""What the rows share: topics for a run, topics filled beforehand, and samples of throughput."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.compare import loads
from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.compare.measure import Metric, Sample
from kafkalite.wire.compression import Codec

PARTITIONS = 6
FILLED_IN_TURN = 8
REPLICATED_SECONDS = 10


@contextlib.contextmanager
def fresh_topic(
    broker: BrokerUnderTest, partitions: int = PARTITIONS, *, expected: int | None = None
) -> Iterator[str]:
    """A topic for one run; holds the records expected at its end, or the run does not count."""
    topic = broker.create_topic(partitions)
    try:
        yield topic
        if expected is not None:
            check_stored(broker, topic, partitions, expected)
    finally:
        broker.delete_topic(topic)


def check_stored(broker: BrokerUnderTest, topic: str, partitions: int, expected: int) -> None:
    """Fail a run of which not all records are there; followers may be a moment behind."""
    if not broker.tells_offsets:
        return
    deadline = time.monotonic() + REPLICATED_SECONDS
    while (stored := broker.end_offset(topic, partitions)) != expected:
        in_time = stored < expected and time.monotonic() < deadline
        assert in_time, f"{stored} records stored, {expected} sent"
        time.sleep(0.05)


class Stored:
    """Topics filled once per broker and read again and again: the page cache stays warm."""

    def __init__(self, count: int, batch_records: int, partitions: int, size: int) -> None:
        self.batch_records, self.partitions, self.size = batch_records, partitions, size
        self.batch = loads.prepared_batch(batch_records, size=size)
        self.batches = count // batch_records // partitions
        self._topics: dict[BrokerUnderTest, str] = {}

    @property
    def count(self) -> int:
        return self.batches * self.batch_records * self.partitions

    def topic(self, broker: BrokerUnderTest) -> str:
        if broker not in self._topics:
            topic = self._topics[broker] = broker.create_topic(self.partitions)
            fill(broker, topic, self.partitions, self.batch, self.count)
        return self._topics[broker]


def fill(broker: BrokerUnderTest, topic: str, partitions: int, batch: bytes, count: int) -> None:
    """Send a batch to all partitions in turn until so many records are stored."""
    frames = [
        loads.produce_frame(topic, p, batch)
        for _ in range(FILLED_IN_TURN)
        for p in range(partitions)
    ]
    while broker.end_offset(topic, partitions) < count:
        loads.send_frames(broker.port, frames, connections=1, depth=4, seconds=0.2)


def drop_from_page_cache(broker: BrokerUnderTest) -> None:
    """Write a broker's files to the disk and have the kernel forget them."""
    os.sync()
    for path in [*Path(broker.folder).rglob("*.log")]:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def throughput(rate: float, count: int, size: int, done: dict[str, float]) -> Sample:
    """Return the sample of so many records of so many bytes at this many records a second."""
    return Sample(
        {"throughput": rate / 1000, "data": rate * size / 1e6},
        seconds=done["seconds"],
        client_cpu=done["cpu"],
        byte_count=count * size,
        broker_cpu=done.get("broker_cpu", 0.0),
    )


def rate_wanted(target: float | None) -> tuple[Metric, ...]:
    return (Metric("throughput", "thousand records/s", target=target),)


def produce_prepared(
    broker: BrokerUnderTest,
    scale: float,
    *,
    connections: int,
    depth: int,
    seconds: float,
    partitions: int = PARTITIONS,
    records: int = 1,
    codec: Codec = Codec.NONE,
) -> Sample:
    """Send one prepared batch a request to all partitions in turn, acks=1.

    Each partition has a batch before, so that no log's first append is measured.
    """
    batch = loads.prepared_batch(records, codec)
    with fresh_topic(broker, partitions) as topic:
        frames = [loads.produce_frame(topic, p, batch) for p in range(partitions)]
        ports = broker.ports_of(topic, partitions)
        groups = [
            [frame for frame, led_at in zip(frames, ports, strict=True) if led_at == port]
            for port in sorted(set(ports))
        ]
        for port, group in zip(sorted(set(ports)), groups, strict=True):
            send_once(port, group)
        before = partitions * records
        done = measured(
            broker,
            partial(
                send_to_all,
                dict(zip(sorted(set(ports)), groups, strict=True)),
                connections=connections,
                depth=depth,
                seconds=seconds * scale,
            ),
        )
        check_stored(broker, topic, partitions, before + int(done["all_answers"]) * records)
    return of_requests(done, records, len(batch))


def measured(broker: BrokerUnderTest, load: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Run a load; what it tells gets the broker's processor seconds meanwhile."""
    before = broker.cpu_seconds()
    done = load()
    return {**done, "broker_cpu": broker.cpu_seconds() - before}


def send_once(port: int, frames: list[bytes]) -> float:
    """Send each frame once, all in flight; return the seconds until all are answered."""
    with socket.create_connection(("127.0.0.1", port)) as sock, sock.makefile("rb") as answers:
        began = time.perf_counter()
        sender = threading.Thread(target=sock.sendall, args=[b"".join(frames)])
        sender.start()
        for _ in frames:
            answer = answers.read(int.from_bytes(answers.read(4), "big"))
            assert loads.is_acknowledged(answer), "refused"
        sender.join()
        return time.perf_counter() - began


def send_to_all(
    frames: dict[int, list[bytes]], *, connections: int, depth: int, seconds: float
) -> dict[str, float]:
    """Send the frames of each port to it, over and over, the connections shared out among them.

    A port has at least one, also where that makes them more.
    """

    def send(port: int) -> dict[str, float]:
        own = max(1, connections // len(frames))
        return loads.send_frames(port, frames[port], connections=own, depth=depth, seconds=seconds)

    if len(frames) == 1:
        return send(*frames)
    with ThreadPoolExecutor(len(frames)) as pool:
        all_done = list(pool.map(send, frames))
    sums = {
        name: sum(done[name] for done in all_done) for name in ("answers", "all_answers", "cpu")
    }
    worst = {name: max(done[name] for done in all_done) for name in ("seconds", "p50_us", "p99_us")}
    return {**sums, **worst}


def of_requests(done: dict[str, float], records: int, size: int) -> Sample:
    """Return the sample of what `load.c` counted, at `records` and `size` bytes a request."""
    rate = done["answers"] / done["seconds"]
    return Sample(
        {
            "requests": rate,
            "throughput": rate * records / 1000,
            "data": rate * size / 1e6,
            "p50": done["p50_us"] / 1000,
            "p99": done["p99_us"] / 1000,
            "processor time a request": done.get("broker_cpu", 0.0) / done["all_answers"] * 1e6,
        },
        broker_cpu=done.get("broker_cpu", 0.0),
        seconds=done["seconds"],
        client_cpu=done["cpu"],
        byte_count=int(done["answers"]) * size,
    )
