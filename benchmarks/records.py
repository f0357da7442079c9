"""What record batches cost: the checks of the produce path, iterating, building, compacting.

Run: python benchmarks/records.py
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

from kafkalite.clock import SystemClock
from kafkalite.log.cleaner import CleanerSettings, CleaningPass, plan_cleaning
from kafkalite.log.disk import OsDisk
from kafkalite.log.log import Log
from kafkalite.log.producer_state import ProducerStates
from kafkalite.log.recovery import open_log
from kafkalite.log.validate import validate_batches
from kafkalite.log_config import LogConfig
from kafkalite.types import TopicPartition
from kafkalite.wire.compression import Codec
from kafkalite.wire.records import (
    Record,
    build_batch,
    crc_matches,
    iterate_records,
    read_batch_header,
    set_offset_and_epoch,
)

PARTITION = TopicPartition("bench", 0)
NOW_MS = 1_700_000_000_000


def best(function: Callable[[], object], *, repeat: int = 7, count: int = 1) -> float:
    """Return the seconds of the fastest of `repeat` runs of `count` calls, per call."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(count):
            function()
        times.append((time.perf_counter() - start) / count)
    return min(times)


def batch_of(size: int, *, record_bytes: int = 100, codec: Codec = Codec.NONE) -> bytearray:
    """Return a batch of an idempotent producer, about `size` bytes before compression."""
    value = (b"0123456789abcdef" * (record_bytes // 16 + 1))[:record_bytes]
    records = [
        Record(n, NOW_MS + n, b"key-%06d" % n, value) for n in range(size // (record_bytes + 20))
    ]
    return build_batch(records, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)


def produce_path() -> None:
    """Print the parts of what an append costs besides writing."""
    config = LogConfig()
    looking = replace(config, validate_records=True)
    for size in (1024, 16 * 1024, 1000 * 1000):
        batch = memoryview(batch_of(size))
        header = read_batch_header(batch)
        states = ProducerStates()

        def check_and_update(header=header, states=states) -> None:
            header.base_sequence = states.get(1).last_sequence + 1 if len(states) else 0
            states.check(header)
            states.update(header, base_offset=0)

        parts = {
            "header": lambda batch=batch: read_batch_header(batch),
            "crc": lambda batch=batch, header=header: crc_matches(batch, 0, header),
            "validate (with both)": lambda batch=batch: validate_batches(
                batch, topic_partition=PARTITION, config=config, now_ms=NOW_MS
            ),
            "validate records": lambda batch=batch: validate_batches(
                batch, topic_partition=PARTITION, config=looking, now_ms=NOW_MS
            ),
            "producer check+update": check_and_update,
            "patch offset, epoch": lambda batch=batch: set_offset_and_epoch(
                batch, 0, base_offset=5, leader_epoch=1
            ),
        }
        line = ", ".join(f"{name} {best(f, count=2000) * 1e6:.2f}" for name, f in parts.items())
        print(f"{len(batch):>8} bytes, µs: {line}")


def records() -> None:
    """Print records per second of reading and building."""
    for codec in Codec:
        batch = memoryview(batch_of(1 << 20, codec=codec))
        count = read_batch_header(batch).record_count
        seconds = best(lambda batch=batch: sum(1 for _ in iterate_records(batch)))
        print(f"iterate_records {codec.name:>6}: {count / seconds / 1e6:.2f} M records/s")
    source = list(iterate_records(batch_of(1 << 20)))
    seconds = best(lambda: build_batch(source))
    print(f"build_batch: {len(source) / seconds / 1e6:.2f} M records/s")


def compaction(directory: str, codec: Codec, record_bytes: int) -> None:
    """Print the speed of a pass over 64 MiB in which two of three records are superseded."""
    disk = OsDisk()
    disk.make_directory(directory)
    config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=16 << 20)
    state = open_log(
        disk, directory, config, clean=True, log_start_offset=0, recovery_point=0, now_ms=NOW_MS
    )
    listener = SimpleNamespace(
        on_flush_due=print_nothing,
        on_start_moved=print_nothing,
        on_truncated=print_nothing,
        on_segments_removed=print_nothing,
    )
    clock = SystemClock()
    log = Log(
        disk, directory, PARTITION, UUID(int=1), config, state, clock=clock, listener=listener
    )
    value = (b"0123456789abcdef" * (record_bytes // 16 + 1))[:record_bytes]
    per_batch = 16_384 // (record_bytes + 20)
    total = (64 << 20) // (record_bytes + 20)
    for first in range(0, total, per_batch):
        chunk = [
            Record(n, NOW_MS, b"key-%07d" % ((first + n) % (total // 3)), value)
            for n in range(per_batch)
        ]
        log.append_as_leader(build_batch(chunk, codec=codec), leader_epoch=0, now_ms=NOW_MS)
    log.roll()
    plan = plan_cleaning(log, checkpoint=None, stable_offset=log.log_end_offset, now_ms=NOW_MS)
    assert plan is not None
    work = CleaningPass(plan, CleanerSettings(), now_ms=NOW_MS)
    start = time.perf_counter()
    groups = work.build_map()
    mapped = time.perf_counter()
    for group in groups:
        work.swap(group, work.clean_group(group))
    seconds = time.perf_counter() - start
    found = work.statistics
    print(
        f"cleaning {codec.name:>6}, records of {record_bytes:>4} bytes: "
        f"{found.bytes_before / seconds / 1e6:.0f} MB/s of log read, "
        f"{found.records_before / seconds / 1e6:.2f} M records/s "
        f"(map {mapped - start:.2f} s, rewriting {seconds - (mapped - start):.2f} s; "
        f"{found.bytes_before >> 20} -> {found.bytes_after >> 20} MiB)"
    )
    log.close()


def print_nothing(*_: object) -> None:
    """Stand in for a listener's methods."""


def main() -> None:
    """Print everything."""
    produce_path()
    records()
    with tempfile.TemporaryDirectory() as scratch:
        for codec, record_bytes in (
            (Codec.NONE, 100),
            (Codec.NONE, 1000),
            (Codec.LZ4, 100),
            (Codec.ZSTD, 100),
        ):
            compaction(str(Path(scratch) / f"{codec.name}-{record_bytes}"), codec, record_bytes)


if __name__ == "__main__":
    main()
