"""Offsets that clients ask for by a timestamp, or by a name that has the form of one."""

from typing import TYPE_CHECKING

from kafkalite.isr.partition_read import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    IsolationLevel,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.isr.partition import Partition


def list_offset(
    partition: "Partition", timestamp: int, isolation: IsolationLevel, *, as_replica: bool = False
) -> tuple[int, int, int]:
    """Answer ListOffsets: return (offset, timestamp, epoch); -1s where none (rules 92-94).

    Raises:
        KafkaError: UNSUPPORTED_VERSION for a negative timestamp without a meaning;
            OFFSET_NOT_AVAILABLE while a new leader does not know yet what is committed
            (rule 95): what it would answer may be less than a client was told before.
    """
    committed = isolation is IsolationLevel.READ_COMMITTED
    log = partition.log
    upper = partition.last_stable_offset if committed else partition.high_watermark
    if as_replica:
        upper = log.log_end_offset
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        start = log.log_start_offset
        is_empty = start >= log.log_end_offset
        return start, -1, partition.leader_epoch if is_empty else log.epochs.epoch_at(start)
    knows = as_replica or partition.has_reached_epoch_start
    if timestamp == LATEST_TIMESTAMP and knows:
        return upper, -1, partition.leader_epoch
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return -1, -1, -1  # nothing is tiered
    found = None
    if timestamp == MAX_TIMESTAMP:
        found = log.offset_of_max_timestamp()
        if found is not None and found[0] >= upper:
            found = None
    elif timestamp >= 0:
        found = log.offset_for_timestamp(timestamp, upper_offset=upper)
    elif timestamp != LATEST_TIMESTAMP:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} has no meaning here"
        )
    if found is None and not knows:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"{partition.topic_partition}: the leader of epoch {partition.leader_epoch} does not "
            "know yet what its followers have",
        )
    return found or (-1, -1, -1)
