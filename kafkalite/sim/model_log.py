"""A log as a list: what level 1 has in place of files.

It has that part of `kafkalite.log.log.Log` that roles of partitions need, so that they run on it
unchanged.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from kafkalite.log.leader_epochs import LeaderEpochFileCache
from kafkalite.log.state import AppendInfo
from kafkalite.log_config import LogConfig
from kafkalite.types import LogPosition, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

RECORDS_PER_READ_MAX: Final = 5


class Entry(NamedTuple):
    """One record: the leader epoch that it was written in, and a value that is never used twice."""

    epoch: int
    value: int


class ModelRegion(NamedTuple):
    """Records that were read."""

    offset: int
    entries: list[Entry]

    @property
    def next_offset(self) -> int:
        """End, exclusive."""
        return self.offset + len(self.entries)


class ModelProducers:
    """There are no transactions on this level."""

    awaits_replication = False

    def __iter__(self) -> Iterator[Any]:
        """Give nobody: the clients of this level have no ids."""
        return iter(())

    def first_unstable_offset_below(self, high_watermark: int) -> None:
        """Return None: there is none."""
        del high_watermark


class ModelLog:
    """Records of one replica.

    Attributes:
        entries: index is offset.
        synced_end: end (exclusive) of what a power failure leaves for certain.
        on_write: told of each record that is written, with its offset.
    """

    log_start_offset = 0
    failure = None
    first_unstable_offset = None

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        on_write: Callable[[TopicPartition, int, int, Entry], object],
    ) -> None:
        self.topic_partition = topic_partition
        self.config = config
        self.on_write = on_write
        self.producers = ModelProducers()
        self.entries: list[Entry] = []
        self.synced_end = 0
        self._epochs = LeaderEpochFileCache()

    # --- what a power failure does

    def sync(self) -> None:
        """Make everything safe."""
        self.synced_end = len(self.entries)

    def lose_unsynced(self, random: Random) -> int:
        """Keep what was synced and a random part of what was not; return how many are lost."""
        kept = random.randint(self.synced_end, len(self.entries))
        lost = len(self.entries) - kept
        del self.entries[kept:]
        return lost

    def recover(self) -> None:
        """Find the epochs anew in the records, as after a crash."""
        self._epochs.clear()
        for offset, entry in enumerate(self.entries):
            if entry.epoch != self._epochs.latest:
                self._epochs.assign(entry.epoch, offset)

    # --- Log

    @property
    def log_end_offset(self) -> int:
        """Next offset."""
        return len(self.entries)

    @property
    def log_end_position(self) -> LogPosition:
        """Next offset, and no place."""
        return LogPosition(len(self.entries), 0, 0)

    @property
    def leader_epoch(self) -> int:
        """Latest epoch."""
        return self._epochs.latest

    def position_of(self, offset: int) -> LogPosition:
        """Return the offset, and no place."""
        return LogPosition(offset, 0, 0)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Note where the next epoch begins."""
        self._epochs.assign(leader_epoch, len(self.entries))

    def end_offset_for(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) as `LeaderEpochFileCache.end_offset_for`."""
        return self._epochs.end_offset_for(leader_epoch, len(self.entries))

    def append_as_leader(
        self, values: Sequence[int], *, leader_epoch: int, now_ms: int, origin: object
    ) -> AppendInfo:
        """Add records."""
        del now_ms, origin
        first = len(self.entries)
        for value in values:
            self._append(Entry(leader_epoch, value))
        return AppendInfo(first, len(self.entries) - 1, -1, 0, duplicate=False, size_bytes=0)

    def append_as_follower(
        self, region: ModelRegion, *, leader_epoch: int | None = None
    ) -> AppendInfo | None:
        """Add records as the leader has them."""
        first = len(self.entries)
        if region.offset != first:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{region.offset} is not {first}")
        for entry in region.entries:
            if leader_epoch is not None and entry.epoch > leader_epoch:
                break
            self._append(entry)
        if len(self.entries) == first:
            return None
        return AppendInfo(first, len(self.entries) - 1, -1, 0, duplicate=False, size_bytes=0)

    def _append(self, entry: Entry) -> None:
        offset = len(self.entries)
        if entry.epoch != self._epochs.latest:
            self._epochs.assign(entry.epoch, offset)
        self.entries.append(entry)
        self.on_write(self.topic_partition, offset, entry.epoch, entry)

    def read(
        self, offset: int, *, max_bytes: int, upper: LogPosition, min_one_batch: bool
    ) -> ModelRegion:
        """Return records from an offset."""
        del max_bytes, min_one_batch
        if not 0 <= offset <= len(self.entries):
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not here")
        end = min(offset + RECORDS_PER_READ_MAX, upper.offset)
        return ModelRegion(offset, self.entries[offset:end])

    def truncate_to(self, offset: int) -> None:
        """Drop all records from `offset`."""
        del self.entries[offset:]
        self.synced_end = min(self.synced_end, offset)
        self._epochs.truncate_from_end(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; logs of this level begin at 0."""
        assert offset == 0
        self.truncate_to(0)
