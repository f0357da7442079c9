"""Values of a log: its state when it is opened, the result of an append; and its listeners."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkalite.log.leader_epochs import LeaderEpochFileCache
    from kafkalite.log.log import Log
    from kafkalite.log.producer_snapshots import Snapshots
    from kafkalite.log.producer_state import ProducerStates
    from kafkalite.log.segment import Segment
    from kafkalite.log.segments import Segments


class LogListener(Protocol):
    """Listener of a log: does later, or in a thread, what the log only notes."""

    def on_flush_due(self, log: "Log") -> None:
        """Data wait for `flush`: a segment was rolled, or flush.messages or flush.ms say so."""
        ...

    def on_start_moved(self, log: "Log") -> None:
        """`log_start_offset` is another; its checkpoint is out of date."""
        ...

    def on_truncated(self, log: "Log") -> None:
        """`recovery_point` may have gone back; its checkpoint must, before the next append.

        Else a crash would leave data below a recovery point that nobody ever made safe.
        """
        ...

    def on_segments_removed(self, log: "Log", segments: "Sequence[Segment]") -> None:
        """These were renamed to `.deleted`; their files can go in `file.delete.delay.ms`."""
        ...

    def on_failed(self, log: "Log") -> None:
        """`failure` is set: the log is offline until the broker starts again."""
        ...


@dataclass(slots=True, kw_only=True)
class LogState:
    """State of a log when it is opened; found by `recovery`."""

    segments: "Segments"
    snapshots: "Snapshots"
    epochs: "LeaderEpochFileCache"
    producers: "ProducerStates"
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


@dataclass(slots=True)
class AppendInfo:
    """Result of an append.

    Attributes:
        first_offset: of the first record; of the original if this was a duplicate.
        last_offset: of the last record, inclusive.
        log_append_time_ms: -1 for CreateTime topics.
        log_start_offset: of the log.
        duplicate: the producer had sent this batch before, nothing was appended (rule 56).
        size_bytes: appended.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool
    size_bytes: int
