"""One replica of a partition as its readers see it: bounds, reads, and who is told when it moves.

What changes it is in `partition`.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kafkalite.isr.follower_role import FollowerRole
from kafkalite.isr.leader import Leader
from kafkalite.isr.leader_role import LeaderRole, ReplicationContext
from kafkalite.isr.partition_read import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    IsolationLevel,
    PartitionRead,
)
from kafkalite.log.region import EMPTY_REGION
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.log.log import Log
    from kafkalite.types import TopicPartition

Watcher = Callable[[], object]

ALONE = ReplicationContext()
"""Of partitions that were given nothing else."""


class Replica:
    """Log and role of one replica.

    Invariant: log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset.

    Attributes:
        log: its records.
        leader_epoch: of the present leader's epoch, as far as is known here.
        partition_epoch: version of the state that was taken up last.
        traffic: what clients write and read is counted there, with the other partitions' of the
            topic.
    """

    __slots__ = (
        "_append_watchers",
        "_is_unwritable",
        "_replication",
        "_role",
        "_undecided_end",
        "_watchers",
        "leader_epoch",
        "log",
        "partition_epoch",
        "topic_partition",
        "traffic",
    )

    def __init__(
        self, log: "Log", *, leader_epoch: int, replication: ReplicationContext = ALONE
    ) -> None:
        self.log = log
        self.topic_partition: TopicPartition = log.topic_partition
        self.leader_epoch = leader_epoch
        self.partition_epoch = -1
        self.traffic = replication.traffic.of(log.topic_partition.topic)
        self._replication = replication
        self._role: LeaderRole | FollowerRole | None = None
        # Transactions that end below this were decided before the broker started, perhaps by
        # markers that are not replicated: where those began is not remembered.
        self._undecided_end = 0
        self._is_unwritable = False
        self._watchers: dict[Watcher, None] = {}
        self._append_watchers: dict[Watcher, None] = {}

    # --- What is so ------------------------------------------------------------------------------

    @property
    def topic_id(self) -> "UUID":
        """Of the topic's present incarnation."""
        return self.log.topic_id

    @property
    def is_leader(self) -> bool:
        """Whether it is led here."""
        return not isinstance(self._role, FollowerRole)

    @property
    def leader_id(self) -> int:
        """Broker that leads it, -1 if none does."""
        role = self._role
        return role.leader_id if isinstance(role, FollowerRole) else self._replication.broker_id

    @property
    def leader(self) -> Leader | None:
        """The decisions of a leader with followers; None in every other role."""
        role = self._role
        return role.core if isinstance(role, LeaderRole) else None

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
        role = self._role
        return self.log.log_end_offset if role is None else role.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """End (exclusive) of what a read_committed consumer may see (rule 115)."""
        role = self._role
        if role is None:
            unstable = self.log.first_unstable_offset
            high_watermark = self.log.log_end_offset
            return high_watermark if unstable is None else min(unstable, high_watermark)
        high_watermark = role.high_watermark
        if high_watermark < self._undecided_end:
            return self.log.log_start_offset
        unstable = self.log.producers.first_unstable_offset_below(high_watermark)
        if unstable is None:
            return high_watermark
        return min(max(unstable, self.log.log_start_offset), high_watermark)

    @property
    def low_watermark(self) -> int:
        """Least log start of the living replicas (rule 35); -1 if one has not told its own."""
        role = self._role
        start_offset = self.log.log_start_offset
        if not isinstance(role, LeaderRole):
            return start_offset
        return role.core.low_watermark(start_offset, self._replication.is_alive)

    @property
    def max_batch_bytes(self) -> int:
        """Largest batch that `append` takes (`max.message.bytes`)."""
        return self.log.config.max_message_bytes

    # --- Reading ---------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        min_one_batch: bool,
        isolation: IsolationLevel,
        last_fetched_epoch: int = -1,
        as_replica: bool = False,
    ) -> PartitionRead:
        """Return whole batches from the one that holds `offset`, below what the reader may see.

        That is the high watermark, or the last stable offset for committed records; for a
        follower, `as_replica`, the log end (rule 72).

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE (rule 73), KAFKA_STORAGE_ERROR.
        """
        log = self.log
        committed = isolation is IsolationLevel.READ_COMMITTED and not as_replica
        stable = self.last_stable_offset
        high_watermark = self.high_watermark
        result = PartitionRead(None, high_watermark, stable, log.log_start_offset)
        if last_fetched_epoch >= 0:
            result.diverging = self.diverging_epoch(offset, last_fetched_epoch)
            if result.diverging is not None:
                return result
        visible = stable if committed else high_watermark
        if offset == visible and not as_replica and log.failure is None:
            result.region = EMPTY_REGION  # nothing new, as for most partitions of most fetches
            if committed:
                result.aborted = []
            return result
        if as_replica or visible == log.log_end_offset:
            upper = log.log_end_position
        elif log.log_start_offset <= offset and visible <= offset <= log.log_end_offset:
            result.region = EMPTY_REGION  # where the bound lies need not be found out (rule 73)
            if committed:
                result.aborted = []
            return result
        else:
            upper = log.position_of(visible)
        region = result.region = log.read(
            offset, max_bytes=max_bytes, upper=upper, min_one_batch=min_one_batch
        )
        result.has_more = -1 < region.next_offset < upper.offset
        if committed:
            # Of what is returned, and no further: the rest is told with the rest (rule 116).
            has_records = len(region) > 0
            result.aborted = (
                log.aborted_transactions(offset, region.next_offset) if has_records else []
            )
        return result

    def diverging_epoch(self, offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        """Return (epoch, end offset) where a reader's history leaves this one (rule 77).

        None if it does not: the reader's record before `offset` is of that epoch here, too.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, that epoch is not known here.
        """
        epoch, epoch_end = self.end_offset_for(last_fetched_epoch)
        if epoch_end < 0 or offset < self.log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} after leader epoch "
                f"{last_fetched_epoch} is not known here",
            )
        is_other = epoch < last_fetched_epoch or epoch_end < offset
        return (epoch, epoch_end) if is_other else None

    def list_offset(
        self, timestamp: int, isolation: IsolationLevel, *, as_replica: bool = False
    ) -> tuple[int, int, int]:
        """Answer ListOffsets: return (offset, timestamp, epoch); -1s where none (rules 92-94).

        Raises:
            KafkaError: UNSUPPORTED_VERSION for a negative timestamp without a meaning;
                OFFSET_NOT_AVAILABLE while a new leader does not know yet what is committed
                (rule 95): what it would answer may be less than a client was told before.
        """
        committed = isolation is IsolationLevel.READ_COMMITTED
        upper = self.last_stable_offset if committed else self.high_watermark
        if as_replica:
            upper = self.log.log_end_offset
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            start = self.log.log_start_offset
            return start, -1, self._epoch_at(start)
        role = self._role
        knows = as_replica or not isinstance(role, LeaderRole) or role.has_reached_epoch_start
        if timestamp == LATEST_TIMESTAMP and knows:
            return upper, -1, self.leader_epoch
        if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
            return -1, -1, -1  # nothing is tiered
        found = None
        if timestamp == MAX_TIMESTAMP:
            found = self.log.offset_of_max_timestamp()
            if found is not None and found[0] >= upper:
                found = None
        elif timestamp >= 0:
            found = self.log.offset_for_timestamp(timestamp, upper_offset=upper)
        elif timestamp != LATEST_TIMESTAMP:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} has no meaning here"
            )
        if found is None and not knows:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"{self.topic_partition}: the leader of epoch {self.leader_epoch} does not know "
                "yet what its followers have",
            )
        return found or (-1, -1, -1)

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

    def read_batches(self, offset: int) -> Iterator[memoryview]:
        """Yield the batches from `offset` up to the high watermark, for replay by a coordinator."""
        return self.log.read_batches(offset, self.high_watermark)

    # --- Watching --------------------------------------------------------------------------------

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` after each move of the high watermark or log start, until `unwatch`."""
        self._watchers[watcher] = None

    def watch_appends(self, watcher: Watcher) -> None:
        """Call `watcher` after each append by this leader, until `unwatch`; for followers."""
        self._append_watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """Stop calling `watcher`; nothing if it was not watching."""
        self._watchers.pop(watcher, None)
        self._append_watchers.pop(watcher, None)

    def _wake(self) -> None:
        call_all(self._watchers)

    def _wake_all(self) -> None:
        call_all(self._watchers)
        call_all(self._append_watchers)

    def _epoch_at(self, offset: int) -> int:
        """Return the leader epoch that `offset` was written in, -1 if it holds nothing."""
        return (
            self.log.epochs.epoch_at(offset)
            if offset < self.log.log_end_offset
            else self.leader_epoch
        )


def call_all(watchers: dict[Watcher, None]) -> None:
    """Call all; those that leave or come meanwhile make no difference."""
    for watcher in list(watchers):
        watcher()
