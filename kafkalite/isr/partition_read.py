"""Reads of a partition: what is asked and what is given, as plain values."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalite.log.region import FileRegion
    from kafkalite.log.transaction_index import AbortedTransaction

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6


class IsolationLevel(IntEnum):
    """Isolation level of a reader (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(slots=True)
class PartitionRead:
    """Result of a fetch of one partition.

    Ends are exclusive. `aborted` is None for read_uncommitted. `diverging` is set, and `region`
    empty, where the reader's last epoch ends before its fetch offset (KIP-595, rule 77). `has_more`
    tells that the reader may see more than fits its limit, or than one segment holds: to wait for
    still more would bring it nothing.
    """

    region: "FileRegion | None"
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: "list[AbortedTransaction] | None" = None
    diverging: tuple[int, int] | None = None
    has_more: bool = False
