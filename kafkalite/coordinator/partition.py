"""The log under a shard: what is needed of it, and how it is read back."""

import logging
from collections.abc import Callable, Iterator
from typing import Protocol

import trio

from kafkalite.coordinator.records import TransactionMarker, UnreadableRecord, decode_batch
from kafkalite.coordinator.shard import RecordCodec, Shard
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.records import read_batch_header

logger = logging.getLogger("kafkalite.coordinator")

RECORDS_PER_SLICE = 100
"""Records replayed between two checkpoints: at 5-15 µs each this holds the loop for about 1 ms."""


class AppendedRange(Protocol):
    """Offsets of an append; both inclusive."""

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        ...

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        ...


class CoordinatorPartition(Protocol):
    """The partition that the runtime writes to, as it needs it; `isr.Partition` is one."""

    @property
    def log_start_offset(self) -> int:
        """First offset that can be read."""
        ...

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""
        ...

    @property
    def high_watermark(self) -> int:
        """End (exclusive) of what is replicated."""
        ...

    @property
    def max_batch_bytes(self) -> int:
        """Largest batch that `append` takes."""
        ...

    @property
    def leader_epoch(self) -> int:
        """Which epoch over the partition this is."""
        ...

    def append(
        self,
        records: bytearray | memoryview,
        *,
        now_ms: int,
        origin: AppendOrigin,
        all_acks: bool,
    ) -> AppendedRange:
        """Append one batch; a KafkaError means that nothing was written.

        With `all_acks` it is one where fewer replicas are in sync than the topic demands (rule 52).
        """
        ...

    def read_batches(self, offset: int) -> Iterator[memoryview]:
        """Yield the batches from `offset` to the high watermark."""
        ...

    def watch(self, watcher: Callable[[], object]) -> None:
        """Call `watcher` after each move of the high watermark."""
        ...

    def unwatch(self, watcher: Callable[[], object]) -> None:
        """Stop calling `watcher`."""
        ...


async def replay_log(
    partition: CoordinatorPartition,
    codec: RecordCodec,
    core: Shard,
    *,
    is_wanted: Callable[[], bool],
) -> int:
    """Replay a whole partition into an empty shard, in slices that do not hold the loop.

    What lies above the high watermark is waited for, since it may yet be cut off: a new leader has
    to hear from its followers first. Returns the number of records, early if `is_wanted` says so.

    Raises:
        KafkaError: a corrupt batch.
    """
    count = 0
    offset = partition.log_start_offset
    while offset < partition.log_end_offset:
        before, read_end = offset, partition.high_watermark
        for batch in partition.read_batches(offset):
            for record in decode_batch(batch, codec):
                if isinstance(record, TransactionMarker):
                    core.replay_marker(record.producer_id, committed=record.committed)
                elif isinstance(record, UnreadableRecord):
                    logger.warning("skipping record at offset %d: %s", record.offset, record.reason)
                else:
                    core.replay(record)
                count += 1
                if count % RECORDS_PER_SLICE == 0:
                    await trio.lowlevel.checkpoint()
                    if not is_wanted():
                        return count
            offset = read_batch_header(batch).next_offset
        # Compaction may have taken the last records below the watermark, which no batch tells of.
        offset = max(offset, read_end)
        if offset == before:
            await _wait_progress(partition)
        if not is_wanted():
            return count
    await trio.lowlevel.checkpoint()
    return count


async def _wait_progress(partition: CoordinatorPartition) -> None:
    """Wait until the high watermark moves, or the partition is closed."""
    moved = trio.Event()
    partition.watch(moved.set)
    try:
        await moved.wait()
    finally:
        partition.unwatch(moved.set)
