"""This broker's replica of one partition: its log, its role, and who waits for it to move.

The only code that moves log, watermark and waiters together. With one replica the ISR is this
broker alone, so the high watermark is the log end offset.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from kafkalite.log.aborted import AbortedTransaction
from kafkalite.log.log import AppendInfo, Log
from kafkalite.log.region import FileRegion
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.types import TopicPartition

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6

Watcher = Callable[[], object]


class IsolationLevel(IntEnum):
    """What a reader may see (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(slots=True)
class PartitionRead:
    """What a fetch of one partition found.

    Ends are exclusive. `aborted` is None for read_uncommitted. `diverging` is set, and `region`
    empty, where the reader's last epoch ends before its fetch offset (KIP-595, rule 77). `is_cut`
    tells that the reader may see more than fits its limit, or than one segment holds: to wait for
    still more would bring it nothing.
    """

    region: FileRegion | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[AbortedTransaction] | None = None
    diverging: tuple[int, int] | None = None
    is_cut: bool = False


class Partition:
    """Leader's view of one partition.

    Invariant: log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset.
    """

    __slots__ = ("_watchers", "leader_epoch", "log", "topic_partition")

    def __init__(self, log: Log, *, leader_epoch: int) -> None:
        self.log = log
        self.topic_partition: TopicPartition = log.topic_partition
        self.leader_epoch = leader_epoch
        self._watchers: dict[Watcher, None] = {}

    @property
    def log_start_offset(self) -> int:
        """First offset that can be read."""
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Offset that the next record gets."""
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """End (exclusive) of what every in-sync replica has."""
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """End (exclusive) of what a read_committed consumer may see (rule 115)."""
        unstable = self.log.first_unstable_offset
        high_watermark = self.log.log_end_offset
        return high_watermark if unstable is None else min(unstable, high_watermark)

    @property
    def max_batch_bytes(self) -> int:
        """Largest batch that `append` takes (`max.message.bytes`)."""
        return self.log.config.max_message_bytes

    def begin_epoch(self, leader_epoch: int) -> None:
        """Lead in another epoch; readers that wait may be of an older one (rule 76)."""
        self.leader_epoch = leader_epoch
        self._wake()

    def append(
        self,
        records: bytearray | memoryview,
        *,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        all_acks: bool = False,
    ) -> AppendInfo:
        """Append client or coordinator batches; `records` is patched in place.

        `all_acks` asks for as many in-sync replicas as min.insync.replicas says (rule 52).

        Raises:
            KafkaError: what `Log.append_as_leader` refuses (rules 38-49, 55-59, 113-114).
        """
        del all_acks  # this broker is the one replica
        info = self.log.append_as_leader(
            records, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
        )
        if self._watchers:
            self._wake()
        return info

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        min_one_batch: bool,
        isolation: IsolationLevel,
        last_fetched_epoch: int = -1,
    ) -> PartitionRead:
        """Return whole batches from the one that holds `offset`, below what the reader may see.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE (rule 73), KAFKA_STORAGE_ERROR.
        """
        log = self.log
        end = log.log_end_position
        committed = isolation is IsolationLevel.READ_COMMITTED
        stable = self.last_stable_offset
        result = PartitionRead(None, end.offset, stable, log.log_start_offset)
        if last_fetched_epoch >= 0:
            epoch, epoch_end = self.end_offset_for(last_fetched_epoch)
            if epoch_end < 0 or offset < log.log_start_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{self.topic_partition}: offset {offset} after leader epoch "
                    f"{last_fetched_epoch} is not known here",
                )
            if epoch < last_fetched_epoch or epoch_end < offset:
                result.diverging = (epoch, epoch_end)
                return result
        upper = log.position_of(stable) if committed and stable < end.offset else end
        region = result.region = log.read(
            offset, max_bytes=max_bytes, upper=upper, min_one_batch=min_one_batch
        )
        result.is_cut = -1 < region.next_offset < upper.offset
        if committed:
            # Of what is returned, and no further: the rest is told with the rest (rule 116).
            has_records = len(region) > 0
            result.aborted = (
                log.aborted_transactions(offset, region.next_offset) if has_records else []
            )
        return result

    def list_offset(self, timestamp: int, isolation: IsolationLevel) -> tuple[int, int, int]:
        """Answer ListOffsets: return (offset, timestamp, epoch); -1s where none (rules 92-94).

        Raises:
            KafkaError: UNSUPPORTED_VERSION for a negative timestamp without a meaning.
        """
        committed = isolation is IsolationLevel.READ_COMMITTED
        upper = self.last_stable_offset if committed else self.high_watermark
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            start = self.log.log_start_offset
            return start, -1, self._epoch_at(start)
        if timestamp == LATEST_TIMESTAMP:
            return upper, -1, self.leader_epoch
        if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
            return -1, -1, -1  # nothing is tiered
        if timestamp == MAX_TIMESTAMP:
            found = self.log.offset_of_max_timestamp()
            return found if found is not None and found[0] < upper else (-1, -1, -1)
        if timestamp < 0:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} has no meaning here"
            )
        return self.log.offset_for_timestamp(timestamp, upper_offset=upper) or (-1, -1, -1)

    def end_offset_for(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) as OffsetForLeaderEpoch answers them (rule 98)."""
        if leader_epoch == self.leader_epoch:
            return leader_epoch, self.log.log_end_offset
        return self.log.end_offset_for(leader_epoch)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader is older or newer than ours (rule 76).

        Raises:
            KafkaError: FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH; -1 is never refused.
        """
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise KafkaError(
            code,
            f"{self.topic_partition}: client at leader epoch {current_leader_epoch}, "
            f"leader at {self.leader_epoch}",
        )

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up to `offset` (-1: to the high watermark); return the new start.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, or POLICY_VIOLATION on a compact-only topic (rule 35).
        """
        if "delete" not in self.log.config.cleanup_policy and self.log.config.cleanup_policy:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{self.topic_partition}: records of a topic whose cleanup.policy lacks 'delete' "
                "cannot be deleted",
            )
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: cannot delete before {target}, "
                f"high watermark is {self.high_watermark}",
            )
        if target > self.log.log_start_offset:
            self.log.delete_records_before(target)
            self._wake()
        return self.log.log_start_offset

    def read_batches(self, offset: int) -> Iterator[memoryview]:
        """Yield the batches from `offset` up to the high watermark, for replay by a coordinator."""
        return self.log.read_batches(offset, self.high_watermark)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` after each move of the high watermark, until `unwatch`."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """Stop calling `watcher`; nothing if it was not watching."""
        self._watchers.pop(watcher, None)

    def close(self) -> None:
        """Wake everyone who waits, because this replica is going away."""
        self._wake()
        self._watchers.clear()

    def _wake(self) -> None:
        for watcher in list(self._watchers):
            watcher()

    def _epoch_at(self, offset: int) -> int:
        """Return the leader epoch that `offset` was written in, -1 if it holds nothing."""
        return self.log.epoch_at(offset) if offset < self.log.log_end_offset else self.leader_epoch
