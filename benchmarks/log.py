"""What the log costs: append, read, create, open, recover.

Run: python benchmarks/log.py
"""

import os
import tempfile
import time
from pathlib import Path
from random import Random
from uuid import UUID

from kafkalite.clock import SystemClock
from kafkalite.log.disk import OsDisk, allow_many_open_files
from kafkalite.log.log import Log
from kafkalite.log.manager import LogManager
from kafkalite.log_config import LogConfig
from kafkalite.types import TopicPartition
from kafkalite.wire.records import Record, build_batch, read_batch_header

NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=1)
CONFIG = LogConfig()


def row(what: str, value: float, unit: str, note: str = "") -> None:
    """Print one line of the table."""
    print(f"{what:<58} {value:>10,.2f} {unit:<6} {note}")


def manager_in(directory: Path) -> LogManager:
    """Return a manager with the logs that are there; nothing is synced."""
    manager = LogManager([str(directory)], OsDisk(syncs=False), SystemClock())
    manager.claim(node_id=1)
    return manager


def batches(count: int, value_bytes: int, *, idempotent: bool) -> list[bytearray]:
    """Return batches of one record each."""
    record = Record(0, NOW_MS, None, b"x" * value_bytes)
    if not idempotent:
        data = bytes(build_batch([record]))
        return [bytearray(data) for _ in range(count)]
    return [
        build_batch([record], producer_id=1, producer_epoch=0, base_sequence=sequence)
        for sequence in range(count)
    ]


def append(manager: LogManager, index: int, count: int, size: int, *, idempotent: bool) -> Log:
    """Print the time per append, all of it inclusive."""
    log = manager.create(TopicPartition("append", index), TOPIC_ID, CONFIG)
    data = batches(count, size - 72, idempotent=idempotent)
    start = time.perf_counter()
    for batch in data:
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    seconds = time.perf_counter() - start
    kind = "idempotent" if idempotent else "plain"
    row(f"append, {size:,} bytes, one record, {kind}", seconds / count * 1e6, "µs")
    return log


def raw_write(directory: Path, count: int, size: int) -> None:
    """Print what the write alone costs."""
    descriptor = os.open(directory / "raw", os.O_RDWR | os.O_CREAT)
    data = bytes(size)
    start = time.perf_counter()
    for number in range(count):
        os.pwrite(descriptor, data, number * size)
    row(f"the write alone, {size:,} bytes", (time.perf_counter() - start) / count * 1e6, "µs")
    os.close(descriptor)


def read(log: Log, name: str, max_bytes: int) -> None:
    """Print the time to find a region, by a sequential reader and by random ones."""
    upper = log.log_end_position
    size = log.size_bytes // log.log_end_offset
    offsets = list(range(0, log.log_end_offset, max(max_bytes // size, 1)))
    for kind in ("sequential", "random"):
        if kind == "random":
            Random(1).shuffle(offsets)
        start = time.perf_counter()
        for offset in offsets:
            log.read(offset, max_bytes=max_bytes, upper=upper, min_one_batch=True)
        seconds = time.perf_counter() - start
        row(f"find {max_bytes:,} bytes in {name}, {kind}", seconds / len(offsets) * 1e6, "µs")


def create_and_open(directory: Path) -> None:
    """Print the times for many partitions."""
    manager = manager_in(directory)
    for count in (50, 950):
        start = time.perf_counter()
        for partition in range(count):
            manager.create(TopicPartition(f"t{count}", partition), TOPIC_ID, CONFIG)
        row(f"create {count} partitions", (time.perf_counter() - start) * 1e3, "ms")
    data = bytes(build_batch([Record(0, NOW_MS, None, b"x" * 100)]))
    for log in manager.logs():
        log.append_as_leader(bytearray(data), leader_epoch=0, now_ms=NOW_MS)
    for clean in (True, False):
        start = time.perf_counter()
        manager.close(clean=clean)
        stop = time.perf_counter()
        manager = manager_in(directory)
        manager.load(lambda _: CONFIG)
        name = "clean stop" if clean else "crash"
        row(f"open 1,000 partitions after a {name}", (time.perf_counter() - stop) * 1e3, "ms")
        if clean:
            row("close 1,000 partitions, without fsync", (stop - start) * 1e3, "ms")
    manager.close(clean=False)


def recover(directory: Path, what: str) -> None:
    """Print the speed of recovery of one log."""
    manager = manager_in(directory)
    start = time.perf_counter()
    (log,) = manager.load(lambda _: CONFIG)
    seconds = time.perf_counter() - start
    count = sum(1 for segment in log.segments for _ in segment.spans())
    row(f"recovery, {what}", log.size_bytes / seconds / 1e6, "MB/s", f"{count / seconds:,.0f} b/s")
    manager.close(clean=False)


def main() -> None:
    """Print everything."""
    allow_many_open_files()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        manager = manager_in(root / "append")
        small = append(manager, 0, 20_000, 100, idempotent=False)
        large = append(manager, 1, 20_000, 16_384, idempotent=False)
        append(manager, 2, 20_000, 16_384, idempotent=True)
        raw_write(root, 20_000, 16_384)
        read(small, "a log of 100-byte batches", 100)
        read(small, "a log of 100-byte batches", 1 << 20)
        read(large, "a log of 16 KiB batches", 16_384)
        read(large, "a log of 16 KiB batches", 1 << 20)
        start = time.perf_counter()
        size = sum(read_batch_header(batch).size for batch in large.read_batches(0))
        row("replay of a log of 16 KiB batches", size / (time.perf_counter() - start) / 1e6, "MB/s")
        manager.close(clean=False)
        create_and_open(root / "many")
        for value_bytes, idempotent in ((16_312, False), (16_312, True), (28, False)):
            size = value_bytes + 72
            what = f"batches of {size:,} bytes, {'idempotent' if idempotent else 'plain'}"
            manager = manager_in(root / what)
            log = manager.create(TopicPartition("t", 0), TOPIC_ID, CONFIG)
            for batch in batches(20_000, value_bytes, idempotent=idempotent):
                log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
            manager.close(clean=False)
            recover(root / what, what)


if __name__ == "__main__":
    main()
