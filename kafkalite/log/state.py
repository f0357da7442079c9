"""State of a log when it is opened, and its listeners from then on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkalite.log.files import LogFiles
    from kafkalite.log.leader_epochs import LeaderEpochFileCache
    from kafkalite.log.producer_snapshots import Snapshots
    from kafkalite.log.producer_state import ProducerStates
    from kafkalite.log.segment import Segment
    from kafkalite.log.segments import Segments


class LogListener(Protocol):
    """Listener of a log: does later, or in a thread, what the log only notes."""

    def on_flush_due(self, log: "LogFiles") -> None:
        """Data wait for `flush`: a segment was rolled, or flush.messages or flush.ms say so."""
        ...

    def on_start_moved(self, log: "LogFiles") -> None:
        """`log_start_offset` is another; its checkpoint is out of date."""
        ...

    def on_truncated(self, log: "LogFiles") -> None:
        """`recovery_point` may have gone back; its checkpoint must, before the next append.

        Else a crash would leave data below a recovery point that nobody ever made safe.
        """
        ...

    def on_segments_removed(self, log: "LogFiles", segments: "Sequence[Segment]") -> None:
        """These were renamed to `.deleted`; their files can go in `file.delete.delay.ms`."""
        ...

    def on_failed(self, log: "LogFiles") -> None:
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
