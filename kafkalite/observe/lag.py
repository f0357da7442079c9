"""How old the oldest record is that a group has not read: exactly, because the broker has it."""

from typing import TYPE_CHECKING, Final

from kafkalite.isr.partition import Partition
from kafkalite.isr.partition_read import IsolationLevel
from kafkalite.log.region import FileRegion
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.records import iterate_batches, iterate_records

if TYPE_CHECKING:
    from kafkalite.types import TopicPartition

CACHE_MAX: Final = 10_000
READ_BYTES: Final = 64 * 1024
"""One batch is read in any case."""

BATCH_MAX_BYTES: Final = 1024 * 1024
"""A larger one is not opened: its first record's time stands for all of its records."""


class RecordTimes:
    """The timestamps of records, remembered: an offset's never changes.

    Except that compaction or retention may remove the record; then the next one's counts.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[TopicPartition, str, int], int] = {}

    def timestamp_at(self, partition: Partition, offset: int) -> int | None:
        """Return the timestamp (ms) of the first record from `offset` on, None if there is none."""
        offset = max(offset, partition.log_start_offset)
        if offset >= partition.high_watermark:
            return None
        key = (partition.topic_partition, str(partition.topic_id), offset)
        found = self._known.get(key)
        if found is None:
            found = _read_timestamp(partition, offset)
            if found is None:
                return None
            if len(self._known) >= CACHE_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return found


def _read_timestamp(partition: Partition, offset: int) -> int | None:
    try:
        read = partition.read(
            offset,
            max_bytes=READ_BYTES,
            min_one_batch=True,
            isolation=IsolationLevel.READ_UNCOMMITTED,
        )
        data = memoryview(read.region.read() if isinstance(read.region, FileRegion) else b"")
        for position, header in iterate_batches(data):
            if header.next_offset <= offset or header.is_control:
                continue
            if header.is_log_append_time or header.size > BATCH_MAX_BYTES:
                return header.max_timestamp if header.is_log_append_time else header.base_timestamp
            for record in iterate_records(data[position : position + header.size]):
                if record.offset >= offset:
                    return record.timestamp
    except (KafkaError, OSError):
        return None
    return None
